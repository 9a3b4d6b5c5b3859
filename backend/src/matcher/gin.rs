//! The bilateral network on the CPU, by hand: from graphs to read-outs, and from the read-outs' gradient back.
//!
//! The same function as [`super::composed`], which candle differentiates, with [`super::heads`] on top; a test holds the two together. Fused
//! because candle's element-wise passes and allocations cost more than the products: here each vertex row is normalised, shifted and cut
//! while it is in the cache, sums over neighbours walk their lists, and every buffer is kept for the next step.
//!
//! For a layer with p = H·W₁ᵀ, M = (1+ε)p + A·p, y = ReLU(g₁·M̂ + s₁), q = y·W₂ᵀ, H' = ReLU(g₂·q̂ + s₂), hats for the normalised rows:
//!
//! ```text
//! ∂W₂ = ∂qᵀ·y      ∂y = ∂q·W₂
//! ∂p  = (1+ε)∂M + Aᵀ·∂M      ∂ε = Σ ∂M∘p
//! ∂W₁ = ∂pᵀ·H      ∂H = ∂p·W₁
//! ∂x  = (∂x̂ − mean(∂x̂) − x̂·mean(∂x̂∘x̂))/σ   for a normalised row x̂ = (x − μ)/σ
//! ```

use gnnxml_shared::model::matcher::MatcherConfig;
use rayon::prelude::*;

use super::Moment;
use super::batch::{Shard, Side, Sparse};
use super::layout::{BranchSlots, LayerSlots, Layout, Slot};
use super::panels::{Packed, Weight, add_outer_products};
use super::rows::{add_rows, add_scaled, affine_relu, dot, gather, normalise, sum};
use super::sgemm::{Matrix, times_transposed};

/// What a layer keeps for its gradient.
#[derive(Debug, Default)]
struct LayerTape {
    p: Vec<f32>,
    hat1: Vec<f32>,
    sigma1: Vec<f32>,
    y: Vec<f32>,
    hat2: Vec<f32>,
    sigma2: Vec<f32>,
    h: Vec<f32>,
}

/// What a side's gradient needs of its forward pass.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// Each vertex's words, embedded.
    embedded: Vec<f32>,
    layers: Vec<LayerTape>,
    mask: Vec<f32>,
}

/// What the gradient passes through; a thread keeps it from shard to shard.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    upper: Vec<f32>,
    lower: Vec<f32>,
    packed: Packed,
}

/// Every layer's two matrices as the products read them, laid out once for all shards of a step.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// Branch by branch, layer by layer; a layer that the branches share stands in the first alone.
    layers: Vec<Vec<LayerWeights>>,
}

#[derive(Debug, Default)]
pub(super) struct LayerWeights {
    /// The first layer's columns of the features; they are given, so nobody asks for their gradient.
    features: Weight,
    /// Without them.
    w1: Weight,
    w2: Weight,
}

impl Weights {
    pub(super) fn new(config: &MatcherConfig, layout: &Layout, dense: &[f32]) -> Self {
        let mut weights = Self::default();
        weights.prepare(config, layout, dense);
        weights
    }

    /// Lays `dense` out, in the buffers of the step before.
    pub(super) fn prepare(&mut self, config: &MatcherConfig, layout: &Layout, dense: &[f32]) {
        self.layers.resize_with(layout.branches.len(), Vec::new);
        let mut jobs = Vec::new();
        for (number, (branch, layers)) in layout.branches.iter().zip(&mut self.layers).enumerate() {
            layers.resize_with(branch.layers.len(), LayerWeights::default);
            for (k, (slots, layer)) in branch.layers.iter().zip(layers).enumerate() {
                if number > 0 && is_shared(layout, k) {
                    continue;
                }
                let mut w1 = slots.first(config, dense);
                if k == 0 {
                    jobs.push((&mut layer.features, w1.columns_to(config.width), false));
                    w1 = w1.columns_from(config.width);
                }
                jobs.push((&mut layer.w1, w1, true));
                jobs.push((&mut layer.w2, slots.second(config, dense), true));
            }
        }
        jobs.into_par_iter()
            .with_max_len(1)
            .for_each(|(weight, matrix, gradient)| weight.prepare(matrix, gradient));
    }

