//! Linear layers with weights in eight bits, one scale an output, and exact integer sums.
//!
//! y_o = s_o · t · Σ_j w_oj · a_j + b_o, with w_oj = round(W_oj·c_j / s_o) in ±127 and a_j = round(x_j / (c_j·t)), t one
//! step a row chosen from its largest entry.
//!
//! Two choices come from measurement (docs/results/encoders.md). Activations in eight bits lose too much on short
//! sentences, so a_j takes the 13 or so bits that a 32-bit sum leaves; the 16-bit multiply-add costs the same as the
//! 8-bit one with its saturation to work around. And c_j moves an input's share of the range between activations and weights.
#![allow(unsafe_code)] // calls the tiles of `kernel`, after asserting every length

use super::kernel::{Kernel, PANEL, TILE, with_kernel};
use super::rows::{ROUNDER, largest_of, vectorised};
use super::{ShapeError, check_layer};

/// Widest input whose sums cannot overflow with activations of at least eleven bits.
pub(super) const WIDEST: usize = 8192;
/// Codes of a weight reach ±127.
const WEIGHT_LEVELS: f32 = 127.0;

/// A layer in eight bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Int8Linear {
    inputs: usize,
    outputs: usize,
    /// Panels of sixteen outputs; in a panel, pairs of inputs side by side for each output.
    packed: Vec<i8>,
    scales: Vec<f32>,
    bias: Vec<f32>,
    /// 1/c_j.
    shrink: Vec<f32>,
}

/// Rows of activations as integers.
#[derive(Clone, Debug, Default)]
pub struct QuantisedRows {
    /// Six rows at a time (the last time fewer), interleaved by pairs of inputs.
    codes: Vec<i16>,
    /// t of each row.
    steps: Vec<f32>,
}

impl Int8Linear {
    /// Rounds a layer (row-major `outputs × inputs`). `balance` holds c_j, one positive factor an input.
    pub fn quantise_weights(weights: &[f32], bias: &[f32], balance: &[f32]) -> Result<Self, ShapeError> {
        let (outputs, inputs) = (bias.len(), balance.len());
        check_layer(weights.len(), bias.len(), outputs, inputs)?;
        let mut codes = Vec::with_capacity(weights.len());
        let mut scales = Vec::with_capacity(outputs);
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            let scaled: Vec<f32> = row.iter().zip(balance).map(|(w, c)| w * c).collect();
            if scaled.iter().any(|w| !w.is_finite()) {
                return Err(ShapeError::NotFinite { output });
            }
            let scale = scaled.iter().fold(0.0_f32, |most, w| most.max(w.abs())) / WEIGHT_LEVELS;
            scales.push(scale);
            codes.extend(scaled.iter().map(|w| {
                if scale > 0.0 {
                    (w / scale).round_ties_even() as i8
                } else {
                    0
                }
            }));
        }
        Self::from_parts(
            &codes,
            scales,
            bias.to_vec(),
            balance.iter().map(|c| 1.0 / c).collect(),
        )
    }

    /// From what a file holds: codes row-major `outputs × inputs`, s_o, b_o, 1/c_j.
    pub fn from_parts(
        codes: &[i8],
        scales: Vec<f32>,
        bias: Vec<f32>,
        shrink: Vec<f32>,
    ) -> Result<Self, ShapeError> {
        let (outputs, inputs) = (scales.len(), shrink.len());
        check_layer(codes.len(), bias.len(), outputs, inputs)?;
        if let Some(output) = (0..outputs).find(|&o| !(scales[o].is_finite() && bias[o].is_finite())) {
            return Err(ShapeError::NotFinite { output });
        }
        let depth = inputs.next_multiple_of(2);
        let mut packed = vec![0_i8; outputs.div_ceil(PANEL) * PANEL * depth];
        for (output, row) in codes.chunks_exact(inputs).enumerate() {
            let panel = &mut packed[output / PANEL * PANEL * depth..];
            for (input, &code) in row.iter().enumerate() {
                // −128 would break the promise that sums fit; no rounding of ours makes it.
                panel[(input / 2 * PANEL + output % PANEL) * 2 + input % 2] = code.max(-127);
            }
        }
        Ok(Self {
            inputs,
            outputs,
            packed,
            scales,
            bias,
            shrink,
        })
    }

    /// Codes row-major `outputs × inputs`, as [`Self::from_parts`] takes them.
    pub fn codes(&self) -> Vec<i8> {
        let depth = self.depth();
        let mut codes = Vec::with_capacity(self.outputs * self.inputs);
        for output in 0..self.outputs {
            let panel = &self.packed[output / PANEL * PANEL * depth..];
            codes.extend(
                (0..self.inputs).map(|input| panel[(input / 2 * PANEL + output % PANEL) * 2 + input % 2]),
            );
        }
        codes
    }

    /// s_o.
    pub fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// b_o.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// 1/c_j.
    pub fn shrink(&self) -> &[f32] {
        &self.shrink
    }

    /// Width of y.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Width of x.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    fn depth(&self) -> usize {
        self.inputs.next_multiple_of(2)
    }

    /// Largest activation code: `inputs` products of it with 127 stay below 2³¹.
    pub fn levels(&self) -> f32 {
        (i32::MAX as usize / (127 * self.depth())).min(16383) as f32
    }

    /// Rounds rows of activations for this layer.
    pub fn quantise(&self, x: &[f32], into: &mut QuantisedRows) {
        let rows = x.len() / self.inputs;
        into.codes.resize(rows * self.depth(), 0);
        into.steps.resize(rows, 0.0);
        quantise_rows(
            x,
            &self.shrink,
            self.levels(),
            self.depth(),
            &mut into.codes,
            &mut into.steps,
        );
    }

    /// `out` (rows × outputs) from rounded rows. `panel` is a buffer.
    pub fn apply(&self, x: &QuantisedRows, out: &mut [f32], panel: &mut Vec<i16>) {
        let rows = x.steps.len();
        let depth = self.depth();
        assert_eq!(x.codes.len(), rows * depth, "rows rounded for this layer");
        assert_eq!(out.len(), rows * self.outputs, "one output row a row");
        panel.resize(depth * PANEL, 0);
        let (codes, steps) = (&x.codes[..], &x.steps[..]);
        let layer = self;
        with_kernel!(K, fn(layer: &Int8Linear, codes: &[i16], steps: &[f32], out: &mut [f32], panel: &mut [i16]) {
            let depth = layer.depth();
            for (index, packed) in layer.packed.chunks_exact(depth * PANEL).enumerate() {
                for (wide, &code) in panel.iter_mut().zip(packed) {
                    *wide = i16::from(code);
                }
                let first = index * PANEL;
                let width = PANEL.min(layer.outputs - first);
                let mut row = 0;
                while row + TILE <= steps.len() {
                    finish::<K, TILE>(layer, codes, steps, out, panel, row, first, width);
                    row += TILE;
                }
                match steps.len() - row {
                    1 => finish::<K, 1>(layer, codes, steps, out, panel, row, first, width),
                    2 => finish::<K, 2>(layer, codes, steps, out, panel, row, first, width),
                    3 => finish::<K, 3>(layer, codes, steps, out, panel, row, first, width),
                    4 => finish::<K, 4>(layer, codes, steps, out, panel, row, first, width),
                    5 => finish::<K, 5>(layer, codes, steps, out, panel, row, first, width),
                    _ => (),
                }
            }
        });
        // The macro's arms take their arguments by these names.
        let _ = (layer, codes, steps);
    }
}

