//! The low-pass filter for a batch of labels at a time, with sampled neighbours: memory and time bounded
//! by the batch B, the sample S and the order k, whatever the size of the graph.
//!
//! With G = I − ½L_s, the exact G^k·Z of a batch needs its k-hop neighbourhood, which soon is the whole
//! graph. As FastGCN does, each step draws S of the neighbours the step needs and weights them so that the
//! expectation is the exact sum. Three choices are ours, the paper being silent:
//! - **Weighting.** A neighbour v is drawn with probability π_v ∝ √Σ_u G_uv² over the rows u at hand (the
//!   norm of its column *restricted to the batch*; FastGCN's norm over the whole graph spends nearly all
//!   draws on labels the batch has no edge to).
//! - **Without replacement.** Systematic sampling with inclusion probabilities π_v = min(1, c·weight_v),
//!   Σπ = S; an edge counts G_uv/π_v. So the estimate is unbiased, and exact as soon as S reaches the
//!   neighbourhood.
//! - **Self terms are never sampled.** G_uu ≥ ½ carries most of the signal; the rows at hand stay in the next
//!   step's set, and edges among them are free and exact.
//!
//! A step's set grows by S at most, so a batch holds (B + k·S)·d numbers.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::Sampling;
use super::graph::LabelGraph;
use super::rows::{DenseRows, RowSource, normalise};

/// Filtered rows on demand.
#[derive(Debug)]
pub struct SampledFilter<'a> {
    graph: &'a LabelGraph,
    vectors: &'a DenseRows,
    order: usize,
    sampling: Sampling,
    seed: u64,
    unit_length: bool,
}

impl<'a> SampledFilter<'a> {
    /// A filter of the given order over `vectors`.
    pub fn new(
        graph: &'a LabelGraph,
        vectors: &'a DenseRows,
        order: usize,
        sampling: Sampling,
        seed: u64,
    ) -> Self {
        Self {
            graph,
            vectors,
            order,
            sampling,
            seed,
            unit_length: false,
        }
    }

    /// Scales every filtered row to length 1.
    #[must_use]
    pub(super) fn unit_length(mut self) -> Self {
        self.unit_length = true;
        self
    }

    /// The filtered vectors of some labels, row-major; the same labels always give the same numbers.
    pub fn filter(&self, labels: &[u32]) -> Vec<f32> {
        let mut out = vec![0f32; labels.len() * self.vectors.width()];
        self.gather(labels, &mut out);
        out
    }

    /// One batch: the sets from the outermost step inwards, then the values back outwards.
    fn filter_batch(&self, batch: &[u32], out: &mut [f32]) {
        let width = self.vectors.width();
        let mut rng = ChaCha8Rng::seed_from_u64(batch.iter().fold(self.seed, |hash, &label| {
            (hash ^ u64::from(label))
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23)
        }));
        // The labels of the current set in the order they were added; a step needs a prefix of the next.
        let mut set: Vec<u32> = Vec::with_capacity(batch.len());
        let mut place = BTreeMap::new();
        let rows: Vec<usize> = batch
            .iter()
            .map(|&label| {
                *place.entry(label).or_insert_with(|| {
                    set.push(label);
                    set.len() - 1
                })
            })
            .collect();
        let mut steps: Vec<Step> = Vec::with_capacity(self.order);
        for _ in 0..self.order {
            steps.push(self.draw_step(&mut set, &mut place, &mut rng));
        }
        let mut x = vec![0f32; set.len() * width];
        self.vectors.gather(&set, &mut x);
        for step in steps.iter().rev() {
            x = step.apply(&x, width);
        }
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(width)) {
            out.copy_from_slice(&x[row * width..(row + 1) * width]);
            if self.unit_length {
                normalise(out);
            }
        }
    }

    /// Draws the neighbours one step needs and adds them to the set.
    fn draw_step(&self, set: &mut Vec<u32>, place: &mut BTreeMap<u32, usize>, rng: &mut ChaCha8Rng) -> Step {
        let targets = set.len();
        let mut outside: Vec<(u32, f32)> = Vec::new();
        for &label in &set[..targets] {
            let (columns, weights) = self.graph.row(label as usize);
            for (&column, &weight) in columns.iter().zip(weights) {
                if column != label && !place.contains_key(&column) {
                    outside.push((column, weight * weight));
                }
            }
        }
        outside.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        outside.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        for entry in &mut outside {
            entry.1 = entry.1.sqrt();
        }
        let mut chances = BTreeMap::new();
        for (column, chance) in draw(&outside, self.sampling.samples, rng) {
            place.insert(column, set.len());
            set.push(column);
            chances.insert(column, chance);
        }
        let mut step = Step {
            starts: vec![0],
            sources: Vec::new(),
            weights: Vec::new(),
        };
        for (row, &label) in set[..targets].iter().enumerate() {
            step.sources.push(row);
            step.weights.push(0.5);
            let (columns, weights) = self.graph.row(label as usize);
            for (&column, &weight) in columns.iter().zip(weights) {
                if let Some(&source) = place.get(&column) {
                    let chance = chances.get(&column).copied().unwrap_or(1.0);
                    step.sources.push(source);
                    step.weights.push(0.5 * weight / chance);
                }
            }
            step.starts.push(step.sources.len());
        }
        step
    }
}

