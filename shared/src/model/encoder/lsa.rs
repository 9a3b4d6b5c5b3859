//! `lsa`: latent semantic analysis. A sentence is its TF-IDF vector x projected on the right singular vectors of
//! the training corpus' document matrix A ≈ U Σ Vᵀ: normalise(x · P), P = V scaled (terms × dims).

use super::VectorTable;
use crate::features::SparseVector;

/// The projection P of `lsa`, one row a term of the TF-IDF vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub struct Lsa {
    projection: VectorTable,
}

impl Lsa {
    /// An encoder from its projection (one row a term).
    pub fn new(projection: VectorTable) -> Self {
        Self { projection }
    }

    /// P.
    pub fn projection(&self) -> &VectorTable {
        &self.projection
    }

    /// Width of a vector.
    pub fn dims(&self) -> usize {
        self.projection.dims()
    }

    /// normalise(x · P) for one TF-IDF vector. Terms the projection does not know are left out.
    pub fn project(&self, tfidf: &SparseVector, into: &mut [f32]) {
        self.projection
            .normalised_sum(tfidf.iter().map(|(term, value)| (term as usize, value)), into);
    }
}
