//! How long a KeyGraph takes, on one core.
//!
//! `cargo bench -p gnnxml-shared --bench keygraph` builds graphs of a synthetic document of 580 words, the length
//! of an average EUR-Lex act. With `GNNXML_CORPUS=FILE.jsonl[.gz]` it goes round the documents of that corpus
//! instead, so that the mean is the mean over them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::BytesCount;
use gnnxml_shared::keygraph::{EntityLexicon, EntityLexiconBuilder, KeyGraph, KeyGraphBuilder, Options};
use gnnxml_shared::text::{Language, sentences, words};

fn main() {
    let texts = documents();
    let word_count: usize = texts.iter().map(|text| words(text).count()).sum();
    println!(
        "{} documents, {} words each on average",
        texts.len(),
        word_count / texts.len()
    );
    divan::main();
}

/// The corpus named by the environment, or one document made here.
fn documents() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let Some(path) = std::env::var_os("GNNXML_CORPUS") else {
            return vec![synthetic(580)];
        };
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let reader: Box<dyn Read> = if path.as_encoded_bytes().ends_with(b".gz") {
            Box::new(flate2::read::GzDecoder::new(file))
        } else {
            Box::new(file)
        };
        BufReader::new(reader)
            .lines()
            .map(|line| {
                let json: serde_json::Value =
                    serde_json::from_str(&line.expect("UTF-8")).expect("JSON a line");
                json["text"].as_str().expect("a text").to_owned()
            })
            .collect()
    })
}

/// Prose-like: frequent words often, rare words seldom, names, numbers, sentences of about 20 words.
fn synthetic(count: usize) -> String {
    const FUNCTION: [&str; 8] = ["the", "of", "and", "to", "in", "for", "with", "that"];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let mut text = String::new();
    for i in 0..count {
        let word = match draw(10) {
            0..=3 => FUNCTION[draw(8)].to_owned(),
            4..=7 => {
                let rank = draw(40) * draw(40) / 40;
                format!(
                    "{}ation",
                    ["regul", "fish", "quot", "lic", "tari", "cust", "sanit", "conserv"][rank % 8]
                ) + &"s".repeat(rank / 20)
            }
            8 => format!(
                "{}{}",
                ["Brem", "Lond", "Oslo", "Genev"][draw(4)],
                ["en", "on", "", "a"][draw(4)]
            ),
            _ => format!("item{}", draw(200)),
        };
        text.push_str(&word);
        text.push_str(if i % 20 == 19 { ". " } else { " " });
    }
    text
}

/// One document after the other, without a lexicon.
#[divan::bench]
fn document(bencher: Bencher<'_, '_>) {
    let texts = documents();
    let lexicon = EntityLexicon::default();
    let mut builder = KeyGraphBuilder::new(Language::English, &lexicon, &Options::default());
    let mut next = (0..texts.len()).cycle();
    bencher
        .with_inputs(|| next.next().unwrap_or(0))
        .bench_local_values(|i| builder.build(&texts[i]));
}

/// The same with a lexicon learned from these documents, and no more vertices than the matcher takes.
#[divan::bench]
fn document_with_lexicon(bencher: Bencher<'_, '_>) {
    let texts = documents();
    let mut learned = EntityLexiconBuilder::default();
    texts
        .iter()
        .take(2_000)
        .for_each(|text| learned.add(text, Language::English));
    let lexicon = learned.finish();
    let options = Options {
        max_vertices: Some(40),
        ..Options::default()
    };
    let mut builder = KeyGraphBuilder::new(Language::English, &lexicon, &options);
    let mut next = (0..texts.len()).cycle();
    bencher
        .with_inputs(|| next.next().unwrap_or(0))
        .bench_local_values(|i| builder.build(&texts[i]));
}

/// Sentences alone.
#[divan::bench]
fn document_sentences(bencher: Bencher<'_, '_>) {
    let texts = documents();
    let mut next = (0..texts.len()).cycle();
    bencher
        .with_inputs(|| next.next().unwrap_or(0))
        .bench_local_values(|i| sentences(&texts[i], Language::English));
}

/// One document counted for the lexicon.
#[divan::bench]
fn document_learned(bencher: Bencher<'_, '_>) {
    let texts = documents();
    let mut learned = EntityLexiconBuilder::default();
    let mut next = (0..texts.len()).cycle();
    bencher
        .with_inputs(|| next.next().unwrap_or(0))
        .bench_local_values(|i| learned.add(&texts[i], Language::English));
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn ten_megabytes(bencher: Bencher<'_, '_>) {
    let text: String = documents()
        .iter()
        .cycle()
        .flat_map(|text| [text.as_str(), "\n\n"])
        .scan(0, |size, part| {
            *size += part.len();
            (*size < 10_000_000).then_some(part)
        })
        .collect();
    bencher.counter(BytesCount::of_str(&text)).bench(|| build(&text));
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn a_million_sentences_of_one_word(bencher: Bencher<'_, '_>) {
    let text: String = (0..1_000_000).map(|i| format!("Word{}. ", i % 50_021)).collect();
    bencher.counter(BytesCount::of_str(&text)).bench(|| build(&text));
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn ten_megabytes_without_a_full_stop(bencher: Bencher<'_, '_>) {
    let text: String = (0..1_200_000u64)
        .map(|i| format!("word{} ", i * i % 65_537))
        .collect();
    bencher.counter(BytesCount::of_str(&text)).bench(|| build(&text));
}

fn build(text: &str) -> KeyGraph {
    KeyGraph::build(
        text,
        Language::English,
        &EntityLexicon::default(),
        &Options::default(),
    )
}