    fn layer(&self, layout: &Layout, branch: usize, k: usize) -> &LayerWeights {
        let branch = if is_shared(layout, k) { 0 } else { branch };
        &self.layers[branch][k]
    }
}

/// Whether layer k, from 0, is the same in all branches.
fn is_shared(layout: &Layout, k: usize) -> bool {
    layout
        .branches
        .iter()
        .all(|b| b.layers[k].w1.start == layout.branches[0].layers[k].w1.start)
}

/// What a shard's pass needs besides the shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<'a> {
    pub(super) config: &'a MatcherConfig,
    pub(super) layout: &'a Layout,
    pub(super) dense: &'a [f32],
    /// The layers' matrices of `dense`, laid out.
    pub(super) weights: &'a Weights,
    /// The embedding's rows of the batch's words.
    pub(super) words: &'a [f32],
    pub(super) moment: Moment,
}

/// Every side's read-outs after dropout, document × unit.
#[inline(always)]
pub(super) fn shard_forward(
    network: Network<'_>,
    shard: &Shard,
    first_pair: usize,
    tapes: &mut Vec<Tape>,
    readouts: &mut [&mut [f32]],
) {
    tapes.resize_with(shard.sides.len(), Tape::default);
    for (number, (side, tape)) in shard.sides.iter().zip(tapes).enumerate() {
        forward(network, number, side, first_pair, tape, readouts[number]);
    }
}

/// From the read-outs' gradient (which it masks) to the layers', added to `gradient`; writes that of the embedded columns of each
/// side's x to `embedded`.
#[inline(always)]
pub(super) fn shard_backward(
    network: Network<'_>,
    shard: &Shard,
    tapes: &[Tape],
    dreadouts: &mut [&mut [f32]],
    space: &mut Workspace,
    gradient: &mut [f32],
    embedded: &mut [&mut [f32]],
) {
    for (number, (side, tape)) in shard.sides.iter().zip(tapes).enumerate() {
        let dreadout = &mut *dreadouts[number];
        for (value, mask) in dreadout.iter_mut().zip(&tape.mask) {
            *value *= mask;
        }
        backward(
            network,
            number,
            (side, tape),
            dreadout,
            space,
            gradient,
            embedded[number],
        );
    }
}

/// z of every pair, both sides forward only; document × cluster.
#[inline(always)]
pub(super) fn shard_logits(network: Network<'_>, shard: &Shard, tapes: &mut Vec<Tape>) -> Vec<f32> {
    let (clusters, total) = (network.config.clusters, network.config.readout_width());
    let documents = shard.pairs();
    let mut readouts = vec![vec![0.0; documents * total]; shard.sides.len()];
    let mut parts: Vec<&mut [f32]> = readouts.iter_mut().map(|r| &mut r[..]).collect();
    shard_forward(network, shard, 0, tapes, &mut parts);
    let shares = network.moment.shares(shard.sides.len());
    let mut mixed = vec![0.0; documents * clusters];
    let mut logits = vec![0.0; documents * clusters];
    for ((branch, readout), share) in network.layout.branches.iter().zip(&readouts).zip(shares) {
        let head = Matrix::new(branch.head.of(network.dense), clusters, total);
        times_transposed(&mut logits, Matrix::new(readout, documents, total), head, false);
        add_scaled(&mut mixed, &logits, share);
        for row in mixed.chunks_exact_mut(clusters) {
            add_scaled(row, branch.bias.of(network.dense), share);
        }
    }
    mixed
}

