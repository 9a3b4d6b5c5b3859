//! What a corpus looks like: one parallel pass, memory for counts only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;

use gnnxml_shared::api::{CorpusStats, LabelCount, Spread, TailPoint, TailShare};
use gnnxml_shared::text::{Language, fold_into, sentences, words};
use sha2::{Digest, Sha256};

use super::document::Document;
use super::error::CorpusError;
use super::parallel::for_each_document;
use super::reader::{AlreadyHashed, CorpusReader};

/// Points of the long-tail curve.
const CURVE_POINTS: usize = 200;
/// Labels that are named.
const MOST_FREQUENT: usize = 10;

/// Reads a corpus to its end and counts.
pub fn corpus_stats(
    reader: &mut CorpusReader,
    language: Language,
    threads: usize,
) -> Result<CorpusStats, CorpusError> {
    let parts = for_each_document(reader, threads, Counts::default, |counts, _, document| {
        counts.add(&document, language);
    })?;
    let mut all = Counts::default();
    for part in parts {
        all.merge(part);
    }
    let mut stats = all.finish();
    stats.skipped = reader.skipped() as u64;
    stats.complaints = reader.complaints().to_vec();
    Ok(stats)
}

/// A text's identity, case and punctuation aside: equal for texts with the same words in the same order.
pub fn normalised_text_hash(text: &str) -> u64 {
    let mut hash = Sha256::new();
    let mut word = String::new();
    for span in words(text) {
        word.clear();
        fold_into(&text[span.range()], &mut word);
        word.push(' ');
        hash.update(word.as_bytes());
    }
    let digest = hash.finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}

/// How often each value occurred: exact means and medians in the memory of the distinct values.
#[derive(Debug, Default)]
struct Histogram(BTreeMap<u64, u64>);

impl Histogram {
    fn add(&mut self, value: u64) {
        *self.0.entry(value).or_default() += 1;
    }

    fn merge(&mut self, other: Self) {
        for (value, count) in other.0 {
            *self.0.entry(value).or_default() += count;
        }
    }

