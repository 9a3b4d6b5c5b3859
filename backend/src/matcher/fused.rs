//! A step's loss and gradient on all cores.

use std::sync::{Mutex, PoisonError};

use gnnxml_shared::model::matcher::MatcherConfig;
use rayon::prelude::*;

use super::batch::{Batch, Side};
use super::engine::Gradient;
use super::gin::{Network, Weights, Workspace, add_rows, add_scaled};
use super::layout::Layout;
use super::wide::shard_pass_wide;
use super::{Losses, Moment};

/// Sums that a step's shards are spread over, each a gradient of its own. More of them balance the cores better and cost more traffic.
/// Not the number of threads: the result must not depend on that.
const GROUPS: usize = 8;

/// Buffers that a step leaves to the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    weights: Weights,
    /// One for each thread that was ever at work at the same time: a shard finds its thread's last buffers in the cache.
    spaces: Mutex<Vec<Workspace>>,
    /// Each group's gradient.
    gradients: Vec<Vec<f32>>,
    /// ∂ of the embedded columns of every vertex, shard by shard and side by side.
    embedded: Vec<f32>,
}

impl Scratch {
    /// Mean losses and their gradient. Groups of shards run in parallel; all sums go in shard order, so the thread count does not show.
    pub(super) fn gradient(
        &mut self,
        (config, layout): (&MatcherConfig, &Layout),
        (dense, words): (&[f32], &[f32]),
        batch: &Batch,
        moment: Moment,
    ) -> Gradient {
        self.weights.prepare(config, layout, dense);
        let network = Network {
            config,
            layout,
            dense,
            weights: &self.weights,
            words,
            moment,
        };
        let e = config.embedding_width();
        let vertices: usize = batch.shards.iter().flat_map(|s| &s.sides).map(Side::rows).sum();
        self.embedded.resize(vertices * e, 0.0);
        let group = batch.shards.len().div_ceil(GROUPS).max(1);
        let groups = batch.shards.len().div_ceil(group);
        if self.gradients.len() < groups {
            self.gradients.resize_with(groups, Vec::new);
        }
        let mut jobs = Vec::with_capacity(groups);
        let mut rest = &mut self.embedded[..];
        let mut first_pair = 0;
        for (shards, gradient) in batch.shards.chunks(group).zip(&mut self.gradients) {
            let mut job = Vec::with_capacity(group);
            for shard in shards {
                let mut parts = Vec::with_capacity(shard.sides.len());
                for side in &shard.sides {
                    let (part, after) = std::mem::take(&mut rest).split_at_mut(side.rows() * e);
                    parts.push(part);
                    rest = after;
                }
                job.push((shard, first_pair, parts));
                first_pair += shard.pairs();
            }
            jobs.push((job, gradient));
        }
        let spaces = || self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        let losses: Vec<Losses> = jobs
            .into_par_iter()
            .with_max_len(1)
            .map(|(shards, gradient)| {
                gradient.clear();
                gradient.resize(layout.len, 0.0);
                let mut space = spaces().pop().unwrap_or_default();
                let mut losses = Losses::default();
                for (shard, first_pair, mut parts) in shards {
                    losses.add(shard_pass_wide(
                        network, shard, first_pair, &mut space, gradient, &mut parts,
                    ));
                }
                spaces().push(space);
                losses
            })
            .collect();
        let mut total = Losses::default();
        losses.into_iter().for_each(|l| total.add(l));
        total.scale(1.0 / moment.pairs as f64);

        const PART: usize = 1 << 14;
        let parts = &self.gradients[..groups];
        let mut dense_gradient = vec![0.0; layout.len];
        dense_gradient
            .par_chunks_mut(PART)
            .enumerate()
            .for_each(|(part, out)| {
                for gradient in parts {
                    add_scaled(out, &gradient[part * PART..][..out.len()], 1.0);
                }
            });
        let mut word_gradient = vec![0.0; words.len()];
        if e > 0 {
            let rows = word_gradient.par_chunks_mut(e).take(batch.words.len());
            rows.enumerate().with_min_len(256).for_each(|(word, out)| {
                add_rows(out, &self.embedded, e, &batch.holders, word);
            });
        }
        Gradient {
            losses: total,
            dense: dense_gradient,
            words: word_gradient,
        }
    }
}
