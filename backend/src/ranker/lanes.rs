//! The inner loops of the block solver, over N labels at once: margins of one document, what they do to its α, one step of all weights.
//!
//! Weights lie feature-major, N to a feature, so all loops are straight runs of N numbers that a vector unit takes whole.
//! Unsafe are calls of the same loops compiled for AVX2, after the machine said it has it, and its gathers. Multiplication and
//! addition stay separate instructions, so the numbers are the same with and without.
#![allow(unsafe_code)]

use super::hinge::{Descent, Documents};

/// What the squared hinge knows of N labels at one document ([`super::hinge`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct HingeTurn<const N: usize> {
    /// w·x.
    pub margins: [f32; N],
    /// +1 or −1.
    pub signs: [f32; N],
    /// D = 1/(2C).
    pub ridge: [f32; N],
    /// ‖x‖².
    pub squared: f32,
    /// 1, or 0 for a lane that is not to move.
    pub active: [f32; N],
    /// Smaller projected gradients move nothing.
    pub idle: f32,
    /// Largest and smallest projected gradients so far.
    pub largest: [f32; N],
    pub smallest: [f32; N],
    /// Written: y·(change of α).
    pub steps: [f32; N],
}

/// Which instructions this machine has; asked once a solve, not once a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instructions {
    #[cfg(target_arch = "x86_64")]
    avx2: bool,
}

impl Instructions {
    pub(super) fn of_this_machine() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            avx2: std::arch::is_x86_feature_detected!("avx2"),
        }
    }

    /// margins_l = Σ_f x_f · weights_{f,l} for every lane l.
    #[inline]
    pub(super) fn margins<const N: usize>(
        self,
        weights: &[f32],
        indices: &[u32],
        values: &[f32],
        margins: &mut [f32; N],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `avx2` is only true after the processor reported AVX2.
            return unsafe { margins_avx2(weights, indices, values, margins) };
        }
        margins_plain(weights, indices, values, margins);
    }

    /// Takes one document's step of the squared hinge in every lane; bit l of the answer says whether lane l moved.
    #[inline]
    pub(super) fn turn<const N: usize>(self, turn: &mut HingeTurn<N>, alphas: &mut [f32; N]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `avx2` is only true after the processor reported AVX2.
            return unsafe { turn_avx2(turn, alphas) };
        }
        turn_plain(turn, alphas)
    }

    /// Σ_f weights_f · x_f of one label. Eight sums side by side, the same eight on every machine.
    ///
    /// # Safety
    /// Every index lies inside `weights`, which are fewer than 2³¹.
    #[inline(always)]
    pub(super) unsafe fn gathered_dot(self, weights: &[f32], indices: &[u32], values: &[f32]) -> f32 {
        let ((indices, more_indices), (values, more_values)) =
            (indices.as_chunks::<8>(), values.as_chunks::<8>());
        let mut sums = [0.0f32; 8];
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `avx2` is only true after the processor reported AVX2; the indices are the caller's promise.
            unsafe { gather_avx2(weights, indices, values, &mut sums) };
        } else {
            gather_plain(weights, indices, values, &mut sums);
        }
        #[cfg(not(target_arch = "x86_64"))]
        gather_plain(weights, indices, values, &mut sums);
        for (&index, value) in more_indices.iter().zip(more_values) {
            sums[0] += weights[index as usize] * value;
        }
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
    }

    /// weights_f += step · x_f of one label, for every f.
    #[inline(always)]
    pub(super) fn dense_step(self, weights: &mut [f32], values: &[f32], step: f32) {
        let ((w, w_rest), (v, v_rest)) = (weights.as_chunks_mut::<8>(), values.as_chunks::<8>());
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `avx2` is only true after the processor reported AVX2.
            unsafe { dense_step_avx2(w, v, step) };
        } else {
            dense_step_plain(w.as_flattened_mut(), v.as_flattened(), step);
        }
        #[cfg(not(target_arch = "x86_64"))]
        dense_step_plain(w.as_flattened_mut(), v.as_flattened(), step);
        dense_step_plain(w_rest, v_rest, step);
    }

    /// [`Descent::pass`] of one label alone.
    #[inline]
    pub(super) fn descend<D: Documents>(
        self,
        descent: &mut Descent<'_, D>,
        active: &mut Vec<u32>,
        shrunk: &mut Vec<u32>,
        alphas: &mut [f32],
        weights: &mut [f32],
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `avx2` is only true after the processor reported AVX2.
            return unsafe { descend_avx2(descent, active, shrunk, alphas, weights) };
        }
        descent.pass(active, shrunk, alphas, weights)
    }

    /// weights_{f,l} += steps_l · x_f for every lane l.
    #[inline]
    pub(super) fn step<const N: usize>(
        self,
        weights: &mut [f32],
        indices: &[u32],
        values: &[f32],
        steps: &[f32; N],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `avx2` is only true after the processor reported AVX2.
            return unsafe { step_avx2(weights, indices, values, steps) };
        }
        step_plain(weights, indices, values, steps);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn margins_avx2<const N: usize>(w: &[f32], i: &[u32], v: &[f32], m: &mut [f32; N]) {
    margins_plain(w, i, v, m);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn turn_avx2<const N: usize>(t: &mut HingeTurn<N>, a: &mut [f32; N]) -> u64 {
    turn_plain(t, a)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn step_avx2<const N: usize>(w: &mut [f32], i: &[u32], v: &[f32], s: &[f32; N]) {
    step_plain(w, i, v, s);
}

#[inline(always)]
fn margins_plain<const N: usize>(weights: &[f32], indices: &[u32], values: &[f32], margins: &mut [f32; N]) {
    let (weights, _) = weights.as_chunks::<N>();
    let mut sums = [0.0f32; N];
    for (&index, &value) in indices.iter().zip(values) {
        let row = &weights[index as usize];
        for lane in 0..N {
            sums[lane] += value * row[lane];
        }
    }
    *margins = sums;
}

#[inline(always)]
fn gather_plain(weights: &[f32], indices: &[[u32; 8]], values: &[[f32; 8]], sums: &mut [f32; 8]) {
    for (index, value) in indices.iter().zip(values) {
        for lane in 0..8 {
            sums[lane] += weights[index[lane] as usize] * value[lane];
        }
    }
}

/// # Safety
/// As [`Instructions::gathered_dot`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn gather_avx2(weights: &[f32], indices: &[[u32; 8]], values: &[[f32; 8]], sums: &mut [f32; 8]) {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_i32gather_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_mul_ps,
        _mm256_setzero_ps, _mm256_storeu_ps,
    };
    let mut total = _mm256_setzero_ps();
    for (index, value) in indices.iter().zip(values) {
        // SAFETY: eight numbers lie in each, and all indices lie inside the weights.
        unsafe {
            let index = _mm256_loadu_si256(index.as_ptr().cast());
            let weight = _mm256_i32gather_ps::<4>(weights.as_ptr(), index);
            let product = _mm256_mul_ps(weight, _mm256_loadu_ps(value.as_ptr()));
            total = _mm256_add_ps(total, product);
        }
    }
    // SAFETY: room for eight numbers.
    unsafe { _mm256_storeu_ps(sums.as_mut_ptr(), total) };
}

