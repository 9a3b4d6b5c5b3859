//! The dense products of the fused network: a safe face on the `gemm` crate's single-precision kernel.
#![allow(unsafe_code)] // The crate takes raw pointers; every call below checks its slices first.

use gemm::Parallelism;

/// A row-major matrix, or a block of columns of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    stride: usize,
}

impl<'a> Matrix<'a> {
    pub(super) fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// `columns` columns of a matrix whose rows are `stride` apart; `data` starts at the block's first value.
    pub(super) fn strided(data: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(columns <= stride);
        assert!(rows == 0 || columns == 0 || data.len() >= (rows - 1) * stride + columns);
        Self {
            data,
            rows,
            columns,
            stride,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    pub(super) fn row(&self, row: usize) -> &'a [f32] {
        &self.data[row * self.stride..][..self.columns]
    }

    /// The columns from `first` on.
    pub(super) fn columns_from(self, first: usize) -> Self {
        let data = self.data.get(first..).unwrap_or_default();
        Self::strided(data, self.rows, self.columns - first, self.stride)
    }

    /// The columns before `end`.
    pub(super) fn columns_to(self, end: usize) -> Self {
        Self::strided(self.data, self.rows, end, self.stride)
    }

    /// `count` rows from `first` on.
    pub(super) fn rows_from(self, first: usize, count: usize) -> Self {
        assert!(first + count <= self.rows);
        let data = &self.data[first * self.stride..];
        Self::strided(data, count, self.columns, self.stride)
    }
}

/// `out = a·bᵀ`, or `out += a·bᵀ`.
pub(super) fn times_transposed(out: &mut [f32], a: Matrix<'_>, b: Matrix<'_>, add: bool) {
    assert_eq!(a.columns, b.columns);
    assert!(out.len() >= a.rows * b.rows);
    // SAFETY: `out` is a.rows × b.rows as asserted; the matrices hold their shapes by construction.
    unsafe {
        run(
            out,
            b.rows,
            (a.rows, b.rows, a.columns),
            (a.data, 1, a.stride),
            (b.data, b.stride, 1),
            add,
        );
    }
}

/// `out = a·b`, or `out += a·b`, into rows of `out` that are `stride` apart.
pub(super) fn times(out: &mut [f32], stride: usize, a: Matrix<'_>, b: Matrix<'_>, add: bool) {
    assert_eq!(a.columns, b.rows);
    assert!(b.columns <= stride && (a.rows == 0 || out.len() >= (a.rows - 1) * stride + b.columns));
    // SAFETY: as above, with the row distance asserted.
    unsafe {
        run(
            out,
            stride,
            (a.rows, b.columns, a.columns),
            (a.data, 1, a.stride),
            (b.data, 1, b.stride),
            add,
        );
    }
}

/// `out += aᵀ·b`, into rows of `out` that are `stride` apart.
pub(super) fn add_transposed_times(out: &mut [f32], stride: usize, a: Matrix<'_>, b: Matrix<'_>) {
    assert_eq!(a.rows, b.rows);
    assert!(b.columns <= stride && (a.columns == 0 || out.len() >= (a.columns - 1) * stride + b.columns));
    // SAFETY: as above.
    unsafe {
        run(
            out,
            stride,
            (a.columns, b.columns, a.rows),
            (a.data, a.stride, 1),
            (b.data, 1, b.stride),
            true,
        );
    }
}

/// # Safety
/// The strides must stay inside the slices for an `m × k` times `k × n` product.
unsafe fn run(
    out: &mut [f32],
    out_stride: usize,
    (m, n, k): (usize, usize, usize),
    (a, a_cs, a_rs): (&[f32], usize, usize),
    (b, b_cs, b_rs): (&[f32], usize, usize),
    add: bool,
) {
    if m == 0 || n == 0 {
        return;
    }
    // SAFETY: passed on from the caller.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            out_stride as isize,
            add,
            a.as_ptr(),
            a_cs as isize,
            a_rs as isize,
            b.as_ptr(),
            b_cs as isize,
            b_rs as isize,
            if add { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// Billions of floating-point operations a second that `threads` threads reach together on large square products:
/// the peak that a share is reported of.
pub fn measured_peak_gflops(threads: usize) -> f64 {
    use rayon::prelude::*;
    const N: usize = 768;
    let a: Vec<f32> = (0..N * N).map(|i| (i % 17) as f32).collect();
    let rounds = 6;
    let best = (0..4)
        .map(|_| {
            let start = std::time::Instant::now();
            (0..threads).into_par_iter().for_each(|_| {
                let mut out = vec![0.0; N * N];
                for _ in 0..rounds {
                    times(&mut out, N, Matrix::new(&a, N, N), Matrix::new(&a, N, N), false);
                }
                std::hint::black_box(&out);
            });
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    2.0 * (N * N * N * rounds * threads) as f64 / best / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7) % 11) as f32 - 5.0).collect()
    }

    #[test]
    fn the_three_products_agree_with_the_definition() {
        let (m, n, k) = (5, 7, 3);
        let (a, b, bt) = (numbers(m * k), numbers(k * n), numbers(n * k));
        let mut out = vec![1.0; m * n];
        times(&mut out, n, Matrix::new(&a, m, k), Matrix::new(&b, k, n), true);
        let mut nt = vec![f32::NAN; m * n];
        times_transposed(&mut nt, Matrix::new(&a, m, k), Matrix::new(&bt, n, k), false);
        let mut tn = vec![0.0; k * n];
        let c = numbers(m * n);
        add_transposed_times(&mut tn, n, Matrix::new(&a, m, k), Matrix::new(&c, m, n));
        for i in 0..m {
            for j in 0..n {
                let dot = |f: &dyn Fn(usize) -> f32| (0..k).map(f).sum::<f32>();
                assert_eq!(out[i * n + j], 1.0 + dot(&|l| a[i * k + l] * b[l * n + j]));
                assert_eq!(nt[i * n + j], dot(&|l| a[i * k + l] * bt[j * k + l]));
            }
        }
        for l in 0..k {
            for j in 0..n {
                assert_eq!(
                    tn[l * n + j],
                    (0..m).map(|i| a[i * k + l] * c[i * n + j]).sum::<f32>()
                );
            }
        }
    }

    #[test]
    fn a_block_of_columns_is_multiplied_in_place() {
        // [1 2 3; 4 5 6], last two columns, times [1; 1] into the second column of a 2 × 2.
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut out = [0.0; 4];
        times(
            &mut out[1..],
            2,
            Matrix::strided(&a[1..], 2, 2, 3),
            Matrix::new(&[1.0, 1.0], 2, 1),
            false,
        );
        assert_eq!(out, [0.0, 5.0, 0.0, 11.0]);
    }
}
