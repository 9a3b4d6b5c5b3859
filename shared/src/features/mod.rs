//! Sparse bag-of-words features: TF-IDF with the same tokens on server and page.
//!
//! Nothing here reads a corpus: a [`TfIdfBuilder`] is shown texts one by one and becomes a [`TfIdf`], which turns any
//! text into a [`SparseVector`]. Start reading at [`TfIdf`].

use serde::{Deserialize, Serialize};

mod builder;
mod terms;
mod tfidf;

pub use builder::TfIdfBuilder;
pub use terms::{is_lead_term, words_of_term};
pub use tfidf::{TfIdf, TfIdfError, TfIdfOptions, TfIdfParts, TransformScratch};

#[cfg(test)]
mod tests;

/// A sparse vector: ascending indices, one value each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SparseVector {
    pub indices: Vec<u32>,
    pub values: Vec<f32>,
}

impl SparseVector {
    /// Number of stored entries.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.indices.iter().copied().zip(self.values.iter().copied())
    }

    /// Euclidean length.
    pub fn norm(&self) -> f32 {
        self.values
            .iter()
            .map(|&value| f64::from(value).powi(2))
            .sum::<f64>()
            .sqrt() as f32
    }
}
