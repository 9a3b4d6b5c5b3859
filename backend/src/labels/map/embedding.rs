//! Neighbour embedding: near rows attract, random ones repel, on one thread and one seed.
//!
//! Neighbour weights are UMAP's: w_ij = exp(−(d_ij − d_i,nearest)/σ_i) with σ_i set so that Σ_j w_ij = log₂(k),
//! made symmetric by w + wᵀ − w·wᵀ. Places follow the gradient of the cross-entropy with the kernel
//! 1/(1 + d²), edges visited as often as their weight says, five random rows pushed away for each.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

use super::neighbours::Neighbours;
use crate::labels::rows::DenseRows;

/// How long and how hard to embed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    epochs: usize,
    repulsion: f32,
    seed: u64,
}

impl Schedule {
    /// Few points, so many epochs.
    pub(super) fn clusters(seed: u64) -> Self {
        Self {
            epochs: 400,
            repulsion: 1.0,
            seed,
        }
    }

    /// Many points that start in a good place.
    pub(super) fn labels(seed: u64) -> Self {
        Self {
            epochs: 120,
            repulsion: 1.0,
            seed: seed ^ 0x6d61_7073,
        }
    }
}

/// Random rows pushed away for every edge visited.
const NEGATIVES: usize = 5;
/// What an edge between two clusters weighs against one inside.
const ACROSS: f32 = 0.1;
/// How far a label is drawn to the middle of its cluster each epoch, at the full rate.
const COHESION: f32 = 0.04;
/// A step never moves a place further than this.
const STEP_LIMIT: f32 = 4.0;

struct Edge {
    from: u32,
    to: u32,
    /// Epochs between two visits.
    every: f32,
    next: f32,
}

/// Moves `places` until neighbours are near. With `clusters`, labels of one cluster keep together.
pub(super) fn embed(
    neighbours: &Neighbours,
    mut places: Vec<[f32; 2]>,
    clusters: Option<&[u32]>,
    schedule: Schedule,
) -> Vec<[f32; 2]> {
    let n = places.len();
    if n < 3 {
        return places;
    }
    let mut edges = edges(neighbours, clusters);
    let mut rng = ChaCha8Rng::seed_from_u64(schedule.seed);
    let mut middles = Vec::new();
    for epoch in 1..=schedule.epochs {
        let rate = 1.0 - (epoch - 1) as f32 / schedule.epochs as f32;
        for edge in &mut edges {
            if edge.next > epoch as f32 {
                continue;
            }
            edge.next += edge.every;
            let (from, to) = (edge.from as usize, edge.to as usize);
            attract(&mut places, from, to, rate);
            for _ in 0..NEGATIVES {
                let other = rng.random_range(0..n);
                if other != from {
                    repel(&mut places, from, other, rate * schedule.repulsion);
                }
            }
        }
        if let Some(clusters) = clusters {
            cohere(&mut places, clusters, &mut middles, COHESION * rate);
        }
    }
    places
}

