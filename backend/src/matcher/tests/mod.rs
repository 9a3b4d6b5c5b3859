//! The network's gradient against finite differences, the fused path against candle's, and whole runs.

mod gradients;
mod runs;

use std::path::Path;

use gnnxml_shared::model::matcher::{EdgeWeights, GraphInput, MatcherConfig, ReadoutNorm, Variant};
use rand::Rng;

use super::batch::{Assembler, Batch};
use super::sampler::generator;
use super::{Lists, Moment, PreparedGraphs, PreparedWriter};

/// A small configuration with everything switched on.
fn config() -> MatcherConfig {
    MatcherConfig {
        hidden: 7,
        layers: 2,
        embedding: 5,
        vocabulary: 11,
        dropout: 0.25,
        ..MatcherConfig::new(6, 4)
    }
}

/// The switches in the combinations that matter.
fn every_switch() -> Vec<MatcherConfig> {
    let mut all = Vec::new();
    for variant in [Variant::V1, Variant::V2, Variant::V3, Variant::V4] {
        all.push(MatcherConfig { variant, ..config() });
        all.push(MatcherConfig {
            variant,
            shared_lower: false,
            dropout: 0.0,
            ..config()
        });
        all.push(MatcherConfig {
            variant,
            embedding: 0,
            vocabulary: 0,
            readout: ReadoutNorm::Sum,
            ..config()
        });
        let edge_weights = EdgeWeights::Shared;
        all.push(MatcherConfig {
            variant,
            text_vertex: false,
            edge_weights,
            readout: ReadoutNorm::Root,
            ..config()
        });
    }
    all
}

/// A random graph of `vertices` vertices.
fn graph(config: &MatcherConfig, vertices: usize, seed: u64) -> GraphInput<'static> {
    let mut random = generator(seed, 0, 0);
    let mut lists = vec![Vec::new(); vertices];
    for a in 0..vertices {
        for b in a + 1..vertices.min(a + 6) {
            if random.random_bool(0.6) {
                let shared = random.random_range(1..4) as f32;
                lists[a].push((b as u32, shared));
                lists[b].push((a as u32, shared));
            }
        }
    }
    let (mut offsets, mut neighbours, mut shared) = (vec![0], Vec::new(), Vec::new());
    let (mut keyword_offsets, mut keywords) = (vec![0], Vec::new());
    let vocabulary = config.vocabulary as u32;
    for mut list in lists {
        list.sort_by_key(|&(u, _)| u);
        for (u, s) in list {
            neighbours.push(u);
            shared.push(s);
        }
        offsets.push(neighbours.len() as u32);
        if vocabulary > 0 {
            for _ in 0..random.random_range(0..3) {
                keywords.push(random.random_range(0..vocabulary));
            }
        }
        keyword_offsets.push(keywords.len() as u32);
    }
    let words: Vec<u32> = (0..vocabulary).filter(|_| random.random_bool(0.4)).collect();
    let values = (vertices + 1) * config.width;
    let mut features: Vec<f32> = (0..values).map(|_| random.random_range(-1.0..1.0)).collect();
    if vertices > 2 {
        // Keywords of the same sentence.
        features.copy_within(..config.width, 2 * config.width);
    }
    GraphInput {
        vertices,
        features: features.into(),
        offsets: offsets.into(),
        neighbours: neighbours.into(),
        shared: shared.into(),
        keyword_offsets: keyword_offsets.into(),
        keywords: keywords.into(),
        word_weights: words.iter().map(|_| random.random_range(0.1..1.0)).collect(),
        words: words.into(),
        origin: (0..vertices as u32).collect(),
    }
}

/// Five pairs of graphs of different sizes, one of them empty, in shards of two.
fn batch(config: &MatcherConfig) -> Batch {
    let positives = [vec![0, 2], vec![1], vec![], vec![3, 1], vec![2]];
    let sides: Vec<Vec<_>> = (0..config.branches() as u64)
        .map(|side| {
            let sizes = [3, 1, 0, 5, 2].into_iter().zip(&positives).enumerate();
            sizes
                .map(|(i, (n, p))| (graph(config, n, 100 * side + i as u64), &p[..]))
                .collect()
        })
        .collect();
    Assembler::new(config, 2).assemble(&sides)
}

fn moment() -> Moment {
    Moment {
        alpha: 0.7,
        pairs: 5,
        positive_weight: 1.5,
        dropout_key: 42,
        training: true,
    }
}

/// A corpus whose clusters can be told from features and words: (graphs, clusters of documents, documents of labels).
fn corpus(
    config: &MatcherConfig,
    path: &Path,
    documents: usize,
    seed: u64,
) -> (PreparedGraphs, Lists, Lists) {
    let mut writer = PreparedWriter::create(path, config.width).unwrap();
    let mut positives = Lists::new();
    let mut random = generator(seed, 1, 1);
    for document in 0..documents {
        let cluster = random.random_range(0..config.clusters);
        let mut input = graph(config, random.random_range(1..6), seed + document as u64);
        for row in input.features.to_mut().chunks_exact_mut(config.width) {
            row.iter_mut().for_each(|x| *x *= 0.3);
            row[cluster % config.width] += 1.0;
        }
        writer.push(&input).unwrap();
        positives.push([cluster as u32]);
    }
    let labels = positives.transposed(config.clusters);
    (writer.finish().unwrap(), positives, labels)
}
