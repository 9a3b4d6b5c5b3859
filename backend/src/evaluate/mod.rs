//! Scoring a model on a labelled corpus.
//!
//! It never trains and never looks at a label it was not asked about. Start reading at [`evaluate_documents`].

use std::sync::{Arc, Mutex, PoisonError};

use gnnxml_shared::metrics::{Evaluation, EvaluationOptions, EvaluationReport, LabelFrequencies, Propensity};

use gnnxml_shared::model::tagger::Tagger;

use crate::data::{CorpusReader, CorpusSource, for_each_document};
use crate::server::TaggingEngine;
use crate::train::Model;

/// Labels of a document that are looked at: far beyond the largest k, and below any sensible cut-off.
pub const DEPTH: usize = 100;

/// [`evaluate_documents`] on all of `source`.
pub fn evaluate(model: &Model, source: &CorpusSource, threads: usize) -> anyhow::Result<EvaluationReport> {
    evaluate_documents(model, &mut source.open()?, threads)
}

/// Scores every document and counts what was right. What was not even a document, the reader can tell.
///
/// Labels the model never saw are counted and left out of the truth; documents left without a label are counted and not
/// scored. The figures do not depend on the number of threads.
pub fn evaluate_documents(
    model: &Model,
    documents: &mut CorpusReader,
    threads: usize,
) -> anyhow::Result<EvaluationReport> {
    let rank = |text: &str| {
        let calibration = &model.tagger.score.calibration;
        let candidates = model.candidates(text, DEPTH)?;
        Ok((candidates.iter())
            .map(|c| (c.label, calibration.probability(c.log_score)))
            .collect())
    };
    let trained = model.manifest.corpus.documents as u64;
    evaluate_ranking(&model.tagger, trained, rank, documents, threads)
}

/// What a page fetches for a document, beside the core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fetched {
    /// Clusters asked, on average.
    pub clusters: f64,
    /// Bytes of their shards, on average.
    pub mean_bytes: f64,
    /// Of the document that needs most.
    pub most_bytes: u64,
}

/// [`evaluate_documents`] for an exported bundle: what its whole numbers cost, and what a page has to fetch.
pub fn evaluate_bundle(
    engine: &TaggingEngine,
    documents: &mut CorpusReader,
    threads: usize,
) -> anyhow::Result<(EvaluationReport, Fetched)> {
    // Documents, clusters and bytes in all; most bytes.
    let counted = Mutex::new([0u64; 4]);
    let rank = |text: &str| {
        let answer = engine.tag(text, DEPTH, false)?;
        let bytes = engine.shard_bytes(&answer);
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        let [ranked, clusters, all, most] = *counted;
        let asked = answer.clusters.len() as u64;
        *counted = [ranked + 1, clusters + asked, all + bytes, most.max(bytes)];
        Ok(answer.tags.iter().map(|tag| (tag.label, tag.score)).collect())
    };
    // As the model counts them: what it learned later is not among the documents its words were weighted by.
    let trained = engine.manifest().documents;
    let report = evaluate_ranking(engine.tagger(), trained, rank, documents, threads)?;
    let [ranked, clusters, all, most_bytes] = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mean = |sum: u64| sum as f64 / ranked.max(1) as f64;
    let fetched = Fetched {
        clusters: mean(clusters),
        mean_bytes: mean(all),
        most_bytes,
    };
    Ok((report, fetched))
}

/// Counts what is right in the rankings of `rank`: labels with their probabilities, best first. `trained` is the number of
/// documents that the model's label counts are out of.
fn evaluate_ranking(
    tagger: &Tagger,
    trained: u64,
    rank: impl Fn(&str) -> anyhow::Result<Vec<(u32, f32)>> + Sync,
    documents: &mut CorpusReader,
    threads: usize,
) -> anyhow::Result<EvaluationReport> {
    let labels = &tagger.labels;
    let counts = labels.iter().map(|label| label.count).collect();
    let frequencies = Arc::new(LabelFrequencies::new(counts, trained, Propensity::default()));
    let mut by_name: Vec<(&str, u32)> = (labels.iter().enumerate())
        .map(|(l, label)| (label.name.as_str(), l as u32))
        .collect();
    by_name.sort_unstable();
    let options = EvaluationOptions {
        threshold: tagger.score.cutoff,
        ..EvaluationOptions::default()
    };
    let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let states = for_each_document(
        documents,
        threads,
        || Evaluation::new(Arc::clone(&frequencies), options.clone()),
        |evaluation, _, document| {
            let truth: Vec<u32> = (document.labels.iter())
                .filter_map(|name| by_name.binary_search_by_key(&name.as_str(), |b| b.0).ok())
                .map(|at| by_name[at].1)
                .collect();
            evaluation.add_unknown_labels(document.labels.len() - truth.len());
            if truth.is_empty() {
                evaluation.add(&[], &truth);
                return;
            }
            match rank(&document.text) {
                Ok(ranked) => evaluation.add(&ranked, &truth),
                Err(error) => {
                    let error = error.context(format!("document {:?}", document.id));
                    failed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(error);
                }
            }
        },
    )?;
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut all = Evaluation::new(frequencies, options);
    for state in &states {
        all.merge(state);
    }
    Ok(all.finish())
}