#[inline(always)]
fn dense_step_plain(weights: &mut [f32], values: &[f32], step: f32) {
    for (weight, value) in weights.iter_mut().zip(values) {
        *weight += step * value;
    }
}

/// By hand: the compiler takes four numbers at a time here.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dense_step_avx2(weights: &mut [[f32; 8]], values: &[[f32; 8]], step: f32) {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_storeu_ps,
    };
    let step = _mm256_set1_ps(step);
    for (weight, value) in weights.iter_mut().zip(values) {
        // SAFETY: eight numbers lie in each.
        unsafe {
            let product = _mm256_mul_ps(step, _mm256_loadu_ps(value.as_ptr()));
            let sum = _mm256_add_ps(_mm256_loadu_ps(weight.as_ptr()), product);
            _mm256_storeu_ps(weight.as_mut_ptr(), sum);
        }
    }
}

#[inline(always)]
fn turn_plain<const N: usize>(turn: &mut HingeTurn<N>, alphas: &mut [f32; N]) -> u64 {
    // `f32::max` minds numbers that are none, which costs more than the comparison; there are none here.
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let smaller = |a: f32, b: f32| if a < b { a } else { b };
    let mut furthest = 0.0f32;
    for l in 0..N {
        let alpha = alphas[l];
        let gradient = turn.signs[l] * turn.margins[l] - 1.0 + alpha * turn.ridge[l];
        let projected = if alpha > 0.0 {
            gradient
        } else {
            smaller(gradient, 0.0)
        };
        turn.largest[l] = larger(turn.largest[l], projected);
        turn.smallest[l] = smaller(turn.smallest[l], projected);
        let moved = larger(alpha - gradient / (turn.squared + turn.ridge[l]), 0.0);
        let step = if projected.abs() > turn.idle {
            (moved - alpha) * turn.active[l]
        } else {
            0.0
        };
        alphas[l] = alpha + step;
        turn.steps[l] = step * turn.signs[l];
        furthest = larger(furthest, step.abs());
    }
    if furthest == 0.0 {
        return 0;
    }
    (turn.steps.iter().enumerate()).fold(0, |mask, (l, step)| mask | u64::from(*step != 0.0) << l)
}

#[inline(always)]
fn step_plain<const N: usize>(weights: &mut [f32], indices: &[u32], values: &[f32], steps: &[f32; N]) {
    let (weights, _) = weights.as_chunks_mut::<N>();
    let steps = *steps;
    let moving = steps.iter().filter(|s| **s != 0.0).count();
    if moving <= 2 {
        for lane in (0..N).filter(|&lane| steps[lane] != 0.0) {
            for (&index, &value) in indices.iter().zip(values) {
                weights[index as usize][lane] += steps[lane] * value;
            }
        }
        return;
    }
    for (&index, &value) in indices.iter().zip(values) {
        let row = &mut weights[index as usize];
        for lane in 0..N {
            row[lane] += steps[lane] * value;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn descend_avx2<D: Documents>(
    descent: &mut Descent<'_, D>,
    active: &mut Vec<u32>,
    shrunk: &mut Vec<u32>,
    alphas: &mut [f32],
    weights: &mut [f32],
) -> bool {
    descent.pass(active, shrunk, alphas, weights)
}
