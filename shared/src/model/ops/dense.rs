//! Linear layers and small products in single precision.
#![allow(unsafe_code)] // calls the tiles of `kernel`, after asserting every length

use super::kernel::{Kernel, PANEL, TILE, landing, settle, with_kernel};
use super::rows::{AsItIs, Finish, Gelu};
use super::{ShapeError, check_layer};

/// A matrix laid out for the tiles: panels of sixteen columns, each `depth × 16`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackedColumns {
    depth: usize,
    columns: usize,
    panels: Vec<f32>,
}

impl PackedColumns {
    /// Packs B from its rows, of which the first `columns` numbers count.
    pub fn pack_rows<'a>(&mut self, columns: usize, rows: impl ExactSizeIterator<Item = &'a [f32]>) {
        let depth = rows.len();
        self.clear(depth, columns);
        for (k, row) in rows.enumerate() {
            let panels = self.panels.chunks_exact_mut(depth * PANEL);
            for (panel, part) in panels.zip(row[..columns].chunks(PANEL)) {
                let slot = &mut panel[k * PANEL..(k + 1) * PANEL];
                match <&[f32; PANEL]>::try_from(part) {
                    Ok(part) => slot.copy_from_slice(part),
                    Err(_) => slot[..part.len()].copy_from_slice(part),
                }
            }
        }
    }

    /// Packs B from its columns, of which the first `depth` numbers count.
    pub fn pack_transposed<'a>(&mut self, depth: usize, columns: impl ExactSizeIterator<Item = &'a [f32]>) {
        self.clear(depth, columns.len());
        for (column, numbers) in columns.enumerate() {
            let panel = &mut self.panels[column / PANEL * depth * PANEL..][..depth * PANEL];
            for (slot, &number) in panel.chunks_exact_mut(PANEL).zip(&numbers[..depth]) {
                slot[column % PANEL] = number;
            }
        }
    }

    /// Zeros of a new size.
    fn clear(&mut self, depth: usize, columns: usize) {
        self.depth = depth;
        self.columns = columns;
        self.panels.clear();
        self.panels.resize(Self::padded(columns) * depth, 0.0);
    }

    /// The width of whole panels that hold so many columns.
    pub fn padded(columns: usize) -> usize {
        columns.next_multiple_of(PANEL)
    }

    /// A · B (rows × columns, `out_stride` apart), for attention.
    pub fn times(&self, a: &[f32], a_stride: usize, rows: usize, out: &mut [f32], out_stride: usize) {
        let task = &mut self.task(a, a_stride, rows, out, out_stride);
        with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, AsItIs>(); });
    }

    /// [`Self::times`] where `out` has room for [whole panels](Self::padded): the columns that B has not become zero.
    pub fn times_padded(&self, a: &[f32], a_stride: usize, rows: usize, out: &mut [f32], out_stride: usize) {
        let width = Self::padded(self.columns);
        assert!(
            rows == 0 || out.len() >= (rows - 1) * out_stride + width,
            "whole panels"
        );
        let task = &mut self.task(a, a_stride, rows, out, out_stride);
        task.width = width;
        with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, AsItIs>(); });
    }

    fn task<'a>(
        &'a self,
        a: &'a [f32],
        a_stride: usize,
        rows: usize,
        out: &'a mut [f32],
        out_stride: usize,
    ) -> Task<'a> {
        if rows > 0 {
            assert!(a.len() >= (rows - 1) * a_stride + self.depth, "rows of A");
            assert!(
                out.len() >= (rows - 1) * out_stride + self.columns,
                "rows of the product"
            );
        }
        Task {
            b: self,
            a,
            a_stride,
            rows,
            out,
            out_stride,
            width: self.columns,
            bias: &[],
            spare: [[0.0; PANEL]; TILE],
        }
    }
}

struct Task<'a> {
    b: &'a PackedColumns,
    a: &'a [f32],
    a_stride: usize,
    rows: usize,
    out: &'a mut [f32],
    out_stride: usize,
    /// Columns to write.
    width: usize,
    /// One a column, whole panels of them; or empty.
    bias: &'a [f32],
    /// For a tile that has more columns than there are to write.
    spare: [[f32; PANEL]; TILE],
}

impl Task<'_> {
    #[inline(always)]
    fn run<K: Kernel, F: Finish>(&mut self) {
        for panel in 0..self.b.columns.div_ceil(PANEL) {
            let mut row = 0;
            while row + TILE <= self.rows {
                self.tile::<K, F, TILE>(panel, row);
                row += TILE;
            }
            match self.rows - row {
                1 => self.tile::<K, F, 1>(panel, row),
                2 => self.tile::<K, F, 2>(panel, row),
                3 => self.tile::<K, F, 3>(panel, row),
                4 => self.tile::<K, F, 4>(panel, row),
                5 => self.tile::<K, F, 5>(panel, row),
                _ => (),
            }
        }
    }

    #[inline(always)]
    fn tile<K: Kernel, F: Finish, const N: usize>(&mut self, panel: usize, row: usize) {
        let depth = self.b.depth;
        let first = panel * PANEL;
        let columns = &self.b.panels[first * depth..(first + PANEL) * depth];
        let rows = &self.a[row * self.a_stride..(row + N - 1) * self.a_stride + depth];
        let bias = if self.bias.is_empty() {
            std::ptr::null()
        } else {
            self.bias[first..first + PANEL].as_ptr()
        };
        let out = &mut self.out[row * self.out_stride + first..];
        let width = PANEL.min(self.width - first);
        let (at, stride) = landing::<N>(out, self.out_stride, width, &mut self.spare);
        // SAFETY: `rows` ends where the last of N rows does; `columns` holds depth · 16 numbers, the bias sixteen, and
        // `landing` gives room for N rows.
        unsafe {
            K::floats::<N>(
                rows.as_ptr(),
                self.a_stride,
                depth,
                columns.as_ptr(),
                bias,
                at,
                stride,
            );
        }
        settle::<K, F, N>(out, self.out_stride, width, &mut self.spare);
    }
}

/// A layer in single precision.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseLinear {
    weights: PackedColumns,
    /// Filled up to whole panels.
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
        packed.pack_transposed(inputs, weights.chunks_exact(inputs));
        let mut bias = bias.to_vec();
        bias.resize(PackedColumns::padded(bias.len()), 0.0);
        Ok(Self {
            weights: packed,
            bias,
        })
    }

    /// Width of y.
    pub fn outputs(&self) -> usize {
        self.weights.columns
    }

    /// Width of x.
    pub fn inputs(&self) -> usize {
        self.weights.depth
    }

    /// `out` (rows × outputs) = x Wᵀ + b.
    pub fn apply(&self, x: &[f32], out: &mut [f32]) {
        self.apply_then::<false>(x, out);
    }

    /// [`Self::apply`], through GELU if asked.
    pub(super) fn apply_then<const GELU: bool>(&self, x: &[f32], out: &mut [f32]) {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let rows = x.len() / inputs;
        assert_eq!(out.len(), rows * outputs, "one output row a row");
        let task = &mut self.weights.task(x, inputs, rows, out, outputs);
        task.bias = &self.bias;
        if GELU {
            with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, Gelu>(); });
        } else {
            with_kernel!(K, fn(task: &mut Task<'_>) { task.run::<K, AsItIs>(); });
        }
    }
}
