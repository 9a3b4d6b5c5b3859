//! k-means++ start, greedy: every new centre is the best of a few drawn by squared distance.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::product::products;

/// Rows compared at a time; fixed, so that sums come out the same on any number of threads.
const ROWS_A_BLOCK: usize = 512;

/// Draws `k` of the rows of `x` as centres: the first evenly, each further one with probability
/// proportional to its weight and the squared distance to the nearest centre so far, the best of 2 + ln k candidates
/// by the distance that would remain (as greedy k-means++ does). Rows that coincide with a centre are
/// only drawn when nothing else is left.
pub(super) fn plus_plus(
    x: &[f32],
    weights: &[f32],
    width: usize,
    k: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<f32> {
    let n = x.len() / width;
    let candidates = 2 + (k as f64).ln() as usize;
    let squared: Vec<f32> = x
        .par_chunks(width)
        .map(|row| row.iter().map(|value| value * value).sum())
        .collect();
    let mut centres = Vec::with_capacity(k * width);
    let first = rng.random_range(0..n);
    centres.extend_from_slice(&x[first * width..(first + 1) * width]);
    let mut nearest = vec![f32::INFINITY; n];
    let mut after = vec![0f32; n * candidates.max(1)];
    let mut drawn = vec![first];
    remaining(x, width, &squared, &drawn, &nearest, &mut after[..n]);
    nearest.copy_from_slice(&after[..n]);
    while centres.len() < k * width {
        let cumulative = cumulate(&nearest, weights);
        let total = cumulative[n - 1];
        drawn.clear();
        if total > 0.0 {
            for _ in 0..candidates {
                let dart = rng.random::<f64>() * total;
                drawn.push(cumulative.partition_point(|&sum| sum <= dart).min(n - 1));
            }
            drawn.sort_unstable();
            drawn.dedup();
        } else {
            drawn.push(rng.random_range(0..n));
        }
        let count = drawn.len();
        remaining(x, width, &squared, &drawn, &nearest, &mut after[..n * count]);
        let best = (0..count)
            .map(|at| (at, left_over(&after[..n * count], weights, count, at)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(0, |(at, _)| at);
        for (nearest, after) in nearest.iter_mut().zip(after.chunks_exact(count)) {
            *nearest = after[best];
        }
        centres.extend_from_slice(&x[drawn[best] * width..(drawn[best] + 1) * width]);
    }
    centres
}

/// Running sums of the weighted squared distances.
fn cumulate(distances: &[f32], weights: &[f32]) -> Vec<f64> {
    let mut sum = 0.0;
    distances
        .iter()
        .zip(weights)
        .map(|(&distance, &weight)| {
            sum += f64::from(distance) * f64::from(weight);
            sum
        })
        .collect()
}

/// The distance that would remain in all with candidate `at`.
fn left_over(after: &[f32], weights: &[f32], count: usize, at: usize) -> f64 {
    let remaining = after[at..].iter().step_by(count).zip(weights);
    remaining
        .map(|(&d, &weight)| f64::from(d) * f64::from(weight))
        .sum()
}

/// For every row and every candidate, the squared distance to the nearest centre if it were added.
fn remaining(x: &[f32], width: usize, squared: &[f32], drawn: &[usize], nearest: &[f32], after: &mut [f32]) {
    let count = drawn.len();
    let candidates: Vec<f32> = drawn
        .iter()
        .flat_map(|&row| x[row * width..(row + 1) * width].iter().copied())
        .collect();
    x.par_chunks(ROWS_A_BLOCK * width)
        .zip(after.par_chunks_mut(ROWS_A_BLOCK * count))
        .enumerate()
        .for_each(|(block, (x, after))| {
            products(x, &candidates, width, after);
            for (offset, after) in after.chunks_exact_mut(count).enumerate() {
                let row = block * ROWS_A_BLOCK + offset;
                for (after, &candidate) in after.iter_mut().zip(drawn) {
                    let distance = if row == candidate {
                        0.0
                    } else {
                        (squared[row] + squared[candidate] - 2.0 * *after).max(0.0)
                    };
                    *after = distance.min(nearest[row]);
                }
            }
        });
}
