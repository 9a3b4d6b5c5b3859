//! What both solvers share: the problem of one label, its costs, its dual variables.

use super::Rows;

/// One binary problem: some rows of the shared matrix, each positive or negative.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    pub rows: &'a Rows,
    /// Rows that take part, ascending.
    pub documents: &'a [u32],
    /// Those of them that hold the label, ascending; a subset of `documents`.
    pub positives: &'a [u32],
    pub costs: Costs,
}

/// C for positive and for negative documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    pub positive: f64,
    pub negative: f64,
}

impl Costs {
    /// The same C for both.
    pub fn even(cost: f64) -> Self {
        Self {
            positive: cost,
            negative: cost,
        }
    }
}

/// When to stop, and which order documents are visited in.
#[derive(Clone, Copy, Debug)]
pub struct SolverOptions {
    /// LIBLINEAR's ε.
    pub tolerance: f64,
    pub max_iterations: usize,
    pub seed: u64,
}

impl Default for SolverOptions {
    fn default() -> Self {
        Self {
            tolerance: 0.1,
            max_iterations: 1000,
            seed: 0,
        }
    }
}

/// The dual variables of a solved problem, the ones at zero left out: where a warm start begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dual {
    /// Row and α, rows ascending.
    pub alphas: Vec<(u32, f32)>,
    /// Passes over the documents.
    pub iterations: usize,
}

impl Problem<'_> {
    /// +1 or −1 for each document.
    pub(super) fn signs(&self) -> Vec<f32> {
        let mut positives = self.positives.iter().peekable();
        let signs = self.documents.iter().map(|document| {
            while positives.next_if(|&p| p < document).is_some() {}
            if positives.peek() == Some(&document) {
                1.0
            } else {
                -1.0
            }
        });
        signs.collect()
    }

    /// The α of an earlier solution laid over today's documents; 0 for documents it did not know.
    pub(super) fn warm(&self, start: Option<&Dual>) -> Vec<f32> {
        let mut alphas = vec![0.0; self.documents.len()];
        if let Some(start) = start {
            let mut known = start.alphas.iter().peekable();
            for (alpha, document) in alphas.iter_mut().zip(self.documents) {
                while known.next_if(|k| k.0 < *document).is_some() {}
                if let Some((_, value)) = known.next_if(|k| k.0 == *document) {
                    *alpha = *value;
                }
            }
        }
        alphas
    }

    /// ½‖w‖² + Σ C_i·loss(y_i w·x_i), in double precision: what the solvers minimise.
    pub fn objective(&self, weights: &[f32], loss: impl Fn(f64) -> f64) -> f64 {
        let norm: f64 = weights.iter().map(|&w| f64::from(w) * f64::from(w)).sum();
        let losses = self.documents.iter().zip(self.signs()).map(|(&document, sign)| {
            let cost = if sign > 0.0 {
                self.costs.positive
            } else {
                self.costs.negative
            };
            cost * loss(f64::from(sign) * f64::from(self.rows.dot(document as usize, weights)))
        });
        0.5 * norm + losses.sum::<f64>()
    }
}

/// A small, fast generator for visiting orders (splitmix64): the order needs no quality beyond being mixed.
#[derive(Clone, Debug)]
pub(super) struct Order(u64);

impl Order {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            let other = ((u128::from(self.next()) * (last as u128 + 1)) >> 64) as usize;
            items.swap(last, other);
        }
    }
}
