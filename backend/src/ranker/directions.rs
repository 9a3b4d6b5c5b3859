//! The strongest directions of the documents' vectors, where rankers learn.
//!
//! A transformer's vector has more numbers than a text has words, and every pass of the solver reads them all; most of what they say lies
//! in a third as many directions. With E the documents' vectors and V an orthonormal basis of the subspace in which they are longest, rankers
//! learn u over E·V, and w = V·u says the same of a vector as it is: u·(Vᵀe) = w·e. A model never hears of it.

use gnnxml_shared::model::ranker::{ClusterRankers, LabelRanker};
use rayon::prelude::*;

use super::rows::dot_dense;
use crate::encoder::svd;

/// V, one direction a row: `count × dims`, orthonormal.
#[derive(Clone, Debug)]
pub struct Directions {
    rows: Vec<f32>,
    dims: usize,
}

impl Directions {
    /// The `count` strongest directions of `vectors` (one a row of `dims` numbers).
    pub fn strongest(vectors: &[f32], dims: usize, count: usize, seed: u64) -> Self {
        let count = count.min(dims);
        let basis = svd::leading_subspace(vectors, dims, count, seed);
        let rows = (0..count).flat_map(|column| basis.iter().skip(column).step_by(count).copied());
        Self {
            rows: rows.collect(),
            dims,
        }
    }

    /// How many directions there are.
    pub fn count(&self) -> usize {
        self.rows.len() / self.dims
    }

    /// Vᵀe of every vector, one a row.
    pub fn along(&self, vectors: &[f32]) -> Vec<f32> {
        let count = self.count();
        let mut reduced = vec![0.0; vectors.len() / self.dims * count];
        (reduced.par_chunks_exact_mut(count))
            .zip(vectors.par_chunks_exact(self.dims))
            .for_each(|(reduced, vector)| {
                for (x, direction) in reduced.iter_mut().zip(self.rows.chunks_exact(self.dims)) {
                    *x = dot_dense(direction, vector);
                }
            });
        reduced
    }

    /// The same rankers for vectors as they are: w = V·u.
    pub fn spread(&self, rankers: &ClusterRankers) -> ClusterRankers {
        let spread = rankers.to_labels().into_iter().map(|ranker| {
            let mut embedding = vec![0.0; self.dims];
            for (u, direction) in ranker.embedding.iter().zip(self.rows.chunks_exact(self.dims)) {
                for (w, v) in embedding.iter_mut().zip(direction) {
                    *w += u * v;
                }
            }
            LabelRanker { embedding, ..ranker }
        });
        ClusterRankers::new(spread.collect(), self.dims)
    }
}

#[cfg(test)]
mod tests {
    use gnnxml_shared::features::SparseVector;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Vectors of twelve numbers that lie in a plane, but for a little noise.
    fn flat(noise: f32) -> Vec<f32> {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let axes: Vec<f32> = (0..24).map(|_| random.random::<f32>() - 0.5).collect();
        (0..400)
            .flat_map(|_| {
                let (a, b) = (random.random::<f32>() - 0.5, random.random::<f32>() - 0.5);
                let made: Vec<f32> = (0..12)
                    .map(|i| a * axes[i] + b * axes[12 + i] + noise * (random.random::<f32>() - 0.5))
                    .collect();
                made
            })
            .collect()
    }

    #[test]
    fn two_directions_hold_a_plane() {
        let vectors = flat(0.0);
        let directions = Directions::strongest(&vectors, 12, 2, 1);
        let along = directions.along(&vectors);
        for (vector, reduced) in vectors.chunks_exact(12).zip(along.chunks_exact(2)) {
            let (whole, kept) = (dot_dense(vector, vector), dot_dense(reduced, reduced));
            assert!((whole - kept).abs() < 1e-5, "{whole} {kept}");
        }
    }

    #[test]
    fn spread_rankers_give_the_margins_that_were_learned() {
        let vectors = flat(0.2);
        let directions = Directions::strongest(&vectors, 12, 5, 1);
        let along = directions.along(&vectors);
        let ranker = LabelRanker {
            label: 7,
            bias: 0.25,
            words: vec![(1, 2.0)],
            embedding: vec![1.0, -2.0, 0.5, 3.0, -0.25],
        };
        let learned = ClusterRankers::new(vec![ranker], 5);
        let spread = directions.spread(&learned);
        assert_eq!((spread.labels(), spread.dims()), ([7].as_slice(), 12));
        let words = SparseVector {
            indices: vec![1],
            values: vec![0.5],
        };
        for (vector, reduced) in vectors.chunks_exact(12).zip(along.chunks_exact(5)) {
            let (expected, found) = (learned.margins(&words, reduced), spread.margins(&words, vector));
            assert!((expected[0] - found[0]).abs() < 1e-5, "{expected:?} {found:?}");
        }
    }

    #[test]
    fn more_directions_than_numbers_are_all_of_them() {
        let vectors = flat(0.2);
        assert_eq!(Directions::strongest(&vectors, 12, 40, 1).count(), 12);
    }
}
