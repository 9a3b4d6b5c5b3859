//! What a run learns from, checked before the first step, and how it becomes batches.

use std::sync::mpsc;

use gnnxml_shared::model::matcher::MatcherConfig;

use super::batch::{Assembler, Batch};
use super::lists::Lists;
use super::options::TrainOptions;
use super::predict::check_width;
use super::sampler::{ReversedSampler, UniformSampler};
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
        let example = |&document: &u32| {
            (
                data.graphs.get(document as usize),
                data.positives.row(document as usize),
            )
        };
        let mut sides = vec![uniform[share.clone()].iter().map(example).collect::<Vec<_>>()];
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
            sides.push(drawn[share.clone()].iter().map(example).collect());
        }
        if sender.send((uniform.len(), assembler.assemble(&sides))).is_err() {
            return;
        }
    }
}
