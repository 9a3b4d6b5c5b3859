//! The network's inner loops: sums, norms and products over rows of numbers.
//!
//! All are inlined into the passes that [`super::wide`] compiles for wide vectors; none allocates.

use gnnxml_shared::model::matcher::NORM_EPSILON;

use super::batch::Sparse;

/// out ← own·x_v + Σ_u a_vu·x_u.
#[inline(always)]
pub(super) fn gather(out: &mut [f32], own: f32, x: &[f32], v: usize, a: &Sparse) {
    let width = out.len();
    for (out, x) in out.iter_mut().zip(&x[v * width..(v + 1) * width]) {
        *out = own * x;
    }
    add_rows(out, x, width, a, v);
}

/// out ← out + Σ_u a_vu·x_u, a strip of columns at a time so that the sums stay in registers; `x` has rows of `width`.
#[inline(always)]
pub(super) fn add_rows(out: &mut [f32], x: &[f32], width: usize, a: &Sparse, v: usize) {
    let (mut strips, rest) = (0, out.len() % STRIP);
    for strip in out.chunks_exact_mut(STRIP) {
        let mut sums = [0.0; STRIP];
        sums.copy_from_slice(strip);
        for (u, weight) in a.row(v) {
            let x = &x[u * width + strips..][..STRIP];
            for i in 0..STRIP {
                sums[i] += weight * x[i];
            }
        }
        strip.copy_from_slice(&sums);
        strips += STRIP;
    }
    if rest > 0 {
        for (u, weight) in a.row(v) {
            add_scaled(&mut out[strips..], &x[u * width + strips..][..rest], weight);
        }
    }
}

/// Columns summed at once by [`add_rows`]: eight vectors of eight.
const STRIP: usize = 64;

/// x ← (x − μ)/σ; returns σ = √(variance + ε).
#[inline(always)]
pub(super) fn normalise(x: &mut [f32]) -> f32 {
    let count = x.len() as f32;
    let mean = sum(x) / count;
    for v in x.iter_mut() {
        *v -= mean;
    }
    let sigma = (dot(x, x) / count + NORM_EPSILON).sqrt();
    let scale = 1.0 / sigma;
    for v in x.iter_mut() {
        *v *= scale;
    }
    sigma
}

#[inline(always)]
pub(super) fn affine_relu(hat: &[f32], gain: &[f32], shift: &[f32], out: &mut [f32]) {
    for (((o, h), g), s) in out.iter_mut().zip(hat).zip(gain).zip(shift) {
        *o = (h * g + s).max(0.0);
    }
}

/// out += factor·x.
#[inline(always)]
pub(super) fn add_scaled(out: &mut [f32], x: &[f32], factor: f32) {
    for (o, v) in out.iter_mut().zip(x) {
        *o += factor * v;
    }
}

const LANES: usize = 16;

/// Sums in sixteen lanes: the same on every machine, and quick where vectors are wide.
#[inline(always)]
pub(super) fn sum(x: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] += chunk[i];
        }
    }
    lanes.iter().sum::<f32>() + rest
}

#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = left
        .remainder()
        .iter()
        .zip(right.remainder())
        .map(|(x, y)| x * y)
        .sum();
    for (x, y) in left.zip(right) {
        for i in 0..LANES {
            lanes[i] += x[i] * y[i];
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// ln(1 + eᶻ) without overflow.
pub(super) fn softplus(z: f32) -> f32 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

pub(super) fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}
