//! The bilateral network in candle's own operations: the path for CUDA, and the reference the fused one is held against.
//!
//! Only operations with a CUDA kernel and a right gradient are used: no `LayerNorm`, no `scatter_add`, no
//! `binary_cross_entropy_with_logit`.

use candle_core::{D, DType, Device, Result, Tensor};
use gnnxml_shared::model::matcher::{MatcherConfig, NORM_EPSILON};

use super::Moment;
use super::batch::{Shard, Side, Sparse};
use super::gin::{dropout_mask, read_layers};
use super::layout::{LayerSlots, Layout, Slot};

/// Where and how precisely to compute.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) device: Device,
    pub(super) dtype: DType,
}

impl Place {
    pub(super) fn tensor(&self, values: &[f32], shape: impl Into<candle_core::Shape>) -> Result<Tensor> {
        Tensor::from_slice(values, shape, &self.device)?.to_dtype(self.dtype)
    }

    fn zeros(&self, shape: impl Into<candle_core::Shape>) -> Result<Tensor> {
        Tensor::zeros(shape, self.dtype, &self.device)
    }

    /// `matrix · x` for a sparse matrix of `rows` rows.
    fn sparse_times(&self, matrix: &Sparse, rows: usize, x: &Tensor) -> Result<Tensor> {
        let zeros = self.zeros((rows, x.dim(1)?))?;
        let entries = matrix.columns.len();
        if entries == 0 {
            return Ok(zeros);
        }
        let mut row_of = Vec::with_capacity(entries);
        for row in 0..rows {
            row_of.resize(row_of.len() + matrix.range(row).len(), row as u32);
        }
        let row_of = Tensor::from_vec(row_of, entries, &self.device)?;
        let columns = Tensor::from_slice(&matrix.columns, entries, &self.device)?;
        let values = self.tensor(&matrix.values, (entries, 1))?;
        zeros.index_add(&row_of, &x.index_select(&columns, 0)?.broadcast_mul(&values)?, 0)
    }
}

fn weight(dense: &Tensor, slot: &Slot) -> Result<Tensor> {
    dense
        .narrow(0, slot.start, slot.len)?
        .reshape(slot.shape.as_slice())
}

/// The loss of a shard: (total, E(ĝ, g_c), E(ĝ, g_r)), divided by `moment.pairs`.
pub(super) fn shard_loss(
    config: &MatcherConfig,
    layout: &Layout,
    place: &Place,
    (dense, words): (&Tensor, &Tensor),
    shard: &Shard,
    first_pair: usize,
    moment: Moment,
) -> Result<(Tensor, Vec<Tensor>)> {
    let shares = moment.shares(shard.sides.len());
    let mut mixed: Option<Tensor> = None;
    for (number, side) in shard.sides.iter().enumerate() {
        let mut readout = branch_readout(config, layout, place, (dense, words), number, side)?;
        if config.dropout > 0.0 && moment.training {
            let mut mask = Vec::new();
            dropout_mask(config, moment, number, first_pair, side.documents, &mut mask);
            readout = readout.mul(&place.tensor(&mask, (side.documents, config.readout_width()))?)?;
        }
        let branch = &layout.branches[number];
        let logits = readout.matmul(&weight(dense, &branch.head)?.t()?)?;
        let logits = logits
            .broadcast_add(&weight(dense, &branch.bias)?)?
            .affine(f64::from(shares[number]), 0.0)?;
        mixed = Some(match mixed {
            Some(sum) => sum.add(&logits)?,
            None => logits,
        });
    }
    let z = mixed
        .expect("a shard has at least one side")
        .to_dtype(match place.dtype {
            DType::F64 => DType::F64,
            _ => DType::F32,
        })?;
    let scale = 1.0 / moment.pairs as f64;
    let mut total: Option<Tensor> = None;
    let mut of_sides = Vec::new();
    for (number, side) in shard.sides.iter().enumerate() {
        let loss =
            weighted_cross_entropy(&z, side, config.clusters, moment.positive_weight)?.affine(scale, 0.0)?;
        let share = loss.affine(f64::from(shares[number]), 0.0)?;
        total = Some(match total {
            Some(sum) => sum.add(&share)?,
            None => share,
        });
        of_sides.push(loss);
    }
    Ok((total.expect("a shard has at least one side"), of_sides))
}

