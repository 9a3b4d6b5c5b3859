use super::*;
use crate::model::encoder::SentenceEncoder;
use crate::text::wordpiece::{Cleaning, WordPiece};

const SHAPE: BertShape = BertShape {
    width: 24,
    heads: 3,
    layers: 2,
    inner: 40,
    vocabulary: 30,
    positions: 12,
    epsilon: 1e-12,
};

fn numbers(count: usize, scale: f32, seed: &mut u32) -> Vec<f32> {
    (0..count)
        .map(|_| {
            *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((*seed >> 8) as f32 / 8_388_608.0 - 1.0) * scale
        })
        .collect()
}

fn weights() -> BertWeights {
    let seed = &mut 17;
    let BertShape {
        width: w,
        inner: i,
        vocabulary,
        positions,
        ..
    } = SHAPE;
    let norm = |seed: &mut u32| Norm {
        gamma: numbers(w, 0.5, seed).iter().map(|x| x + 1.0).collect(),
        beta: numbers(w, 0.3, seed),
    };
    let affine = |outputs, inputs, seed: &mut u32| Affine {
        weights: numbers(outputs * inputs, 0.4, seed),
        bias: numbers(outputs, 0.2, seed),
    };
    BertWeights {
        shape: SHAPE,
        words: numbers(vocabulary * w, 1.0, seed),
        positions: numbers(positions * w, 0.3, seed),
        norm: norm(seed),
        layers: (0..SHAPE.layers)
            .map(|_| Layer {
                attention: affine(3 * w, w, seed),
                attention_output: affine(w, w, seed),
                attention_norm: norm(seed),
                inner: affine(i, w, seed),
                outer: affine(w, i, seed),
                outer_norm: norm(seed),
            })
            .collect(),
    }
}

/// The textbook's forward pass of one sentence, in double precision.
mod textbook {
    use super::*;

    type Rows = Vec<Vec<f64>>;

    fn linear(x: &Rows, affine: &Affine, from: usize, to: usize) -> Rows {
        let inputs = x[0].len();
        x.iter()
            .map(|row| {
                (from..to)
                    .map(|o| {
                        let w = &affine.weights[o * inputs..(o + 1) * inputs];
                        row.iter().zip(w).map(|(x, w)| x * f64::from(*w)).sum::<f64>()
                            + f64::from(affine.bias[o])
                    })
                    .collect()
            })
            .collect()
    }

    fn norm(x: &Rows, y: &Rows, norm: &Norm) -> Rows {
        x.iter()
            .zip(y)
            .map(|(x, y)| {
                let sum: Vec<f64> = x.iter().zip(y).map(|(a, b)| a + b).collect();
                let mean = sum.iter().sum::<f64>() / sum.len() as f64;
                let variance = sum.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / sum.len() as f64;
                sum.iter()
                    .enumerate()
                    .map(|(i, v)| {
                        (v - mean) / (variance + 1e-12).sqrt() * f64::from(norm.gamma[i])
                            + f64::from(norm.beta[i])
                    })
                    .collect()
            })
            .collect()
    }

