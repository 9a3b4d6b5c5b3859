//! Products with weights that are laid out once a step, for machines with 256-bit vectors.
//!
//! A general product rearranges both operands at every call. Here the right one, a weight matrix that every shard of a step multiplies
//! with, lies in *panels* of sixteen columns, row after row, as the innermost loop reads it:
//!
//! ```text
//! panel j:  b[0][16j‥16j+16]  b[1][16j‥16j+16]  …       missing columns are zero
//! ```
//!
//! The innermost loop keeps a tile of six rows and sixteen columns of the result in registers. Other machines take the `gemm` crate.
#![allow(unsafe_code)] // Vector instructions and raw pointers; every entry checks its slices first.

use super::sgemm::{Matrix, add_transposed_times, times, times_transposed};

/// Columns of a panel: two vectors of eight.
const COLUMNS: usize = 16;
/// Rows of a tile: twelve sums, two operands and a factor fill the sixteen registers.
const ROWS: usize = 6;
/// Rows of the left operand that meet all panels before the next ones do: they stay in the second-level cache.
const BLOCK: usize = 16 * ROWS;
/// Terms that are summed before the next tile is taken, where there are many: a panel of so many stays in the first-level cache.
const DEPTH: usize = 256;

/// A panel's row, one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([f32; COLUMNS]);

/// A matrix in panels.
#[derive(Debug, Default)]
pub(super) struct Panels {
    rows: usize,
    columns: usize,
    lines: Vec<Line>,
}

impl Panels {
    /// `b` as it lies.
    fn fill(&mut self, b: Matrix<'_>) {
        self.reshape(b.rows(), b.columns());
        for row in 0..b.rows() {
            // Whole lines first: a copy of a known length is two moves.
            let (whole, rest) = b.row(row).as_chunks();
            let mut lines = self.lines.iter_mut().skip(row).step_by(b.rows());
            for (values, line) in whole.iter().zip(&mut lines) {
                line.0 = *values;
            }
            if let Some(line) = lines.next().filter(|_| !rest.is_empty()) {
                line.0[..rest.len()].copy_from_slice(rest);
            }
        }
    }

    /// bᵀ.
    fn fill_transposed(&mut self, b: Matrix<'_>) {
        self.reshape(b.columns(), b.rows());
        for column in 0..b.rows() {
            let (panel, lane) = (column / COLUMNS, column % COLUMNS);
            let lines = &mut self.lines[panel * b.columns()..(panel + 1) * b.columns()];
            for (line, value) in lines.iter_mut().zip(b.row(column)) {
                line.0[lane] = *value;
            }
        }
    }

    fn reshape(&mut self, rows: usize, columns: usize) {
        if (self.rows, self.columns) == (rows, columns) {
            return;
        }
        if !columns.is_multiple_of(COLUMNS) {
            // The lanes beyond the last column must be zero.
            self.lines.clear();
        }
        self.lines
            .resize(rows * columns.div_ceil(COLUMNS), Line::default());
        (self.rows, self.columns) = (rows, columns);
    }

    fn panel(&self, number: usize) -> &[Line] {
        &self.lines[number * self.rows..(number + 1) * self.rows]
    }
}

/// A weight matrix `[out, in]`, ready for the products of a step.
#[derive(Debug, Default)]
pub(super) struct Weight {
    transposed: Panels,
    straight: Panels,
}

impl Weight {
    /// Lays `w` out; without a `gradient` of its inputs for [`forward`](Self::forward) alone.
    pub(super) fn prepare(&mut self, w: Matrix<'_>, gradient: bool) {
        if suits() {
            self.transposed.fill_transposed(w);
            if gradient {
                self.straight.fill(w);
            }
        }
    }

    /// `out = a·wᵀ`, where `w` was prepared.
    pub(super) fn forward(&self, out: &mut [f32], a: Matrix<'_>, w: Matrix<'_>) {
        if suits() {
            product(out, a, &self.transposed);
        } else {
            times_transposed(out, a, w, false);
        }
    }

    /// `out = a·w`, where `w` was prepared with a gradient.
    pub(super) fn backward(&self, out: &mut [f32], a: Matrix<'_>, w: Matrix<'_>) {
        if suits() {
            product(out, a, &self.straight);
        } else {
            times(out, w.columns(), a, w, false);
        }
    }
}

/// Buffers of [`add_outer_products`].
#[derive(Debug, Default)]
pub(super) struct Packed {
    left: Vec<f32>,
    right: Panels,
}

/// `out += aᵀ·b`: the sum of the outer products of their rows, a weight's gradient. Rows of `out` are `stride` apart.
pub(super) fn add_outer_products(
    out: &mut [f32],
    stride: usize,
    a: Matrix<'_>,
    b: Matrix<'_>,
    space: &mut Packed,
) {
    if suits() {
        add_outer_products_in_tiles(out, stride, a, b, space);
    } else {
        add_transposed_times(out, stride, a, b);
    }
}

