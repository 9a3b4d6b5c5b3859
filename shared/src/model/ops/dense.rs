//! Linear layers and small products in single precision.
#![allow(unsafe_code)] // calls the tiles of `kernel`, after asserting every length

use super::kernel::{Kernel, PANEL, TILE, with_kernel};
use super::{ShapeError, check_layer};

/// A matrix laid out for the tiles: panels of sixteen columns, each `depth × 16`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackedColumns {
    depth: usize,
    columns: usize,
    panels: Vec<f32>,
}

impl PackedColumns {
    /// Packs B (depth × columns), reading entry (k, column) from `at`.
    pub fn pack(&mut self, depth: usize, columns: usize, at: impl Fn(usize, usize) -> f32) {
        self.depth = depth;
        self.columns = columns;
        self.panels.clear();
        self.panels.resize(columns.div_ceil(PANEL) * PANEL * depth, 0.0);
        for (index, panel) in self.panels.chunks_exact_mut((depth * PANEL).max(1)).enumerate() {
            let first = index * PANEL;
            let width = PANEL.min(columns - first);
            for (k, row) in panel.chunks_exact_mut(PANEL).enumerate() {
                for (offset, slot) in row[..width].iter_mut().enumerate() {
                    *slot = at(k, first + offset);
                }
            }
        }
    }

    /// out (rows × columns, `out_stride` apart) = A (rows × depth, `a_stride` apart) · B + `bias`.
    ///
    /// Unfused: the same bits on every machine. Fused: faster where there is FMA.
    fn product<const FUSED: bool>(
        &self,
        a: &[f32],
        a_stride: usize,
        rows: usize,
        out: &mut [f32],
        out_stride: usize,
        bias: &[f32],
    ) {
        if rows == 0 || self.columns == 0 {
            return;
        }
        assert!(a.len() >= (rows - 1) * a_stride + self.depth, "rows of A");
        assert!(
            out.len() >= (rows - 1) * out_stride + self.columns,
            "rows of the product"
        );
        assert!(
            bias.is_empty() || bias.len() == self.columns,
            "a bias a column, or none"
        );
        let mut task = Task {
            b: self,
            a,
            a_stride,
            rows,
            out,
            out_stride,
            bias,
        };
        let task = &mut task;
        if FUSED {
            with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, true>(); });
        } else {
            with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, false>(); });
        }
    }

    /// A · B without fused multiply-adds, for attention.
    pub fn times(&self, a: &[f32], a_stride: usize, rows: usize, out: &mut [f32], out_stride: usize) {
        self.product::<false>(a, a_stride, rows, out, out_stride, &[]);
    }
}

struct Task<'a> {
    b: &'a PackedColumns,
    a: &'a [f32],
    a_stride: usize,
    rows: usize,
    out: &'a mut [f32],
    out_stride: usize,
    bias: &'a [f32],
}

impl Task<'_> {
    #[inline(always)]
    fn run<K: Kernel, const FUSED: bool>(&mut self) {
        for panel in 0..self.b.columns.div_ceil(PANEL) {
            let mut row = 0;
            while row + TILE <= self.rows {
                self.tile::<K, TILE, FUSED>(panel, row);
                row += TILE;
            }
            match self.rows - row {
                1 => self.tile::<K, 1, FUSED>(panel, row),
                2 => self.tile::<K, 2, FUSED>(panel, row),
                3 => self.tile::<K, 3, FUSED>(panel, row),
                4 => self.tile::<K, 4, FUSED>(panel, row),
                5 => self.tile::<K, 5, FUSED>(panel, row),
                _ => (),
            }
        }
    }

    #[inline(always)]
    fn tile<K: Kernel, const N: usize, const FUSED: bool>(&mut self, panel: usize, row: usize) {
        let depth = self.b.depth;
        let columns = &self.b.panels[panel * depth * PANEL..(panel + 1) * depth * PANEL];
        let rows = &self.a[row * self.a_stride..(row + N - 1) * self.a_stride + depth];
        // SAFETY: `rows` ends where the last of N rows does; `columns` holds depth · 16 numbers.
        let sums = unsafe { K::floats::<N, FUSED>(rows.as_ptr(), self.a_stride, depth, columns.as_ptr()) };
        let first = panel * PANEL;
        let width = PANEL.min(self.b.columns - first);
        for (offset, sums) in sums.iter().enumerate() {
            let at = (row + offset) * self.out_stride + first;
            let out = &mut self.out[at..at + width];
            if self.bias.is_empty() {
                out.copy_from_slice(&sums[..width]);
            } else {
                for ((y, sum), b) in out.iter_mut().zip(sums).zip(&self.bias[first..]) {
                    *y = sum + b;
                }
            }
        }
    }
}

/// A layer in single precision.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseLinear {
    weights: PackedColumns,
    bias: Vec<f32>,
}

impl DenseLinear {
    /// A layer from its weights, row-major `outputs × inputs`.
    pub fn new(weights: &[f32], bias: &[f32], inputs: usize) -> Result<Self, ShapeError> {
        check_layer(weights.len(), bias.len(), bias.len(), inputs)?;
        if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
            return Err(ShapeError::NotFinite { output: at / inputs });
        }
        let mut packed = PackedColumns::default();
        packed.pack(inputs, bias.len(), |input, output| {
            weights[output * inputs + input]
        });
        Ok(Self {
            weights: packed,
            bias: bias.to_vec(),
        })
    }

    /// Width of y.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Width of x.
    pub fn inputs(&self) -> usize {
        self.weights.depth
    }

    /// `out` (rows × outputs) = x Wᵀ + b.
    pub fn apply(&self, x: &[f32], out: &mut [f32]) {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let rows = x.len() / inputs;
        assert_eq!(out.len(), rows * outputs, "one output row a row");
        self.weights
            .product::<true>(x, inputs, rows, out, outputs, &self.bias);
    }
}
