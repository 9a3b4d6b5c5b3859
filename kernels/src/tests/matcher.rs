//! The whole matcher against the reference's forward pass.

use std::sync::Arc;

use gnnxml_shared::model::encoder::VectorTable;
use gnnxml_shared::model::matcher::{
    EdgeWeights, GraphInput, Matcher, MatcherConfig, NamedTensor, ReadoutNorm, Variant, probabilities,
    top_clusters,
};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::{assert_close, gpu, halved, numbers, random};
use crate::{Gpu, GpuMatcher};

/// A matcher of random weights; in eight bits as a bundle would hold them, or not.
pub(crate) fn random_matcher(rng: &mut ChaCha8Rng, config: MatcherConfig, eight_bits: bool) -> Matcher {
    let mut tensors = Vec::new();
    for spec in config.tensors() {
        let fan_in = spec.shape.get(1).copied().unwrap_or(1).max(1);
        let size = if spec.shape.len() > 1 {
            (3.0 / fan_in as f32).sqrt()
        } else {
            0.5
        };
        let mut data = numbers(rng, spec.len(), size);
        if spec.name.contains("gain") {
            data.iter_mut().for_each(|gain| *gain += 1.0);
        }
        if eight_bits && spec.shape.len() > 1 {
            let table = VectorTable::quantise(&data, fan_in).unwrap();
            for (row, value) in data.iter_mut().enumerate() {
                *value = table.scales()[row / fan_in] * f32::from(table.codes()[row]);
            }
        }
        tensors.push(NamedTensor {
            name: spec.name,
            shape: spec.shape,
            data,
        });
    }
    Matcher::new(config, tensors).unwrap()
}

/// The matcher with its matrices in half precision.
fn in_halves(matcher: &Matcher) -> Matcher {
    let mut tensors = matcher.tensors();
    for tensor in tensors.iter_mut().filter(|tensor| tensor.shape.len() > 1) {
        tensor
            .data
            .iter_mut()
            .for_each(|weight| *weight = halved(*weight));
    }
    Matcher::new(matcher.config().clone(), tensors).unwrap()
}

/// A text of `vertices` keywords with some edges, some words and unit features.
pub(crate) fn random_graph(
    rng: &mut ChaCha8Rng,
    config: &MatcherConfig,
    vertices: usize,
) -> GraphInput<'static> {
    let mut shared = vec![0.0; vertices * vertices];
    for a in 0..vertices {
        for b in 0..a {
            if rng.random_bool(0.3) {
                let weight = f32::from(rng.random_range(1_u8..4));
                shared[a * vertices + b] = weight;
                shared[b * vertices + a] = weight;
            }
        }
    }
    let (mut offsets, mut neighbours, mut weights) = (vec![0], Vec::new(), Vec::new());
    let (mut keyword_offsets, mut keywords) = (vec![0], Vec::new());
    let vocabulary = config.vocabulary as u32;
    for v in 0..vertices {
        for u in (0..vertices).filter(|u| shared[v * vertices + u] > 0.0) {
            neighbours.push(u as u32);
            weights.push(shared[v * vertices + u]);
        }
        offsets.push(neighbours.len() as u32);
        if vocabulary > 0 {
            keywords.extend((0..rng.random_range(0..3)).map(|_| rng.random_range(0..vocabulary)));
        }
        keyword_offsets.push(keywords.len() as u32);
    }
    let words: Vec<u32> = (0..vocabulary.min(30)).collect();
    let word_weights = numbers(rng, words.len(), 0.4);
    GraphInput {
        vertices,
        features: numbers(rng, (vertices + 1) * config.width, 0.2).into(),
        offsets: offsets.into(),
        neighbours: neighbours.into(),
        shared: weights.into(),
        keyword_offsets: keyword_offsets.into(),
        keywords: keywords.into(),
        words: words.into(),
        word_weights: word_weights.into(),
        origin: (0..vertices as u32).collect::<Vec<_>>().into(),
    }
}

