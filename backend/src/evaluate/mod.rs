//! Scoring a model on a labelled corpus.
//!
//! It never trains and never looks at a label it was not asked about. Start reading at [`evaluate`].

use std::sync::Arc;
use std::sync::Mutex;

use gnnxml_shared::metrics::{Evaluation, EvaluationOptions, EvaluationReport, LabelFrequencies, Propensity};

use crate::data::{CorpusSource, for_each_document};
use crate::train::Model;

/// Labels of a document that are looked at: far beyond the largest k, and below any sensible cut-off.
pub const DEPTH: usize = 100;

/// Scores every document of `source` and counts what was right.
///
/// Labels the model never saw are counted and left out of the truth; documents left without a label are counted and not
/// scored. The figures do not depend on the number of threads.
pub fn evaluate(model: &Model, source: &CorpusSource, threads: usize) -> anyhow::Result<EvaluationReport> {
    let labels = &model.tagger.labels;
    let counts = labels.iter().map(|label| label.count).collect();
    let documents = model.manifest.corpus.documents as u64;
    let frequencies = Arc::new(LabelFrequencies::new(counts, documents, Propensity::default()));
    let mut by_name: Vec<(&str, u32)> = (labels.iter().enumerate())
        .map(|(l, label)| (label.name.as_str(), l as u32))
        .collect();
    by_name.sort_unstable();
    let options = EvaluationOptions {
        threshold: model.tagger.score.cutoff,
        ..EvaluationOptions::default()
    };
    let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let states = for_each_document(
        &mut source.open()?,
        threads,
        || Evaluation::new(Arc::clone(&frequencies), options.clone()),
        |evaluation, _, document| {
            let truth: Vec<u32> = (document.labels.iter())
                .filter_map(|name| by_name.binary_search_by_key(&name.as_str(), |b| b.0).ok())
                .map(|at| by_name[at].1)
                .collect();
            evaluation.add_unknown_labels(document.labels.len() - truth.len());
            match model.candidates(&document.text, DEPTH) {
                Ok(candidates) => {
                    let calibration = &model.tagger.score.calibration;
                    let ranked: Vec<(u32, f32)> = (candidates.iter())
                        .map(|c| (c.label, calibration.probability(c.log_score)))
                        .collect();
                    evaluation.add(&ranked, &truth);
                }
                Err(error) => {
                    let error = error.context(format!("document {:?}", document.id));
                    failed
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .get_or_insert(error);
                }
            }
        },
    )?;
    if let Some(error) = failed
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
    {
        return Err(error);
    }
    let mut all = Evaluation::new(frequencies, options);
    for state in &states {
        all.merge(state);
    }
    Ok(all.finish())
}
