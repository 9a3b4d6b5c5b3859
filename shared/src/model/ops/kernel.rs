//! The inner tiles of the matrix products: a few rows by sixteen columns, summed in registers.
#![allow(unsafe_code)] // vector instructions and unchecked reads whose bounds are asserted at the door

#[cfg(target_arch = "x86_64")]
use super::rows::Fused;
use super::rows::{Arithmetic, Finish, Separate};

/// Columns of a panel: outputs are computed sixteen at a time.
pub(super) const PANEL: usize = 16;
/// Rows of a tile of floats.
pub(super) const TILE: usize = 6;
/// Rows of a tile of integers: fewer, since twice as many registers hold weights.
pub(super) const INTEGER_TILE: usize = 4;
/// Inputs that a tile of integers takes at a time.
pub(super) const BLOCK: usize = 16;
/// The input at each place of a block's first half is multiplied with the one so much further on.
pub(super) const HALF: usize = BLOCK / 2;

/// What turns integer sums into outputs: y = sum · (step · scale) + bias, not fused.
#[derive(Clone, Copy)]
#[cfg_attr(
    all(target_arch = "wasm32", not(target_feature = "simd128")),
    expect(dead_code, reason = "the plain kernel multiplies every pair")
)]
pub(super) struct Scaling {
    /// Σ a_j · a_{j+8} over the blocks, one a row.
    pub(super) row_products: *const i32,
    /// Σ w_j · w_{j+8} over the blocks; sixteen, one a column.
    pub(super) column_products: *const i32,
    /// One a row.
    pub(super) steps: *const f32,
    /// Sixteen, one a column.
    pub(super) scales: *const f32,
    /// Sixteen, one a column.
    pub(super) bias: *const f32,
}

/// Where in a block of a panel the weight of an input for a column lies: two inputs of the second half, for eight
/// columns; the two of the first half that go with them; the same for the other eight columns; then the next two.
pub(super) const fn place_in_panel(input: usize, column: usize) -> usize {
    let (pair, early) = (input % HALF / 2, 1 - input / HALF);
    ((pair * 2 + column / 8) * 2 + early) * 16 + column % 8 * 2 + input % 2
}

/// Where in a block of so many rows an input of a row lies: two of the first half, the two of the second half that go with
/// them, the same for every row, then the next two.
#[cfg_attr(
    all(target_arch = "wasm32", target_feature = "simd128"),
    allow(dead_code, reason = "only the plain kernel asks")
)]
pub(super) const fn place_in_rows(input: usize, row: usize, rows: usize) -> usize {
    let (pair, late) = (input % HALF / 2, input / HALF);
    (pair * rows + row) * 4 + late * 2 + input % 2
}

/// A way to compute tiles: `N` rows by the sixteen columns of a panel of `depth × 16` numbers. Sums stay in registers
/// until they are outputs.
pub(super) trait Kernel {
    /// How its machine multiplies and adds.
    type Arithmetic: Arithmetic;

    /// Sums of products of 16-bit numbers, exact, then scaled into rows `out_stride` apart. `depth` is a multiple of
    /// [`BLOCK`], and both sides lie in blocks of so many inputs, laid out by [`place_in_rows`] and [`place_in_panel`].
    ///
    /// That is the order of Winograd's inner product (1968), which needs half the multiplications:
    /// a₀w₀ + a₈w₈ = (a₀+w₈)(a₈+w₀) − a₀a₈ − w₀w₈, and the last two terms are sums over a row and over a column.
    /// Additions run on twice as many units of a processor as multiplications. Whatever wraps around on the way, the result
    /// is exact as long as the sum itself fits.
    ///
    /// # Safety
    /// `a` must hold `N` rows of `depth` numbers, `panel` `depth · 16`, `scaling` `N` of each number a row and sixteen of each
    /// number a column; `out` must be writable for sixteen numbers at each of `N` rows.
    unsafe fn integers<const N: usize>(
        a: *const i16,
        depth: usize,
        panel: *const i16,
        scaling: Scaling,
        out: *mut f32,
        out_stride: usize,
    );