    fn spread(&self) -> Spread {
        let count: u64 = self.0.values().sum();
        let (Some((&min, _)), Some((&max, _))) = (self.0.first_key_value(), self.0.last_key_value()) else {
            return Spread::default();
        };
        let sum: u128 = self
            .0
            .iter()
            .map(|(&value, &times)| u128::from(value) * u128::from(times))
            .sum();
        let mut below = 0;
        let median = self.0.iter().find(|(_, times)| {
            below += **times;
            2 * below >= count
        });
        Spread {
            mean: sum as f64 / count as f64,
            median: median.map_or(min, |(&value, _)| value),
            min,
            max,
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    documents: u64,
    empty_texts: u64,
    unlabelled: u64,
    labels: HashMap<String, u64>,
    labels_per_document: Histogram,
    words: Histogram,
    sentences: Histogram,
    /// How many of the texts seen are distinct: their hashes. Empty texts are no duplicates of each other.
    texts: HashSet<u64, BuildHasherDefault<AlreadyHashed>>,
    texts_seen: u64,
}

impl Counts {
    fn add(&mut self, document: &Document, language: Language) {
        self.documents += 1;
        let count = words(&document.text).count() as u64;
        self.words.add(count);
        self.sentences
            .add(sentences(&document.text, language).len() as u64);
        self.labels_per_document.add(document.labels.len() as u64);
        self.unlabelled += u64::from(document.labels.is_empty());
        for label in &document.labels {
            if let Some(known) = self.labels.get_mut(label) {
                *known += 1;
            } else {
                self.labels.insert(label.clone(), 1);
            }
        }
        if count == 0 {
            self.empty_texts += 1;
        } else {
            self.texts_seen += 1;
            self.texts.insert(normalised_text_hash(&document.text));
        }
    }

    fn merge(&mut self, other: Self) {
        self.documents += other.documents;
        self.empty_texts += other.empty_texts;
        self.unlabelled += other.unlabelled;
        self.texts_seen += other.texts_seen;
        self.texts.extend(other.texts);
        self.labels_per_document.merge(other.labels_per_document);
        self.words.merge(other.words);
        self.sentences.merge(other.sentences);
        for (label, count) in other.labels {
            *self.labels.entry(label).or_default() += count;
        }
    }

    fn finish(self) -> CorpusStats {
        let mut labels: Vec<(String, u64)> = self.labels.into_iter().collect();
        labels.sort_unstable_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        let mut documents_per_label = Histogram::default();
        for (_, count) in &labels {
            documents_per_label.add(*count);
        }
        let counts: Vec<u64> = labels.iter().map(|&(_, count)| count).collect();
        CorpusStats {
            documents: self.documents,
            labels: labels.len() as u64,
            assignments: counts.iter().sum(),
            labels_per_document: self.labels_per_document.spread(),
            documents_per_label: documents_per_label.spread(),
            words_per_document: self.words.spread(),
            sentences_per_document: self.sentences.spread(),
            tail: tail_shares(&counts),
            curve: tail_curve(&counts, CURVE_POINTS),
            most_frequent: labels
                .into_iter()
                .take(MOST_FREQUENT)
                .map(|(name, documents)| LabelCount { name, documents })
                .collect(),
            duplicates: self.texts_seen - self.texts.len() as u64,
            empty_texts: self.empty_texts,
            unlabelled: self.unlabelled,
            skipped: 0,
            complaints: Vec::new(),
        }
    }
}

/// Share of the labels with more than 100, 10 to 100, 2 to 9 and 1 documents.
fn tail_shares(counts: &[u64]) -> Vec<TailShare> {
    let ranges = [
        (">100", 101..=u64::MAX),
        ("10-100", 10..=100),
        ("2-9", 2..=9),
        ("1", 1..=1),
    ];
    ranges
        .into_iter()
        .map(|(name, range)| {
            let labels = counts.iter().filter(|count| range.contains(count)).count() as u64;
            let share = if counts.is_empty() {
                0.0
            } else {
                labels as f64 / counts.len() as f64
            };
            TailShare {
                documents: name.to_owned(),
                labels,
                share,
            }
        })
        .collect()
}

/// At most `points` of the falling `counts`: the first, the last, and evenly spaced ranks on a logarithmic axis between.
fn tail_curve(counts: &[u64], points: usize) -> Vec<TailPoint> {
    let point = |rank: usize| TailPoint {
        rank: rank as u64,
        documents: counts[rank - 1],
    };
    if counts.len() <= points {
        return (1..=counts.len()).map(point).collect();
    }
    let step = (counts.len() as f64).ln() / (points - 1) as f64;
    let mut ranks: Vec<usize> = (0..points)
        .map(|place| ((place as f64 * step).exp().round() as usize).clamp(1, counts.len()))
        .collect();
    ranks.dedup();
    ranks.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_exact() {
        let mut histogram = Histogram::default();
        for value in [5, 1, 9, 1] {
            histogram.add(value);
        }
        assert_eq!(
            histogram.spread(),
            Spread {
                mean: 4.0,
                median: 1,
                min: 1,
                max: 9
            }
        );
        assert_eq!(Histogram::default().spread(), Spread::default());
    }

    #[test]
    fn a_long_curve_is_thinned_but_keeps_both_ends() {
        let counts: Vec<u64> = (0..50_000_u64).map(|rank| 100_000 / (rank + 1)).collect();
        let curve = tail_curve(&counts, 200);
        assert!(curve.len() <= 200 && curve.len() > 150);
        assert_eq!(
            curve[0],
            TailPoint {
                rank: 1,
                documents: 100_000
            }
        );
        assert_eq!(curve.last().unwrap().rank, 50_000);
        assert!(curve.windows(2).all(|pair| pair[0].rank < pair[1].rank));
        assert_eq!(tail_curve(&[3, 1], 200).len(), 2);
        assert!(tail_curve(&[], 200).is_empty());
    }

    #[test]
    fn texts_that_differ_in_case_and_punctuation_are_the_same() {
        assert_eq!(
            normalised_text_hash("Cocoa rose."),
            normalised_text_hash("COCOA – rose!")
        );
        assert_ne!(
            normalised_text_hash("cocoa rose"),
            normalised_text_hash("rose cocoa")
        );
        assert_ne!(normalised_text_hash("co coa"), normalised_text_hash("cocoa"));
    }
}
