//! Matrix products, norms and attention.

use gnnxml_shared::model::encoder::VectorTable;
use gnnxml_shared::model::ops::rows::{add_layer_norm, gelu, softmax};
use gnnxml_shared::model::ops::{DenseLinear, Int8Linear, Linear, LinearScratch};

use super::{assert_close, floats, gpu, halved, numbers, plain, random};
use crate::GpuError;
use crate::narrow::Precision;
use crate::operations::Activation;
use crate::recording::{Recording, View};
use crate::weights::{DotLayer, Matrix};

/// Rows, inputs, outputs: ones, odd numbers, tiles and what lies beside them.
const SHAPES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (3, 17, 5),
    (17, 3, 33),
    (16, 16, 16),
    (15, 31, 17),
    (41, 129, 130),
    (2, 384, 65),
    (64, 5, 1),
    (1, 1000, 3),
];
const ACTIVATIONS: [Activation; 3] = [Activation::None, Activation::Relu, Activation::Gelu];

fn activated(mut values: Vec<f32>, activation: Activation) -> Vec<f32> {
    match activation {
        Activation::None => (),
        Activation::Relu => values.iter_mut().for_each(|v| *v = v.max(0.0)),
        Activation::Gelu => gelu(&mut values),
    }
    values
}

#[test]
fn products_with_single_precision_weights_agree_with_the_reference() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(1);
    for (rows, inputs, outputs) in SHAPES {
        for activation in ACTIVATIONS {
            for size in [1.0, 1e4, 0.0] {
                let x = numbers(&mut rng, rows * inputs, size);
                let w = numbers(&mut rng, outputs * inputs, 1.0);
                let bias = numbers(&mut rng, outputs, 1.0);
                let mut expected = vec![0.0; rows * outputs];
                DenseLinear::new(&w, &bias, inputs)
                    .unwrap()
                    .apply(&x, &mut expected);
                let mut recording = Recording::default();
                let matrix = Matrix::store_floats(&gpu, "weights", &w, inputs).unwrap();
                let (x, bias) = (recording.upload(&x), recording.upload(&bias));
                let y = recording.linear(&x, rows, &matrix, Some(&bias), activation);
                let found = floats(&gpu, recording, &y, rows * outputs);
                let what = format!("{rows}×{inputs}×{outputs} {activation:?} size {size}");
                assert_close(&found, &activated(expected, activation), 2e-5, &what);
            }
        }
    }
}

#[test]
fn products_with_eight_bit_weights_agree_with_the_numbers_the_codes_stand_for() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(2);
    for (rows, inputs, outputs) in SHAPES {
        for activation in ACTIVATIONS {
            let x = numbers(&mut rng, rows * inputs, 3.0);
            let table = VectorTable::quantise(&numbers(&mut rng, outputs * inputs, 1.0), inputs).unwrap();
            let w = plain(&table);
            let mut expected = vec![0.0; rows * outputs];
            DenseLinear::new(&w, &vec![0.0; outputs], inputs)
                .unwrap()
                .apply(&x, &mut expected);
            // What was published in eight bits is found again in eight bits.
            let matrix = Matrix::store(&gpu, "weights", &w, inputs).unwrap();
            assert_eq!(matrix.precision, Precision::Eight);
            let mut recording = Recording::default();
            let x = recording.upload(&x);
            let y = recording.linear(&x, rows, &matrix, None, activation);
            let found = floats(&gpu, recording, &y, rows * outputs);
            let what = format!("{rows}×{inputs}×{outputs} {activation:?}");
            assert_close(&found, &activated(expected, activation), 2e-5, &what);
        }
    }
}

