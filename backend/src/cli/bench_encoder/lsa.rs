//! How long `lsa` takes to fit a corpus, and how much memory.

use std::path::Path;
use std::time::Instant;

use gnnxml_shared::features::TfIdfBuilder;
use gnnxml_shared::text::Language;

use crate::data::{CorpusSource, available_threads, for_each_document};
use crate::encoder::lsa;
use crate::train::TrainConfig;

/// Reads a corpus twice (vocabulary, then rows) as training does, and fits the projection.
pub(super) fn report(corpus: &Path, dims: usize) -> anyhow::Result<()> {
    let config = TrainConfig::of_preset("fast")?;
    let source = CorpusSource::detect(corpus)?;
    let started = Instant::now();
    let mut builder = TfIdfBuilder::new(config.words.clone(), Language::English);
    for document in source.open()? {
        builder.add(&document?.text);
    }
    let tfidf = builder.finish();
    let parts = for_each_document(
        &mut source.open()?,
        available_threads(),
        Vec::new,
        |rows, place, document| rows.push((place, tfidf.transform(&document.text))),
    )?;
    let mut rows: Vec<_> = parts.into_iter().flatten().collect();
    rows.sort_unstable_by_key(|(place, _)| *place);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    let words = started.elapsed().as_secs_f64();
    let fitted = Instant::now();
    let lsa = lsa::fit(&rows, tfidf.len(), dims, config.seed)?;
    say!(
        "lsa: {} documents, {} terms, {} dimensions: words {words:.1} s, fit {:.1} s, peak memory {}",
        rows.len(),
        tfidf.len(),
        lsa.dims(),
        fitted.elapsed().as_secs_f64(),
        peak_memory().map_or("unknown".into(), |bytes| format!("{:.2} GB", bytes as f64 / 1e9))
    )?;
    Ok(())
}

/// The most memory this process has held, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024)
}