fn attract(places: &mut [[f32; 2]], from: usize, to: usize, rate: f32) {
    let (a, b) = (places[from], places[to]);
    let d2 = (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
    let pull = -2.0 / (1.0 + d2);
    for axis in 0..2 {
        let step = rate * (pull * (a[axis] - b[axis])).clamp(-STEP_LIMIT, STEP_LIMIT);
        places[from][axis] += step;
        places[to][axis] -= step;
    }
}

fn repel(places: &mut [[f32; 2]], from: usize, other: usize, rate: f32) {
    let (a, b) = (places[from], places[other]);
    let d2 = (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
    let push = 2.0 / ((0.001 + d2) * (1.0 + d2));
    for axis in 0..2 {
        places[from][axis] += rate * (push * (a[axis] - b[axis])).clamp(-STEP_LIMIT, STEP_LIMIT);
    }
}

/// Draws every label a little to the middle of its cluster.
fn cohere(places: &mut [[f32; 2]], clusters: &[u32], middles: &mut Vec<[f32; 3]>, rate: f32) {
    middles.clear();
    for (place, &cluster) in places.iter().zip(clusters) {
        let cluster = cluster as usize;
        if middles.len() <= cluster {
            middles.resize(cluster + 1, [0.0; 3]);
        }
        middles[cluster][0] += place[0];
        middles[cluster][1] += place[1];
        middles[cluster][2] += 1.0;
    }
    for (place, &cluster) in places.iter_mut().zip(clusters) {
        let [x, y, count] = middles[cluster as usize];
        place[0] += rate * (x / count - place[0]);
        place[1] += rate * (y / count - place[1]);
    }
}

/// Symmetric weighted edges, in order of their ends.
fn edges(neighbours: &Neighbours, clusters: Option<&[u32]>) -> Vec<Edge> {
    let mut weights: BTreeMap<(u32, u32), (f32, f32)> = BTreeMap::new();
    for (row, near) in neighbours.of.iter().enumerate() {
        let row = row as u32;
        for (&(other, _), weight) in near.iter().zip(membership(near)) {
            let slot = weights.entry((row.min(other), row.max(other))).or_default();
            if row < other {
                slot.0 = weight;
            } else {
                slot.1 = weight;
            }
        }
    }
    let mut edges = Vec::with_capacity(2 * weights.len());
    for ((from, to), (there, back)) in weights {
        let mut weight = there + back - there * back;
        if clusters.is_some_and(|clusters| clusters[from as usize] != clusters[to as usize]) {
            weight *= ACROSS;
        }
        if weight > 1e-3 {
            let every = 1.0 / weight;
            for (from, to) in [(from, to), (to, from)] {
                edges.push(Edge {
                    from,
                    to,
                    every,
                    next: every,
                });
            }
        }
    }
    edges
}

/// w_ij of one row's neighbours.
fn membership(near: &[(u32, f32)]) -> Vec<f32> {
    let distances: Vec<f32> = near.iter().map(|&(_, cosine)| (1.0 - cosine).max(0.0)).collect();
    let Some(&nearest) = distances.first() else {
        return Vec::new();
    };
    let target = (near.len() as f32).log2().max(0.5);
    let (mut low, mut high) = (1e-6f32, 4.0f32);
    let sum = |sigma: f32| -> f32 { distances.iter().map(|d| (-(d - nearest) / sigma).exp()).sum() };
    for _ in 0..32 {
        let middle = 0.5 * (low + high);
        if sum(middle) > target {
            high = middle;
        } else {
            low = middle;
        }
    }
    distances.iter().map(|d| (-(d - nearest) / high).exp()).collect()
}

/// The plane in which rows vary most: where an embedding starts. Scaled to ±10.
pub(super) fn principal_plane(rows: &DenseRows) -> Vec<[f32; 2]> {
    let (n, width) = (rows.rows(), rows.width());
    let mut mean = vec![0f64; width];
    for row in 0..n {
        for (mean, &value) in mean.iter_mut().zip(rows.row(row)) {
            *mean += f64::from(value) / n as f64;
        }
    }
    let mut axes: Vec<Vec<f64>> = Vec::new();
    for axis in 0..2 {
        // Power iteration from a fixed start that is no direction's equal.
        let mut direction: Vec<f64> = (0..width)
            .map(|at| ((at * (axis + 2) + 1) as f64 * 0.754_877).fract() - 0.5)
            .collect();
        for _ in 0..60 {
            for known in &axes {
                let along: f64 = direction.iter().zip(known).map(|(a, b)| a * b).sum();
                for (value, known) in direction.iter_mut().zip(known) {
                    *value -= along * known;
                }
            }
            let length = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
            if length == 0.0 {
                break;
            }
            for value in &mut direction {
                *value /= length;
            }
            let mut next = vec![0f64; width];
            for row in 0..n {
                let along = dot(rows.row(row), &mean, &direction);
                for ((next, &value), mean) in next.iter_mut().zip(rows.row(row)).zip(&mean) {
                    *next += along * (f64::from(value) - mean);
                }
            }
            direction = next;
        }
        let length = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
        if length > 0.0 {
            for value in &mut direction {
                *value /= length;
            }
        }
        axes.push(direction);
    }
    let mut places: Vec<[f32; 2]> = (0..n)
        .map(|row| {
            let x = dot(rows.row(row), &mean, &axes[0]);
            let y = dot(rows.row(row), &mean, &axes[1]);
            // A hair apart, so that equal rows can be pushed away from each other.
            let turn = row as f64 * 2.399_963;
            [(x + 1e-4 * turn.cos()) as f32, (y + 1e-4 * turn.sin()) as f32]
        })
        .collect();
    let reach = places
        .iter()
        .flatten()
        .fold(0f32, |reach, v| reach.max(v.abs()))
        .max(1e-6);
    for value in places.iter_mut().flatten() {
        *value *= 10.0 / reach;
    }
    places
}

fn dot(row: &[f32], mean: &[f64], direction: &[f64]) -> f64 {
    row.iter()
        .zip(mean)
        .zip(direction)
        .map(|((&value, mean), direction)| (f64::from(value) - mean) * direction)
        .sum()
}

/// What to divide places by so that the points would lie about one apart on a filled square.
pub(super) fn unit_spacing(places: &[[f32; 2]]) -> f32 {
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    for place in places {
        for axis in 0..2 {
            low[axis] = low[axis].min(place[axis]);
            high[axis] = high[axis].max(place[axis]);
        }
    }
    let area = ((high[0] - low[0]) * (high[1] - low[1])).max(1e-12);
    (area / places.len() as f32).sqrt() / 0.35
}