impl RowSource for SampledFilter<'_> {
    fn rows(&self) -> usize {
        self.vectors.rows()
    }

    fn width(&self) -> usize {
        self.vectors.width()
    }

    fn gather(&self, which: &[u32], out: &mut [f32]) {
        let batch = self.sampling.batch;
        which
            .par_chunks(batch)
            .zip(out.par_chunks_mut(batch * self.vectors.width()))
            .for_each(|(batch, out)| self.filter_batch(batch, out));
    }
}

/// One sampled filter step: a sparse matrix from the inner set to the outer.
struct Step {
    starts: Vec<usize>,
    sources: Vec<usize>,
    weights: Vec<f32>,
}

impl Step {
    fn apply(&self, x: &[f32], width: usize) -> Vec<f32> {
        let mut out = vec![0f32; (self.starts.len() - 1) * width];
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let entries = self.starts[row]..self.starts[row + 1];
            for (&source, &weight) in self.sources[entries.clone()].iter().zip(&self.weights[entries]) {
                for (sum, value) in out.iter_mut().zip(&x[source * width..(source + 1) * width]) {
                    *sum += weight * value;
                }
            }
        }
        out
    }
}

/// Systematic sampling without replacement: `samples` of the weighted items, each with the probability it
/// was included with.
fn draw(weighted: &[(u32, f32)], samples: usize, rng: &mut ChaCha8Rng) -> Vec<(u32, f32)> {
    if weighted.len() <= samples {
        return weighted.iter().map(|&(item, _)| (item, 1.0)).collect();
    }
    let scale = inclusion_scale(weighted, samples);
    let mut drawn = Vec::with_capacity(samples + 1);
    let mut next: f64 = rng.random();
    let mut sum = 0.0;
    for &(item, weight) in weighted {
        let chance = (f64::from(weight) * scale).min(1.0);
        sum += chance;
        if sum > next {
            drawn.push((item, chance as f32));
            next += 1.0;
        }
    }
    drawn
}

/// c with Σ min(1, c·weight) = samples: items whose share would pass 1 are taken for certain, the rest
/// share what is left.
fn inclusion_scale(weighted: &[(u32, f32)], samples: usize) -> f64 {
    let mut by_weight: Vec<f64> = weighted.iter().map(|&(_, weight)| f64::from(weight)).collect();
    by_weight.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut rest: f64 = by_weight.iter().sum();
    for (certain, &weight) in by_weight.iter().enumerate().take(samples) {
        let scale = (samples - certain) as f64 / rest.max(f64::MIN_POSITIVE);
        if scale * weight <= 1.0 {
            return scale;
        }
        rest -= weight;
    }
    f64::INFINITY
}
