use super::rows::{CoarseGelu, Finish, Fused, Gelu, Separate, add_layer_norm, exp, gelu, softmax};
use super::*;

/// Numbers that look random and are the same everywhere.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}

fn reference(x: &[f32], weights: &[f32], bias: &[f32], inputs: usize) -> Vec<f64> {
    x.chunks(inputs)
        .flat_map(|row| {
            weights.chunks(inputs).zip(bias).map(move |(w, b)| {
                row.iter()
                    .zip(w)
                    .map(|(x, w)| f64::from(*x) * f64::from(*w))
                    .sum::<f64>()
                    + f64::from(*b)
            })
        })
        .collect()
}

#[test]
fn a_dense_layer_multiplies_at_every_odd_size() {
    for (rows, inputs, outputs) in [(1, 1, 1), (5, 7, 3), (6, 16, 16), (13, 33, 50), (20, 384, 49)] {
        let (x, w, b) = (
            numbers(rows * inputs, 1),
            numbers(outputs * inputs, 2),
            numbers(outputs, 3),
        );
        let layer = DenseLinear::new(&w, &b, inputs).unwrap();
        let mut out = vec![0.0; rows * outputs];
        layer.apply(&x, &mut out);
        for (y, expected) in out.iter().zip(reference(&x, &w, &b, inputs)) {
            assert!((f64::from(*y) - expected).abs() < 1e-4, "{y} is not {expected}");
        }
    }
}

#[test]
fn an_int8_layer_is_exact_on_what_it_rounded() {
    for (rows, inputs, outputs) in [(1, 1, 1), (4, 7, 5), (12, 31, 17), (7, 64, 48)] {
        let (x, w, b) = (
            numbers(rows * inputs, 4),
            numbers(outputs * inputs, 5),
            numbers(outputs, 6),
        );
        let balance: Vec<f32> = (0..inputs).map(|i| 0.5 + (i % 3) as f32).collect();
        let layer = Int8Linear::quantise_weights(&w, &b, &balance).unwrap();
        let mut scratch = LinearScratch::default();
        let mut out = vec![0.0; rows * outputs];
        Linear::Int8(layer.clone()).apply(&x, &mut out, &mut scratch);
        // What the codes say the weights are, in double precision.
        let rounded: Vec<f32> = layer
            .codes()
            .chunks(inputs)
            .zip(layer.scales())
            .flat_map(|(row, s)| {
                row.iter()
                    .zip(layer.shrink())
                    .map(move |(&code, h)| f32::from(code) * s * h)
            })
            .collect();
        for (y, expected) in out.iter().zip(reference(&x, &rounded, &b, inputs)) {
            // Activations keep eleven bits and more.
            assert!(
                (f64::from(*y) - expected).abs() < 2e-3 * (inputs as f64).sqrt(),
                "{y} is not {expected}"
            );
        }
        let again = Int8Linear::from_parts(
            &layer.codes(),
            layer.scales().to_vec(),
            layer.bias().to_vec(),
            layer.shrink().to_vec(),
        );
        assert_eq!(again.unwrap(), layer);
    }
}

#[test]
fn the_largest_sums_do_not_overflow() {
    for inputs in [384, 1536, 4096, 8192] {
        let layer = Int8Linear::quantise_weights(&vec![1.0; inputs], &[0.0], &vec![1.0; inputs]).unwrap();
        let mut out = [0.0];
        Linear::Int8(layer).apply(&vec![3.0; inputs], &mut out, &mut LinearScratch::default());
        let expected = 3.0 * inputs as f32;
        assert!(
            (out[0] - expected).abs() < 1e-3 * expected,
            "{} is not {expected}",
            out[0]
        );
    }
}

