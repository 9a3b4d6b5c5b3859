"""scikit-learn's MiniBatchKMeans on a raw matrix, timed: the yardstick of `gnnxml bench labels --peer`.

Usage: minibatch_kmeans.py MATRIX ROWS WIDTH CLUSTERS BATCH SEED...
MATRIX is row-major little-endian f32. One JSON line a seed: wall and CPU seconds of `fit`, and the inertia
over the whole matrix.
"""

import json
import sys
import time

import numpy
import sklearn
from sklearn.cluster import MiniBatchKMeans


def main() -> None:
    path, rows, width, clusters, batch = sys.argv[1], *map(int, sys.argv[2:6])
    matrix = numpy.fromfile(path, dtype="<f4").reshape(rows, width)
    # Threads, BLAS and caches awake before the first measured run.
    MiniBatchKMeans(n_clusters=2, n_init=1, max_iter=1, random_state=0).fit(matrix[:4096])
    for seed in map(int, sys.argv[6:]):
        model = MiniBatchKMeans(n_clusters=clusters, batch_size=batch, n_init=1, random_state=seed)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(matrix)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(
            json.dumps(
                {
                    "version": sklearn.__version__,
                    "seed": seed,
                    "seconds": wall,
                    "cpu_seconds": cpu,
                    "inertia": float(model.inertia_),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
