//! The sampled filter against the exact one.

use super::*;
use crate::labels::{CorrelationMatrix, LabelGraph, SampledFilter, Sampling, low_pass_filter};

fn graph_and_rows() -> (LabelGraph, DenseRows) {
    let shape = topics(400, 8);
    let documents = shape.documents().unwrap();
    let options = ClusterOptions {
        rho: 0.02,
        ..ClusterOptions::default()
    };
    let counted = CorrelationMatrix::count(&documents, &options).unwrap();
    (
        LabelGraph::from_correlation(&counted.reweight(0.4)),
        shape.vectors(),
    )
}

/// Mean squared error of the sampled filter over several seeds, and of their average.
fn errors(samples: usize) -> (f64, f64) {
    let (graph, rows) = graph_and_rows();
    let mut exact = rows.clone();
    low_pass_filter(&graph, &mut exact, 3);
    let labels: Vec<u32> = (0..64).map(|i| i * 6).collect();
    let sampling = Sampling { batch: 16, samples };
    let seeds = 24;
    let mut mean = vec![0f64; labels.len() * rows.width()];
    let mut single = 0.0;
    let want: Vec<f32> = labels
        .iter()
        .flat_map(|&l| exact.row(l as usize).to_vec())
        .collect();
    for seed in 0..seeds {
        let got = SampledFilter::new(&graph, &rows, 3, sampling, seed).filter(&labels);
        for ((mean, got), want) in mean.iter_mut().zip(&got).zip(&want) {
            *mean += f64::from(*got) / seeds as f64;
            single += f64::from(got - want).powi(2) / seeds as f64;
        }
    }
    let averaged: f64 = mean
        .iter()
        .zip(&want)
        .map(|(a, b)| (a - f64::from(*b)).powi(2))
        .sum();
    (single / want.len() as f64, averaged / want.len() as f64)
}

#[test]
fn sampled_vectors_converge_to_the_exact_ones_as_the_sample_grows() {
    let all: Vec<f64> = [8, 32, 128, 400]
        .iter()
        .map(|&samples| errors(samples).0)
        .collect();
    assert!(all[0] > 2.0 * all[1] && all[1] > 2.0 * all[2], "{all:?}");
    assert!(
        all[3] < 1e-10,
        "a sample as large as the neighbourhood is exact: {all:?}"
    );
}

#[test]
fn the_sampled_filter_is_right_on_average() {
    let (single, averaged) = errors(16);
    // An unbiased estimate's error falls with the number of seeds averaged (24); a bias would stay.
    assert!(
        averaged < single / 12.0,
        "one seed {single}, the mean of 24 {averaged}"
    );
}

#[test]
fn clustering_with_samples_finds_the_same_topics() {
    let shape = topics(1200, 12);
    let (documents, vectors) = material(shape);
    let options = ClusterOptions {
        sampling: Some(Sampling {
            batch: 128,
            samples: 128,
        }),
        ..with_k(12)
    };
    let clusters = crate::labels::cluster_labels(&documents, vectors, &options).unwrap();
    let truth: Vec<u32> = (0..1200).map(|label| shape.topic_of(label) as u32).collect();
    let told = crate::labels::normalised_mutual_information(clusters.assignment(), &truth);
    assert!(told > 0.9, "{told}");
}
