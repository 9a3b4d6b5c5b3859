//! `gnnxml evaluate`.

use std::path::{Path, PathBuf};

use super::WrongInput;
use super::left_out::report_left_out;
use crate::data::{CorpusReader, CorpusSource, IdFilter, available_threads};
use crate::evaluate::{Fetched, evaluate_bundle, evaluate_documents};
use crate::server::TaggingEngine;
use crate::train::Model;
use gnnxml_shared::metrics::EvaluationReport;

/// Arguments of `gnnxml evaluate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Model directory, or the folder of an exported bundle
    #[arg(long)]
    model: PathBuf,
    /// Labelled corpus
    #[arg(long)]
    corpus: PathBuf,
    /// Only the documents whose ids are in this file, one a line
    #[arg(long)]
    ids: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    /// Threads; all cores unless given
    #[arg(long)]
    threads: Option<usize>,
    /// Bad records to leave out and count before giving up
    #[arg(long, default_value_t = 0)]
    skip_bad: usize,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let mut source = CorpusSource::detect(&args.corpus)?
        .skip_bad(args.skip_bad)
        .keep_repeated_ids();
    if let Some(ids) = &args.ids {
        source = source.only(IdFilter::from_file(ids)?);
    }
    let threads = args.threads.unwrap_or_else(available_threads).max(1);
    let mut documents = source.open()?;
    let (report, fetched) = if is_bundle(&args.model) {
        let engine = TaggingEngine::load(&args.model)?;
        let (report, fetched) = evaluate_bundle(&engine, &mut documents, threads)?;
        (report, Some(fetched))
    } else {
        let mut model = Model::load(&args.model)?;
        if let Err(error) = model.remember_vectors() {
            tell!("Every sentence is encoded anew: {error}");
        }
        (evaluate_documents(&model, &mut documents, threads)?, None)
    };
    report_left_out(&documents);
    if let Some(reason) = unscored(&report) {
        return Err(WrongInput(format!("{}: {reason}", args.corpus.display())).into());
    }
    if args.json {
        say!("{}", json(&report, fetched, &documents))?;
        return Ok(());
    }
    table(&report, fetched)
}

/// Why nothing could be scored, if nothing could: figures of no document would say that the model is bad.
fn unscored(report: &EvaluationReport) -> Option<String> {
    if report.documents > 0 {
        return None;
    }
    let found = match (report.documents_without_labels, report.unknown_labels) {
        (0, _) => "found no document".to_owned(),
        (documents, 0) => format!("none of {documents} documents has a label"),
        (documents, _) => format!("none of the labels of {documents} documents is known to the model"),
    };
    Some(format!(
        "{found}; expected documents with labels that it was trained on"
    ))
}

/// A bundle's manifest lists shards; a model directory's does not.
fn is_bundle(folder: &Path) -> bool {
    std::fs::read(folder.join("manifest.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
        .is_some_and(|manifest| manifest.get("shards").is_some())
}

/// The figures at the top level, by name; counts, buckets and calibration beside them.
fn json(report: &EvaluationReport, fetched: Option<Fetched>, documents: &CorpusReader) -> serde_json::Value {
    let mut object = serde_json::Map::new();
    if let Some(fetched) = fetched {
        object.insert("clusters_asked".into(), fetched.clusters.into());
        object.insert("shard_bytes_mean".into(), fetched.mean_bytes.into());
        object.insert("shard_bytes_most".into(), fetched.most_bytes.into());
    }
    object.insert("documents".into(), report.documents.into());
    object.insert(
        "documents_without_labels".into(),
        report.documents_without_labels.into(),
    );
    object.insert("unknown_labels".into(), report.unknown_labels.into());
    object.insert("skipped".into(), documents.skipped().into());
    let repeated = documents.repeated().map_or(0, |(_, count)| count);
    object.insert("repeated_ids".into(), repeated.into());
    for (name, value) in &report.values {
        object.insert(name.clone(), serde_json::json!((value * 1e4).round() / 1e4));
    }
    object.insert("best_cutoff".into(), report.best_cutoff.into());
    object.insert("best_cutoff_micro_f1".into(), report.best_cutoff_micro_f1.into());
    object.insert("buckets".into(), serde_json::json!(report.buckets));
    object.insert("calibration".into(), serde_json::json!(report.calibration));
    object.into()
}

fn table(report: &EvaluationReport, fetched: Option<Fetched>) -> anyhow::Result<()> {
    say!("{} documents scored", report.documents)?;
    if let Some(fetched) = fetched {
        say!(
            "a document asks {:.1} clusters, in shards of {:.2} MB; {:.2} MB at most",
            fetched.clusters,
            fetched.mean_bytes / 1e6,
            fetched.most_bytes as f64 / 1e6
        )?;
    }
    if report.documents_without_labels > 0 {
        say!(
            "{} left out: they have no label, or none that is known to the model",
            report.documents_without_labels
        )?;
    }
    if report.unknown_labels > 0 {
        say!(
            "{} true labels left out: training never saw them",
            report.unknown_labels
        )?;
    }
    say!()?;
    for family in ["P", "nDCG", "PSP", "PSnDCG", "R", "RP"] {
        let cells: Vec<String> = [1, 3, 5]
            .iter()
            .filter_map(|k| {
                report
                    .get(&format!("{family}@{k}"))
                    .map(|v| format!("{family}@{k} {v:6.2}"))
            })
            .collect();
        if !cells.is_empty() {
            say!("{}", cells.join("   "))?;
        }
    }
    for name in ["micro_f1", "macro_f1", "ece", "ece_shown"] {
        if let Some(value) = report.get(name) {
            say!("{name} {value:.2}")?;
        }
    }
    say!(
        "best cut-off here {:.3}: micro-F1 {:.2}",
        report.best_cutoff,
        report.best_cutoff_micro_f1
    )?;
    say!("\nby how many training documents a label has, among the first 5:")?;
    for bucket in report.buckets.iter().filter(|b| b.k == 5) {
        let name = serde_json::to_value(bucket.bucket).ok();
        let show = |value: Option<f64>| value.map_or("–".to_owned(), |v| format!("{v:.2}"));
        say!(
            "  {:<8} {:>7} true   precision {:>6}   recall {:>6}",
            name.as_ref().and_then(|n| n.as_str()).unwrap_or(""),
            bucket.truths,
            show(bucket.precision),
            show(bucket.recall)
        )?;
    }
    Ok(())
}