    /// erf by its Taylor series: slow and right.
    fn erf(x: f64) -> f64 {
        if x.abs() > 5.0 {
            return x.signum();
        }
        let (mut term, mut sum) = (x, x);
        for n in 1..120 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    pub(super) fn forward(weights: &BertWeights, ids: &[u32]) -> Rows {
        let w = SHAPE.width;
        let wide = |numbers: &[f32], row: usize| -> Vec<f64> {
            numbers[row * w..(row + 1) * w]
                .iter()
                .map(|x| f64::from(*x))
                .collect()
        };
        let words: Rows = ids.iter().map(|id| wide(&weights.words, *id as usize)).collect();
        let places: Rows = (0..ids.len())
            .map(|place| wide(&weights.positions, place))
            .collect();
        let mut x = norm(&words, &places, &weights.norm);
        for layer in &weights.layers {
            let (q, k, v) = (
                linear(&x, &layer.attention, 0, w),
                linear(&x, &layer.attention, w, 2 * w),
                linear(&x, &layer.attention, 2 * w, 3 * w),
            );
            let head = w / SHAPE.heads;
            let mut context = vec![vec![0.0; w]; ids.len()];
            for h in 0..SHAPE.heads {
                let columns = h * head..(h + 1) * head;
                for i in 0..ids.len() {
                    let scores: Vec<f64> = (0..ids.len())
                        .map(|j| {
                            let dot: f64 = columns.clone().map(|c| q[i][c] * k[j][c]).sum();
                            (dot / (head as f64).sqrt()).exp()
                        })
                        .collect();
                    let total: f64 = scores.iter().sum();
                    for c in columns.clone() {
                        context[i][c] = (0..ids.len()).map(|j| scores[j] / total * v[j][c]).sum();
                    }
                }
            }
            x = norm(
                &x,
                &linear(&context, &layer.attention_output, 0, w),
                &layer.attention_norm,
            );
            let mut hidden = linear(&x, &layer.inner, 0, SHAPE.inner);
            for value in hidden.iter_mut().flatten() {
                *value *= 0.5 * (1.0 + erf(*value / std::f64::consts::SQRT_2));
            }
            x = norm(&x, &linear(&hidden, &layer.outer, 0, w), &layer.outer_norm);
        }
        x
    }
}

fn samples() -> Vec<Vec<u32>> {
    (0..20)
        .map(|i| (0..=(i % 11)).map(|j| (i * 7 + j * 3) % 30).collect())
        .collect()
}

#[test]
fn the_forward_pass_is_the_textbooks() {
    let weights = weights();
    let model = Bert::dense(&weights).unwrap();
    let sentences: [&[u32]; 3] = [
        &[1, 5, 9, 2],
        &[3],
        &[29, 0, 7, 7, 11, 12, 13, 14, 15, 16, 17, 18],
    ];
    let ids = sentences.concat();
    let lengths: Vec<usize> = sentences.iter().map(|s| s.len()).collect();
    let mut scratch = BertScratch::default();
    let found = model.forward(&ids, &lengths, &mut scratch);
    let expected = sentences
        .iter()
        .flat_map(|ids| textbook::forward(&weights, ids))
        .flatten();
    for (x, y) in found.iter().zip(expected) {
        assert!((f64::from(*x) - y).abs() < 2e-5, "{x} is not {y}");
    }
}

#[test]
fn eight_bits_stay_close_to_single_precision() {
    let weights = weights();
    let (dense, int8) = (
        Bert::dense(&weights).unwrap(),
        Bert::int8(&weights, &samples()).unwrap(),
    );
    let (mut a, mut b) = (BertScratch::default(), BertScratch::default());
    for ids in samples() {
        let x = dense.forward(&ids, &[ids.len()], &mut a);
        let y = int8.forward(&ids, &[ids.len()], &mut b);
        let dot: f32 = x.iter().zip(y).map(|(x, y)| x * y).sum();
        let size = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!(dot / (size(x) * size(y)) > 0.998);
    }
}

fn encoder() -> BertEncoder {
    let mut vocabulary = String::from("[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
    for letter in 'a'..='z' {
        vocabulary.push(letter);
        vocabulary.push('\n');
    }
    let tokenizer = WordPiece::from_vocabulary(&vocabulary, Cleaning::UNCASED).unwrap();
    BertEncoder::new(tokenizer, Bert::int8(&weights(), &samples()).unwrap(), 12).unwrap()
}

#[test]
fn a_sentence_does_not_feel_its_neighbours() {
    let encoder = encoder();
    let sentences = ["a b c", "", "q", "x y z w v u t s", "é ! a", "a b c"];
    let together = encoder.encode(&sentences);
    for (sentence, row) in sentences.iter().zip(together.chunks(SHAPE.width)) {
        assert_eq!(encoder.encode(&[sentence]), row, "{sentence:?}");
        let length: f32 = row.iter().map(|x| x * x).sum();
        assert!((length - f32::from(u8::from(!sentence.is_empty()))).abs() < 1e-5);
    }
}

#[test]
fn a_sentence_beyond_the_window_is_split_not_cut() {
    let encoder = encoder();
    let long = "a b c d e f g h i j k l m n o p q r s t u v w x y z";
    let tokens = encoder.tokenise(&[long]);
    assert_eq!(
        tokens.windows().map(<[u32]>::len).collect::<Vec<_>>(),
        [11, 11, 10]
    );
    let changed = "a b c d e f g h i j k l m n o p q r s t u v w x y a";
    assert_ne!(
        encoder.encode(&[long]),
        encoder.encode(&[changed]),
        "the last word counts"
    );
}

#[test]
fn weights_that_do_not_fit_are_named() {
    let mut bad = weights();
    bad.layers[1].inner.weights.pop();
    let error = Bert::dense(&bad).unwrap_err().to_string();
    assert!(
        error.contains("layer 1's inner") && error.contains("959"),
        "{error}"
    );
    let mut bad = weights();
    bad.words[5] = f32::NAN;
    assert_eq!(
        Bert::dense(&bad).unwrap_err(),
        BertError::NotFinite {
            what: "word vectors".into()
        }
    );
    let mut bad = weights();
    bad.shape.heads = 5;
    assert!(matches!(
        Bert::dense(&bad),
        Err(BertError::Heads { heads: 5, width: 24 })
    ));
}
