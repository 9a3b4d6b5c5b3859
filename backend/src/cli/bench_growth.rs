//! `gnnxml bench growth`: what training costs as the vocabulary grows, on generated short texts of Amazon-670K's shape.
//!
//! A label speaks through a few words of its own, its topic through a few more, and the rest is noise by Zipf's law, so that a
//! model has something to find: P@1 on documents it has not seen is printed beside the cost.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bench::{peak_megabytes, trained};
use crate::cpu_time::cpu_seconds;
use crate::data::{CorpusSource, CorpusWriter, Document, WriteFormat, available_threads};
use crate::labels::generate::Shape;
use crate::train::TrainConfig;

/// Arguments of `gnnxml bench growth`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Vocabularies to train, smallest first: the peak of memory is that of the largest so far
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,670091")]
    labels: Vec<usize>,
    /// The preset that is trained
    #[arg(long, default_value = "fast")]
    preset: String,
    /// Where corpora and models are kept meanwhile; a temporary folder if not given
    #[arg(long)]
    work: Option<PathBuf>,
}

/// Amazon-670K: 490,449 documents for 670,091 labels, 5.45 labels a document, 135,909 words.
const DOCUMENTS_PER_LABEL: f64 = 490_449.0 / 670_091.0;
const LABELS_PER_DOCUMENT: f64 = 5.45;
const WORDS: u64 = 135_909;
const LABELS_PER_TOPIC: usize = 60;
/// Documents kept from training, to be scored.
const SCORED: usize = 2000;

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = args.work.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    say!(
        "| labels | documents | clusters | train s | train CPU s | CPU ms a label | peak MB | model MB | P@1 | PSP@1 |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for &labels in &args.labels {
        let (corpus, test) = (folder.join("train.jsonl"), folder.join("test.jsonl"));
        let documents = write_corpus(labels, &corpus, &test)?;
        let out = folder.join("model");
        let (started, used) = (Instant::now(), cpu_seconds());
        let model = trained(
            CorpusSource::detect(&corpus)?,
            TrainConfig::of_preset(&args.preset)?,
            out,
        )?;
        let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - used);
        let peak = peak_megabytes();
        let report = crate::evaluate::evaluate(&model, &CorpusSource::detect(&test)?, available_threads())?;
        let bytes: u64 = model.manifest.parts.values().map(|part| part.bytes).sum();
        say!(
            "| {labels} | {documents} | {} | {seconds:.0} | {cpu:.0} | {:.2} | {peak} | {:.0} | {:.1} | {:.1} |",
            model.manifest.clusters,
            1e3 * cpu / labels as f64,
            bytes as f64 / 1e6,
            report.get("P@1").unwrap_or(f64::NAN),
            report.get("PSP@1").unwrap_or(f64::NAN),
        )?;
    }
    Ok(())
}

/// Writes both files and says how many documents there are to learn from.
fn write_corpus(labels: usize, corpus: &Path, test: &Path) -> anyhow::Result<usize> {
    let learned = (labels as f64 * DOCUMENTS_PER_LABEL) as usize;
    let shape = Shape {
        labels,
        documents: learned + SCORED,
        labels_per_document: LABELS_PER_DOCUMENT,
        width: 1,
        topics: labels.div_ceil(LABELS_PER_TOPIC),
        seed: 670,
    };
    let drawn = shape.documents()?;
    let mut random = ChaCha8Rng::seed_from_u64(shape.seed);
    let (mut to_learn, mut to_score) = (
        CorpusWriter::create(corpus, WriteFormat::by_name(corpus))?,
        CorpusWriter::create(test, WriteFormat::by_name(test))?,
    );
    for number in 0..drawn.documents() {
        let carried = drawn.of(number);
        let document = Document {
            id: number.to_string(),
            text: text(&shape, carried, &mut random),
            labels: carried.iter().map(|label| format!("label {label}")).collect(),
        };
        let writer = if number < learned {
            &mut to_learn
        } else {
            &mut to_score
        };
        writer.write(&document)?;
    }
    to_learn.finish()?;
    to_score.finish()?;
    Ok(learned)
}

/// Two of four words of every label, three of eight of its first label's topic, and ten that mean nothing.
fn text(shape: &Shape, labels: &[u32], random: &mut impl Rng) -> String {
    let mut text = String::new();
    // SplitMix64's last steps: numbers that look drawn, the same ones every time.
    let own = |kind: u64, of: u64, which: u64| {
        let mut mixed = (kind << 60 ^ of << 8 ^ which).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 31) % WORDS
    };
    for &label in labels {
        for _ in 0..2 {
            spell(&mut text, own(1, u64::from(label), random.random_range(0..4)));
        }
    }
    let topic = labels.first().map_or(0, |&label| shape.topic_of(label as usize)) as u64;
    for _ in 0..3 {
        spell(&mut text, own(2, topic, random.random_range(0..8)));
    }
    for _ in 0..10 {
        let rank = (WORDS as f64).powf(random.random::<f64>()) as u64;
        spell(&mut text, rank.min(WORDS - 1));
    }
    text
}

/// A number as a word of letters.
fn spell(text: &mut String, mut number: u64) {
    const LETTERS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";
    const VOWELS: &[u8; 5] = b"aeiou";
    for _ in 0..3 {
        let letter = char::from(LETTERS[(number % 20) as usize]);
        let vowel = char::from(VOWELS[(number / 20 % 5) as usize]);
        let _ = write!(text, "{letter}{vowel}");
        number /= 100;
    }
    text.push(' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_numbers_are_different_words() {
        let mut words: Vec<String> = (0..WORDS)
            .map(|number| {
                let mut word = String::new();
                spell(&mut word, number);
                word
            })
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len() as u64, WORDS);
    }

    #[test]
    fn a_generated_corpus_has_the_shape_it_should() {
        let folder = tempfile::tempdir().unwrap();
        let (corpus, test) = (folder.path().join("a.jsonl"), folder.path().join("b.jsonl"));
        let documents = write_corpus(1000, &corpus, &test).unwrap();
        assert_eq!(documents, 731);
        let read = |path: &Path| -> Vec<Document> {
            CorpusSource::detect(path)
                .unwrap()
                .open()
                .unwrap()
                .map(Result::unwrap)
                .collect()
        };
        let learned = read(&corpus);
        assert_eq!((learned.len(), read(&test).len()), (731, SCORED));
        let labels: usize = learned.iter().map(|document| document.labels.len()).sum();
        assert!((4.0..7.0).contains(&(labels as f64 / 731.0)), "{labels}");
    }
}
