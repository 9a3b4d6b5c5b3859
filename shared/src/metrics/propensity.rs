//! How likely a relevant label is to have been given at all (Jain, Prabhu and Varma 2016).

use serde::{Deserialize, Serialize};

/// The two constants of the propensity model. The repository's defaults are A = 0.55, B = 1.5; Wikipedia corpora use
/// A = 0.5, B = 0.4, Amazon corpora A = 0.6, B = 2.6.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Propensity {
    pub a: f64,
    pub b: f64,
}

impl Default for Propensity {
    fn default() -> Self {
        Self { a: 0.55, b: 1.5 }
    }
}

/// p_ℓ = 1 / (1 + C·(n_ℓ + B)^−A) with C = (ln N − 1)·(B + 1)^A.
///
/// `n_l` training documents of `n` carry the label. Below N = e the formula leaves the range of probabilities;
/// there C is taken as 0 and every propensity is 1.
///
/// ```
/// use gnnxml_shared::metrics::label_propensity;
/// assert!(label_propensity(1, 10_000, 0.55, 1.5) < label_propensity(100, 10_000, 0.55, 1.5));
/// ```
pub fn label_propensity(n_l: u64, n: u64, a: f64, b: f64) -> f64 {
    let c = ((n.max(1) as f64).ln() - 1.0).max(0.0) * (b + 1.0).powf(a);
    1.0 / (1.0 + c * (n_l as f64 + b).powf(-a))
}

/// What the training corpus says about each label: its count, and from it its weight 1/p_ℓ.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelFrequencies {
    counts: Vec<u32>,
    inverse: Vec<f64>,
}

impl LabelFrequencies {
    /// `counts[ℓ]`: how many of the `documents` training documents carry label ℓ.
    pub fn new(counts: Vec<u32>, documents: u64, propensity: Propensity) -> Self {
        let inverse = counts
            .iter()
            .map(|&count| 1.0 / label_propensity(u64::from(count), documents, propensity.a, propensity.b))
            .collect();
        Self { counts, inverse }
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Training documents of the label.
    pub fn count(&self, label: u32) -> u32 {
        self.counts[label as usize]
    }

    /// 1/p_ℓ, at least 1.
    pub fn inverse_propensity(&self, label: u32) -> f64 {
        self.inverse[label as usize]
    }
}