/// Whether this machine has the vectors the tiles are made for. With wider ones the general product is the faster.
fn suits() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        has!("avx2") && has!("fma") && !has!("avx512f")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// `out = a·b`.
fn product(out: &mut [f32], a: Matrix<'_>, b: &Panels) {
    let (rows, columns) = (a.rows(), b.columns);
    assert_eq!(a.columns(), b.rows);
    assert!(out.len() >= rows * columns);
    for block in (0..rows).step_by(BLOCK) {
        let end = rows.min(block + BLOCK);
        for (panel, column) in (0..columns).step_by(COLUMNS).enumerate() {
            let lines = b.panel(panel);
            for row in (block..end).step_by(ROWS) {
                let tile = Tile {
                    rows: ROWS.min(end - row),
                    columns: COLUMNS.min(columns - column),
                    stride: columns,
                    add: false,
                };
                // SAFETY: the tile lies inside `out`, whose length was checked; `a` holds its rows by construction.
                unsafe {
                    tile.run::<1>(
                        lines,
                        a.row(row).as_ptr(),
                        a.stride(),
                        out.as_mut_ptr().add(row * columns + column),
                    );
                }
            }
        }
    }
}

fn add_outer_products_in_tiles(
    out: &mut [f32],
    stride: usize,
    a: Matrix<'_>,
    b: Matrix<'_>,
    space: &mut Packed,
) {
    let (rows, columns) = (a.columns(), b.columns());
    assert_eq!(a.rows(), b.rows());
    assert!(columns <= stride && (rows == 0 || out.len() >= (rows - 1) * stride + columns));
    // Slices of about the same depth: a shallow one would cost as much traffic as a deep one.
    let slices = a.rows().div_ceil(DEPTH).max(1);
    for slice in 0..slices {
        let start = slice * a.rows() / slices;
        let depth = (slice + 1) * a.rows() / slices - start;
        space.right.fill(b.rows_from(start, depth));
        pack_left(&mut space.left, a.rows_from(start, depth));
        for block in (0..rows).step_by(BLOCK) {
            let end = rows.min(block + BLOCK);
            for (panel, column) in (0..columns).step_by(COLUMNS).enumerate() {
                let lines = space.right.panel(panel);
                for row in (block..end).step_by(ROWS) {
                    let tile = Tile {
                        rows: ROWS.min(end - row),
                        columns: COLUMNS.min(columns - column),
                        stride,
                        add: true,
                    };
                    let left = &space.left[row * depth..(row + ROWS) * depth];
                    // SAFETY: as above; `left` holds six values for each of the panel's lines.
                    unsafe {
                        tile.run::<ROWS>(
                            lines,
                            left.as_ptr(),
                            1,
                            out.as_mut_ptr().add(row * stride + column),
                        );
                    }
                }
            }
        }
    }
}

/// Six columns of `a` side by side, row after row; then the next six.
fn pack_left(left: &mut Vec<f32>, a: Matrix<'_>) {
    let depth = a.rows();
    left.resize(a.columns().next_multiple_of(ROWS) * depth, 0.0);
    let (left, _) = left.as_chunks_mut::<ROWS>();
    for row in 0..depth {
        let (whole, rest) = a.row(row).as_chunks();
        let mut groups = left.iter_mut().skip(row).step_by(depth);
        for (values, group) in whole.iter().zip(&mut groups) {
            *group = *values;
        }
        if let Some(group) = groups.next().filter(|_| !rest.is_empty()) {
            group[..rest.len()].copy_from_slice(rest);
        }
    }
}

/// A part of the result that fits into the registers.
#[derive(Clone, Copy, Debug)]
struct Tile {
    rows: usize,
    columns: usize,
    /// Between the rows of the result.
    stride: usize,
    add: bool,
}