    /// Sums of products of floats, rows `stride` apart, plus a bias a column where there is one.
    ///
    /// # Safety
    /// `a` must be readable for `(N−1)·stride + depth` numbers, `panel` hold `depth · 16`, `bias` sixteen or be null;
    /// `out` must be writable for sixteen numbers at each of `N` rows `out_stride` apart.
    unsafe fn floats<const N: usize>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
        bias: *const f32,
        out: *mut f32,
        out_stride: usize,
    );

    /// Asks for numbers that will be needed soon; changes nothing.
    #[inline(always)]
    fn fetch(_soon: &[i8]) {}
}

/// Whatever the compiler makes of it.
#[cfg_attr(
    all(target_arch = "wasm32", target_feature = "simd128"),
    expect(dead_code, reason = "the page has simd128")
)]
pub(super) struct Plain;

impl Kernel for Plain {
    type Arithmetic = Separate;

    #[inline(always)]
    unsafe fn integers<const N: usize>(
        a: *const i16,
        depth: usize,
        panel: *const i16,
        scaling: Scaling,
        out: *mut f32,
        out_stride: usize,
    ) {
        let mut sums = [[0_i32; PANEL]; N];
        for input in 0..depth {
            let block = input / BLOCK * BLOCK;
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: within the bounds the caller promised.
                let x = unsafe { *a.add(block * N + place_in_rows(input % BLOCK, row, N)) };
                for (column, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: within the bounds the caller promised.
                    let w = unsafe { *panel.add(block * PANEL + place_in_panel(input % BLOCK, column)) };
                    *sum = sum.wrapping_add(i32::from(x) * i32::from(w));
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (column, &sum) in sums.iter().enumerate() {
                // SAFETY: within the bounds the caller promised.
                unsafe {
                    let factor = *scaling.steps.add(row) * *scaling.scales.add(column);
                    *out.add(row * out_stride + column) = sum as f32 * factor + *scaling.bias.add(column);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn floats<const N: usize>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
        bias: *const f32,
        out: *mut f32,
        out_stride: usize,
    ) {
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
        for (row, sums) in sums.iter().enumerate() {
            for (column, &sum) in sums.iter().enumerate() {
                // SAFETY: within the bounds the caller promised.
                unsafe {
                    *out.add(row * out_stride + column) = if bias.is_null() {
                        sum
                    } else {
                        sum + *bias.add(column)
                    };
                }
            }
        }
    }
}

/// AVX2 and FMA: two vectors of eight columns.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Kernel for Avx2 {
    type Arithmetic = Fused;

    #[inline(always)]
    unsafe fn integers<const N: usize>(
        a: *const i16,
        depth: usize,
        panel: *const i16,
        scaling: Scaling,
        out: *mut f32,
        out_stride: usize,
    ) {
        use std::arch::x86_64::{
            __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_add_ps, _mm256_broadcast_ss,
            _mm256_cvtepi32_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_mul_ps,
            _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_ps, _mm256_sub_epi32,
        };
        // SAFETY: reads and writes stay within the bounds the caller promised; the caller runs with AVX2.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; N];
            let mut panel = panel.cast::<__m256i>();
            let mut a = a.cast::<i32>();
            for _ in 0..depth / 4 {
                let (late, early) = (
                    [_mm256_loadu_si256(panel), _mm256_loadu_si256(panel.add(2))],
                    [_mm256_loadu_si256(panel.add(1)), _mm256_loadu_si256(panel.add(3))],
                );
                for row in 0..N {
                    let x = _mm256_set1_epi32(a.add(2 * row).read_unaligned());
                    let y = _mm256_set1_epi32(a.add(2 * row + 1).read_unaligned());
                    for half in 0..2 {
                        let (x, y) = (_mm256_add_epi16(x, late[half]), _mm256_add_epi16(y, early[half]));
                        sums[row][half] = _mm256_add_epi32(sums[row][half], _mm256_madd_epi16(x, y));
                    }
                }
                panel = panel.add(4);
                a = a.add(2 * N);
            }
            for half in 0..2 {
                let products = _mm256_loadu_si256(scaling.column_products.add(8 * half).cast());
                let scales = _mm256_loadu_ps(scaling.scales.add(8 * half));
                let bias = _mm256_loadu_ps(scaling.bias.add(8 * half));
                for row in 0..N {
                    let row_products = _mm256_set1_epi32(*scaling.row_products.add(row));
                    let products = _mm256_add_epi32(products, row_products);
                    let sum = _mm256_cvtepi32_ps(_mm256_sub_epi32(sums[row][half], products));
                    let factors = _mm256_mul_ps(_mm256_broadcast_ss(&*scaling.steps.add(row)), scales);
                    let scaled = _mm256_add_ps(_mm256_mul_ps(sum, factors), bias);
                    _mm256_storeu_ps(out.add(row * out_stride + 8 * half), scaled);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn floats<const N: usize>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
        bias: *const f32,
        out: *mut f32,
        out_stride: usize,
    ) {
        use std::arch::x86_64::{
            _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps,
            _mm256_storeu_ps,
        };
        // SAFETY: reads and writes stay within the bounds the caller promised; the caller runs with AVX2 and FMA.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; N];
            let mut panel = panel;
            let mut a = a;
            for _ in 0..depth {
                let low = _mm256_loadu_ps(panel);
                let high = _mm256_loadu_ps(panel.add(8));
                for row in 0..N {
                    let x = _mm256_broadcast_ss(&*a.add(row * stride));
                    sums[row][0] = _mm256_fmadd_ps(x, low, sums[row][0]);
                    sums[row][1] = _mm256_fmadd_ps(x, high, sums[row][1]);
                }
                panel = panel.add(PANEL);
                a = a.add(1);
            }
            if !bias.is_null() {
                let (low, high) = (_mm256_loadu_ps(bias), _mm256_loadu_ps(bias.add(8)));
                for sums in &mut sums {
                    sums[0] = _mm256_add_ps(sums[0], low);
                    sums[1] = _mm256_add_ps(sums[1], high);
                }
            }
            for row in 0..N {
                _mm256_storeu_ps(out.add(row * out_stride), sums[row][0]);
                _mm256_storeu_ps(out.add(row * out_stride + 8), sums[row][1]);
            }
        }
    }

    #[inline(always)]
    fn fetch(soon: &[i8]) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        for line in soon.chunks(64) {
            // SAFETY: a hint about memory that the slice holds.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr()) };
        }
    }
}

/// AVX-512 with VNNI: one vector of sixteen columns, and a multiply-add of pairs that adds to its sum by itself, so that
/// Winograd's detour would only cost.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Kernel for Avx512 {
    type Arithmetic = Fused;

    #[inline(always)]
    unsafe fn integers<const N: usize>(
        a: *const i16,
        depth: usize,
        panel: *const i16,
        scaling: Scaling,
        out: *mut f32,
        out_stride: usize,
    ) {
        use std::arch::x86_64::{
            __m256i, _mm256_loadu_si256, _mm512_add_epi32, _mm512_add_ps, _mm512_castsi256_si512,
            _mm512_cvtepi32_ps, _mm512_dpwssd_epi32, _mm512_inserti64x4, _mm512_loadu_ps, _mm512_mul_ps,
            _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_storeu_ps,
        };
        // SAFETY: reads and writes stay within the bounds the caller promised; the caller runs with AVX-512 and VNNI.
        unsafe {
            // Two sums a row: one alone would wait for itself.
            let mut sums = [[_mm512_setzero_si512(); 2]; N];
            let mut panel = panel.cast::<__m256i>();
            let mut a = a.cast::<i32>();
            for _ in 0..depth / 4 {
                // Eight columns and eight columns, as they lie in the panel.
                let (late, early) = (
                    _mm512_inserti64x4::<1>(
                        _mm512_castsi256_si512(_mm256_loadu_si256(panel)),
                        _mm256_loadu_si256(panel.add(2)),
                    ),
                    _mm512_inserti64x4::<1>(
                        _mm512_castsi256_si512(_mm256_loadu_si256(panel.add(1))),
                        _mm256_loadu_si256(panel.add(3)),
                    ),
                );
                for row in 0..N {
                    let x = _mm512_set1_epi32(a.add(2 * row).read_unaligned());
                    let y = _mm512_set1_epi32(a.add(2 * row + 1).read_unaligned());
                    sums[row][0] = _mm512_dpwssd_epi32(sums[row][0], x, early);
                    sums[row][1] = _mm512_dpwssd_epi32(sums[row][1], y, late);
                }
                panel = panel.add(4);
                a = a.add(2 * N);
            }
            let scales = _mm512_loadu_ps(scaling.scales);
            let bias = _mm512_loadu_ps(scaling.bias);
            for row in 0..N {
                let sum = _mm512_cvtepi32_ps(_mm512_add_epi32(sums[row][0], sums[row][1]));
                let factors = _mm512_mul_ps(_mm512_set1_ps(*scaling.steps.add(row)), scales);
                let scaled = _mm512_add_ps(_mm512_mul_ps(sum, factors), bias);
                _mm512_storeu_ps(out.add(row * out_stride), scaled);
            }
        }
    }

    #[inline(always)]
    unsafe fn floats<const N: usize>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
        bias: *const f32,
        out: *mut f32,
        out_stride: usize,
    ) {
        use std::arch::x86_64::{
            _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
            _mm512_storeu_ps,
        };
        // SAFETY: reads and writes stay within the bounds the caller promised; the caller runs with AVX-512.
        unsafe {
            let mut sums = [_mm512_setzero_ps(); N];
            for k in 0..depth {
                let weights = _mm512_loadu_ps(panel.add(k * PANEL));
                for (row, sum) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*a.add(row * stride + k));
                    *sum = _mm512_fmadd_ps(x, weights, *sum);
                }
            }
            for (row, &sum) in sums.iter().enumerate() {
                let sum = if bias.is_null() {
                    sum
                } else {
                    _mm512_add_ps(sum, _mm512_loadu_ps(bias))
                };
                _mm512_storeu_ps(out.add(row * out_stride), sum);
            }
        }
    }

    #[inline(always)]
    fn fetch(soon: &[i8]) {
        Avx2::fetch(soon);
    }
}

