//! The inner tiles of the matrix products: a few rows by sixteen columns, summed in registers.
#![allow(unsafe_code)] // vector instructions and unchecked reads whose bounds are asserted at the door

/// Columns of a panel: outputs are computed sixteen at a time.
pub(super) const PANEL: usize = 16;
/// Rows of a tile.
pub(super) const TILE: usize = 6;

/// A way to compute tiles: `N` rows by the sixteen columns of a panel of `depth × 16` numbers.
pub(super) trait Kernel {
    /// Sums of products of 16-bit numbers, exact. `depth` is even; rows and panel are interleaved by pairs of inputs:
    /// pair 0 of every row (column), then pair 1 of every row (column), and so on.
    ///
    /// # Safety
    /// `a` must hold `N · depth` numbers, `panel` `depth · 16`.
    unsafe fn integers<const N: usize>(a: *const i16, depth: usize, panel: *const i16) -> [[i32; PANEL]; N];

    /// Sums of products of floats, rows `stride` apart; with `FUSED`, multiply and add round once where the machine can.
    ///
    /// # Safety
    /// `a` must be readable for `(N−1)·stride + depth` numbers, `panel` hold `depth · 16`.
    unsafe fn floats<const N: usize, const FUSED: bool>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
    ) -> [[f32; PANEL]; N];
}

/// Whatever the compiler makes of it.
#[cfg_attr(
    all(target_arch = "wasm32", target_feature = "simd128"),
    expect(dead_code, reason = "the page has simd128")
)]
pub(super) struct Plain;

impl Kernel for Plain {
    #[inline(always)]
    unsafe fn integers<const N: usize>(a: *const i16, depth: usize, panel: *const i16) -> [[i32; PANEL]; N] {
        let mut sums = [[0_i32; PANEL]; N];
        for pair in 0..depth / 2 {
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: within the bounds the caller promised.
                let (x0, x1) = unsafe {
                    let at = a.add((pair * N + row) * 2);
                    (i32::from(*at), i32::from(*at.add(1)))
                };
                for (column, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: within the bounds the caller promised.
                    let (w0, w1) = unsafe {
                        let at = panel.add((pair * PANEL + column) * 2);
                        (i32::from(*at), i32::from(*at.add(1)))
                    };
                    *sum += x0 * w0 + x1 * w1;
                }
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn floats<const N: usize, const FUSED: bool>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
    ) -> [[f32; PANEL]; N] {
        let mut sums = [[0.0_f32; PANEL]; N];
        for k in 0..depth {
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: within the bounds the caller promised.
                let x = unsafe { *a.add(row * stride + k) };
                for (column, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: within the bounds the caller promised.
                    *sum += x * unsafe { *panel.add(k * PANEL + column) };
                }
            }
        }
        sums
    }
}

/// AVX2 and FMA: two vectors of eight columns.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Kernel for Avx2 {
    #[inline(always)]
    unsafe fn integers<const N: usize>(a: *const i16, depth: usize, panel: *const i16) -> [[i32; PANEL]; N] {
        use std::arch::x86_64::{
            __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi32,
            _mm256_setzero_si256, _mm256_storeu_si256,
        };
        // SAFETY: reads stay within the bounds the caller promised; the caller runs with AVX2.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; N];
            let mut panel = panel.cast::<__m256i>();
            let mut a = a;
            for _ in 0..depth / 2 {
                let low = _mm256_loadu_si256(panel);
                let high = _mm256_loadu_si256(panel.add(1));
                for row in 0..N {
                    let x = _mm256_set1_epi32(a.add(2 * row).cast::<i32>().read_unaligned());
                    sums[row][0] = _mm256_add_epi32(sums[row][0], _mm256_madd_epi16(x, low));
                    sums[row][1] = _mm256_add_epi32(sums[row][1], _mm256_madd_epi16(x, high));
                }
                panel = panel.add(2);
                a = a.add(2 * N);
            }
            let mut out = [[0_i32; PANEL]; N];
            for row in 0..N {
                _mm256_storeu_si256(out[row].as_mut_ptr().cast(), sums[row][0]);
                _mm256_storeu_si256(out[row].as_mut_ptr().add(8).cast(), sums[row][1]);
            }
            out
        }
    }

    #[inline(always)]
    unsafe fn floats<const N: usize, const FUSED: bool>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
    ) -> [[f32; PANEL]; N] {
        use std::arch::x86_64::{
            _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps,
            _mm256_setzero_ps, _mm256_storeu_ps,
        };
        // SAFETY: reads stay within the bounds the caller promised; the caller runs with AVX2 and FMA.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; N];
            let mut panel = panel;
            let mut a = a;
            for _ in 0..depth {
                let low = _mm256_loadu_ps(panel);
                let high = _mm256_loadu_ps(panel.add(8));
                for row in 0..N {
                    let x = _mm256_broadcast_ss(&*a.add(row * stride));
                    if FUSED {
                        sums[row][0] = _mm256_fmadd_ps(x, low, sums[row][0]);
                        sums[row][1] = _mm256_fmadd_ps(x, high, sums[row][1]);
                    } else {
                        sums[row][0] = _mm256_add_ps(sums[row][0], _mm256_mul_ps(x, low));
                        sums[row][1] = _mm256_add_ps(sums[row][1], _mm256_mul_ps(x, high));
                    }
                }
                panel = panel.add(PANEL);
                a = a.add(1);
            }
            let mut out = [[0.0_f32; PANEL]; N];
            for row in 0..N {
                _mm256_storeu_ps(out[row].as_mut_ptr(), sums[row][0]);
                _mm256_storeu_ps(out[row].as_mut_ptr().add(8), sums[row][1]);
            }
            out
        }
    }
}

