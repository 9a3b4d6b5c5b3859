//! Row-wise float operations. Reductions run in eight lanes added up in a fixed order, so machines of a kind agree bit for
//! bit; those that fuse a multiply with an add differ from the others in the last bits.
#![allow(unsafe_code)] // only to call a function compiled for AVX2 and FMA after asking for them

/// How the machine computes a·b + c.
pub(super) trait Arithmetic {
    fn multiply_add(a: f32, b: f32, c: f32) -> f32;
}

/// Rounds once: one instruction where there is FMA, a slow call where there is none.
#[cfg(any(target_arch = "x86_64", test))]
pub(super) struct Fused;

/// Rounds twice: the page, and old machines.
pub(super) struct Separate;

#[cfg(any(target_arch = "x86_64", test))]
impl Arithmetic for Fused {
    #[inline(always)]
    fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

impl Arithmetic for Separate {
    #[inline(always)]
    fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// Defines a function once, and compiles it a second time with AVX2 and FMA where the machine may have them. `$arithmetic` stands for
/// the [`Arithmetic`] of each.
macro_rules! vectorised {
    ($(#[$doc:meta])* $visible:vis fn $name:ident<$arithmetic:ident>($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        $visible fn $name($($arg: $type),*) {
            #[inline(always)]
            fn body<$arithmetic: $crate::model::ops::rows::Arithmetic>($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn with_avx2($($arg: $type),*) {
                    body::<$crate::model::ops::rows::Fused>($($arg),*);
                }
                if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                    // SAFETY: the line above asked the machine for AVX2 and FMA.
                    unsafe { with_avx2($($arg),*) };
                    return;
                }
            }
            body::<$crate::model::ops::rows::Separate>($($arg),*);
        }
    };
}
pub(super) use vectorised;

const LANES: usize = 8;

/// Σ in eight lanes, then pairwise.
#[inline(always)]
fn lanes_sum(lanes: [f32; LANES]) -> f32 {
    ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]))
}

#[inline(always)]
fn sum_of(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f(x);
        }
    }
    let mut sum = lanes_sum(lanes);
    for &x in rest {
        sum += f(x);
    }
    sum
}

/// The largest of f over a row; not below `floor`.
#[inline(always)]
pub(super) fn largest_of(row: &[f32], floor: f32, f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [floor; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            let y = f(x);
            *lane = if y > *lane { y } else { *lane };
        }
    }
    let mut most = floor;
    for lane in lanes {
        most = if lane > most { lane } else { most };
    }
    for &x in rest {
        let y = f(x);
        most = if y > most { y } else { most };
    }
    most
}

/// The largest |x · y| over two rows.
#[inline(always)]
pub(super) fn largest_product(x: &[f32], y: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (x, y) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest = x.remainder().iter().zip(y.remainder());
    for (x, y) in x.zip(y) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            let product = (x * y).abs();
            *lane = if product > *lane { product } else { *lane };
        }
    }
    let most = largest_of(&lanes, 0.0, |lane| lane);
    rest.fold(most, |most, (x, y)| {
        let product = (x * y).abs();
        if product > most { product } else { most }
    })
}

/// Adding this to a small float rounds it to the nearest integer (ties to even) and leaves the integer in the low bits.
pub(super) const ROUNDER: f32 = 12_582_912.0;