#[inline(always)]
fn forward(
    network: Network<'_>,
    number: usize,
    side: &Side,
    first_pair: usize,
    tape: &mut Tape,
    readout: &mut [f32],
) {
    let Network {
        config,
        layout,
        dense,
        weights,
        words,
        moment,
    } = network;
    let branch = &layout.branches[number];
    let (rows, hidden, d, e) = (side.rows(), config.hidden, config.width, config.embedding_width());
    resize(&mut tape.embedded, rows * e);
    for v in 0..rows {
        let embedded = &mut tape.embedded[v * e..(v + 1) * e];
        embedded.fill(0.0);
        add_rows(embedded, words, e, &side.bag, v);
    }
    tape.layers.resize_with(branch.layers.len(), LayerTape::default);
    for (k, slots) in branch.layers.iter().enumerate() {
        let (below, at) = tape.layers.split_at_mut(k);
        let (at, laid_out) = (&mut at[0], weights.layer(layout, number, k));
        resize(&mut at.p, rows * hidden);
        let w1 = slots.first(config, dense);
        if let Some(below) = below.last() {
            (laid_out.w1).forward(&mut at.p, Matrix::new(&below.h, rows, hidden), w1);
        } else {
            first_product(laid_out, w1, d, side, &tape.embedded, at);
        }
        layer_forward(config, slots, laid_out, dense, side, at);
    }
    let total = config.readout_width();
    let mut column = 0;
    for k in read_layers(config) {
        // Of the input, the features have a read-out of their own.
        if k == 0 {
            read_out(readout, total, column, (&side.features, d), &side.feature_readout);
            read_out(readout, total, column + d, (&tape.embedded, e), &side.readout);
        } else {
            read_out(
                readout,
                total,
                column,
                (&tape.layers[k - 1].h, hidden),
                &side.readout,
            );
        }
        column += config.layer_width(k);
    }
    if config.dropout > 0.0 && moment.training {
        dropout_mask(config, moment, number, first_pair, side.documents, &mut tape.mask);
        for (value, mask) in readout.iter_mut().zip(&tape.mask) {
            *value *= mask;
        }
    } else {
        tape.mask.clear();
    }
}

/// Columns of each document's read-out, from `column` on: sums of the rows of `h`, which has so many columns.
#[inline(always)]
fn read_out(readout: &mut [f32], total: usize, column: usize, (h, width): (&[f32], usize), sums: &Sparse) {
    for (document, out) in readout.chunks_exact_mut(total).enumerate() {
        let out = &mut out[column..][..width];
        out.fill(0.0);
        add_rows(out, h, width, sums, document);
    }
}

/// The layers whose read-out is in h_G.
pub(super) fn read_layers(config: &MatcherConfig) -> std::ops::RangeInclusive<usize> {
    let from = if config.reads_all_layers() {
        0
    } else {
        config.depth()
    };
    from..=config.depth()
}

/// p of the first layer. Vertices share rows of features, and a row is multiplied once.
#[inline(always)]
fn first_product(
    weights: &LayerWeights,
    w1: Matrix<'_>,
    d: usize,
    side: &Side,
    embedded: &[f32],
    tape: &mut LayerTape,
) {
    let (rows, features, hidden) = (side.rows(), side.feature_rows(), w1.rows());
    let shared = &mut tape.h;
    resize(shared, features * hidden);
    let x = Matrix::new(&side.features, features, d);
    weights.features.forward(shared, x, w1.columns_to(d));
    let words = w1.columns_from(d);
    if words.columns() == 0 {
        tape.p.fill(0.0);
    } else {
        let x = Matrix::new(embedded, rows, words.columns());
        weights.w1.forward(&mut tape.p, x, words);
    }
    for (p, &row) in tape.p.chunks_exact_mut(hidden).zip(&side.feature_of) {
        add_scaled(p, &shared[row as usize * hidden..][..hidden], 1.0);
    }
}