/// simd128: eight columns at a time, since the engines have sixteen registers of four lanes.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) struct Simd128;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
impl Kernel for Simd128 {
    #[inline(always)]
    unsafe fn integers<const N: usize>(a: *const i16, depth: usize, panel: *const i16) -> [[i32; PANEL]; N] {
        use std::arch::wasm32::{i32x4_add, i32x4_dot_i16x8, i32x4_splat, v128, v128_load, v128_store};
        // SAFETY: reads stay within the bounds the caller promised.
        unsafe {
            let mut out = [[0_i32; PANEL]; N];
            for half in 0..2 {
                let mut sums = [[i32x4_splat(0); 2]; N];
                let mut panel = panel.cast::<v128>().add(2 * half);
                let mut a = a;
                for _ in 0..depth / 2 {
                    let low = v128_load(panel);
                    let high = v128_load(panel.add(1));
                    for row in 0..N {
                        let x = i32x4_splat(a.add(2 * row).cast::<i32>().read_unaligned());
                        sums[row][0] = i32x4_add(sums[row][0], i32x4_dot_i16x8(x, low));
                        sums[row][1] = i32x4_add(sums[row][1], i32x4_dot_i16x8(x, high));
                    }
                    panel = panel.add(4);
                    a = a.add(2 * N);
                }
                for row in 0..N {
                    let at = out[row].as_mut_ptr().add(8 * half).cast::<v128>();
                    v128_store(at, sums[row][0]);
                    v128_store(at.add(1), sums[row][1]);
                }
            }
            out
        }
    }

    #[inline(always)]
    unsafe fn floats<const N: usize, const FUSED: bool>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
    ) -> [[f32; PANEL]; N] {
        use std::arch::wasm32::{f32x4_add, f32x4_mul, f32x4_splat, v128, v128_load, v128_store};
        // SAFETY: reads stay within the bounds the caller promised.
        unsafe {
            let mut out = [[0.0_f32; PANEL]; N];
            for half in 0..2 {
                let mut sums = [[f32x4_splat(0.0); 2]; N];
                let mut panel = panel.cast::<v128>().add(2 * half);
                let mut a = a;
                for _ in 0..depth {
                    let low = v128_load(panel);
                    let high = v128_load(panel.add(1));
                    for row in 0..N {
                        let x = f32x4_splat(*a.add(row * stride));
                        sums[row][0] = f32x4_add(sums[row][0], f32x4_mul(x, low));
                        sums[row][1] = f32x4_add(sums[row][1], f32x4_mul(x, high));
                    }
                    panel = panel.add(4);
                    a = a.add(1);
                }
                for row in 0..N {
                    let at = out[row].as_mut_ptr().add(8 * half).cast::<v128>();
                    v128_store(at, sums[row][0]);
                    v128_store(at.add(1), sums[row][1]);
                }
            }
            out
        }
    }
}

/// Runs `$body` with `$kernel` standing for the best kernel this machine has.
macro_rules! with_kernel {
    ($kernel:ident, fn($($arg:ident: $type:ty),* $(,)?) $body:block) => {{
        #[inline(always)]
        fn body<$kernel: $crate::model::ops::kernel::Kernel>($($arg: $type),*) $body

        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn with_avx2($($arg: $type),*) {
                body::<$crate::model::ops::kernel::Avx2>($($arg),*);
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                // SAFETY: the line above asked the machine for AVX2 and FMA.
                unsafe { with_avx2($($arg),*) };
            } else {
                body::<$crate::model::ops::kernel::Plain>($($arg),*);
            }
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        body::<$crate::model::ops::kernel::Simd128>($($arg),*);
        #[cfg(not(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128"))))]
        body::<$crate::model::ops::kernel::Plain>($($arg),*);
    }};
}
pub(super) use with_kernel;