#[test]
fn products_with_trained_weights_agree_with_the_halves_of_them() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(6);
    // Sizes of weights that a half reaches, and that it does not: a row's scale makes up for them.
    for (size, x_size) in [(1.0, 1.0), (1e-3, 1e3), (1e6, 1.0), (1e30, 1e-28), (1e-30, 1e30)] {
        for (rows, inputs, outputs) in SHAPES {
            let x = numbers(&mut rng, rows * inputs, x_size);
            let mut w = numbers(&mut rng, outputs * inputs, size);
            // Rows of their own sizes, with zeros in them, and one of nothing else.
            for (row, weights) in w.chunks_exact_mut(inputs).enumerate() {
                weights.iter_mut().for_each(|w| *w *= 1.0 / (1 + row) as f32);
                weights.iter_mut().skip(1).step_by(5).for_each(|w| *w = 0.0);
            }
            if outputs > 2 {
                w[inputs..2 * inputs].fill(0.0);
            }
            let halves: Vec<f32> = w.iter().map(|&w| halved(w)).collect();
            let mut expected = vec![0.0; rows * outputs];
            DenseLinear::new(&halves, &vec![0.0; outputs], inputs)
                .unwrap()
                .apply(&x, &mut expected);
            let matrix = Matrix::store(&gpu, "weights", &w, inputs).unwrap();
            // A row of one number is eight bits wide whatever it is.
            let narrow = if inputs > 1 {
                Precision::Half
            } else {
                Precision::Eight
            };
            assert_eq!(matrix.precision, narrow);
            if inputs == 1 {
                continue;
            }
            let mut recording = Recording::default();
            let x = recording.upload(&x);
            let y = recording.linear(&x, rows, &matrix, None, Activation::None);
            let found = floats(&gpu, recording, &y, rows * outputs);
            assert_close(
                &found,
                &expected,
                2e-5,
                &format!("{rows}×{inputs}×{outputs} size {size}"),
            );
        }
    }
}

#[test]
fn weights_that_no_half_can_hold_stay_in_single_precision() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(7);
    let (rows, inputs, outputs) = (3, 17, 5);
    let x = numbers(&mut rng, rows * inputs, 1e36);
    let mut w = numbers(&mut rng, outputs * inputs, 1.0);
    // One row without a scale is enough.
    w[..inputs].iter_mut().for_each(|w| *w *= 1e-36);
    let mut expected = vec![0.0; rows * outputs];
    DenseLinear::new(&w, &vec![0.0; outputs], inputs)
        .unwrap()
        .apply(&x, &mut expected);
    let matrix = Matrix::store(&gpu, "weights", &w, inputs).unwrap();
    assert_eq!(matrix.precision, Precision::Single);
    let mut recording = Recording::default();
    let x = recording.upload(&x);
    let y = recording.linear(&x, rows, &matrix, None, Activation::None);
    let found = floats(&gpu, recording, &y, rows * outputs);
    let column = |y: &[f32], output| {
        y.iter()
            .skip(output)
            .step_by(outputs)
            .copied()
            .collect::<Vec<f32>>()
    };
    for output in 0..outputs {
        assert_close(
            &column(&found, output),
            &column(&expected, output),
            2e-5,
            "an output",
        );
    }
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        w[inputs + 3] = bad;
        let matrix = Matrix::store(&gpu, "weights", &w, inputs).unwrap();
        assert_eq!(matrix.precision, Precision::Single, "{bad}");
    }
}

#[test]
fn packed_dot_products_agree_with_the_eight_bit_layers() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(3);
    for (rows, inputs, outputs) in SHAPES {
        for activation in ACTIVATIONS {
            for size in [1.0, 1e15, 1e-15, 0.0] {
                let x = numbers(&mut rng, rows * inputs, size);
                let balance: Vec<f32> = numbers(&mut rng, inputs, 0.9).iter().map(|c| c + 1.0).collect();
                let layer = Int8Linear::quantise_weights(
                    &numbers(&mut rng, outputs * inputs, 1.0),
                    &numbers(&mut rng, outputs, 1.0),
                    &balance,
                )
                .unwrap();
                let stored = DotLayer::store(&gpu, "weights", &layer).unwrap();
                let mut expected = vec![0.0; rows * outputs];
                Linear::Int8(layer).apply(&x, &mut expected, &mut LinearScratch::default());
                let mut recording = Recording::default();
                let x = recording.upload(&x);
                let y = recording.linear_dot(&x, rows, &stored, activation);
                let found = floats(&gpu, recording, &y, rows * outputs);
                let what = format!("{rows}×{inputs}×{outputs} {activation:?} size {size}");
                // A code may fall on the other side of a half; nothing else differs.
                assert_close(&found, &activated(expected, activation), 2e-4, &what);
            }
        }
    }
}

#[test]
fn the_widest_codes_multiply_without_overflow() {
    let Some(gpu) = gpu() else { return };
    for inputs in [4, 1536, 8192] {
        let layer = Int8Linear::from_parts(
            &vec![127; inputs * 2],
            vec![1.0, 0.5],
            vec![0.0, 1.0],
            vec![1.0; inputs],
        )
        .unwrap();
        let x: Vec<f32> = [1.0, -1.0].iter().flat_map(|&v| vec![v; inputs]).collect();
        let stored = DotLayer::store(&gpu, "weights", &layer).unwrap();
        let mut expected = vec![0.0; 4];
        Linear::Int8(layer).apply(&x, &mut expected, &mut LinearScratch::default());
        let mut recording = Recording::default();
        let x = recording.upload(&x);
        let y = recording.linear_dot(&x, 2, &stored, Activation::None);
        assert_close(
            &floats(&gpu, recording, &y, 4),
            &expected,
            1e-6,
            "all codes at their limit",
        );
        assert!((expected[0] - 127.0 * inputs as f32).abs() < 1.0);
    }
}

