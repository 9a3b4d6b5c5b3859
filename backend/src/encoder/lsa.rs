//! Fitting `lsa`: TF-IDF rows of the corpus → randomised truncated SVD → the projection the page can hold.

use gnnxml_shared::features::SparseVector;
use gnnxml_shared::model::encoder::{Lsa, TableError, VectorTable};

use super::svd;

/// How P = V·diag(σ^power) weighs a direction by its singular value.
///
/// With power 0 (the usual choice) frequent directions keep the share the sentence gives them; −1 whitens.
/// Figures in docs/results/encoders.md.
pub const SINGULAR_POWER: f32 = 0.0;

/// Fits `lsa` on TF-IDF rows over a vocabulary of `n_terms`.
pub fn fit(rows: &[SparseVector], n_terms: usize, dims: usize, seed: u64) -> Result<Lsa, TableError> {
    fit_with_power(rows, n_terms, dims, seed, SINGULAR_POWER)
}

/// [`fit`] with another power of the singular values.
pub fn fit_with_power(
    rows: &[SparseVector],
    n_terms: usize,
    dims: usize,
    seed: u64,
    power: f32,
) -> Result<Lsa, TableError> {
    let mut svd = svd::right_singular(rows, n_terms, dims, seed);
    if power != 0.0 {
        let factors: Vec<f32> = svd
            .values
            .iter()
            .map(|&value| if value > 0.0 { value.powf(power) } else { 0.0 })
            .collect();
        for row in svd.vectors.chunks_exact_mut(dims) {
            for (x, factor) in row.iter_mut().zip(&factors) {
                *x *= factor;
            }
        }
    }
    Ok(Lsa::new(VectorTable::quantise(&svd.vectors, dims)?))
}