/// simd128: eight columns at a time, since the engines have sixteen registers of four lanes.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) struct Simd128;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
impl Kernel for Simd128 {
    type Arithmetic = Separate;

    #[inline(always)]
    unsafe fn integers<const N: usize>(
        a: *const i16,
        depth: usize,
        panel: *const i16,
        scaling: Scaling,
        out: *mut f32,
        out_stride: usize,
    ) {
        use std::arch::wasm32::{
            f32x4_add, f32x4_convert_i32x4, f32x4_mul, f32x4_splat, i16x8_add, i32x4_add, i32x4_dot_i16x8,
            i32x4_splat, i32x4_sub, v128, v128_load, v128_store,
        };
        // SAFETY: reads and writes stay within the bounds the caller promised.
        unsafe {
            for half in 0..2 {
                let mut sums = [[i32x4_splat(0); 2]; N];
                let mut panel = panel.cast::<v128>().add(4 * half);
                let mut a = a.cast::<i32>();
                for _ in 0..depth / 4 {
                    let late = [v128_load(panel), v128_load(panel.add(1))];
                    let early = [v128_load(panel.add(2)), v128_load(panel.add(3))];
                    for row in 0..N {
                        let x = i32x4_splat(a.add(2 * row).read_unaligned());
                        let y = i32x4_splat(a.add(2 * row + 1).read_unaligned());
                        for quarter in 0..2 {
                            let product =
                                i32x4_dot_i16x8(i16x8_add(x, late[quarter]), i16x8_add(y, early[quarter]));
                            sums[row][quarter] = i32x4_add(sums[row][quarter], product);
                        }
                    }
                    panel = panel.add(8);
                    a = a.add(2 * N);
                }
                for quarter in 0..2 {
                    let column = 8 * half + 4 * quarter;
                    let products = v128_load(scaling.column_products.add(column).cast());
                    let scales = v128_load(scaling.scales.add(column).cast());
                    let bias = v128_load(scaling.bias.add(column).cast());
                    for row in 0..N {
                        let row_products = i32x4_splat(*scaling.row_products.add(row));
                        let sum = i32x4_sub(sums[row][quarter], i32x4_add(products, row_products));
                        let factors = f32x4_mul(f32x4_splat(*scaling.steps.add(row)), scales);
                        let scaled = f32x4_add(f32x4_mul(f32x4_convert_i32x4(sum), factors), bias);
                        v128_store(out.add(row * out_stride + column).cast(), scaled);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn floats<const N: usize>(
        a: *const f32,
        stride: usize,
        depth: usize,
        panel: *const f32,
        bias: *const f32,
        out: *mut f32,
        out_stride: usize,
    ) {
        use std::arch::wasm32::{f32x4_add, f32x4_mul, f32x4_splat, v128, v128_load, v128_store};
        // SAFETY: reads and writes stay within the bounds the caller promised.
        unsafe {
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
                for quarter in 0..2 {
                    let column = 8 * half + 4 * quarter;
                    for row in 0..N {
                        let mut sum = sums[row][quarter];
                        if !bias.is_null() {
                            sum = f32x4_add(sum, v128_load(bias.add(column).cast()));
                        }
                        v128_store(out.add(row * out_stride + column).cast(), sum);
                    }
                }
            }
        }
    }
}

/// Where a tile of `N` rows writes its sixteen columns, and how far apart: into `out` (rows `stride` apart) where all
/// sixteen belong there, otherwise into `spare`. [`settle`] comes after.
///
/// Two functions, not one that takes the tile as a closure: a closure would be compiled without the tile's instructions.
#[inline(always)]
pub(super) fn landing<const N: usize>(
    out: &mut [f32],
    stride: usize,
    width: usize,
    spare: &mut [[f32; PANEL]],
) -> (*mut f32, usize) {
    if width == PANEL {
        assert!(out.len() >= (N - 1) * stride + PANEL, "room for the tile");
        (out.as_mut_ptr(), stride)
    } else {
        assert!(spare.len() >= N, "room for the tile");
        (spare.as_flattened_mut().as_mut_ptr(), PANEL)
    }
}

/// Brings what a tile left in `spare` to the first `width` columns of `out`, finished while it is at hand.
#[inline(always)]
pub(super) fn settle<K: Kernel, F: Finish, const N: usize>(
    out: &mut [f32],
    stride: usize,
    width: usize,
    spare: &mut [[f32; PANEL]],
) {
    for (row, spare) in spare[..N].iter_mut().enumerate() {
        let out = &mut out[row * stride..row * stride + width];
        if let Ok(whole) = <&mut [f32; PANEL]>::try_from(&mut *out) {
            F::each::<K::Arithmetic>(whole);
        } else {
            F::each::<K::Arithmetic>(spare);
            out.copy_from_slice(&spare[..width]);
        }
    }
}

/// Whether this machine has what [`Avx512`] takes.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx512() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512vnni")
        && std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
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
            #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vnni")]
            fn with_avx512($($arg: $type),*) {
                body::<$crate::model::ops::kernel::Avx512>($($arg),*);
            }
            if $crate::model::ops::kernel::has_avx512() {
                // SAFETY: the line above asked the machine for each of them.
                unsafe { with_avx512($($arg),*) };
            } else if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
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
