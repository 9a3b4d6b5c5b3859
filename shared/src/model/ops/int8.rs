//! Linear layers with weights in eight bits, one scale an output, and exact integer sums.
//!
//! y_o = s_o · t · Σ_j w_oj · a_j + b_o, with w_oj = round(W_oj·c_j / s_o) in ±127 and a_j = round(x_j / (c_j·t)), t one
//! step a row chosen from its largest entry.
//!
//! Two choices come from measurement (docs/results/encoders.md). Activations in eight bits lose too much on short
//! sentences, so a_j takes the 13 or so bits that a 32-bit sum leaves; the 16-bit multiply-add costs the same as the
//! 8-bit one with its saturation to work around. And c_j moves an input's share of the range between activations and weights.
#![allow(unsafe_code)] // calls the tiles of `kernel`, after asserting every length

use super::kernel::{
    BLOCK, HALF, INTEGER_TILE, Kernel, PANEL, Scaling, landing, place_in_panel, settle, with_kernel,
};
use super::rows::{AsItIs, CoarseGelu, Finish, ROUNDER, largest_product, vectorised};
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
    /// Panels of sixteen outputs, in the order of [`Kernel::integers`].
    packed: Vec<i8>,
    /// What the tiles subtract again, one an output: Σ w_j · w_{j+8} over its blocks.
    products: Vec<i32>,
    /// Filled up to whole panels, like the products and the bias.
    scales: Vec<f32>,
    bias: Vec<f32>,
    /// 1/c_j.
    shrink: Vec<f32>,
}

/// Rows of activations as integers.
#[derive(Clone, Debug, Default)]
pub struct QuantisedRows {
    /// Four rows at a time (the last time fewer), interleaved by blocks of inputs; what a row lacks is zero.
    codes: Vec<i16>,
    /// What the tiles subtract again, one a row: Σ a_j · a_{j+8} over its blocks, wrapped around.
    products: Vec<i32>,
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
        let depth = inputs.next_multiple_of(BLOCK);
        let mut packed = vec![0_i8; outputs.div_ceil(PANEL) * PANEL * depth];
        let mut products = vec![0_i32; outputs.next_multiple_of(PANEL)];
        for ((output, row), product) in codes.chunks_exact(inputs).enumerate().zip(&mut products) {
            // −128 would break the promise that sums fit; no rounding of ours makes it.
            let mut whole: Vec<i8> = row.iter().map(|&code| code.max(-127)).collect();
            whole.resize(depth, 0);
            for (input, &code) in whole.iter().enumerate() {
                packed[place_of(depth, input, output)] = code;
            }
            *product = whole
                .chunks_exact(BLOCK)
                .flat_map(|block| block[..HALF].iter().zip(&block[HALF..]))
                .map(|(&early, &late)| i32::from(early) * i32::from(late))
                .sum();
        }
        let whole = |mut numbers: Vec<f32>| {
            numbers.resize(outputs.next_multiple_of(PANEL), 0.0);
            numbers
        };
        Ok(Self {
            inputs,
            outputs,
            packed,
            products,
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
            codes.extend((0..self.inputs).map(|input| self.packed[place_of(depth, input, output)]));
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
        self.inputs.next_multiple_of(BLOCK)
    }

    /// Largest activation code: `inputs` products of it with 127 stay below 2³¹.
    pub fn levels(&self) -> f32 {
        (i32::MAX as usize / (127 * self.inputs.next_multiple_of(2))).min(16383) as f32
    }

    /// Rounds rows of activations for this layer.
    pub fn quantise(&self, x: &[f32], into: &mut QuantisedRows) {
        let rows = x.len() / self.inputs;
        into.codes.resize(rows * self.depth(), 0);
        into.products.resize(rows, 0);
        into.steps.resize(rows, 0.0);
        quantise_rows(x, &self.shrink, self.levels(), into);
    }

    /// `out` (rows × outputs) from rounded rows, through GELU if asked: a coarse one, since the next layer rounds. `panel` is a buffer.
    pub(super) fn apply<const GELU: bool>(&self, x: &QuantisedRows, out: &mut [f32], panel: &mut Vec<i16>) {
        let rows = x.steps.len();
        let depth = self.depth();
        assert_eq!(x.codes.len(), rows * depth, "rows rounded for this layer");
        assert_eq!(out.len(), rows * self.outputs, "one output row a row");
        panel.resize(depth * PANEL, 0);
        let mut task = Task {
            layer: self,
            x,
            out,
            panel,
            spare: [[0.0; PANEL]; INTEGER_TILE],
        };
        let task = &mut task;
        if GELU {
            with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, CoarseGelu>(); });
        } else {
            with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, AsItIs>(); });
        }
    }
}

struct Task<'a> {
    layer: &'a Int8Linear,
    x: &'a QuantisedRows,
    out: &'a mut [f32],
    /// Sixteen outputs' weights as the tiles read them.
    panel: &'a mut [i16],
    /// For a tile that has more columns than the layer.
    spare: [[f32; PANEL]; INTEGER_TILE],
}

