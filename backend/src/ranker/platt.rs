//! Platt scaling: p = σ(A·m + B) from margins and outcomes, by Newton's method with a line search (Lin, Lin and Weng, 2007).
//!
//! One pair (A, B) for the whole model, fitted on held-out documents: a pair a label would rest on a handful of positives.

use gnnxml_shared::model::score::Sigmoid;

/// Fits σ(A·m + B) to `outcomes` (margin, whether the label was true).
///
/// Targets are smoothed as Platt proposes, so that separable outcomes do not send A to infinity. Without any outcome of
/// one kind the answer is the plain logistic, A = 1, B = 0.
pub fn fit(outcomes: &[(f32, bool)]) -> Sigmoid {
    let positives = outcomes.iter().filter(|o| o.1).count() as f64;
    let negatives = outcomes.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 {
        return Sigmoid {
            slope: 1.0,
            offset: 0.0,
        };
    }
    let high = (positives + 1.0) / (positives + 2.0);
    let low = 1.0 / (negatives + 2.0);
    let target = |truth: bool| if truth { high } else { low };
    // −Σ [t log p + (1−t) log(1−p)], with log(1+e^z) written so that neither side overflows.
    let objective = |slope: f64, offset: f64| -> f64 {
        outcomes
            .iter()
            .map(|&(margin, truth)| {
                let z = slope * f64::from(margin) + offset;
                let softplus = z.max(0.0) + (-z.abs()).exp().ln_1p();
                softplus - target(truth) * z
            })
            .sum()
    };
    let (mut slope, mut offset) = (1.0f64, (positives / negatives).ln());
    let mut value = objective(slope, offset);
    for _ in 0..100 {
        let (mut h11, mut h12, mut h22, mut g1, mut g2) = (1e-12, 0.0, 1e-12, 0.0, 0.0);
        for &(margin, truth) in outcomes {
            let m = f64::from(margin);
            let p = 1.0 / (1.0 + (-(slope * m + offset)).exp());
            let (spread, error) = (p * (1.0 - p), p - target(truth));
            h11 += m * m * spread;
            h12 += m * spread;
            h22 += spread;
            g1 += m * error;
            g2 += error;
        }
        if g1.abs() < 1e-5 && g2.abs() < 1e-5 {
            break;
        }
        let determinant = h11 * h22 - h12 * h12;
        if determinant.abs() < 1e-300 {
            break;
        }
        let (d1, d2) = (
            (h22 * g1 - h12 * g2) / -determinant,
            (h11 * g2 - h12 * g1) / -determinant,
        );
        let descent = g1 * d1 + g2 * d2;
        // What is left to gain drowns in the rounding of the sum: a line search would halve its step in vain.
        if -descent < 1e-12 * value {
            (slope, offset) = (slope + d1, offset + d2);
            break;
        }
        let mut step = 1.0;
        let mut moved = false;
        while step >= 1e-10 {
            let tried = objective(slope + step * d1, offset + step * d2);
            if tried < value + 1e-4 * step * descent {
                (slope, offset, value) = (slope + step * d1, offset + step * d2, tried);
                moved = true;
                break;
            }
            step /= 2.0;
        }
        if !moved {
            break;
        }
    }
    Sigmoid {
        slope: slope as f32,
        offset: offset as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcomes drawn from a known sigmoid, deterministically: `truth` as often as its probability says.
    fn outcomes_of(slope: f32, offset: f32) -> Vec<(f32, bool)> {
        let mut made = Vec::new();
        for step in -40..=40 {
            let margin = step as f32 / 10.0;
            let p = 1.0 / (1.0 + (-(slope * margin + offset)).exp());
            let yes = (p * 200.0).round() as usize;
            made.extend((0..200).map(|i| (margin, i < yes)));
        }
        made
    }

    #[test]
    fn a_known_sigmoid_is_found_again() {
        let found = fit(&outcomes_of(1.7, -0.6));
        assert!((found.slope - 1.7).abs() < 0.03, "{found:?}");
        assert!((found.offset + 0.6).abs() < 0.03, "{found:?}");
    }

    #[test]
    fn separable_outcomes_stay_finite() {
        let outcomes: Vec<_> = (-50..50).map(|i| (i as f32, i >= 0)).collect();
        let found = fit(&outcomes);
        assert!(found.slope.is_finite() && found.offset.is_finite());
        assert!(found.slope > 0.0);
    }

    #[test]
    fn outcomes_of_one_kind_leave_the_plain_logistic() {
        assert_eq!(
            fit(&[(1.0, true), (2.0, true)]),
            Sigmoid {
                slope: 1.0,
                offset: 0.0
            }
        );
        assert_eq!(
            fit(&[]),
            Sigmoid {
                slope: 1.0,
                offset: 0.0
            }
        );
    }
}
