//! Linear layers with weights in eight bits, one scale an output, and exact integer sums.
//!
//! y_o = s_o · t · Σ_j w_oj · a_j + b_o, with w_oj = round(W_oj·c_j / s_o) in ±127 and a_j = round(x_j / (c_j·t)), t one
//! step a row chosen from its largest entry.
//!
//! Two choices come from measurement (docs/results/encoders.md). Activations in eight bits lose too much on short
//! sentences, so a_j takes the 13 or so bits that a 32-bit sum leaves; the 16-bit multiply-add costs the same as the
//! 8-bit one with its saturation to work around. And c_j moves an input's share of the range between activations and weights.
#![allow(unsafe_code)] // calls the tiles of `kernel`, after asserting every length

use super::kernel::{Kernel, PANEL, Scaling, TILE, landing, settle, with_kernel};
use super::rows::{ROUNDER, largest_product, vectorised};
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
    /// Filled up to whole panels, like the bias.
    scales: Vec<f32>,
    bias: Vec<f32>,
    /// 1/c_j.
    shrink: Vec<f32>,
}

/// Rows of activations as integers.
#[derive(Clone, Debug, Default)]
pub struct QuantisedRows {
    /// Row by row, an odd row filled up with a zero.
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
        let whole = |mut numbers: Vec<f32>| {
            numbers.resize(outputs.next_multiple_of(PANEL), 0.0);
            numbers
        };
        Ok(Self {
            inputs,
            outputs,
            packed,
            scales: whole(scales),
            bias: whole(bias),
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
        &self.scales[..self.outputs]
    }

    /// b_o.
    pub fn bias(&self) -> &[f32] {
        &self.bias[..self.outputs]
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

    /// `out` (rows × outputs) from rounded rows, through GELU if asked. `panel` is a buffer.
    pub(super) fn apply<const GELU: bool>(&self, x: &QuantisedRows, out: &mut [f32], panel: &mut Vec<i16>) {
        let rows = x.steps.len();
        let depth = self.depth();
        assert_eq!(x.codes.len(), rows * depth, "rows rounded for this layer");
        assert_eq!(out.len(), rows * self.outputs, "one output row a row");
        panel.resize(depth * PANEL, 0);
        let mut task = Task {
            layer: self,
            codes: &x.codes,
            steps: &x.steps,
            out,
            panel,
        };
        let task = &mut task;
        if GELU {
            with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, true>(); });
        } else {
            with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, false>(); });
        }
    }
}

struct Task<'a> {
    layer: &'a Int8Linear,
    codes: &'a [i16],
    steps: &'a [f32],
    out: &'a mut [f32],
    /// Sixteen outputs' weights as the tiles read them.
    panel: &'a mut [i16],
}

impl Task<'_> {
    #[inline(always)]
    fn run<K: Kernel, const GELU: bool>(&mut self) {
        let rows = self.steps.len();
        let size = self.layer.depth() * PANEL;
        // The next panel comes from far away: each tile sends for a part of it.
        let part = size.div_ceil((rows / TILE).max(1)).next_multiple_of(64);
        let panels = self.layer.packed.chunks_exact(size);
        let next = panels.clone().skip(1).chain(std::iter::once(&[][..]));
        for (index, (packed, next)) in panels.zip(next).enumerate() {
            for (wide, &code) in self.panel.iter_mut().zip(packed) {
                *wide = i16::from(code);
            }
            let mut parts = next.chunks(part);
            let mut row = 0;
            while row + TILE <= rows {
                K::fetch(parts.next().unwrap_or_default());
                self.tile::<K, TILE, GELU>(index, row);
                row += TILE;
            }
            match rows - row {
                1 => self.tile::<K, 1, GELU>(index, row),
                2 => self.tile::<K, 2, GELU>(index, row),
                3 => self.tile::<K, 3, GELU>(index, row),
                4 => self.tile::<K, 4, GELU>(index, row),
                5 => self.tile::<K, 5, GELU>(index, row),
                _ => (),
            }
        }
    }

    #[inline(always)]
    fn tile<K: Kernel, const N: usize, const GELU: bool>(&mut self, index: usize, row: usize) {
        let (depth, outputs) = (self.layer.depth(), self.layer.outputs);
        let first = index * PANEL;
        let codes = &self.codes[row * depth..(row + N) * depth];
        let scaling = Scaling {
            steps: self.steps[row..row + N].as_ptr(),
            scales: self.layer.scales[first..first + PANEL].as_ptr(),
            bias: self.layer.bias[first..first + PANEL].as_ptr(),
        };
        assert!(self.panel.len() >= depth * PANEL);
        let out = &mut self.out[row * outputs + first..];
        let width = PANEL.min(outputs - first);
        let mut spare = [[0.0_f32; PANEL]; N];
        let (at, stride) = landing(out, outputs, width, &mut spare);
        // SAFETY: `codes` holds N rows of `depth`, the panel depth · 16 numbers, the slices of `scaling` were cut to
        // size, and `landing` gives room for N rows.
        unsafe { K::integers::<N>(codes.as_ptr(), depth, self.panel.as_ptr(), scaling, at, stride) };
        settle::<N, GELU>(out, outputs, width, &mut spare);
    }
}

vectorised! {
    fn quantise_rows(x: &[f32], shrink: &[f32], levels: f32, depth: usize, codes: &mut [i16], steps: &mut [f32]) {
        let inputs = shrink.len();
        for ((x, codes), step) in x.chunks_exact(inputs).zip(codes.chunks_exact_mut(depth)).zip(steps) {
            let most = largest_product(x, shrink);
            let inverse = if most > 0.0 { levels / most } else { 0.0 };
            *step = most / levels;
            for ((code, x), s) in codes.iter_mut().zip(x).zip(shrink) {
                *code = (*x * *s * inverse + ROUNDER).to_bits() as i16;
            }
            codes[inputs..].fill(0);
        }
    }
}