/// h_G of every document of a side.
pub(super) fn branch_readout(
    config: &MatcherConfig,
    layout: &Layout,
    place: &Place,
    (dense, words): (&Tensor, &Tensor),
    number: usize,
    side: &Side,
) -> Result<Tensor> {
    let rows = side.rows();
    let features = place.tensor(&side.features, (side.feature_rows(), config.width))?;
    let mut h = features.index_select(&Tensor::from_slice(&side.feature_of, rows, &place.device)?, 0)?;
    if config.has_embedding() {
        let embedded = place.sparse_times(&side.bag, rows, words)?;
        h = Tensor::cat(&[&h, &embedded], 1)?;
    }
    let mut parts = Vec::new();
    let read = read_layers(config);
    for k in 0..=config.depth() {
        if k > 0 {
            h = gin_layer(place, &layout.branches[number].layers[k - 1], dense, side, &h)?;
        }
        if read.contains(&k) {
            parts.push(place.sparse_times(&side.readout, side.documents, &h)?);
        }
    }
    Tensor::cat(&parts, 1)
}

/// h^k = ReLU(Norm(W₂·ReLU(Norm(W₁·((1+ε)h + A·h))))), with the sum after the product, where it is narrower.
pub(super) fn gin_layer(
    place: &Place,
    slots: &LayerSlots,
    dense: &Tensor,
    side: &Side,
    h: &Tensor,
) -> Result<Tensor> {
    let p = h.matmul(&weight(dense, &slots.w1)?.t()?)?;
    let own = weight(dense, &slots.epsilon)?.affine(1.0, 1.0)?;
    let m = p
        .broadcast_mul(&own)?
        .add(&place.sparse_times(&side.messages, side.rows(), &p)?)?;
    let y = norm(&m, &weight(dense, &slots.gain1)?, &weight(dense, &slots.shift1)?)?.relu()?;
    let q = y.matmul(&weight(dense, &slots.w2)?.t()?)?;
    norm(&q, &weight(dense, &slots.gain2)?, &weight(dense, &slots.shift2)?)?.relu()
}

/// gain·(x − mean)/√(variance + ε) + shift over the last dimension.
pub(super) fn norm(x: &Tensor, gain: &Tensor, shift: &Tensor) -> Result<Tensor> {
    let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let hat = centred.broadcast_div(&variance.affine(1.0, f64::from(NORM_EPSILON))?.sqrt()?)?;
    hat.broadcast_mul(gain)?.broadcast_add(shift)
}

/// Σ over documents and clusters of w·g·softplus(−z) + (1−g)·softplus(z), softplus(z) = max(z, 0) + ln(1 + e^{−|z|}).
pub(super) fn weighted_cross_entropy(
    z: &Tensor,
    side: &Side,
    clusters: usize,
    positive_weight: f32,
) -> Result<Tensor> {
    let mut positive = vec![0.0f32; side.documents * clusters];
    for document in 0..side.documents {
        for (k, _) in side.positives.row(document) {
            positive[document * clusters + k] = 1.0;
        }
    }
    let g = Tensor::from_vec(positive, (side.documents, clusters), z.device())?.to_dtype(z.dtype())?;
    let small = z.abs()?.neg()?.exp()?.affine(1.0, 1.0)?.log()?;
    let of_negative = z.relu()?.add(&small)?;
    let of_positive = z.neg()?.relu()?.add(&small)?;
    let positives = g.mul(&of_positive)?.affine(f64::from(positive_weight), 0.0)?;
    let negatives = g.affine(-1.0, 1.0)?.mul(&of_negative)?;
    positives.add(&negatives)?.sum_all()
}
