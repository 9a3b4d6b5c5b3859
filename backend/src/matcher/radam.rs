//! RAdam (Liu et al. 2020), for the dense weights and, where [`super::WordDescent`] says so, row by row for the word embedding.
//!
//! Master weights and moments are `f32` on the host whatever device computes the gradients: the embedding's rows are touched
//! a few thousand at a time, and mixed precision needs master weights anyway.

use rayon::prelude::*;

use super::wide::update_wide;

/// The optimiser's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RAdam {
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
}

impl Default for RAdam {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
        }
    }
}

/// What step t multiplies m and divides by √v with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepFactors {
    /// 1/(1−β₁ᵗ).
    pub first: f64,
    /// `None` while the variance is not tractable (ρ_t ≤ 4); else (r_t, 1/(1−β₂ᵗ)).
    pub rectified: Option<(f64, f64)>,
}

impl RAdam {
    /// Factors of step `t`, from 1: ρ_∞ = 2/(1−β₂) − 1, ρ_t = ρ_∞ − 2tβ₂ᵗ/(1−β₂ᵗ),
    /// r_t = √((ρ_t−4)(ρ_t−2)ρ_∞ / ((ρ_∞−4)(ρ_∞−2)ρ_t)).
    pub fn factors(&self, t: u64) -> StepFactors {
        let power1 = self.beta1.powf(t as f64);
        let power2 = self.beta2.powf(t as f64);
        let rho_max = 2.0 / (1.0 - self.beta2) - 1.0;
        let rho = rho_max - 2.0 * t as f64 * power2 / (1.0 - power2);
        let rectified = (rho > 4.0).then(|| {
            let r = ((rho - 4.0) * (rho - 2.0) * rho_max / ((rho_max - 4.0) * (rho_max - 2.0) * rho)).sqrt();
            (r, 1.0 / (1.0 - power2))
        });
        StepFactors {
            first: 1.0 / (1.0 - power1),
            rectified,
        }
    }

    /// θ ← θ − lr·r_t·m̂/(√v̂ + ε), or θ − lr·m̂ while the variance is not tractable. `scale` multiplies the gradient first (clipping),
    /// `rates` each weight's lr.
    pub fn update(
        &self,
        weights: &mut [f32],
        gradient: &[f32],
        moments: (&mut [f32], &mut [f32]),
        rates: &[f32],
        step: Step,
    ) {
        update_wide(
            self,
            weights,
            gradient,
            moments,
            rates,
            step,
            self.factors(step.t),
        );
    }

    /// [`update`](Self::update) with the factors of its step at hand.
    #[inline(always)]
    pub(super) fn update_by(
        &self,
        weights: &mut [f32],
        gradient: &[f32],
        (m, v): (&mut [f32], &mut [f32]),
        rates: &[f32],
        step: Step,
        factors: StepFactors,
    ) {
        let StepFactors { first, rectified } = factors;
        let (b1, b2) = (self.beta1 as f32, self.beta2 as f32);
        let scale = step.scale;
        let shrink = step.rate * step.decay;
        match rectified {
            Some((r, second)) => {
                let rate = step.rate * (r * first) as f32;
                let second = second as f32;
                let epsilon = self.epsilon as f32;
                let weights = weights.iter_mut().zip(rates);
                for ((((w, &own), &g), m), v) in weights.zip(gradient).zip(m).zip(v) {
                    let g = g * scale;
                    *m = b1 * *m + (1.0 - b1) * g;
                    *v = b2 * *v + (1.0 - b2) * g * g;
                    *w -= own * (shrink * *w + rate * *m / ((*v * second).sqrt() + epsilon));
                }
            }
            None => {
                let rate = step.rate * first as f32;
                let weights = weights.iter_mut().zip(rates);
                for ((((w, &own), &g), m), v) in weights.zip(gradient).zip(m).zip(v) {
                    let g = g * scale;
                    *m = b1 * *m + (1.0 - b1) * g;
                    *v = b2 * *v + (1.0 - b2) * g * g;
                    *w -= own * (shrink * *w + rate * *m);
                }
            }
        }
    }

    /// [`update`](Self::update) of the whole dense vector, in parallel; the result does not depend on the thread count.
    pub fn update_dense(
        &self,
        weights: &mut [f32],
        gradient: &[f32],
        (m, v): (&mut [f32], &mut [f32]),
        rates: &[f32],
        step: Step,
    ) {
        const PART: usize = 1 << 14;
        let parts = weights.par_chunks_mut(PART).zip(gradient.par_chunks(PART));
        let moments = m.par_chunks_mut(PART).zip(v.par_chunks_mut(PART));
        parts
            .zip(moments)
            .zip(rates.par_chunks(PART))
            .for_each(|(((w, g), moments), rates)| self.update(w, g, moments, rates, step));
    }

    /// [`update`](Self::update) of the table's rows `rows` alone (ascending), whose gradients are `gradient`, row after row.
    /// A row's moments rest while no document of a batch holds its word.
    pub fn update_rows(
        &self,
        table: &mut [f32],
        (m, v): (&mut [f32], &mut [f32]),
        width: usize,
        rows: &[u32],
        gradient: &[f32],
        step: Step,
    ) {
        let mut parts = Vec::with_capacity(rows.len());
        let moments = rows_of(m, width, rows).zip(rows_of(v, width, rows));
        for ((row, gradient), moments) in rows_of(table, width, rows)
            .zip(gradient.chunks_exact(width))
            .zip(moments)
        {
            parts.push((row, gradient, moments));
        }
        let rates = vec![1.0; width];
        let factors = self.factors(step.t);
        parts
            .into_par_iter()
            .with_min_len(256)
            .for_each(|(row, gradient, moments)| {
                update_wide(self, row, gradient, moments, &rates, step, factors);
            });
    }
}

