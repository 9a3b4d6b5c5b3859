//! `lsa`: latent semantic analysis. A sentence is its TF-IDF vector x projected on the right singular vectors of
//! the training corpus' document matrix A ≈ U Σ Vᵀ: normalise(x · P), P = V scaled (terms × dims).

use super::{SentenceEncoder, VectorTable};
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

/// `lsa` with the way from a text to its TF-IDF vector: a sentence encoder.
///
/// ```
/// use gnnxml_shared::features::SparseVector;
/// use gnnxml_shared::model::encoder::{Lsa, LsaEncoder, SentenceEncoder, VectorTable};
/// let lsa = Lsa::new(VectorTable::quantise(&[1.0, 0.0, 0.0, 1.0], 2).unwrap());
/// let letters = |text: &str| SparseVector { indices: vec![0], values: vec![text.len() as f32] };
/// let encoder = LsaEncoder::new(letters, lsa);
/// assert_eq!(encoder.encode(&["abc", ""]), [1.0, 0.0, 0.0, 0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct LsaEncoder<T> {
    terms: T,
    lsa: Lsa,
}

impl<T: Fn(&str) -> SparseVector> LsaEncoder<T> {
    /// Puts the terms' weights and the projection together; both over the same vocabulary.
    pub fn new(terms: T, lsa: Lsa) -> Self {
        Self { terms, lsa }
    }

    /// The projection.
    pub fn lsa(&self) -> &Lsa {
        &self.lsa
    }
}

impl<T: Fn(&str) -> SparseVector> SentenceEncoder for LsaEncoder<T> {
    fn dims(&self) -> usize {
        self.lsa.dims()
    }

    fn encode(&self, sentences: &[&str]) -> Vec<f32> {
        let mut vectors = vec![0.0; sentences.len() * self.dims()];
        for (text, vector) in sentences.iter().zip(vectors.chunks_exact_mut(self.dims())) {
            self.lsa.project(&(self.terms)(text), vector);
        }
        vectors
    }
}
