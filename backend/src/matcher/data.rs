//! What a run learns from, checked before the first step, and how it becomes batches.

use std::sync::mpsc;

use gnnxml_shared::model::matcher::{GraphInput, MatcherConfig};
use rand::Rng;

use super::batch::{Assembler, Batch, Example};
use super::lists::Lists;
use super::options::TrainOptions;
use super::predict::check_width;
use super::sampler::{ReversedSampler, UniformSampler, generator};
use super::{MatcherError, PreparedGraphs};

/// What is learned from.
#[derive(Clone, Copy, Debug)]
pub struct TrainData<'a> {
    pub graphs: &'a PreparedGraphs,
    /// g: the clusters that hold a positive label of each document.
    pub positives: &'a Lists,
    /// The documents of each label, for the reversed sampler.
    pub label_documents: &'a Lists,
    /// What early stopping looks at; without it the last epoch counts.
    pub validation: Option<ValidationData<'a>>,
}

/// Documents the weights are not fitted to.
#[derive(Clone, Copy, Debug)]
pub struct ValidationData<'a> {
    pub graphs: &'a PreparedGraphs,
    pub positives: &'a Lists,
}

/// Every length and index, so that no step can fail on them.
pub(super) fn check_data(data: &TrainData<'_>, model: &MatcherConfig) -> Result<(), MatcherError> {
    let parts = [(data.graphs, data.positives)]
        .into_iter()
        .chain(data.validation.map(|v| (v.graphs, v.positives)));
    for (graphs, positives) in parts {
        check_width(model, graphs)?;
        let same = |what, found: usize, expected: usize| {
            let (found, expected) = (found as u64, expected as u64);
            if found == expected {
                Ok(())
            } else {
                Err(MatcherError::Data {
                    what,
                    found,
                    expected,
                })
            }
        };
        same(
            "lists of positive clusters (one a document)",
            positives.len(),
            graphs.len(),
        )?;
        if let Some(&cluster) = positives
            .items()
            .iter()
            .max()
            .filter(|&&c| c as usize >= model.clusters)
        {
            let (found, expected) = (u64::from(cluster), model.clusters as u64);
            return Err(MatcherError::Data {
                what: "positive cluster, below the number of clusters",
                found,
                expected,
            });
        }
        for document in 0..graphs.len() {
            graphs.get(document).check(model)?;
        }
    }
    if data.graphs.is_empty() {
        return Err(MatcherError::Data {
            what: "documents to learn from",
            found: 0,
            expected: 1,
        });
    }
    match data.label_documents.items().iter().max() {
        Some(&document) if document as usize >= data.graphs.len() => Err(MatcherError::Data {
            what: "document of a label, below the number of documents",
            found: u64::from(document),
            expected: data.graphs.len() as u64,
        }),
        _ => Ok(()),
    }
}

/// Assembles the batches of an epoch until nobody takes them any more.
pub(super) fn produce(
    data: TrainData<'_>,
    options: &TrainOptions,
    config: &MatcherConfig,
    epoch: u64,
    first_step: u64,
    shares: &[std::ops::Range<usize>],
    sender: &mpsc::SyncSender<(usize, Batch)>,
) {
    let order = UniformSampler::new(options.seed, data.graphs.len()).epoch(epoch);
    let reversed = ReversedSampler::new(options.seed, data.label_documents);
    let mut assembler = Assembler::new(config, options.shard);
    for (step, share) in shares.iter().enumerate().skip(first_step as usize) {
        let uniform = &order[step * options.batch..order.len().min((step + 1) * options.batch)];
        let examples = |side: u64, documents: &[u32]| -> Vec<Example<'_>> {
            let of_share = share.clone().zip(&documents[share.clone()]);
            of_share
                .map(|(pair, &document)| {
                    let mut graph = data.graphs.get(document as usize);
                    if options.word_dropout > 0.0 {
                        // High streams: the samplers draw from the low ones.
                        let stream = 1 << 63 | (step as u64) << 32 | side << 31 | pair as u64;
                        let mut random = generator(options.seed, epoch, stream);
                        drop_words(&mut graph, options.word_dropout, &mut random);
                    }
                    (graph, data.positives.row(document as usize))
                })
                .collect()
        };
        let mut sides = vec![examples(0, uniform)];
        if config.branches() == 2 {
            let drawn: Vec<u32> = if reversed.is_empty() {
                uniform.to_vec()
            } else {
                reversed
                    .draw(epoch, step as u64, uniform.len())
                    .into_iter()
                    .map(|(_, document)| document)
                    .collect()
            };
            sides.push(examples(1, &drawn));
        }
        if sender.send((uniform.len(), assembler.assemble(&sides))).is_err() {
            return;
        }
    }
}

/// Leaves out each word of the text with the given probability; the others grow, so that their sum is the same on average.
fn drop_words(graph: &mut GraphInput<'_>, share: f32, random: &mut impl Rng) {
    let kept = 1.0 / (1.0 - share);
    let words = graph.words.iter().zip(graph.word_weights.iter());
    let (words, weights): (Vec<u32>, Vec<f32>) = words
        .filter(|_| random.random::<f32>() >= share)
        .map(|(&word, &weight)| (word, weight * kept))
        .unzip();
    graph.words = words.into();
    graph.word_weights = weights.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_words_leave_the_sum_as_it_was_on_average() {
        let whole = GraphInput {
            words: (0..10_000).collect::<Vec<u32>>().into(),
            word_weights: vec![0.5; 10_000].into(),
            ..GraphInput::empty(2)
        };
        let mut thinned = whole.clone();
        drop_words(&mut thinned, 0.4, &mut generator(1, 2, 3));
        let sum = |graph: &GraphInput<'_>| graph.word_weights.iter().sum::<f32>();
        // 0.4 of 10,000 words, give or take five standard deviations.
        assert!((thinned.words.len() as f32 - 6_000.0).abs() < 245.0);
        assert!((sum(&thinned) / sum(&whole) - 1.0).abs() < 0.05);
        let mut again = whole.clone();
        drop_words(&mut again, 0.4, &mut generator(1, 2, 3));
        assert_eq!(again, thinned);
    }
}