/// A table's rows `rows` (ascending): disjoint parts that threads may change at once.
pub(super) fn rows_of<'a>(
    table: &'a mut [f32],
    width: usize,
    rows: &'a [u32],
) -> impl Iterator<Item = &'a mut [f32]> {
    let (mut rest, mut passed) = (table, 0);
    rows.iter().map(move |&row| {
        let from = std::mem::take(&mut rest)
            .split_at_mut((row as usize - passed) * width)
            .1;
        let (own, after) = from.split_at_mut(width);
        (rest, passed) = (after, row as usize + 1);
        own
    })
}

/// One step's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// From 1.
    pub t: u64,
    /// Learning rate.
    pub rate: f32,
    /// Factor on the gradient.
    pub scale: f32,
    /// Decoupled weight decay.
    pub decay: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_update_on_a_hand_worked_sequence() {
        // β₁ = 0.5, β₂ = 0.75: ρ_∞ = 7. Gradients 1, then 0.5 each, from θ = 1 with rate 0.1.
        // ρ_1 = 7 − 2·0.75/0.25 = 1;            m = 0.5, v = 0.25;      m̂ = 1;            θ = 1 − 0.1 = 0.9
        // ρ_2 = 7 − 4·0.5625/0.4375 = 1.857;    m = 0.5, v = 0.25;      m̂ = 0.5/0.75;     θ = 0.9 − 0.066667 = 0.833333
        // ρ_3 = 7 − 6·0.421875/0.578125 = 2.622; m̂ = 0.5/0.875 = 0.571429;                θ = 0.776190
        // ρ_4 = 7 − 8·0.316406/0.683594 = 3.297; m̂ = 0.5/0.9375 = 0.533333;               θ = 0.722857
        // ρ_5 = 7 − 10·0.237305/0.762695 = 3.888; m̂ = 0.5/0.96875 = 0.516129;             θ = 0.671244
        // ρ_6 = 7 − 12·0.177979/0.822021 = 4.401841; r = √(0.401841·2.401841·7/(3·5·4.401841)) = 0.319865;
        //       v = 0.25, v̂ = 0.25/0.822021 = 0.304128, √ = 0.551478; m̂ = 0.5/0.984375 = 0.507937;
        //       θ = 0.671244 − 0.1·0.319865·0.507937/0.551478 = 0.641782
        let radam = RAdam {
            beta1: 0.5,
            beta2: 0.75,
            epsilon: 0.0,
        };
        let (mut w, mut m, mut v) = ([1.0f32], [0.0f32], [0.0f32]);
        let gradients = [1.0f32, 0.5, 0.5, 0.5, 0.5, 0.5];
        let expected = [0.9, 0.833_333, 0.776_190, 0.722_857, 0.671_244, 0.641_782];
        for (i, (gradient, expected)) in gradients.iter().zip(expected).enumerate() {
            let step = Step {
                t: i as u64 + 1,
                rate: 0.1,
                scale: 1.0,
                decay: 0.0,
            };
            radam.update(&mut w, &[*gradient], (&mut m, &mut v), &[1.0], step);
            assert!(
                (w[0] - expected).abs() < 2e-6,
                "step {}: {} instead of {expected}",
                i + 1,
                w[0]
            );
        }
    }

    #[test]
    fn with_the_usual_betas_the_first_four_steps_are_not_rectified() {
        let radam = RAdam::default();
        assert!((1..=4).all(|t| radam.factors(t).rectified.is_none()));
        assert!((5..=10_000).all(|t| {
            radam
                .factors(t)
                .rectified
                .is_some_and(|(r, _)| r > 0.0 && r <= 1.0)
        }));
    }

    #[test]
    fn rows_move_as_the_dense_update_moves_them_and_the_others_rest() {
        let radam = RAdam::default();
        let width = 3;
        let mut table: Vec<f32> = (0..15).map(|i| i as f32).collect();
        let before = table.clone();
        let (mut m, mut v) = (vec![0.1; 15], vec![0.2; 15]);
        let gradient = [1.0f32, -1.0, 2.0, 0.5, 0.0, -3.0];
        let step = Step {
            t: 20,
            rate: 0.1,
            scale: 0.5,
            decay: 0.01,
        };
        radam.update_rows(&mut table, (&mut m, &mut v), width, &[1, 4], &gradient, step);
        for (row, part) in [(1, &gradient[..3]), (4, &gradient[3..])] {
            let mut w = before[row * 3..row * 3 + 3].to_vec();
            let (mut m1, mut v1) = (vec![0.1; 3], vec![0.2; 3]);
            radam.update(&mut w, part, (&mut m1, &mut v1), &[1.0; 3], step);
            assert_eq!(w, &table[row * 3..row * 3 + 3]);
            assert_eq!(m1, &m[row * 3..row * 3 + 3]);
            assert_eq!(v1, &v[row * 3..row * 3 + 3]);
        }
        for row in [0, 2, 3] {
            assert_eq!(before[row * 3..row * 3 + 3], table[row * 3..row * 3 + 3]);
        }
    }
}
