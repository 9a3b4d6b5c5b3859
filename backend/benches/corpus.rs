//! Reading, counting and TF-IDF over a corpus: `cargo bench -p gnnxml-backend --bench corpus`.
//!
//! The corpus is the small one of the tests, or the file that the variable `GNNXML_BENCH_CORPUS` names.

use std::path::PathBuf;
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use gnnxml_backend::data::{CorpusSource, Document, corpus_stats};
use gnnxml_shared::features::{TfIdf, TfIdfBuilder, TfIdfOptions, TransformScratch};
use gnnxml_shared::text::Language;

fn main() {
    divan::main();
}

fn source() -> CorpusSource {
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/corpora/garden.jsonl");
    let path = std::env::var_os("GNNXML_BENCH_CORPUS").map_or_else(|| PathBuf::from(small), PathBuf::from);
    CorpusSource::detect(path).expect("a corpus to measure on")
}

/// At most 2,000 documents, read once.
fn documents() -> &'static [Document] {
    static DOCUMENTS: OnceLock<Vec<Document>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        source()
            .open()
            .expect("a readable corpus")
            .take(2000)
            .map(|document| document.expect("a document"))
            .collect()
    })
}

fn tfidf() -> TfIdf {
    let mut builder = TfIdfBuilder::new(TfIdfOptions::default(), Language::English);
    for document in documents() {
        builder.add(&document.text);
    }
    builder.finish()
}

/// One item is one document.
#[divan::bench(sample_count = 10)]
fn learn_vocabulary(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(documents().len())).bench(tfidf);
}

/// One item is one document.
#[divan::bench(sample_count = 10)]
fn transform(bencher: Bencher<'_, '_>) {
    let tfidf = tfidf();
    let mut scratch = TransformScratch::default();
    bencher
        .counter(ItemsCount::new(documents().len()))
        .bench_local(|| {
            documents()
                .iter()
                .map(|document| tfidf.transform_with(&document.text, &mut scratch).len())
                .sum::<usize>()
        });
}

/// The whole corpus from disk, without looking at the texts.
#[divan::bench(sample_count = 3)]
fn read(bencher: Bencher<'_, '_>) {
    let source = source();
    let bytes: usize = source
        .open()
        .expect("a corpus")
        .map(|document| document.expect("a document").text.len())
        .sum();
    bencher
        .counter(BytesCount::new(bytes))
        .bench(|| source.open().expect("a corpus").count());
}

/// The whole corpus from disk with words, sentences and duplicates counted.
#[divan::bench(args = [1, 2], sample_count = 3)]
fn stats(bencher: Bencher<'_, '_>, threads: usize) {
    let source = source();
    bencher.bench(|| corpus_stats(&mut source.open().expect("a corpus"), Language::English, threads));
}
