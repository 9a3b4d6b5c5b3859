//! Generated label sets of a given shape, to measure growth where no corpus can be had.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::rows::normalise;
use super::{DenseRows, DocumentLabels, LabelError};

/// The shape of a vocabulary and its corpus.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub labels: usize,
    pub documents: usize,
    /// Mean labels a document.
    pub labels_per_document: f64,
    /// Width of the label vectors.
    pub width: usize,
    /// Topics the labels fall into; labels of one topic share documents and have similar vectors.
    pub topics: usize,
    pub seed: u64,
}

impl Shape {
    /// Which topic a label belongs to: topics are runs of labels.
    pub fn topic_of(&self, label: usize) -> usize {
        label * self.topics / self.labels
    }

    /// Documents with labels of mostly one topic, label frequencies falling off as a power law inside it.
    pub fn documents(&self) -> Result<DocumentLabels, LabelError> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut documents = DocumentLabels::new(self.labels);
        let mut labels = Vec::new();
        for document in 0..self.documents {
            // Every label is seen once before popularity decides.
            let anchor = if document < self.labels {
                (document * 7919) % self.labels
            } else {
                rng.random_range(0..self.labels)
            };
            let topic = self.topic_of(anchor);
            let first = (topic * self.labels).div_ceil(self.topics);
            let last = ((topic + 1) * self.labels).div_ceil(self.topics).max(first + 1);
            let size = (last - first) as f64;
            labels.clear();
            labels.push(anchor as u32);
            // A geometric number of further labels with the wanted mean.
            let go_on = 1.0 - 1.0 / self.labels_per_document.max(1.0);
            while rng.random::<f64>() < go_on && labels.len() < 200 {
                let label = if rng.random::<f64>() < 0.9 {
                    let rank = size.powf(rng.random::<f64>()) - 1.0;
                    first + (rank as usize).min(last - first - 1)
                } else {
                    rng.random_range(0..self.labels)
                };
                labels.push(label as u32);
            }
            documents.push(&labels)?;
        }
        Ok(documents)
    }

    /// Unit label vectors: the topic's direction and as much of the label's own.
    pub fn vectors(&self) -> DenseRows {
        let noise = |stream: u64, row: &mut [f32], scale: f32| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ stream);
            for value in row {
                *value += scale * rng.random_range(-1.0f32..1.0);
            }
        };
        let mut values = vec![0f32; self.labels * self.width];
        values
            .par_chunks_mut(self.width)
            .enumerate()
            .for_each(|(label, row)| {
                noise(0x746f_7069_6300_0000 ^ self.topic_of(label) as u64, row, 1.0);
                noise(0x6c61_6265_6c00_0000 ^ label as u64, row, 1.0);
                normalise(row);
            });
        DenseRows::trusted(values, self.width)
    }
}