/// From p to h.
#[inline(always)]
fn layer_forward(
    config: &MatcherConfig,
    slots: &LayerSlots,
    weights: &LayerWeights,
    dense: &[f32],
    side: &Side,
    tape: &mut LayerTape,
) {
    let (rows, hidden) = (side.rows(), config.hidden);
    for buffer in [&mut tape.hat1, &mut tape.y, &mut tape.hat2, &mut tape.h] {
        resize(buffer, rows * hidden);
    }
    resize(&mut tape.sigma1, rows);
    resize(&mut tape.sigma2, rows);
    let own = 1.0 + slots.epsilon.of(dense)[0];
    let (gain, shift) = (slots.gain1.of(dense), slots.shift1.of(dense));
    for v in 0..rows {
        let range = v * hidden..(v + 1) * hidden;
        let hat = &mut tape.hat1[range.clone()];
        gather(hat, own, &tape.p, v, &side.messages);
        tape.sigma1[v] = normalise(hat);
        affine_relu(hat, gain, shift, &mut tape.y[range]);
    }
    let y = Matrix::new(&tape.y, rows, hidden);
    weights.w2.forward(&mut tape.hat2, y, slots.second(config, dense));
    let (gain, shift) = (slots.gain2.of(dense), slots.shift2.of(dense));
    for v in 0..rows {
        let range = v * hidden..(v + 1) * hidden;
        let hat = &mut tape.hat2[range.clone()];
        tape.sigma2[v] = normalise(hat);
        affine_relu(hat, gain, shift, &mut tape.h[range]);
    }
}

#[inline(always)]
fn backward(
    network: Network<'_>,
    number: usize,
    (side, tape): (&Side, &Tape),
    dreadout: &[f32],
    space: &mut Workspace,
    gradient: &mut [f32],
    embedded: &mut [f32],
) {
    let Network {
        config,
        layout,
        dense,
        weights,
        moment,
        ..
    } = network;
    let Workspace { upper, lower, packed } = space;
    let branch: &BranchSlots = &layout.branches[number];
    let (rows, hidden, total) = (side.rows(), config.hidden, config.readout_width());
    embedded.fill(0.0);
    if moment.shares(layout.branches.len())[number] == 0.0 {
        return;
    }

    // Layer by layer, from the top. `upper` is ∂h^k, `lower` becomes ∂h^{k-1}.
    let mut column = total - config.layer_width(config.depth());
    resize(upper, rows * config.layer_width(config.depth()));
    if config.depth() > 0 {
        upper.fill(0.0);
        spread_readout(&side.readout, dreadout, total, column, hidden, upper);
    }
    for k in (1..=config.depth()).rev() {
        let slots = &branch.layers[k - 1];
        let laid_out = weights.layer(layout, number, k - 1);
        let at = &tape.layers[k - 1];
        let (w1, w2) = (slots.first(config, dense), slots.second(config, dense));
        normalised_backward(
            upper,
            &at.hat2,
            &at.sigma2,
            (&slots.gain2, &slots.shift2),
            dense,
            gradient,
        );
        let dq = Matrix::new(upper, rows, hidden);
        let y = Matrix::new(&at.y, rows, hidden);
        add_outer_products(slots.w2.of_mut(gradient), hidden, dq, y, packed);
        resize(lower, rows * hidden);
        laid_out.w2.backward(lower, dq, w2);
        normalised_backward(
            lower,
            &at.hat1,
            &at.sigma1,
            (&slots.gain1, &slots.shift1),
            dense,
            gradient,
        );
        // lower is ∂M; upper becomes ∂p.
        let own = 1.0 + slots.epsilon.of(dense)[0];
        for (v, dp) in upper.chunks_exact_mut(hidden).enumerate() {
            gather(dp, own, lower, v, &side.reached);
        }
        if config.learn_epsilon {
            let dm = lower.chunks_exact(hidden);
            let terms = dm.zip(at.p.chunks_exact(hidden)).map(|(dm, p)| dot(dm, p));
            slots.epsilon.of_mut(gradient)[0] += terms.sum::<f32>();
        }
        let dp = Matrix::new(upper, rows, hidden);
        let dw1 = slots.w1.of_mut(gradient);
        if k > 1 {
            let input = Matrix::new(&tape.layers[k - 2].h, rows, hidden);
            add_outer_products(dw1, hidden, dp, input, packed);
            laid_out.w1.backward(lower, dp, w1);
            std::mem::swap(upper, lower);
            if config.reads_all_layers() {
                column -= hidden;
                spread_readout(&side.readout, dreadout, total, column, hidden, upper);
            }
        } else {
            let (features, d, e) = (side.feature_rows(), config.width, config.embedding_width());
            if e > 0 {
                let words = Matrix::new(&tape.embedded, rows, e);
                add_outer_products(&mut dw1[d..], d + e, dp, words, packed);
                laid_out.w1.backward(embedded, dp, w1.columns_from(d));
            }
            // `lower` becomes what each row of features gets from its vertices.
            lower.clear();
            resize(lower, features * hidden);
            for (dp, &row) in upper.chunks_exact(hidden).zip(&side.feature_of) {
                add_scaled(&mut lower[row as usize * hidden..][..hidden], dp, 1.0);
            }
            let shared = Matrix::new(lower, features, hidden);
            let x = Matrix::new(&side.features, features, d);
            add_outer_products(dw1, d + e, shared, x, packed);
        }
    }
    if !embedded.is_empty() && *read_layers(config).start() == 0 {
        spread_readout(
            &side.readout,
            dreadout,
            total,
            config.width,
            config.embedding_width(),
            embedded,
        );
    }
}

