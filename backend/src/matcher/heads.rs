//! The classifiers of a step: logits, loss, and the gradient down to the read-outs.
//!
//! All pairs at once and a block of clusters at a time: where there are thousands of clusters the classifiers are the largest weights, and
//! this way each is read once a product and its gradient written once. What belongs to clusters lies cluster × pair, so that a block
//! is a slice.

use rayon::prelude::*;

use super::Losses;
use super::batch::Shard;
use super::gin::Network;
use super::rows::{add_scaled, sigmoid, softplus};
use super::sgemm::{Matrix, add_transposed_times, times, times_transposed};

/// Clusters of a block.
const BLOCK: usize = 128;

/// The read-outs of a step's pairs and what the classifiers make of them; buffers are kept for the next step.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// h_G of each side after dropout, pair × unit.
    pub(super) readouts: Vec<Vec<f32>>,
    /// ∂h_G, the same way.
    pub(super) dreadouts: Vec<Vec<f32>>,
    z: Vec<f32>,
    dz: Vec<f32>,
}

impl Heads {
    /// Room for the read-outs of `pairs` pairs.
    pub(super) fn reserve(&mut self, network: Network<'_>, pairs: usize) {
        let (sides, len) = (
            network.layout.branches.len(),
            pairs * network.config.readout_width(),
        );
        for buffers in [&mut self.readouts, &mut self.dreadouts] {
            buffers.resize_with(sides, Vec::new);
            buffers.iter_mut().for_each(|buffer| buffer.resize(len, 0.0));
        }
    }

    /// From the read-outs to the losses and the read-outs' gradient; writes that of the classifiers into `gradient`.
    pub(super) fn pass(&mut self, network: Network<'_>, shards: &[Shard], gradient: &mut [f32]) -> Losses {
        let pairs: usize = shards.iter().map(Shard::pairs).sum();
        if pairs == 0 {
            return Losses::default();
        }
        let negatives = self.logits(network, pairs);
        let losses = self.add_positives(network, shards, negatives);
        let Network {
            config,
            layout,
            dense,
            moment,
            ..
        } = network;
        let (clusters, total) = (config.clusters, config.readout_width());
        let shares = moment.shares(layout.branches.len());
        let dz = Matrix::new(&self.dz, clusters, pairs);
        // dz is the sides' own, so a side's share goes into the products' other operand or result.
        let sides = layout.branches.par_iter().zip(&mut self.dreadouts).zip(shares);
        sides.for_each(|((branch, out), share)| {
            out.fill(0.0);
            add_transposed_times(
                out,
                total,
                dz,
                Matrix::new(branch.head.of(dense), clusters, total),
            );
            out.iter_mut().for_each(|value| *value *= share);
        });
        for ((branch, readout), share) in layout.branches.iter().zip(&self.readouts).zip(shares) {
            let scaled: Vec<f32> = readout.iter().map(|value| share * value).collect();
            // The bias follows its matrix in the flat vector.
            let both = &mut gradient[branch.head.start..branch.bias.start + branch.bias.len];
            let (head, bias) = both.split_at_mut(branch.head.len);
            let blocks = head.par_chunks_mut(BLOCK * total).zip(bias.par_chunks_mut(BLOCK));
            blocks.enumerate().for_each(|(block, (head, bias))| {
                let dz = dz.rows_from(block * BLOCK, bias.len());
                times(head, total, dz, Matrix::new(&scaled, pairs, total), false);
                for (k, out) in bias.iter_mut().enumerate() {
                    *out = share * dz.row(k).iter().sum::<f32>();
                }
            });
        }
        losses
    }

    /// z = α·z_c + (1−α)·z_r and, as if no cluster were positive, dz; returns each pair's Σ_k softplus(z_k), block by block.
    fn logits(&mut self, network: Network<'_>, pairs: usize) -> Vec<Vec<f64>> {
        let Network {
            config,
            layout,
            dense,
            moment,
            ..
        } = network;
        let (clusters, total) = (config.clusters, config.readout_width());
        let shares = moment.shares(layout.branches.len());
        let scale = 1.0 / moment.pairs as f32;
        let readouts = &self.readouts;
        self.z.resize(clusters * pairs, 0.0);
        self.dz.resize(clusters * pairs, 0.0);
        let blocks = self.z.par_chunks_mut(BLOCK * pairs);
        let blocks = blocks.zip(self.dz.par_chunks_mut(BLOCK * pairs)).enumerate();
        let of_block = |(block, (z, dz)): (usize, (&mut [f32], &mut [f32]))| {
            z.fill(0.0);
            let (first, count) = (block * BLOCK, z.len() / pairs);
            for ((branch, readout), share) in layout.branches.iter().zip(readouts).zip(shares) {
                let head = Matrix::new(branch.head.of(dense), clusters, total).rows_from(first, count);
                // One side's logits, in the place of dz until that is known.
                times_transposed(dz, head, Matrix::new(readout, pairs, total), false);
                add_scaled(z, dz, share);
                for (row, bias) in z.chunks_exact_mut(pairs).zip(&branch.bias.of(dense)[first..]) {
                    row.iter_mut().for_each(|z| *z += share * bias);
                }
            }
            let mut negative = vec![0.0; pairs];
            for (z, dz) in z.chunks_exact(pairs).zip(dz.chunks_exact_mut(pairs)) {
                for ((&z, dz), sum) in z.iter().zip(dz).zip(&mut negative) {
                    *sum += f64::from(softplus(z));
                    *dz = scale * sigmoid(z);
                }
            }
            negative
        };
        blocks.map(of_block).collect()
    }

    /// L = αE(ĝ, g_c) + (1−α)E(ĝ, g_r) with E(σ(z), g) = Σ_k w·g_k·softplus(−z_k) + (1−g_k)·softplus(z_k).
    fn add_positives(&mut self, network: Network<'_>, shards: &[Shard], negatives: Vec<Vec<f64>>) -> Losses {
        let moment = network.moment;
        let shares = moment.shares(network.layout.branches.len());
        let (positive, scale) = (moment.positive_weight, 1.0 / moment.pairs as f32);
        let pairs = negatives[0].len();
        let mut losses = Losses::default();
        let of_shard = |shard: &Shard| 0..shard.pairs();
        let places = shards.iter().flat_map(|s| of_shard(s).map(move |i| (s, i)));
        for (pair, (shard, within)) in places.enumerate() {
            let negative: f64 = negatives.iter().map(|block| block[pair]).sum();
            for (number, side) in shard.sides.iter().enumerate() {
                let mut of_side = negative;
                for (k, _) in side.positives.row(within) {
                    let z = self.z[k * pairs + pair];
                    of_side += f64::from(positive * softplus(-z) - softplus(z));
                    let correction = (positive - 1.0) * sigmoid(z) - positive;
                    self.dz[k * pairs + pair] += scale * shares[number] * correction;
                }
                losses.sides[number] += of_side;
                losses.total += f64::from(shares[number]) * of_side;
            }
        }
        losses
    }
}
