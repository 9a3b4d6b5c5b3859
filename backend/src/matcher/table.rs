//! The word embedding's own descent: one step size for the whole table.
//!
//! Adam and its kin give every weight steps of one size, however rarely it is seen and however little its gradient says. A word of three
//! documents is then learned by heart: with RAdam row by row the loss on the documents learned from fell to 0.17 and recall fell with
//! it (docs/results/matcher.md). Here a row moves as far as its gradient is long beside those of the other words:
//!
//! ```text
//! v   = β₂·v + (1−β₂)·mean of g² over the rows of the step
//! E_w ← E_w − lr·(decay·E_w + g_w / √(v/(1−β₂ᵗ)))
//! ```

use rayon::prelude::*;

use super::radam::{Step, rows_of};

const BETA2: f64 = 0.999;

/// One step of the table's rows `rows` (ascending), whose gradients are `gradient`, row after row; `mean_square` is v. The other rows
/// rest.
pub(super) fn update_rows(
    table: &mut [f32],
    mean_square: &mut f32,
    width: usize,
    rows: &[u32],
    gradient: &[f32],
    step: Step,
) {
    if gradient.is_empty() {
        return;
    }
    let scale = f64::from(step.scale);
    let now = scale * scale * squared_length(gradient) / gradient.len() as f64;
    *mean_square = (BETA2 * f64::from(*mean_square) + (1.0 - BETA2) * now) as f32;
    let unbiased = f64::from(*mean_square) / (1.0 - BETA2.powf(step.t as f64));
    if unbiased == 0.0 {
        return;
    }
    let rate = step.rate * (scale / unbiased.sqrt()) as f32;
    let keep = 1.0 - step.rate * step.decay;
    let parts: Vec<_> = rows_of(table, width, rows)
        .zip(gradient.chunks_exact(width))
        .collect();
    parts
        .into_par_iter()
        .with_min_len(256)
        .for_each(|(row, gradient)| {
            for (weight, g) in row.iter_mut().zip(gradient) {
                *weight = *weight * keep - rate * g;
            }
        });
}

/// In sixteen lanes at a time, which vectors can hold; then in double precision.
pub(super) fn squared_length(values: &[f32]) -> f64 {
    const LANES: usize = 16;
    let mut length = 0.0;
    for part in values.chunks(1024) {
        let mut lanes = [0.0f32; LANES];
        for chunk in part.chunks(LANES) {
            for (lane, g) in lanes.iter_mut().zip(chunk) {
                *lane += g * g;
            }
        }
        length += lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(t: u64, decay: f32) -> Step {
        Step {
            t,
            rate: 0.1,
            scale: 0.5,
            decay,
        }
    }

    #[test]
    fn a_row_moves_as_far_as_its_gradient_is_long_beside_the_others() {
        // Scaled gradients 3, 0 and 0, 1: their mean square is 10/4, and so is v/(1−β₂) after one step.
        let mut table = [1.0f32; 10];
        let mut v = 0.0;
        update_rows(
            &mut table,
            &mut v,
            2,
            &[1, 4],
            &[6.0, 0.0, 0.0, 2.0],
            step(1, 0.0),
        );
        let unit = 0.1 / 2.5f32.sqrt();
        let expected = [
            1.0,
            1.0,
            1.0 - 3.0 * unit,
            1.0,
            1.0,
            1.0,
            1.0,
            1.0,
            1.0,
            1.0 - unit,
        ];
        for (found, expected) in table.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
        }
        assert!((f64::from(v) - 0.001 * 2.5).abs() < 1e-8);
    }

    #[test]
    fn v_forgets_slowly_and_rows_decay_when_they_are_touched() {
        let mut table = [1.0f32, 1.0];
        let mut v = 0.0;
        update_rows(&mut table, &mut v, 1, &[0], &[2.0], step(1, 0.0));
        update_rows(&mut table, &mut v, 1, &[0], &[4.0], step(2, 0.5));
        // v = 0.999·0.001·1 + 0.001·4; unbiased by 1 − 0.999²; θ = 0.9·(1 − 0.05) − 0.1·2/√v̂.
        let unbiased = (0.999 * 0.001 + 0.004) / (1.0 - 0.999f64.powi(2));
        let expected = 0.9 * 0.95 - 0.2 / unbiased.sqrt();
        assert!(
            (f64::from(table[0]) - expected).abs() < 1e-6,
            "{} is not {expected}",
            table[0]
        );
        assert_eq!(table[1], 1.0);
    }

    #[test]
    fn a_step_without_a_gradient_moves_nothing() {
        let mut table = [1.0f32, 2.0];
        let mut v = 0.0;
        update_rows(&mut table, &mut v, 1, &[0, 1], &[0.0, 0.0], step(1, 0.5));
        update_rows(&mut table, &mut v, 1, &[], &[], step(2, 0.5));
        assert_eq!((table, v), ([1.0, 2.0], 0.0));
    }
}
