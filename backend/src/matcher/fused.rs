//! A step's loss and gradient on all cores.

use std::sync::{Mutex, PoisonError};

use gnnxml_shared::model::matcher::MatcherConfig;
use rayon::prelude::*;

use super::Moment;
use super::batch::{Batch, Shard, Side};
use super::engine::Gradient;
use super::gin::{Network, Tape, Weights, Workspace};
use super::heads::Heads;
use super::layout::Layout;
use super::rows::{add_rows, add_scaled};
use super::wide::{shard_backward_wide, shard_forward_wide};

/// Sums that a step's shards are spread over, each a gradient of its own. More of them balance the cores better and cost more traffic.
/// Not the number of threads: the result must not depend on that.
const GROUPS: usize = 8;

/// Buffers that a step leaves to the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    weights: Weights,
    heads: Heads,
    /// Each shard's.
    tapes: Vec<Vec<Tape>>,
    /// One for each thread that was ever at work at the same time.
    spaces: Mutex<Vec<Workspace>>,
    /// Each group's gradient of the layers.
    gradients: Vec<Vec<f32>>,
    /// ∂ of the embedded columns of every vertex, shard by shard and side by side.
    embedded: Vec<f32>,
}

impl Scratch {
    /// Mean losses and their gradient. All sums go in shard order, so the thread count does not show.
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
        let (shards, e, total) = (
            &batch.shards[..],
            config.embedding_width(),
            config.readout_width(),
        );
        if self.tapes.len() < shards.len() {
            self.tapes.resize_with(shards.len(), Vec::new);
        }
        self.heads.reserve(network, shards.iter().map(Shard::pairs).sum());
        let readouts = by_shard(shards, &mut self.heads.readouts, total);
        let jobs = shards.par_iter().zip(first_pairs(shards)).zip(&mut self.tapes);
        jobs.zip(readouts)
            .with_max_len(1)
            .for_each(|(((shard, first_pair), tapes), mut readouts)| {
                shard_forward_wide(network, shard, first_pair, tapes, &mut readouts);
            });

        let mut gradient = vec![0.0; layout.len];
        let mut losses = self.heads.pass(network, shards, &mut gradient);
        losses.scale(1.0 / moment.pairs as f64);

        let vertices: usize = shards.iter().flat_map(|s| &s.sides).map(Side::rows).sum();
        self.embedded.resize(vertices * e, 0.0);
        let mut rest = &mut self.embedded[..];
        let mut jobs = Vec::with_capacity(shards.len());
        let dreadouts = by_shard(shards, &mut self.heads.dreadouts, total);
        for ((shard, tapes), dreadouts) in shards.iter().zip(&self.tapes).zip(dreadouts) {
            let cut = |side: &Side| rest.split_off_mut(..side.rows() * e).unwrap_or_default();
            let embedded: Vec<&mut [f32]> = shard.sides.iter().map(cut).collect();
            jobs.push((shard, tapes, dreadouts, embedded));
        }
        let group = shards.len().div_ceil(GROUPS).max(1);
        let groups = shards.len().div_ceil(group);
        if self.gradients.len() < groups {
            self.gradients.resize_with(groups, Vec::new);
        }
        let layers = layout.layers();
        let spaces = || self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        let groups = jobs.par_chunks_mut(group).zip(&mut self.gradients[..groups]);
        groups.with_max_len(1).for_each(|(jobs, gradient)| {
            gradient.resize(layout.len, 0.0);
            layers.iter().for_each(|range| gradient[range.clone()].fill(0.0));
            let mut space = spaces().pop().unwrap_or_default();
            for (shard, tapes, dreadouts, embedded) in jobs {
                shard_backward_wide(network, shard, tapes, dreadouts, &mut space, gradient, embedded);
            }
            spaces().push(space);
        });

        const PART: usize = 1 << 14;
        let parts = &self.gradients[..shards.len().div_ceil(group)];
        for range in layers {
            let chunks = gradient[range.clone()].par_chunks_mut(PART).enumerate();
            chunks.for_each(|(chunk, out)| {
                for part in parts {
                    add_scaled(out, &part[range.start + chunk * PART..][..out.len()], 1.0);
                }
            });
        }
        let mut word_gradient = vec![0.0; words.len()];
        if e > 0 {
            let rows = word_gradient.par_chunks_mut(e).take(batch.words.len());
            rows.enumerate().with_min_len(256).for_each(|(word, out)| {
                add_rows(out, &self.embedded, e, &batch.holders, word);
            });
        }
        Gradient {
            losses,
            dense: gradient,
            words: word_gradient,
        }
    }
}

/// Each shard's first pair.
fn first_pairs(shards: &[Shard]) -> Vec<usize> {
    let mut next = 0;
    let first = |shard: &Shard| {
        next += shard.pairs();
        next - shard.pairs()
    };
    shards.iter().map(first).collect()
}

/// Each side's buffer, a row of `width` a pair, cut at the shards.
fn by_shard<'a>(shards: &[Shard], buffers: &'a mut [Vec<f32>], width: usize) -> Vec<Vec<&'a mut [f32]>> {
    let mut parts: Vec<Vec<&mut [f32]>> = shards.iter().map(|_| Vec::new()).collect();
    for buffer in buffers {
        let mut rest = &mut buffer[..];
        for (shard, parts) in shards.iter().zip(&mut parts) {
            parts.extend(rest.split_off_mut(..shard.pairs() * width));
        }
    }
    parts
}
