//! The low-pass filter Z̄ = (I − ½L_s)^k·Z by repeated sparse × dense products.
//!
//! L_s = I − D^−½·A_s·D^−½ has eigenvalues λ in [0, 2]; the filter's response to each is (1 − λ/2)^k, 1 at
//! λ = 0, where the signal is D^½·1, and falling. No L × L matrix is ever dense.

use super::graph::LabelGraph;
use super::kmeans::Clustering;
use super::rows::DenseRows;

/// Applies the filter `order` times, in place.
pub fn low_pass_filter(graph: &LabelGraph, vectors: &mut DenseRows, order: usize) {
    let width = vectors.width();
    let mut next = vec![0f32; if order > 0 { vectors.values().len() } else { 0 }];
    for _ in 0..order {
        graph.low_pass(vectors.values(), width, &mut next);
        vectors.values_mut().swap_with_slice(&mut next);
    }
}

/// The mean, over clusters with at least two labels, of the mean squared distance between two of a
/// cluster's labels: what the adaptive choice of k watches.
///
/// The method the paper builds on averages plain distances over all pairs, which is quadratic; squared
/// distances follow from the centre: the mean over pairs is 2·Σ‖x − c‖²/(n − 1).
pub(super) fn intra_cluster_distance(clustering: &Clustering) -> f64 {
    let k = clustering.centres.len();
    let (mut sums, mut sizes) = (vec![0f64; k], vec![0usize; k]);
    for (&cluster, &distance) in clustering.assignment.iter().zip(&clustering.distances) {
        sums[cluster as usize] += f64::from(distance);
        sizes[cluster as usize] += 1;
    }
    let (mut total, mut clusters) = (0.0, 0usize);
    for (sum, size) in sums.into_iter().zip(sizes) {
        if size > 1 {
            total += 2.0 * sum / (size - 1) as f64;
            clusters += 1;
        }
    }
    total / clusters.max(1) as f64
}
