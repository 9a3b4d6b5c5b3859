//! The inner loops of the block solver, over N labels at once: margins of one document, what they do to its α, one step of all weights.
//!
//! Weights lie feature-major, N to a feature, so all loops are straight runs of N numbers that a vector unit takes whole.
//! The one unsafe step is calling the same loops compiled for AVX2, after the machine said it has it. Multiplication and
//! addition stay separate instructions, so the numbers are the same with and without.
#![allow(unsafe_code)]

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
