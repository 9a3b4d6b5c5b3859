//! Logistic regression whose weights may be held above 0, by projected Newton steps (Bertsekas, 1982).
//!
//! ```text
//! min_w  Σ_i [ln(1 + e^{w·x_i}) − y_i·w·x_i] + ½·PENALTY·Σ_j (w_j·s_j)²      s_j: root mean square of column j
//! ```
//!
//! A sign of a label that counts against it would be an accident of the few documents the weights are fitted on, and nobody could
//! read the explanation. The problem is convex, so where a search over counted hits ends by chance, this has one answer.

/// Rows of equal length and what is true of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations<const K: usize> {
    rows: Vec<[f64; K]>,
    truth: Vec<bool>,
}

/// Keeps weights finite where a column tells true from false without a mistake; next to thousands of rows it is nothing.
const PENALTY: f64 = 0.4;
/// Newton steps at most; a dozen do.
const STEPS: usize = 100;

impl<const K: usize> Observations<K> {
    pub(super) fn add(&mut self, row: [f64; K], truth: bool) {
        self.rows.push(row);
        self.truth.push(truth);
    }

    /// The weights; those of `bounded` columns are at least 0. A column of zeros has weight 0.
    pub(super) fn fit(&self, bounded: [bool; K]) -> [f64; K] {
        let penalty: [f64; K] = std::array::from_fn(|j| {
            let squares: f64 = self.rows.iter().map(|row| row[j] * row[j]).sum();
            let mean = squares / self.rows.len().max(1) as f64;
            PENALTY * if mean > 0.0 { mean } else { 1.0 }
        });
        let mut weights = [0.0; K];
        let mut value = self.value(&weights, &penalty);
        for _ in 0..STEPS {
            let (gradient, hessian) = self.slope(&weights, &penalty);
            let held = |j: usize| bounded[j] && weights[j] <= 0.0 && gradient[j] > 0.0;
            let direction = newton(&gradient, &hessian, held);
            let descent: f64 = (0..K).map(|j| gradient[j] * direction[j]).sum();
            if -descent < 1e-10 * value {
                break;
            }
            let mut length = 1.0;
            let tried = loop {
                let tried: [f64; K] = std::array::from_fn(|j| {
                    let moved = weights[j] + length * direction[j];
                    if bounded[j] { moved.max(0.0) } else { moved }
                });
                let gained: f64 = (0..K).map(|j| gradient[j] * (tried[j] - weights[j])).sum();
                let reached = self.value(&tried, &penalty);
                if reached <= value + 1e-4 * gained {
                    break Some((tried, reached));
                }
                length /= 2.0;
                if length < 1e-9 {
                    break None;
                }
            };
            match tried {
                Some((tried, reached)) => (weights, value) = (tried, reached),
                None => break,
            }
        }
        weights
    }

    fn value(&self, weights: &[f64; K], penalty: &[f64; K]) -> f64 {
        let loss: f64 = (self.rows.iter().zip(&self.truth))
            .map(|(row, &truth)| {
                let t = dot(weights, row);
                t.max(0.0) + (-t.abs()).exp().ln_1p() - if truth { t } else { 0.0 }
            })
            .sum();
        let size: f64 = (0..K).map(|j| penalty[j] * weights[j] * weights[j]).sum();
        loss + 0.5 * size
    }

    fn slope(&self, weights: &[f64; K], penalty: &[f64; K]) -> ([f64; K], [[f64; K]; K]) {
        let mut gradient: [f64; K] = std::array::from_fn(|j| penalty[j] * weights[j]);
        let mut hessian = [[0.0; K]; K];
        for (row, &truth) in self.rows.iter().zip(&self.truth) {
            let q = 1.0 / (1.0 + (-dot(weights, row)).exp());
            let error = q - f64::from(u8::from(truth));
            let spread = q * (1.0 - q);
            for j in 0..K {
                gradient[j] += error * row[j];
                for i in 0..=j {
                    hessian[j][i] += spread * row[j] * row[i];
                }
            }
        }
        for j in 0..K {
            hessian[j][j] += penalty[j];
        }
        (gradient, hessian)
    }
}