/// One tile: integer sums, then scales and bias.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn finish<K: Kernel, const N: usize>(
    layer: &Int8Linear,
    codes: &[i16],
    steps: &[f32],
    out: &mut [f32],
    panel: &[i16],
    row: usize,
    first: usize,
    width: usize,
) {
    let depth = layer.depth();
    let rows = &codes[row * depth..(row + N) * depth];
    assert!(panel.len() >= depth * PANEL);
    // SAFETY: `rows` holds N rows of `depth`, the panel depth · 16 numbers.
    let sums = unsafe { K::integers::<N>(rows.as_ptr(), depth, panel.as_ptr()) };
    let scales = &layer.scales[first..first + width];
    let bias = &layer.bias[first..first + width];
    for (offset, sums) in sums.iter().enumerate() {
        let step = steps[row + offset];
        let at = (row + offset) * layer.outputs + first;
        let out = &mut out[at..at + width];
        for (((y, &sum), &scale), &b) in out.iter_mut().zip(sums).zip(scales).zip(bias) {
            *y = sum as f32 * (step * scale) + b;
        }
    }
}

vectorised! {
    fn quantise_rows(x: &[f32], shrink: &[f32], levels: f32, depth: usize, codes: &mut [i16], steps: &mut [f32]) {
        let inputs = shrink.len();
        let mut scaled = [0.0_f32; WIDEST];
        let mut pairs = [0_i16; WIDEST];
        let (scaled, pairs) = (&mut scaled[..inputs], &mut pairs[..depth]);
        let tiles = x.chunks(TILE * inputs).zip(codes.chunks_mut(TILE * depth)).zip(steps.chunks_mut(TILE));
        for ((x, codes), steps) in tiles {
            let rows = steps.len();
            for (row, (x, step)) in x.chunks_exact(inputs).zip(steps).enumerate() {
                for ((y, x), s) in scaled.iter_mut().zip(x).zip(shrink) {
                    *y = *x * *s;
                }
                let most = largest_of(scaled, 0.0, f32::abs);
                let inverse = if most > 0.0 { levels / most } else { 0.0 };
                *step = most / levels;
                for (code, y) in pairs.iter_mut().zip(scaled.iter()) {
                    *code = (*y * inverse + ROUNDER).to_bits() as i16;
                }
                for (pair, from) in pairs.chunks_exact(2).enumerate() {
                    let at = (pair * rows + row) * 2;
                    codes[at..at + 2].copy_from_slice(from);
                }
            }
        }
    }
}