/// ∂h_v += factor·∂R of its document.
#[inline(always)]
fn spread_readout(
    readout: &Sparse,
    dreadout: &[f32],
    total: usize,
    column: usize,
    width: usize,
    out: &mut [f32],
) {
    for document in 0..readout.offsets.len() - 1 {
        let gradient = &dreadout[document * total + column..][..width];
        for (v, factor) in readout.row(document) {
            add_scaled(&mut out[v * width..(v + 1) * width], gradient, factor);
        }
    }
}

/// From ∂ReLU(g·x̂ + s) to ∂x, row by row and in place; adds the gain's and the shift's gradient.
#[inline(always)]
fn normalised_backward(
    out: &mut [f32],
    hat: &[f32],
    sigma: &[f32],
    (gain_slot, shift_slot): (&Slot, &Slot),
    dense: &[f32],
    gradient: &mut [f32],
) {
    let (gain, shift) = (gain_slot.of(dense), shift_slot.of(dense));
    let hidden = gain.len();
    // The two slots follow each other in the flat vector.
    let both = &mut gradient[gain_slot.start..shift_slot.start + hidden];
    let (dgain, dshift) = both.split_at_mut(hidden);
    let rows = out.chunks_exact_mut(hidden).zip(hat.chunks_exact(hidden));
    for ((row, hat), &sigma) in rows.zip(sigma) {
        let values = row.iter_mut().zip(hat).zip(gain).zip(shift);
        for ((((d, &x), &g), &s), (dg, ds)) in values.zip(dgain.iter_mut().zip(dshift.iter_mut())) {
            // Cut where the forward pass cut: the same product and sum tell.
            let open = if x * g + s > 0.0 { *d } else { 0.0 };
            *ds += open;
            *dg += open * x;
            *d = open * g;
        }
        let mean = sum(row) / hidden as f32;
        let mean_hat = dot(row, hat) / hidden as f32;
        let scale = 1.0 / sigma;
        for (d, x) in row.iter_mut().zip(hat) {
            *d = (*d - mean - x * mean_hat) * scale;
        }
    }
}

fn resize(buffer: &mut Vec<f32>, len: usize) {
    buffer.resize(len, 0.0);
}

/// 0 or 1/(1−p) for every read-out unit of every document: a pure function of (key, branch, pair, unit).
pub(super) fn dropout_mask(
    config: &MatcherConfig,
    moment: Moment,
    branch: usize,
    first_pair: usize,
    documents: usize,
    out: &mut Vec<f32>,
) {
    let total = config.readout_width();
    let kept = 1.0 / (1.0 - config.dropout);
    let threshold = (f64::from(config.dropout) * 4_294_967_296.0) as u32;
    out.clear();
    for pair in first_pair..first_pair + documents {
        let mut state = scramble(moment.dropout_key ^ scramble((pair as u64) << 1 | branch as u64));
        for unit in 0..total {
            // Two 32-bit draws from each 64-bit state.
            if unit % 2 == 0 {
                state = scramble(state);
            }
            let draw = (state >> (32 * (unit % 2))) as u32;
            out.push(if draw < threshold { 0.0 } else { kept });
        }
    }
}

/// The finaliser of SplitMix64.
fn scramble(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
