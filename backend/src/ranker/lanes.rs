//! The two inner loops of the block solver, over N labels at once: margins of one document, and one step of all weights.
//!
//! Weights lie feature-major, N to a feature, so both loops are straight runs of N numbers that a vector unit takes whole.
//! The one unsafe step is calling the same loops compiled for AVX2, after the machine said it has it. Multiplication and
//! addition stay separate instructions, so the numbers are the same with and without.
#![allow(unsafe_code)]

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
