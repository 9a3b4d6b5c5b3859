//! Which documents meet in a mini-batch: the uniform and the reversed sampler.
//!
//! Batch b of epoch e is a pure function of (seed, e, b), so a resumed run needs three numbers to go on as if it had never stopped.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::lists::Lists;

/// Each document once an epoch, in a fresh order.
#[derive(Clone, Debug)]
pub struct UniformSampler {
    seed: u64,
    documents: usize,
}

impl UniformSampler {
    pub fn new(seed: u64, documents: usize) -> Self {
        Self { seed, documents }
    }

    /// The order of epoch `epoch`.
    pub fn epoch(&self, epoch: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.documents as u32).collect();
        order.shuffle(&mut generator(self.seed, epoch, 0));
        order
    }
}

/// Draws a label with p_ℓ ∝ n_max/n_ℓ, then a document of it uniformly, with replacement. Labels without a document are never drawn.
#[derive(Clone, Debug)]
pub struct ReversedSampler<'a> {
    seed: u64,
    label_documents: &'a Lists,
    /// Labels that can be drawn and the running sums of their weights.
    labels: Vec<u32>,
    cumulative: Vec<f64>,
}

impl<'a> ReversedSampler<'a> {
    pub fn new(seed: u64, label_documents: &'a Lists) -> Self {
        let mut labels = Vec::new();
        let mut cumulative = Vec::new();
        let mut sum = 0.0;
        for label in 0..label_documents.len() {
            let count = label_documents.row(label).len();
            if count > 0 {
                // n_max is the same for all and cancels out.
                sum += 1.0 / count as f64;
                labels.push(label as u32);
                cumulative.push(sum);
            }
        }
        Self {
            seed,
            label_documents,
            labels,
            cumulative,
        }
    }

    /// Whether no label has a document.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The `count` (label, document) draws of batch `batch` of epoch `epoch`.
    pub fn draw(&self, epoch: u64, batch: u64, count: usize) -> Vec<(u32, u32)> {
        let mut random = generator(self.seed, epoch, batch + 1);
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        (0..count)
            .map(|_| {
                let at = random.random::<f64>() * total;
                let place = self
                    .cumulative
                    .partition_point(|&sum| sum <= at)
                    .min(self.labels.len() - 1);
                let label = self.labels[place];
                let documents = self.label_documents.row(label as usize);
                (label, documents[random.random_range(0..documents.len())])
            })
            .collect()
    }
}

/// An independent stream of random numbers for every purpose.
pub(super) fn generator(seed: u64, epoch: u64, stream: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    random.set_stream(stream);
    random
}

#[cfg(test)]
mod tests {
    use super::*;

    /// χ² of observed counts against expected ones, over the cells.
    fn chi_square(observed: &[f64], expected: &[f64]) -> f64 {
        observed
            .iter()
            .zip(expected)
            .map(|(o, e)| (o - e) * (o - e) / e)
            .sum()
    }

    #[test]
    fn the_uniform_sampler_shows_each_document_once_an_epoch_in_another_order() {
        let sampler = UniformSampler::new(3, 500);
        let (first, second) = (sampler.epoch(0), sampler.epoch(1));
        assert_ne!(first, second);
        assert_eq!(first, sampler.epoch(0));
        for mut order in [first, second] {
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..500));
        }
    }

    #[test]
    fn every_place_of_the_uniform_order_is_equally_likely() {
        // Where document 0 of 20 lands over 4,000 epochs; 19 degrees of freedom: 0.1 % of fair samplers exceed 43.8.
        let sampler = UniformSampler::new(11, 20);
        let mut places = [0.0; 20];
        for epoch in 0..4000 {
            places[sampler.epoch(epoch).iter().position(|&d| d == 0).unwrap()] += 1.0;
        }
        assert!(chi_square(&places, &[200.0; 20]) < 43.8);
    }

    #[test]
    fn reversed_label_frequencies_are_inverse_to_their_counts() {
        // Counts 1, 2, 4, 8, 0: weights 8, 4, 2, 1 of 15, and a label without documents never.
        let rows: Vec<Vec<u32>> = vec![vec![0], vec![1, 2], vec![3, 4, 5, 6], (7..15).collect(), vec![]];
        let lists = Lists::from_rows(&rows);
        let sampler = ReversedSampler::new(5, &lists);
        let mut labels = [0.0; 5];
        let mut documents = [0.0; 15];
        let batches = 300;
        for batch in 0..batches {
            for (label, document) in sampler.draw(2, batch, 100) {
                assert!(rows[label as usize].contains(&document));
                labels[label as usize] += 1.0;
                documents[document as usize] += 1.0;
            }
        }
        let total = (batches * 100) as f64;
        let expected = [8.0, 4.0, 2.0, 1.0].map(|w| w / 15.0 * total);
        assert_eq!(labels[4], 0.0);
        // 3 degrees of freedom: 0.1 % of right samplers exceed 16.3.
        assert!(chi_square(&labels[..4], &expected) < 16.3, "{labels:?}");
        // Documents within a label are uniform: 14 degrees of freedom, 36.1.
        let of_document: Vec<f64> = (0..4)
            .flat_map(|l| vec![expected[l] / rows[l].len() as f64; rows[l].len()])
            .collect();
        assert!(chi_square(&documents, &of_document) < 36.1, "{documents:?}");
    }

    #[test]
    fn a_draw_depends_on_seed_epoch_and_batch_alone() {
        let lists = Lists::from_rows(&[vec![0, 1, 2], vec![3]]);
        let sampler = ReversedSampler::new(9, &lists);
        assert_eq!(
            sampler.draw(1, 2, 50),
            ReversedSampler::new(9, &lists).draw(1, 2, 50)
        );
        assert_ne!(sampler.draw(1, 2, 50), sampler.draw(1, 3, 50));
        assert_ne!(sampler.draw(1, 2, 50), sampler.draw(2, 2, 50));
    }
}