#[test]
fn norms_agree_with_the_reference() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(4);
    for (rows, width) in [(1, 1), (3, 17), (17, 64), (5, 65), (2, 384), (300, 7)] {
        for size in [1.0, 1e15, 0.0] {
            for added in [false, true] {
                let x = numbers(&mut rng, rows * width, size);
                let y = if added {
                    numbers(&mut rng, rows * width, size)
                } else {
                    vec![0.0; rows * width]
                };
                let (gain, shift) = (numbers(&mut rng, width, 1.0), numbers(&mut rng, width, 1.0));
                let mut expected = x.clone();
                add_layer_norm(&mut expected, &y, &gain, &shift, 1e-5);
                for activation in ACTIVATIONS {
                    let mut recording = Recording::default();
                    let views: Vec<View> = [&x, &y, &gain, &shift].map(|v| recording.upload(v)).into();
                    let out = recording.layer_norm(
                        &views[0],
                        added.then_some(&views[1]),
                        rows,
                        width,
                        (&views[2], &views[3], 1e-5),
                        activation,
                    );
                    let found = floats(&gpu, recording, &out, rows * width);
                    let what = format!("{rows}×{width} size {size} {activation:?}");
                    assert_close(&found, &activated(expected.clone(), activation), 2e-5, &what);
                }
            }
        }
    }
}

/// softmax(Q Kᵀ / √d) V in plain loops around the reference's softmax.
fn attention(qkv: &[f32], width: usize, heads: usize, lengths: &[usize]) -> Vec<f32> {
    let dims = width / heads;
    let tokens: usize = lengths.iter().sum();
    let mut context = vec![0.0; tokens * width];
    let at = |token: usize, part: usize, head: usize, i: usize| {
        qkv[token * 3 * width + part * width + head * dims + i]
    };
    let mut start = 0;
    for &length in lengths {
        for head in 0..heads {
            for token in start..start + length {
                let mut scores: Vec<f32> = (start..start + length)
                    .map(|other| {
                        (0..dims)
                            .map(|i| at(token, 0, head, i) * at(other, 1, head, i))
                            .sum()
                    })
                    .collect();
                softmax(&mut scores, length, length, 1.0 / (dims as f32).sqrt());
                for i in 0..dims {
                    context[token * width + head * dims + i] =
                        (0..length).map(|j| scores[j] * at(start + j, 2, head, i)).sum();
                }
            }
        }
        start += length;
    }
    context
}

#[test]
fn attention_agrees_with_the_reference() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(5);
    for (width, heads, lengths) in [
        (1, 1, vec![1]),
        (12, 3, vec![3, 1, 17]),
        (64, 2, vec![65, 64]),
        (384, 12, vec![5, 9]),
        (4, 2, vec![512]),
        (130, 1, vec![2, 0, 3]),
    ] {
        for size in [1.0, 1e6, 0.0] {
            let tokens: usize = lengths.iter().sum();
            let mut qkv = numbers(&mut rng, tokens * 3 * width, 1.0);
            // Sharp or flat: only queries and keys change their size.
            for row in qkv.chunks_exact_mut(3 * width) {
                row[..2 * width].iter_mut().for_each(|v| *v *= size);
            }
            let expected = attention(&qkv, width, heads, &lengths);
            let mut recording = Recording::default();
            let view = recording.upload(&qkv);
            let sentences = recording.sentences(&lengths).unwrap();
            let context = recording.attention(&view, width, heads, &sentences);
            let found = floats(&gpu, recording, &context, tokens * width);
            let what = format!("width {width}, {heads} heads, {lengths:?}, size {size}");
            assert_close(&found, &expected, 5e-4, &what);
        }
    }
}

#[test]
fn a_sentence_that_does_not_fit_is_refused() {
    let refused = Recording::default().sentences(&[3, 513]).unwrap_err();
    assert!(
        matches!(
            refused,
            GpuError::TooMany {
                found: 513,
                limit: 512,
                ..
            }
        ),
        "{refused}"
    );
}
