//! Correlation matrix, label graph and filter against the dense formulas.

use super::*;
use crate::labels::{CorrelationMatrix, LabelGraph, low_pass_filter};

fn entry(matrix: &crate::labels::SparseRows, i: usize, j: usize) -> f32 {
    matrix.get(i, j).copied().unwrap_or(0.0)
}

#[test]
fn the_steps_follow_the_equations_on_a_corpus_small_enough_to_count() {
    let documents =
        DocumentLabels::collect([vec![0, 1], vec![0, 1], vec![0, 2], vec![0], vec![3]], 4).unwrap();
    let options = ClusterOptions {
        rho: 0.5,
        ..ClusterOptions::default()
    };
    let counted = CorrelationMatrix::count(&documents, &options).unwrap();
    assert_eq!(counted.counts, [4, 2, 1, 1]);
    // P_01 = 2/4 is kept at ρ = 0.5, P_02 = 1/4 is not; P_10 = P_20 = 1.
    assert_eq!(entry(&counted.kept, 0, 1), 0.5);
    assert_eq!(entry(&counted.kept, 0, 2), 0.0);
    assert_eq!(entry(&counted.kept, 1, 0), 1.0);
    assert_eq!(entry(&counted.kept, 2, 0), 1.0);
    assert_eq!(counted.kept.nnz(), 3);
    let a = counted.reweight(0.4);
    assert!((entry(&a, 0, 0) - 0.6).abs() < 1e-6 && (entry(&a, 0, 1) - 0.4).abs() < 1e-6);
    assert_eq!(entry(&a, 3, 3), 1.0, "a label with no kept neighbour keeps 1");
    let sums: Vec<f32> = a.outer_iterator().map(|row| row.data().iter().sum()).collect();
    assert!(
        sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6),
        "rows of A sum to 1: {sums:?}"
    );
}

#[test]
fn pairs_of_huge_documents_are_bounded_and_right_on_average() {
    let labels = 600;
    let documents =
        DocumentLabels::collect((0..40).map(|_| (0..labels as u32).collect::<Vec<_>>()), labels).unwrap();
    let options = ClusterOptions {
        pairs_per_label: 64,
        rho: 0.0,
        ..ClusterOptions::default()
    };
    let counted = CorrelationMatrix::count(&documents, &options).unwrap();
    assert_eq!(counted.sampled_documents, 40);
    assert!(counted.pairs <= counted.pair_bound);
    assert_eq!(counted.pair_bound, 40 * 600 * 64);
    // Every pair shares every document: the estimates of P must average 1 before they are capped at 1, and
    // each row's total weight is exact.
    let row_total: f32 = counted.kept.outer_view(17).unwrap().data().iter().sum();
    assert!(row_total > 0.5 * 599.0 && row_total <= 599.0, "{row_total}");
    for i in (0..labels).step_by(97) {
        for j in (1..labels).step_by(89) {
            let (there, back) = (entry(&counted.kept, i, j), entry(&counted.kept, j, i));
            assert_eq!(there, back, "the ring keeps M symmetric");
        }
    }
}

/// A small connected graph and its dense Laplacian.
fn small_graph() -> (LabelGraph, Vec<Vec<f64>>) {
    let documents = DocumentLabels::collect(
        [
            vec![0, 1, 2],
            vec![1, 2],
            vec![2, 3],
            vec![3, 4],
            vec![3, 4, 5],
            vec![5, 0],
            vec![6],
        ],
        7,
    )
    .unwrap();
    let counted = CorrelationMatrix::count(&documents, &ClusterOptions::default()).unwrap();
    let a = counted.reweight(0.4);
    let n = 7;
    let symmetric = |i, j| f64::from(entry(&a, i, j).max(entry(&a, j, i)));
    let degree: Vec<f64> = (0..n).map(|i| (0..n).map(|j| symmetric(i, j)).sum()).collect();
    let laplacian = (0..n)
        .map(|i| {
            (0..n)
                .map(|j| f64::from(u8::from(i == j)) - symmetric(i, j) / (degree[i] * degree[j]).sqrt())
                .collect()
        })
        .collect();
    (LabelGraph::from_correlation(&a), laplacian)
}

fn times(matrix: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    matrix
        .iter()
        .map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum())
        .collect()
}

#[test]
fn the_filter_equals_the_dense_formula() {
    let (graph, laplacian) = small_graph();
    let start: Vec<f32> = (0..7).map(|i| (i as f32 * 1.7).sin()).collect();
    for order in 0..5 {
        let mut rows = dense(&start, 1);
        low_pass_filter(&graph, &mut rows, order);
        let mut x: Vec<f64> = start.iter().map(|&v| f64::from(v)).collect();
        for _ in 0..order {
            let lx = times(&laplacian, &x);
            for (x, lx) in x.iter_mut().zip(lx) {
                *x -= 0.5 * lx;
            }
        }
        for (got, want) in rows.values().iter().zip(x) {
            assert!(
                (f64::from(*got) - want).abs() < 1e-5,
                "order {order}: {got} {want}"
            );
        }
    }
}

#[test]
fn the_response_to_an_eigenvector_is_one_minus_half_lambda_to_the_k() {
    let (graph, laplacian) = small_graph();
    // The largest eigenvalue of L_s by power iteration: the signal a low-pass filter must damp most.
    let mut x = vec![1.0, -2.0, 3.0, -1.0, 0.5, 1.5, 0.0];
    let mut lambda = 0.0;
    for _ in 0..3000 {
        let next = times(&laplacian, &x);
        lambda = next.iter().map(|v| v * v).sum::<f64>().sqrt();
        x = next.into_iter().map(|v| v / lambda).collect();
    }
    assert!(lambda > 0.1 && lambda < 2.0, "{lambda}");
    let start: Vec<f32> = x.iter().map(|&v| v as f32).collect();
    for order in 1..5 {
        let mut rows = dense(&start, 1);
        low_pass_filter(&graph, &mut rows, order);
        let response = (1.0 - lambda / 2.0).powi(order as i32);
        for (got, x) in rows.values().iter().zip(&x) {
            assert!((f64::from(*got) - response * x).abs() < 1e-5);
        }
    }
}

#[test]
fn the_constant_signal_passes_unchanged() {
    let (graph, _) = small_graph();
    let start: Vec<f32> = graph.degrees().iter().map(|d| d.sqrt()).collect();
    let mut rows = dense(&start, 1);
    low_pass_filter(&graph, &mut rows, 10);
    for (got, want) in rows.values().iter().zip(&start) {
        assert!((got - want).abs() < 1e-5, "λ = 0: {got} {want}");
    }
}

#[test]
fn an_isolated_label_keeps_its_vector() {
    let (graph, _) = small_graph();
    let mut rows = dense(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0], 1);
    low_pass_filter(&graph, &mut rows, 3);
    assert_eq!(rows.row(6), [3.0]);
}
