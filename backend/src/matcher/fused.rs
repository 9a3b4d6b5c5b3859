//! The fused pass as one candle operation: (dense weights, word rows) → losses, with its gradient.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp2, Layout as TensorLayout, Result, Shape, Tensor, bail};
use gnnxml_shared::model::matcher::MatcherConfig;
use rayon::prelude::*;

use super::batch::Batch;
use super::gin::{Network, Workspace, add_scaled};
use super::layout::Layout;
use super::wide::shard_pass_wide;
use super::{Losses, Moment};

/// Buffers of all shards, handed from step to step.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    shards: Vec<(Workspace, Vec<f32>)>,
}

/// One batch's loss. Forward computes the gradient along; backward hands it out.
#[derive(Debug)]
pub(super) struct FusedLoss {
    pub(super) config: Arc<MatcherConfig>,
    pub(super) layout: Arc<Layout>,
    pub(super) batch: Arc<Batch>,
    pub(super) moment: Moment,
    pub(super) scratch: Arc<Mutex<Scratch>>,
    gradient: Mutex<Option<(Vec<f32>, Vec<f32>)>>,
}

impl FusedLoss {
    pub(super) fn new(
        config: &Arc<MatcherConfig>,
        layout: &Arc<Layout>,
        batch: &Arc<Batch>,
        moment: Moment,
        scratch: &Arc<Mutex<Scratch>>,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            layout: Arc::clone(layout),
            batch: Arc::clone(batch),
            moment,
            scratch: Arc::clone(scratch),
            gradient: Mutex::new(None),
        }
    }

    /// Losses, ∂dense and ∂words. Shards run in parallel; sums over them go in shard order, so the thread count does not show.
    fn run(&self, dense: &[f32], words: &[f32]) -> (Losses, Vec<f32>, Vec<f32>) {
        let e = self.config.embedding_width();
        let network = Network {
            config: &self.config,
            layout: &self.layout,
            dense,
            words,
            moment: self.moment,
        };
        let shards = &self.batch.shards;
        let vertices: usize = shards
            .iter()
            .flat_map(|s| &s.sides)
            .map(super::batch::Side::rows)
            .sum();
        let mut embedded = vec![0.0; vertices * e];
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if scratch.shards.len() < shards.len() {
            scratch.shards.resize_with(shards.len(), Default::default);
        }
        let mut jobs = Vec::with_capacity(shards.len());
        let mut rest = &mut embedded[..];
        let mut first_pair = 0;
        for (shard, (space, gradient)) in shards.iter().zip(&mut scratch.shards) {
            let mut parts = Vec::with_capacity(shard.sides.len());
            for side in &shard.sides {
                let (part, after) = std::mem::take(&mut rest).split_at_mut(side.rows() * e);
                parts.push(part);
                rest = after;
            }
            jobs.push((shard, first_pair, space, gradient, parts));
            first_pair += shard.pairs();
        }
        let losses: Vec<Losses> = jobs
            .into_par_iter()
            .with_max_len(1)
            .map(|(shard, first_pair, space, gradient, mut parts)| {
                gradient.clear();
                gradient.resize(self.layout.len, 0.0);
                shard_pass_wide(network, shard, first_pair, space, gradient, &mut parts)
            })
            .collect();
        let mut total = Losses::default();
        losses.into_iter().for_each(|l| total.add(l));

        const PART: usize = 1 << 14;
        let parts = &scratch.shards[..shards.len()];
        let mut dense_gradient = vec![0.0; self.layout.len];
        dense_gradient
            .par_chunks_mut(PART)
            .enumerate()
            .for_each(|(part, out)| {
                for (_, gradient) in parts {
                    add_scaled(out, &gradient[part * PART..][..out.len()], 1.0);
                }
            });
        let holders = &self.batch.holders;
        let mut word_gradient = vec![0.0; words.len()];
        if e > 0 {
            let rows = word_gradient.par_chunks_mut(e).take(self.batch.words.len());
            rows.enumerate().with_min_len(256).for_each(|(word, out)| {
                for (vertex, weight) in holders.row(word) {
                    add_scaled(out, &embedded[vertex * e..(vertex + 1) * e], weight);
                }
            });
        }
        (total, dense_gradient, word_gradient)
    }
}

impl CustomOp2 for FusedLoss {
    fn name(&self) -> &'static str {
        "fused-bilateral-gin"
    }

    fn cpu_fwd(
        &self,
        dense: &CpuStorage,
        dense_layout: &TensorLayout,
        words: &CpuStorage,
        words_layout: &TensorLayout,
    ) -> Result<(CpuStorage, Shape)> {
        let slice = |storage: &CpuStorage, layout: &TensorLayout| -> Result<std::ops::Range<usize>> {
            let (CpuStorage::F32(_), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
                bail!("the fused matcher takes contiguous f32 weights")
            };
            Ok(start..end)
        };
        let (dense_range, words_range) = (slice(dense, dense_layout)?, slice(words, words_layout)?);
        let (losses, dense, words) = self.run(
            &dense.as_slice::<f32>()?[dense_range],
            &words.as_slice::<f32>()?[words_range],
        );
        *self.gradient.lock().unwrap_or_else(PoisonError::into_inner) = Some((dense, words));
        let scale = 1.0 / self.moment.pairs as f64;
        let values = [losses.total, losses.sides[0], losses.sides[1]].map(|l| (l * scale) as f32);
        Ok((CpuStorage::F32(values.to_vec()), Shape::from(3)))
    }

    fn bwd(
        &self,
        dense: &Tensor,
        words: &Tensor,
        _losses: &Tensor,
        upstream: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let Some((dense_gradient, word_gradient)) = self
            .gradient
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        else {
            bail!("{} was asked for its gradient twice", self.name())
        };
        // Only the total is ever differentiated; it is the mean that the optimiser sees.
        let upstream = upstream.to_vec1::<f32>()?;
        if upstream != [1.0, 0.0, 0.0] {
            bail!(
                "{} differentiates its total loss only, found {upstream:?}",
                self.name()
            )
        }
        let device = dense.device();
        Ok((
            Some(Tensor::from_vec(dense_gradient, dense.shape(), device)?),
            Some(Tensor::from_vec(word_gradient, words.shape(), device)?),
        ))
    }
}