#[test]
fn the_matcher_agrees_with_the_reference_in_every_variant() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(21);
    let mut number = 0;
    for variant in [Variant::V1, Variant::V2, Variant::V3, Variant::V4] {
        for (vocabulary, embedding) in [(0, 0), (50, 9)] {
            for text_vertex in [false, true] {
                number += 1;
                let config = MatcherConfig {
                    vocabulary,
                    embedding,
                    hidden: 33,
                    layers: 3,
                    variant,
                    text_vertex,
                    shared_lower: number % 3 != 0,
                    edge_weights: [EdgeWeights::Off, EdgeWeights::Shared, EdgeWeights::Normalised]
                        [number % 3],
                    readout: [ReadoutNorm::Sum, ReadoutNorm::Root, ReadoutNorm::Mean][number / 2 % 3],
                    ..MatcherConfig::new(17, 21)
                };
                let matcher = random_matcher(&mut rng, config.clone(), number % 2 == 0);
                let on_gpu = pollster::block_on(GpuMatcher::new(gpu.clone(), &matcher)).unwrap();
                // Bytes are what was published; halves stand for what was trained.
                let matcher = if number % 2 == 0 {
                    matcher
                } else {
                    in_halves(&matcher)
                };
                for vertices in [0, 1, 3, 16] {
                    let graph = random_graph(&mut rng, &config, vertices);
                    let expected = matcher.forward(&graph).unwrap();
                    let found = pollster::block_on(on_gpu.forward(&graph, 5)).unwrap();
                    let what = format!("{config:?}, {vertices} vertices");
                    assert_close(&found.logits, &expected, 1e-4, &what);
                    let best: Vec<u32> = found.top.iter().map(|t| t.0).collect();
                    let order: Vec<u32> = top_clusters(&found.logits, 5).into_iter().map(|t| t.0).collect();
                    assert_eq!(best, order, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_document_takes_few_dispatches_one_upload_and_one_read_back() {
    if gpu().is_none() {
        return;
    }
    // A GPU of its own: nobody else fills its pool.
    let gpu = Arc::new(pollster::block_on(Gpu::open()).unwrap());
    let mut rng = random(22);
    let config = MatcherConfig::full(384, 500, 2000);
    let matcher = random_matcher(&mut rng, config.clone(), true);
    let on_gpu = pollster::block_on(GpuMatcher::new(gpu.clone(), &matcher)).unwrap();
    let graph = random_graph(&mut rng, &config, 40);
    let expected = matcher.forward(&graph).unwrap();
    let first = pollster::block_on(on_gpu.forward(&graph, 10)).unwrap();
    assert_close(&first.logits, &expected, 1e-4, "the full shape");
    println!("the full shape, 40 vertices: {:?}", first.report);
    assert!(first.report.dispatches <= 40, "{:?}", first.report);
    // Features are 63 kB, settings 256 bytes a dispatch; back come 500 logits and ten pairs.
    assert!(first.report.bytes_up < 100_000, "{:?}", first.report);
    assert_eq!(first.report.bytes_down, 500 * 4 + 10 * 8);

    // The second document finds every buffer it needs, and leaves them as they were.
    let idle = gpu.idle_buffers();
    let second = pollster::block_on(on_gpu.forward(&graph, 10)).unwrap();
    assert_eq!(second, first, "the same document, the same numbers");
    assert!(idle.0 > 0);
    assert_eq!(gpu.idle_buffers(), idle);
}

#[test]
fn halves_of_trained_weights_take_half_the_bytes_and_find_the_same_clusters() {
    if gpu().is_none() {
        return;
    }
    for (config, texts) in [
        (MatcherConfig::fast(128, 54, 2000), 40),
        (MatcherConfig::full(384, 500, 2000), 2),
    ] {
        let gpu = Arc::new(pollster::block_on(Gpu::open()).unwrap());
        let mut rng = random(24);
        let matcher = random_matcher(&mut rng, config.clone(), false);
        let on_gpu = pollster::block_on(GpuMatcher::new(gpu.clone(), &matcher)).unwrap();
        let whole: usize = config.tensors().iter().map(|spec| 4 * spec.len()).sum();
        let (mut apart, mut off, mut largest) = (0.0_f32, 0.0_f32, 0.0_f32);
        for _ in 0..texts {
            let graph = random_graph(&mut rng, &config, config.max_vertices);
            let expected = matcher.forward(&graph).unwrap();
            let found = pollster::block_on(on_gpu.forward(&graph, 5)).unwrap();
            for (f, e) in found.logits.iter().zip(&expected) {
                apart = apart.max((f - e).abs());
                largest = largest.max(e.abs());
            }
            let [p, q] = [&found.logits, &expected].map(|z| probabilities(z));
            off = p.iter().zip(&q).fold(off, |off, (p, q)| off.max((p - q).abs()));
            // Those found are the best, give or take a tie.
            for ((cluster, _), (_, best)) in found.top.iter().zip(top_clusters(&expected, 5)) {
                let probability = q[*cluster as usize];
                assert!(
                    (probability - best).abs() <= 1e-3,
                    "cluster {cluster}: {probability}, expected {best}"
                );
            }
        }
        println!(
            "hidden {}: {} bytes of weights, {whole} in single precision; over {texts} texts logits of up to {largest} within {apart}, probabilities within {off}",
            config.hidden,
            gpu.stored_bytes()
        );
        assert!(gpu.stored_bytes() * 100 < whole as u64 * 52);
        assert!(apart <= 1e-3 * largest.max(1.0) && off <= 1e-3);
    }
}

#[test]
fn a_graph_that_does_not_fit_the_matcher_is_refused() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(23);
    let config = MatcherConfig::new(5, 3);
    let matcher = random_matcher(&mut rng, config, false);
    let on_gpu = pollster::block_on(GpuMatcher::new(gpu, &matcher)).unwrap();
    let refused = pollster::block_on(on_gpu.forward(&GraphInput::empty(4), 1));
    assert!(refused.is_err());
}