impl Task<'_> {
    #[inline(always)]
    fn run<K: Kernel, F: Finish>(&mut self) {
        let rows = self.x.steps.len();
        let size = self.layer.depth() * PANEL;
        // The next panel comes from far away: each tile sends for a part of it.
        let part = size.div_ceil((rows / INTEGER_TILE).max(1)).next_multiple_of(64);
        let panels = self.layer.packed.chunks_exact(size);
        let next = panels.clone().skip(1).chain(std::iter::once(&[][..]));
        for (index, (packed, next)) in panels.zip(next).enumerate() {
            for (wide, &code) in self.panel.iter_mut().zip(packed) {
                *wide = i16::from(code);
            }
            let mut parts = next.chunks(part);
            let mut row = 0;
            while row + INTEGER_TILE <= rows {
                K::fetch(parts.next().unwrap_or_default());
                self.tile::<K, F, INTEGER_TILE>(index, row);
                row += INTEGER_TILE;
            }
            match rows - row {
                1 => self.tile::<K, F, 1>(index, row),
                2 => self.tile::<K, F, 2>(index, row),
                3 => self.tile::<K, F, 3>(index, row),
                _ => (),
            }
        }
    }

    #[inline(always)]
    fn tile<K: Kernel, F: Finish, const N: usize>(&mut self, index: usize, row: usize) {
        let (depth, outputs) = (self.layer.depth(), self.layer.outputs);
        let first = index * PANEL;
        let codes = &self.x.codes[row * depth..(row + N) * depth];
        let scaling = Scaling {
            row_products: self.x.products[row..row + N].as_ptr(),
            column_products: self.layer.products[first..first + PANEL].as_ptr(),
            steps: self.x.steps[row..row + N].as_ptr(),
            scales: self.layer.scales[first..first + PANEL].as_ptr(),
            bias: self.layer.bias[first..first + PANEL].as_ptr(),
        };
        assert!(self.panel.len() >= depth * PANEL);
        let out = &mut self.out[row * outputs + first..];
        let width = PANEL.min(outputs - first);
        let (at, stride) = landing::<N>(out, outputs, width, &mut self.spare);
        // SAFETY: `codes` holds N rows of `depth`, the panel depth · 16 numbers, the slices of `scaling` were cut to
        // size, and `landing` gives room for N rows.
        unsafe { K::integers::<N>(codes.as_ptr(), depth, self.panel.as_ptr(), scaling, at, stride) };
        settle::<K, F, N>(out, outputs, width, &mut self.spare);
    }
}

/// Where a weight lies among panels of `depth`.
fn place_of(depth: usize, input: usize, output: usize) -> usize {
    let block = output / PANEL * depth + input / BLOCK * BLOCK;
    block * PANEL + place_in_panel(input % BLOCK, output % PANEL)
}

vectorised! {
    fn quantise_rows<A>(x: &[f32], shrink: &[f32], levels: f32, into: &mut QuantisedRows) {
        let inputs = shrink.len();
        let depth = inputs.next_multiple_of(BLOCK);
        let tiles = x.chunks(INTEGER_TILE * inputs).zip(into.codes.chunks_mut(INTEGER_TILE * depth));
        let numbers = into.steps.chunks_mut(INTEGER_TILE).zip(into.products.chunks_mut(INTEGER_TILE));
        for ((x, codes), (steps, products)) in tiles.zip(numbers) {
            let rows = steps.len();
            for (row, ((x, step), sum)) in x.chunks_exact(inputs).zip(steps).zip(products).enumerate() {
                let most = largest_product(x, shrink);
                let inverse = if most > 0.0 { levels / most } else { 0.0 };
                *step = most / levels;
                let mut sums = [0_i32; HALF];
                let blocks = codes.chunks_exact_mut(BLOCK * rows);
                let (x, shrink) = (x.chunks(BLOCK), shrink.chunks(BLOCK));
                for ((codes, x), shrink) in blocks.zip(x).zip(shrink) {
                    let mut block = [0_i16; BLOCK];
                    match (<&[f32; BLOCK]>::try_from(x), <&[f32; BLOCK]>::try_from(shrink)) {
                        (Ok(x), Ok(shrink)) => round(&mut block, x, shrink, inverse),
                        _ => round(&mut block, x, shrink, inverse),
                    }
                    let (early, late) = block.split_at(HALF);
                    for ((sum, &early), &late) in sums.iter_mut().zip(early).zip(late) {
                        *sum = sum.wrapping_add(i32::from(early) * i32::from(late));
                    }
                    let pairs = early.chunks_exact(2).zip(late.chunks_exact(2));
                    for ((early, late), codes) in pairs.zip(codes.chunks_exact_mut(4 * rows)) {
                        codes[4 * row..4 * row + 4].copy_from_slice(&[early[0], early[1], late[0], late[1]]);
                    }
                }
                *sum = sums.into_iter().fold(0, i32::wrapping_add);
            }
        }
    }
}

/// round(x · shrink · inverse).
#[inline(always)]
fn round(codes: &mut [i16; BLOCK], x: &[f32], shrink: &[f32], inverse: f32) {
    for ((code, x), s) in codes.iter_mut().zip(x).zip(shrink) {
        *code = (*x * *s * inverse + ROUNDER).to_bits() as i16;
    }
}
