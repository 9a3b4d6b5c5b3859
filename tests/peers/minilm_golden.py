"""Reference sentence vectors of all-MiniLM-L6-v2 for the golden test, by onnxruntime and the reference tokenizer.

  pip install onnx onnxruntime safetensors numpy tokenizers
  python minilm_golden.py MODEL_DIR > backend/src/encoder/tests/minilm.json
"""

import json
import os
import sys
import tempfile

import numpy as np
from onnx_encoder import session
from tokenizers import Tokenizer

SENTENCES = [
    "The committee adopted the proposal.",
    "1.",
    "fish",
    "Café naïve 中文, e-mail: a.b@example.org (2003/41/EC); H₂O!",
    "Measures to protect the stocks of cod in the waters of the North Sea and the west of Scotland were extended "
    "until the end of the year, since the scientific advice showed that the number of mature fish had fallen below "
    "the level at which the reproduction of the stock can be held to be safe.",
]


def main():
    directory = sys.argv[1]
    tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    with tempfile.TemporaryDirectory() as folder:
        runner = session(directory, "f32", 1, folder)
    golden = []
    for text in SENTENCES:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int32)
        (hidden,) = runner.run(None, {"ids": ids, "types": np.zeros_like(ids), "mask": np.ones_like(ids)})
        mean = hidden[0].mean(axis=0)
        vector = mean / np.linalg.norm(mean)
        golden.append({"text": text, "vector": [float(f"{x:.7g}") for x in vector]})
    json.dump(golden, sys.stdout, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