fn dot<const K: usize>(a: &[f64; K], b: &[f64; K]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// −H⁻¹g over the weights that are not held, by Cholesky's factors of the lower triangle; 0 for those held.
fn newton<const K: usize>(
    gradient: &[f64; K],
    hessian: &[[f64; K]; K],
    held: impl Fn(usize) -> bool,
) -> [f64; K] {
    let mut factor = [[0.0; K]; K];
    for j in 0..K {
        for i in 0..=j {
            let of_hessian = match (held(j) || held(i), i == j) {
                (true, same) => f64::from(u8::from(same)),
                (false, _) => hessian[j][i],
            };
            let rest: f64 = (0..i).map(|k| factor[j][k] * factor[i][k]).sum();
            factor[j][i] = if i == j {
                (of_hessian - rest).max(1e-12).sqrt()
            } else {
                (of_hessian - rest) / factor[i][i]
            };
        }
    }
    let mut found = [0.0; K];
    for j in 0..K {
        let right = if held(j) { 0.0 } else { -gradient[j] };
        let rest: f64 = (0..j).map(|k| factor[j][k] * found[k]).sum();
        found[j] = (right - rest) / factor[j][j];
    }
    for j in (0..K).rev() {
        let rest: f64 = (j + 1..K).map(|k| factor[k][j] * found[k]).sum();
        found[j] = (found[j] - rest) / factor[j][j];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grid of rows, each as often true as σ of its weighted sum says.
    fn drawn(weights: [f64; 3]) -> Observations<3> {
        let mut made = Observations::default();
        for a in -8..=8 {
            for b in -8..=8 {
                let row = [f64::from(a) / 4.0, f64::from(b) / 4.0, 1.0];
                let often = (200.0 / (1.0 + (-dot(&weights, &row)).exp())).round() as usize;
                for nth in 0..200 {
                    made.add(row, nth < often);
                }
            }
        }
        made
    }

    #[test]
    fn weights_that_made_the_outcomes_are_found_again() {
        let found = drawn([1.5, 0.25, -1.0]).fit([true, true, false]);
        for (found, expected) in found.iter().zip([1.5, 0.25, -1.0]) {
            assert!((found - expected).abs() < 0.02, "{found} {expected}");
        }
    }

    #[test]
    fn a_bounded_weight_ends_at_nought_and_the_others_are_the_best_without_it() {
        let outcomes = drawn([1.5, -0.5, -1.0]);
        let found = outcomes.fit([true, true, false]);
        assert_eq!(found[1], 0.0);
        let mut without = outcomes.clone();
        without.rows.iter_mut().for_each(|row| row[1] = 0.0);
        for (found, expected) in found.iter().zip(without.fit([true, true, false])) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
        assert!(outcomes.fit([false; 3])[1] < -0.45);
    }

    #[test]
    fn no_small_move_that_is_allowed_gets_better() {
        let outcomes = drawn([0.7, -0.2, 0.4]);
        let penalty = [0.4; 3];
        let bounded = [true, true, false];
        let found = outcomes.fit(bounded);
        let (gradient, _) = outcomes.slope(&found, &penalty);
        for j in 0..3 {
            let mut moved = found;
            moved[j] += 1e-5;
            let difference = (outcomes.value(&moved, &penalty) - outcomes.value(&found, &penalty)) / 1e-5;
            assert!(
                (difference - gradient[j]).abs() < 0.5,
                "{difference} {}",
                gradient[j]
            );
            // Per row, of 57,800.
            let slope = gradient[j] / outcomes.rows.len() as f64;
            assert!(
                slope.abs() < 1e-4 || (found[j] == 0.0 && slope > 0.0),
                "{j}: {slope}"
            );
        }
    }

    #[test]
    fn columns_that_separate_or_say_nothing_stay_finite() {
        let mut outcomes = Observations::default();
        for nth in 0..20 {
            outcomes.add([f64::from(nth) - 9.5, 0.0, 1.0], nth >= 10);
        }
        let found = outcomes.fit([true, true, false]);
        assert!(found[0] > 0.1 && found[0] < 100.0 && found[1] == 0.0, "{found:?}");
        assert_eq!(Observations::<2>::default().fit([true, false]), [0.0; 2]);
    }
}
