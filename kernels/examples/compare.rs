//! What a document costs on the GPU there is, beside the same document on one thread of the CPU.
//!
//! `cargo run --release -p gnnxml-kernels --example compare` prints dispatches, bytes moved and milliseconds for the two
//! shapes of the matcher and for an encoder shaped like MiniLM. Weights are random: only the shapes matter here.

use std::sync::Arc;
use std::time::Instant;

use gnnxml_kernels::{Gpu, GpuBert, GpuError, GpuMatcher, Report};
use gnnxml_shared::model::encoder::VectorTable;
use gnnxml_shared::model::encoder::bert::{Bert, BertScratch, BertShape, Layer, Norm, Words};
use gnnxml_shared::model::matcher::{GraphInput, Matcher, MatcherConfig, NamedTensor};
use gnnxml_shared::model::ops::{Int8Linear, Linear};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Seconds each thing is measured for.
const SECONDS: f64 = 2.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = Arc::new(pollster::block_on(Gpu::open())?);
    println!("GPU: {}", gpu.name());
    println!(
        "| what | dispatches | bytes up | bytes down | GPU ms | CPU ms (one thread) | largest difference |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, config) in [
        ("matcher, fast shape", MatcherConfig::fast(128, 54, 50_000)),
        ("matcher, full shape", MatcherConfig::full(384, 500, 50_000)),
    ] {
        compare_matcher(&gpu, name, config)?;
    }
    compare_encoder(&gpu)?;
    Ok(())
}

fn numbers(rng: &mut ChaCha8Rng, count: usize, size: f32) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-size..=size)).collect()
}

/// Milliseconds of one call, over as many as fit the time.
fn time(mut call: impl FnMut()) -> f64 {
    call();
    let begun = Instant::now();
    let mut calls = 0;
    while begun.elapsed().as_secs_f64() < SECONDS {
        call();
        calls += 1;
    }
    begun.elapsed().as_secs_f64() * 1e3 / f64::from(calls)
}

fn row(name: &str, report: Report, gpu: f64, cpu: f64, apart: f32) {
    println!(
        "| {name} | {} | {} | {} | {gpu:.2} | {cpu:.2} | {apart:.1e} |",
        report.dispatches, report.bytes_up, report.bytes_down
    );
}

fn compare_matcher(
    gpu: &Arc<Gpu>,
    name: &str,
    config: MatcherConfig,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut tensors = Vec::new();
    for spec in config.tensors() {
        let inputs = spec.shape.get(1).copied().unwrap_or(1);
        let mut data = numbers(&mut rng, spec.len(), (3.0 / inputs as f32).sqrt());
        if spec.shape.len() > 1 {
            // In eight bits, as bundles hold them.
            let table = VectorTable::quantise(&data, inputs)?;
            for (place, value) in data.iter_mut().enumerate() {
                *value = table.scales()[place / inputs] * f32::from(table.codes()[place]);
            }
        }
        tensors.push(NamedTensor {
            name: spec.name,
            shape: spec.shape,
            data,
        });
    }
    let matcher = Matcher::new(config.clone(), tensors)?;
    let on_gpu = pollster::block_on(GpuMatcher::new(gpu.clone(), &matcher))?;
    let n = config.max_vertices;
    // Every keyword has four neighbours and two words; the text has 200 words.
    let neighbours = (0..n).flat_map(|v| {
        let mut near: Vec<u32> = [1, 2, n - 2, n - 1]
            .iter()
            .map(|step| ((v + step) % n) as u32)
            .collect();
        near.sort_unstable();
        near
    });
    let mut word = |_| rng.random_range(0..config.vocabulary as u32);
    let keywords: Vec<u32> = (0..2 * n).map(&mut word).collect();
    let words: Vec<u32> = (0..200).map(&mut word).collect();
    let graph = GraphInput {
        vertices: n,
        features: numbers(&mut rng, (n + 1) * config.width, 0.1).into(),
        offsets: (0..=n as u32).map(|v| 4 * v).collect::<Vec<_>>().into(),
        neighbours: neighbours.collect::<Vec<_>>().into(),
        shared: vec![1.0; 4 * n].into(),
        keyword_offsets: (0..=n as u32).map(|v| 2 * v).collect::<Vec<_>>().into(),
        keywords: keywords.into(),
        words: words.into(),
        word_weights: vec![0.07; 200].into(),
        origin: (0..n as u32).collect::<Vec<_>>().into(),
    };
    let expected = matcher.forward(&graph)?;
    let found = pollster::block_on(on_gpu.forward(&graph, 10))?;
    let apart = largest(&found.logits, &expected);
    let gpu_time = time(|| drop(pollster::block_on(on_gpu.forward(&graph, 10))));
    let cpu_time = time(|| drop(matcher.forward(&graph)));
    row(name, found.report, gpu_time, cpu_time, apart);
    Ok(())
}

fn compare_encoder(gpu: &Arc<Gpu>) -> Result<(), Box<dyn std::error::Error>> {
    let shape = BertShape {
        width: 384,
        heads: 12,
        layers: 6,
        inner: 1536,
        vocabulary: 30_522,
        positions: 512,
        epsilon: 1e-12,
    };
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let norm = || Norm {
        gamma: vec![1.0; shape.width],
        beta: vec![0.0; shape.width],
    };
    let mut linear = |outputs: usize, inputs: usize| {
        let weights = numbers(&mut rng, outputs * inputs, (3.0 / inputs as f32).sqrt());
        Int8Linear::quantise_weights(&weights, &vec![0.0; outputs], &vec![1.0; inputs]).map(Linear::Int8)
    };
    let (w, i) = (shape.width, shape.inner);
    let mut layers = Vec::new();
    for _ in 0..shape.layers {
        layers.push(Layer {
            attention: linear(3 * w, w)?,
            attention_output: linear(w, w)?,
            attention_norm: norm(),
            inner: linear(i, w)?,
            outer: linear(w, i)?,
            outer_norm: norm(),
        });
    }
    let words = VectorTable::quantise(&numbers(&mut rng, shape.vocabulary * w, 1.0), w)?;
    let positions = numbers(&mut rng, shape.positions * w, 0.1);
    let model = Bert::new(shape, Words::Int8(words), positions, norm(), layers)?;
    let on_gpu = pollster::block_on(GpuBert::new(gpu.clone(), &model))?;
    let lengths = [32; 16];
    let ids: Vec<u32> = (0..16 * 32)
        .map(|_| rng.random_range(0..shape.vocabulary as u32))
        .collect();
    let mut scratch = BertScratch::default();
    let mut expected = vec![0.0; lengths.len() * w];
    let hidden = model.forward(&ids, &lengths, &mut scratch);
    for (sum, sentence) in expected.chunks_exact_mut(w).zip(hidden.chunks_exact(32 * w)) {
        for token in sentence.chunks_exact(w) {
            for (s, v) in sum.iter_mut().zip(token) {
                *s += v;
            }
        }
    }
    let run = || -> Result<_, GpuError> { pollster::block_on(on_gpu.forward(&ids, &lengths)) };
    let found = run()?;
    let apart = largest(&found.sums, &expected);
    let gpu_time = time(|| drop(run()));
    let cpu_time = time(|| {
        model.forward(&ids, &lengths, &mut scratch);
    });
    row(
        "MiniLM's shape, 16 × 32 tokens",
        found.report,
        gpu_time,
        cpu_time,
        apart,
    );
    Ok(())
}

fn largest(found: &[f32], expected: &[f32]) -> f32 {
    let apart = found.iter().zip(expected).map(|(f, e)| (f - e).abs());
    apart.fold(0.0, f32::max)
}