#[test]
fn every_kernel_gives_the_same_integers() {
    use super::kernel::{Kernel, Plain, Scaling, place_in_panel, place_in_rows};
    let depth = 48;
    let a: Vec<i16> = numbers(4 * depth, 7)
        .iter()
        .map(|x| (x * 16383.0) as i16)
        .collect();
    let panel: Vec<i16> = numbers(16 * depth, 8)
        .iter()
        .map(|x| (x * 127.0) as i16)
        .collect();
    let code = |row: usize, k: usize| i32::from(a[k / 16 * 64 + place_in_rows(k % 16, row, 4)]);
    let weight = |column: usize, k: usize| i32::from(panel[k / 16 * 256 + place_in_panel(k % 16, column)]);
    let products = |at: &dyn Fn(usize) -> i32| {
        let pairs = (0..depth).filter(|k| k % 16 < 8);
        pairs.fold(0_i32, |sum, k| sum.wrapping_add(at(k) * at(k + 8)))
    };
    let row_products: Vec<i32> = (0..4).map(|row| products(&|k| code(row, k))).collect();
    let column_products: Vec<i32> = (0..16).map(|column| products(&|k| weight(column, k))).collect();
    let (steps, scales, bias) = (numbers(4, 9), numbers(16, 10), numbers(16, 11));
    let scaling = Scaling {
        row_products: row_products.as_ptr(),
        column_products: column_products.as_ptr(),
        steps: steps.as_ptr(),
        scales: scales.as_ptr(),
        bias: bias.as_ptr(),
    };
    let (mut plain, mut vector) = ([0.0_f32; 4 * 20], [0.0_f32; 4 * 20]);
    // What a kernel must write is no number before it does; what lies between rows is zero before and after.
    let clear_between = |out: &mut [f32; 80]| out.chunks_exact_mut(20).for_each(|row| row[16..].fill(0.0));
    #[allow(unsafe_code)]
    // SAFETY: four rows and sixteen columns of `depth`, outputs twenty apart; AVX2 and AVX-512 are asked for.
    unsafe {
        Plain::integers::<4>(a.as_ptr(), depth, panel.as_ptr(), scaling, plain.as_mut_ptr(), 20);
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            vector.fill(f32::NAN);
            clear_between(&mut vector);
            let out = vector.as_mut_ptr();
            super::kernel::Avx2::integers::<4>(a.as_ptr(), depth, panel.as_ptr(), scaling, out, 20);
            assert_eq!(plain, vector);
        }
        #[cfg(target_arch = "x86_64")]
        if super::kernel::has_avx512() {
            vector.fill(f32::NAN);
            clear_between(&mut vector);
            let out = vector.as_mut_ptr();
            super::kernel::Avx512::integers::<4>(a.as_ptr(), depth, panel.as_ptr(), scaling, out, 20);
            assert_eq!(plain, vector);
        }
    }
    let sum: i32 = (0..depth).map(|k| code(2, k) * weight(5, k)).sum();
    assert_eq!(plain[2 * 20 + 5], sum as f32 * (steps[2] * scales[5]) + bias[5]);
    assert_eq!(
        plain[16..20],
        [0.0; 4],
        "what lies between two rows is not touched"
    );
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    assert!(matches!(
        DenseLinear::new(&[1.0; 5], &[0.0; 2], 3),
        Err(ShapeError::Layer { found: 5, .. })
    ));
    assert!(matches!(
        DenseLinear::new(&[], &[], 3),
        Err(ShapeError::Size { .. })
    ));
    assert_eq!(
        DenseLinear::new(&[1.0, f32::NAN], &[0.0, 0.0], 1),
        Err(ShapeError::NotFinite { output: 1 })
    );
    assert!(Int8Linear::quantise_weights(&[f32::INFINITY], &[0.0], &[1.0]).is_err());
}

#[test]
fn exp_is_right_to_the_seventh_digit() {
    for i in -8700..=8800 {
        let x = i as f32 / 100.0;
        let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
        assert!(
            (found / expected - 1.0).abs() < 4e-7,
            "exp({x}) = {found}, expected {expected}"
        );
    }
    assert_eq!(exp(-1000.0), exp(-87.0));
}

#[test]
fn gelu_is_right_to_the_sixth_digit() {
    // erf by its Taylor series, in double precision.
    let erf = |x: f64| {
        let (mut term, mut sum) = (x, x);
        for n in 1..160 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    };
    for i in -5600..=5600 {
        let x = i as f32 / 1000.0;
        let expected = f64::from(x) * 0.5 * (1.0 + erf(f64::from(x) / std::f64::consts::SQRT_2));
        let mut found = [x];
        gelu(&mut found);
        let error = (f64::from(found[0]) - expected).abs();
        assert!(
            error < 2e-7 * (1.0 + f64::from(x.abs())),
            "gelu({x}) = {}, expected {expected}",
            found[0]
        );
        let mut coarse = [x, x];
        CoarseGelu::each::<Separate>(&mut coarse[..1]);
        CoarseGelu::each::<Fused>(&mut coarse[1..]);
        for coarse in coarse.map(f64::from) {
            assert!(
                (coarse - expected).abs() < 1.1e-5,
                "coarse gelu({x}) = {coarse}, expected {expected}"
            );
        }
    }
    let finishes: [fn(&mut [f32]); 5] = [
        gelu,
        Gelu::each::<Separate>,
        Gelu::each::<Fused>,
        CoarseGelu::each::<Separate>,
        CoarseGelu::each::<Fused>,
    ];
    for finish in finishes {
        let mut far = [0.0, 6.0, -6.0, 1e30, -1e30, f32::INFINITY];
        finish(&mut far);
        assert_eq!(far, [0.0, 6.0, 0.0, 1e30, 0.0, f32::INFINITY]);
    }
}

#[test]
fn a_layer_norm_has_mean_beta_and_spread_gamma() {
    let width = 37;
    let mut x = numbers(3 * width, 9);
    let y = numbers(3 * width, 10);
    add_layer_norm(&mut x, &y, &vec![2.0; width], &vec![0.5; width], 1e-12);
    for row in x.chunks(width) {
        let mean = row.iter().sum::<f32>() / width as f32;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / width as f32;
        assert!((mean - 0.5).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4);
    }
}

#[test]
fn a_softmax_sums_to_one_and_leaves_the_rest_zero() {
    let mut x = numbers(2 * 24, 11);
    let scores = x.clone();
    softmax(&mut x, 24, 19, 3.0);
    for (row, scores) in x.chunks(24).zip(scores.chunks(24)) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(row[19..].iter().all(|v| *v == 0.0));
        let ratio = row[0] / row[1];
        assert!((ratio / ((scores[0] - scores[1]) * 3.0).exp() - 1.0).abs() < 1e-5);
    }
    let mut large = [1e4, 0.0, -1e4];
    softmax(&mut large, 3, 3, 1.0);
    assert!((large[0] - 1.0).abs() < 1e-6 && large.iter().all(|v| v.is_finite()));
}