impl Tile {
    /// Multiplies, with `a[i·a_row + k·STEP]` as the left operand.
    ///
    /// # Safety
    /// The machine [`suits`]; `a` can be read for every row of the tile and every line, `out` written for every row and column.
    #[inline(always)]
    unsafe fn run<const STEP: usize>(self, lines: &[Line], a: *const f32, a_row: usize, out: *mut f32) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: passed on from the caller.
        unsafe {
            if self.columns == COLUMNS {
                self.by_rows::<STEP>(lines, a, a_row, out);
                return;
            }
            // A narrow panel: through a whole tile beside the result.
            let mut whole = [Line::default(); ROWS];
            let inner = Self {
                columns: COLUMNS,
                stride: COLUMNS,
                add: false,
                ..self
            };
            inner.by_rows::<STEP>(lines, a, a_row, whole.as_mut_ptr().cast());
            for (i, line) in whole.iter().enumerate().take(self.rows) {
                for (j, value) in line.0.iter().enumerate().take(self.columns) {
                    let out = out.add(i * self.stride + j);
                    *out = if self.add { *out + value } else { *value };
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (lines, a, a_row, out);
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn by_rows<const STEP: usize>(self, lines: &[Line], a: *const f32, a_row: usize, out: *mut f32) {
        let Self {
            rows, stride, add, ..
        } = self;
        // SAFETY: passed on from the caller.
        unsafe {
            match rows {
                6 => tile::<6, STEP>(lines, a, a_row, out, stride, add),
                5 => tile::<5, STEP>(lines, a, a_row, out, stride, add),
                4 => tile::<4, STEP>(lines, a, a_row, out, stride, add),
                3 => tile::<3, STEP>(lines, a, a_row, out, stride, add),
                2 => tile::<2, STEP>(lines, a, a_row, out, stride, add),
                _ => tile::<1, STEP>(lines, a, a_row, out, stride, add),
            }
        }
    }
}

/// # Safety
/// The machine has AVX2 and FMA; `a[i·a_row + k·STEP]` can be read for i < R and every line k, `out[i·stride + j]` written for j < 16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const R: usize, const STEP: usize>(
    lines: &[Line],
    a: *const f32,
    a_row: usize,
    out: *mut f32,
    stride: usize,
    add: bool,
) {
    use std::arch::x86_64::{
        _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_load_ps,
        _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps,
    };
    // SAFETY: passed on from the caller.
    unsafe {
        if add {
            // The result is far away; it arrives while the terms are summed.
            for i in 0..R {
                _mm_prefetch::<_MM_HINT_T0>(out.add(i * stride).cast());
            }
        }
        let mut sums = [[_mm256_setzero_ps(); 2]; R];
        for (k, line) in lines.iter().enumerate() {
            let b0 = _mm256_load_ps(line.0.as_ptr());
            let b1 = _mm256_load_ps(line.0.as_ptr().add(8));
            for (i, sum) in sums.iter_mut().enumerate() {
                let factor = _mm256_broadcast_ss(&*a.add(i * a_row + k * STEP));
                sum[0] = _mm256_fmadd_ps(factor, b0, sum[0]);
                sum[1] = _mm256_fmadd_ps(factor, b1, sum[1]);
            }
        }
        for (i, sum) in sums.iter().enumerate() {
            for (half, &sum) in sum.iter().enumerate() {
                let out = out.add(i * stride + 8 * half);
                let sum = if add {
                    _mm256_add_ps(_mm256_loadu_ps(out), sum)
                } else {
                    sum
                };
                _mm256_storeu_ps(out, sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7) % 11) as f32 - 5.0).collect()
    }

    /// Whole numbers that are exact in single precision, so the order of the sums does not matter.
    #[test]
    fn every_edge_of_the_tiles_agrees_with_the_general_product() {
        for (rows, inputs, outputs) in [(1, 1, 1), (5, 7, 3), (6, 16, 16), (97, 33, 47), (300, 20, 100)] {
            let (x, w, g) = (
                numbers(rows * inputs),
                numbers(outputs * inputs),
                numbers(rows * outputs),
            );
            let x = Matrix::new(&x, rows, inputs);
            let w = Matrix::new(&w, outputs, inputs);
            let g = Matrix::new(&g, rows, outputs);
            for (x, w) in [
                (x, w),
                (x.columns_from(inputs / 2), w.columns_from(inputs / 2)),
                (x.columns_to(inputs / 2), w.columns_to(inputs / 2)),
            ] {
                let mut weight = Weight::default();
                weight.prepare(w, true);
                let mut found = vec![f32::NAN; rows * outputs];
                let mut expected = found.clone();
                weight.forward(&mut found, x, w);
                times_transposed(&mut expected, x, w, false);
                assert_eq!(found, expected);

                let mut found = vec![f32::NAN; rows * w.columns()];
                let mut expected = found.clone();
                weight.backward(&mut found, g, w);
                times(&mut expected, w.columns(), g, w, false);
                assert_eq!(found, expected);

                let mut found = numbers(outputs * inputs);
                let mut expected = found.clone();
                add_outer_products(&mut found, inputs, g, x, &mut Packed::default());
                add_transposed_times(&mut expected, inputs, g, x);
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn buffers_of_another_shape_leave_no_trace() {
        let (x, w) = (numbers(40 * 20), numbers(20 * 20));
        let mut weight = Weight::default();
        let mut space = Packed::default();
        for (rows, size) in [(40, 20), (9, 5), (40, 18)] {
            let (x, w) = (Matrix::new(&x, rows, size), Matrix::new(&w, size, size));
            weight.prepare(w, true);
            let (mut found, mut expected) = (vec![0.0; rows * size], vec![0.0; rows * size]);
            weight.forward(&mut found, x, w);
            times_transposed(&mut expected, x, w, false);
            assert_eq!(found, expected);
            let (mut found, mut expected) = (vec![0.0; size * size], vec![0.0; size * size]);
            add_outer_products(&mut found, size, x, x, &mut space);
            add_transposed_times(&mut expected, size, x, x);
            assert_eq!(found, expected);
        }
    }
}