/// eˣ for −87 ≤ x ≤ 88, flat beyond; relative error below 2e-7.
///
/// eˣ = 2ⁿ · eʳ with n = round(x / ln 2), |r| ≤ ½ ln 2, and the Taylor series of eʳ to r⁷, its terms added by twos and
/// fours: a chain of eight additions would wait for itself.
///
/// Nothing is fused here: with fused terms the compiler fills half of its vectors.
#[inline(always)]
#[allow(clippy::excessive_precision)]
pub fn exp(x: f32) -> f32 {
    let x = clamped_between(x, -87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    // ln 2 in two parts: the first has few bits, so n times it is exact.
    let r = (x - n * 0.693_359_375) + n * 2.121_944_400_5e-4;
    let square = r * r;
    let low = (1.0 + r) + square * (0.5 + r * (1.0 / 6.0));
    let high = (1.0 / 24.0 + r * (1.0 / 120.0)) + square * (1.0 / 720.0 + r * (1.0 / 5040.0));
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (low + square * square * high) * power
}

/// What becomes of a tile's numbers while they are at hand.
pub(super) trait Finish {
    fn each<A: Arithmetic>(values: &mut [f32]);
}

/// Nothing.
pub(super) struct AsItIs;

/// GELU, x · Φ(x), as exact as single precision: absolute error of Φ below 2e-7.
///
/// Φ(x) − ½ = x · P(x²) / Q(x²), fitted for the least largest error up to 5.5, where Φ is one in single precision. At 5.7 the form has
/// passed ½, however its terms are rounded: there it is cut off, and Φ is one or zero beyond.
pub(super) struct Gelu;

/// [`Gelu`] for numbers that are rounded to some thirteen bits next: error below 1.1e-5, two thirds of the work.
///
/// The same form with fewer terms, fitted up to 5, where it passes ½, for the least largest error of x · Φ(x).
pub(super) struct CoarseGelu;

impl Finish for AsItIs {
    #[inline(always)]
    fn each<A: Arithmetic>(_: &mut [f32]) {}
}

impl Finish for Gelu {
    #[inline(always)]
    #[allow(clippy::excessive_precision)]
    fn each<A: Arithmetic>(values: &mut [f32]) {
        for value in values {
            let x = clamped(*value, 5.7);
            let z = x * x;
            let (z2, z4) = (z * z, z * z * (z * z));
            let line = |slope: f32, start: f32| A::multiply_add(z, slope, start);
            let three = |a: f32, b: f32, c: f32| A::multiply_add(c, z4, A::multiply_add(b, z2, a));
            let p = three(
                line(0.033_852_756, 0.398_942_23),
                line(0.000_168_826_81, 0.004_677_267_7),
                line(2.274_933_7e-8, 6.352_128e-6),
            );
            let q = three(
                line(0.251_522_18, 1.0),
                line(0.001_884_451_3, 0.028_645_935),
                line(1.197_503_8e-6, 7.364_787_6e-5),
            );
            *value *= 0.5 + clamped(x * p / q, 0.5);
        }
    }
}

impl Finish for CoarseGelu {
    #[inline(always)]
    #[allow(clippy::excessive_precision)]
    fn each<A: Arithmetic>(values: &mut [f32]) {
        for value in values {
            let x = clamped(*value, 5.0);
            let z = x * x;
            let line = |slope: f32, start: f32| A::multiply_add(z, slope, start);
            let p = A::multiply_add(
                z * z,
                line(3.009_808_3e-5, 0.003_759_058),
                line(0.029_407_921, 0.398_877_31),
            );
            let q = A::multiply_add(
                z * z,
                line(0.001_096_664_8, 0.024_641_302),
                line(0.240_054_68, 1.0),
            );
            *value *= 0.5 + clamped(x * p / q, 0.5);
        }
    }
}

/// x, or ±most beyond it.
#[inline(always)]
fn clamped(x: f32, most: f32) -> f32 {
    clamped_between(x, -most, most)
}

/// x, or the nearer end of the range. `f32::clamp` would also look for numbers that are none.
#[inline(always)]
fn clamped_between(x: f32, least: f32, most: f32) -> f32 {
    let x = if x < least { least } else { x };
    if x > most { most } else { x }
}

vectorised! {
    /// GELU in its exact form, x · Φ(x) = ½ x (1 + erf(x/√2)), in place.
    pub fn gelu<A>(values: &mut [f32]) {
        Gelu::each::<A>(values);
    }
}

vectorised! {
    /// x ← layer-norm(x + y) · γ + β, row by row: the residual and the norm in one pass.
    pub fn add_layer_norm<A>(x: &mut [f32], y: &[f32], gamma: &[f32], beta: &[f32], epsilon: f32) {
        let width = gamma.len();
        for (x, y) in x.chunks_exact_mut(width).zip(y.chunks_exact(width)) {
            for (a, b) in x.iter_mut().zip(y) {
                *a += *b;
            }
            let mean = sum_of(x, |v| v) / width as f32;
            let variance = sum_of(x, |v| (v - mean) * (v - mean)) / width as f32;
            let inverse = 1.0 / (variance + epsilon).sqrt();
            for ((v, g), b) in x.iter_mut().zip(gamma).zip(beta) {
                *v = A::multiply_add((*v - mean) * inverse, *g, *b);
            }
        }
    }
}

vectorised! {
    /// Rows of `width`, of which the first `real` are scores: they become softmax(scale · score), the rest zero.
    pub fn softmax<A>(values: &mut [f32], width: usize, real: usize, scale: f32) {
        for row in values.chunks_exact_mut(width) {
            let most = largest_of(&row[..real], f32::MIN, |v| v);
            // What fills up the last lanes passes along as terms that vanish beside the largest, which is one: whole lanes are
            // quicker than a ragged end.
            let whole = real.next_multiple_of(LANES).min(width);
            row[real..whole].fill(f32::MIN);
            let mut lanes = [0.0_f32; LANES];
            let mut chunks = row[..whole].chunks_exact_mut(LANES);
            for chunk in &mut chunks {
                for (lane, v) in lanes.iter_mut().zip(chunk) {
                    *v = exp((*v - most) * scale);
                    *lane += *v;
                }
            }
            let mut sum = lanes_sum(lanes);
            for v in chunks.into_remainder() {
                *v = exp((*v - most) * scale);
                sum += *v;
            }
            let inverse = 1.0 / sum;
            for v in &mut row[..whole] {
                *v *= inverse;
            }
            row[real..].fill(0.0);
        }
    }
}

vectorised! {
    /// sum ← sum + every row: the mean over real tokens before the division.
    pub fn add_rows<A>(rows: &[f32], sum: &mut [f32]) {
        for row in rows.chunks_exact(sum.len()) {
            for (s, v) in sum.iter_mut().zip(row) {
                *s += *v;
            }
        }
    }
}

vectorised! {
    /// sum ← sum + factor · codes: one looked-up row. Not fused, for nothing is gained: `lsa` and `static` have the same bits everywhere.
    pub fn add_codes<A>(codes: &[i8], factor: f32, sum: &mut [f32]) {
        for (s, &code) in sum.iter_mut().zip(codes) {
            *s += factor * f32::from(code);
        }
    }
}
