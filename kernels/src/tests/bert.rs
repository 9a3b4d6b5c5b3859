//! The whole encoder against the reference's forward pass.

use gnnxml_shared::model::encoder::VectorTable;
use gnnxml_shared::model::encoder::bert::{Bert, BertEncoder, BertScratch, BertShape, Layer, Norm, Words};
use gnnxml_shared::model::encoder::l2_normalise;
use gnnxml_shared::model::ops::rows::add_rows;
use gnnxml_shared::model::ops::{DenseLinear, Int8Linear, Linear};
use gnnxml_shared::text::wordpiece::{Cleaning, WordPiece};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::{gpu, numbers, random};
use crate::{GpuBert, GpuError};

const SHAPE: BertShape = BertShape {
    width: 60,
    heads: 3,
    layers: 2,
    inner: 130,
    vocabulary: 101,
    positions: 40,
    epsilon: 1e-12,
};

fn norm(rng: &mut ChaCha8Rng) -> Norm {
    Norm {
        gamma: numbers(rng, SHAPE.width, 0.3).iter().map(|x| x + 1.0).collect(),
        beta: numbers(rng, SHAPE.width, 0.2),
    }
}

fn eight_bits(rng: &mut ChaCha8Rng, outputs: usize, inputs: usize) -> Linear {
    let weights = numbers(rng, outputs * inputs, (3.0 / inputs as f32).sqrt());
    let bias = numbers(rng, outputs, 0.2);
    Linear::Int8(Int8Linear::quantise_weights(&weights, &bias, &vec![1.0; inputs]).unwrap())
}

fn model(rng: &mut ChaCha8Rng) -> Bert {
    let (w, i) = (SHAPE.width, SHAPE.inner);
    let words = VectorTable::quantise(&numbers(rng, SHAPE.vocabulary * w, 1.0), w).unwrap();
    let positions = numbers(rng, SHAPE.positions * w, 0.3);
    let first = norm(rng);
    let layers = (0..SHAPE.layers)
        .map(|_| Layer {
            attention: eight_bits(rng, 3 * w, w),
            attention_output: eight_bits(rng, w, w),
            attention_norm: norm(rng),
            inner: eight_bits(rng, i, w),
            outer: eight_bits(rng, w, i),
            outer_norm: norm(rng),
        })
        .collect();
    Bert::new(SHAPE, Words::Int8(words), positions, first, layers).unwrap()
}

/// The model with a tokenizer of a few letters.
pub(crate) fn random_encoder() -> BertEncoder {
    let vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\n";
    let tokenizer = WordPiece::from_vocabulary(vocabulary, Cleaning::UNCASED).unwrap();
    BertEncoder::new(tokenizer, model(&mut random(33)), SHAPE.positions).unwrap()
}

#[test]
fn the_encoder_agrees_with_the_reference() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(31);
    let model = model(&mut rng);
    let on_gpu = pollster::block_on(GpuBert::new(gpu, &model)).unwrap();
    for lengths in [vec![1], vec![3, 17, 1], vec![40, 39, 2, 8]] {
        let ids: Vec<u32> = (0..lengths.iter().sum::<usize>())
            .map(|_| rng.random_range(0..SHAPE.vocabulary as u32))
            .collect();
        let mut scratch = BertScratch::default();
        let mut hidden = model.forward(&ids, &lengths, &mut scratch);
        let found = pollster::block_on(on_gpu.forward(&ids, &lengths)).unwrap();
        println!("{} tokens: {:?}", ids.len(), found.report);
        // Eleven dispatches a layer, two look-ups, a norm and the sums.
        assert_eq!(found.report.dispatches, 11 * SHAPE.layers + 4);
        for (sum, &length) in found.sums.chunks_exact(SHAPE.width).zip(&lengths) {
            let (sentence, rest) = hidden.split_at(length * SHAPE.width);
            hidden = rest;
            let mut expected = vec![0.0; SHAPE.width];
            add_rows(sentence, &mut expected);
            let mut sum = sum.to_vec();
            l2_normalise(&mut sum);
            l2_normalise(&mut expected);
            let cosine: f32 = sum.iter().zip(&expected).map(|(a, b)| a * b).sum();
            assert!(cosine > 0.99999, "a sentence of {length} tokens: cosine {cosine}");
        }
    }
}

#[test]
fn what_the_encoder_cannot_take_is_refused() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(32);
    let model = model(&mut rng);
    let on_gpu = pollster::block_on(GpuBert::new(gpu.clone(), &model)).unwrap();
    for (ids, lengths) in [(vec![1; 41], vec![41]), (vec![1; 3], vec![2])] {
        let refused = pollster::block_on(on_gpu.forward(&ids, &lengths)).unwrap_err();
        assert!(matches!(refused, GpuError::TooMany { .. }), "{refused}");
    }
    let mut layers = model.layers().to_vec();
    layers[1].inner = Linear::F32(
        DenseLinear::new(
            &vec![0.0; SHAPE.inner * SHAPE.width],
            &vec![0.0; SHAPE.inner],
            SHAPE.width,
        )
        .unwrap(),
    );
    let mixed = Bert::new(
        SHAPE,
        model.words().clone(),
        model.positions().to_vec(),
        model.norm().clone(),
        layers,
    )
    .unwrap();
    let refused = pollster::block_on(GpuBert::new(gpu, &mixed)).unwrap_err();
    assert!(matches!(refused, GpuError::Lacks { .. }), "{refused}");
}
