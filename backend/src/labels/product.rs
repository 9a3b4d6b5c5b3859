//! Blocked matrix products: the one place where distances are paid for.
#![allow(unsafe_code)] // `gemm` takes raw pointers; the lengths are asserted right above each call.

use gemm::{Parallelism, gemm};

/// out = X·Cᵀ for row-major X (m × width) and C (n × width), on the calling thread.
///
/// The order of the sums depends on the shapes only, so callers that cut their work into fixed blocks get
/// the same bits whatever the number of threads.
pub(super) fn products(x: &[f32], c: &[f32], width: usize, out: &mut [f32]) {
    let (m, n) = (x.len() / width, c.len() / width);
    assert_eq!(x.len(), m * width);
    assert_eq!(c.len(), n * width);
    assert_eq!(out.len(), m * n);
    if m == 0 || n == 0 {
        return;
    }
    // SAFETY: `out` is m × n with rows of n, `x` m × width with rows of `width`, and `c`, read as its
    // transpose, width × n with columns of `width`: the strides stay inside the asserted lengths, and
    // `out` is borrowed exclusively.
    unsafe {
        gemm(
            m,
            n,
            width,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            x.as_ptr(),
            1,
            width as isize,
            c.as_ptr(),
            width as isize,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
