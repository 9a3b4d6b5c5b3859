//! Scoring many prepared documents at once, with the trainer's products: the same numbers as
//! [`Matcher::forward`](gnnxml_shared::model::matcher::Matcher::forward) to 1e-5.

use gnnxml_shared::model::matcher::{Matcher, MatcherConfig, top_clusters};
use rayon::prelude::*;

use super::batch::Shard;
use super::gin::{Network, Weights};
use super::layout::Layout;
use super::lists::Lists;
use super::rows::softplus;
use super::wide::shard_logits_wide;
use super::{MatcherError, Moment, PreparedGraphs};

/// Documents scored together.
const CHUNK: usize = 32;

/// Calls `each` with every document's number and logits, in parallel; answers in document order.
pub(super) fn map_logits<T: Send>(
    (config, layout): (&MatcherConfig, &Layout),
    (dense, embedding): (&[f32], &[f32]),
    graphs: &PreparedGraphs,
    each: impl Fn(usize, &[f32]) -> T + Sync,
) -> Vec<T> {
    let moment = Moment {
        alpha: 0.5,
        pairs: 1,
        positive_weight: 1.0,
        dropout_key: 0,
        training: false,
    };
    let weights = Weights::new(config, layout, dense);
    let network = Network {
        config,
        layout,
        dense,
        weights: &weights,
        words: embedding,
        moment,
    };
    let chunks: Vec<Vec<T>> = (0..graphs.len().div_ceil(CHUNK))
        .into_par_iter()
        .map_init(Vec::new, |tapes, chunk| {
            let documents = chunk * CHUNK..graphs.len().min((chunk + 1) * CHUNK);
            let shard = Shard::to_score(config, documents.clone().map(|d| graphs.get(d)));
            let logits = shard_logits_wide(network, &shard, tapes);
            documents
                .zip(logits.chunks_exact(config.clusters))
                .map(|(d, z)| each(d, z))
                .collect()
        })
        .collect();
    chunks.into_iter().flatten().collect()
}

/// The `top` most probable clusters of every document with their probabilities.
pub fn predict(
    matcher: &Matcher,
    graphs: &PreparedGraphs,
    top: usize,
) -> Result<Vec<Vec<(u32, f32)>>, MatcherError> {
    score(matcher, graphs, |z| top_clusters(z, top))
}

/// Every document's logits.
pub fn logits(matcher: &Matcher, graphs: &PreparedGraphs) -> Result<Vec<Vec<f32>>, MatcherError> {
    score(matcher, graphs, <[f32]>::to_vec)
}

fn score<T: Send>(
    matcher: &Matcher,
    graphs: &PreparedGraphs,
    each: impl Fn(&[f32]) -> T + Sync,
) -> Result<Vec<T>, MatcherError> {
    let config = matcher.config();
    check_width(config, graphs)?;
    let layout = Layout::new(config);
    let (embedding, dense) = flat_weights(matcher);
    Ok(map_logits(
        (config, &layout),
        (&dense, &embedding),
        graphs,
        |_, z| each(z),
    ))
}

/// The embedding and the flat dense vector of a matcher.
pub(super) fn flat_weights(matcher: &Matcher) -> (Vec<f32>, Vec<f32>) {
    let mut tensors = matcher.tensors();
    let embedding = if matcher.config().has_embedding() {
        tensors.remove(0).data
    } else {
        Vec::new()
    };
    (embedding, tensors.into_iter().flat_map(|t| t.data).collect())
}

pub(super) fn check_width(config: &MatcherConfig, graphs: &PreparedGraphs) -> Result<(), MatcherError> {
    if graphs.width() == config.width {
        return Ok(());
    }
    Err(MatcherError::File {
        path: graphs.path().to_owned(),
        what: "width of the sentence vectors",
        found: graphs.width().to_string(),
        expected: config.width.to_string(),
    })
}

/// How well clusters are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatchQuality {
    /// Mean over documents of the cross-entropy at α = 0.5.
    pub loss: f64,
    /// Share of the true clusters among the top ones, 0 to 1.
    pub cluster_recall: f64,
    /// Documents with a true cluster.
    pub documents: usize,
}

/// Loss and recall of the `top` clusters; documents without a true cluster are left out and not counted.
pub(super) fn quality(
    network: (&MatcherConfig, &Layout),
    weights: (&[f32], &[f32]),
    graphs: &PreparedGraphs,
    positives: &Lists,
    top: usize,
    positive_weight: f32,
) -> MatchQuality {
    let of_document = |document: usize, z: &[f32]| {
        let truth = positives.row(document);
        if truth.is_empty() {
            return None;
        }
        let mut loss: f64 = z.iter().map(|&z| f64::from(softplus(z))).sum();
        for &k in truth {
            let z = z[k as usize];
            loss += f64::from(positive_weight * softplus(-z) - softplus(z));
        }
        let found = top_clusters(z, top)
            .iter()
            .filter(|(k, _)| truth.contains(k))
            .count();
        Some((loss, found, truth.len()))
    };
    let mut sum = MatchQuality::default();
    let (mut found, mut all) = (0, 0);
    for (loss, hits, truth) in map_logits(network, weights, graphs, of_document)
        .into_iter()
        .flatten()
    {
        sum.loss += loss;
        sum.documents += 1;
        found += hits;
        all += truth;
    }
    sum.loss /= sum.documents.max(1) as f64;
    sum.cluster_recall = found as f64 / (all.max(1)) as f64;
    sum
}

/// [`MatchQuality`] of a matcher on documents whose true clusters are known.
pub fn match_quality(
    matcher: &Matcher,
    graphs: &PreparedGraphs,
    positives: &Lists,
    top: usize,
) -> Result<MatchQuality, MatcherError> {
    let config = matcher.config();
    check_width(config, graphs)?;
    let layout = Layout::new(config);
    let (embedding, dense) = flat_weights(matcher);
    Ok(quality(
        (config, &layout),
        (&dense, &embedding),
        graphs,
        positives,
        top,
        1.0,
    ))
}
