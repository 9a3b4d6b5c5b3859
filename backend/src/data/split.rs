//! Dividing a corpus into training, validation and test documents.
//!
//! Two passes. The first keeps sixteen bytes a document and four a label of it, the second sends each document where
//! it belongs. Documents whose texts are the same, case and punctuation aside, stay together, so that nothing in
//! validation was seen in training. A document leaves training only if each of its labels keeps enough others there:
//! a label with a single document is always learnable and never a trick question.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::document::Document;
use super::error::CorpusError;
use super::reader::CorpusReader;
use super::source::CorpusSource;
use super::statistics::normalised_text_hash;

/// Where a document goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Train,
    Valid,
    Test,
}

/// How to divide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitOptions {
    /// Share of the documents for validation, 0 to 1.
    pub valid: f64,
    /// Share of the documents for testing, 0 to 1.
    pub test: f64,
    pub seed: u64,
    /// Documents of each label that stay in training, if it has as many.
    pub keep: u32,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self {
            valid: 0.1,
            test: 0.0,
            seed: 1,
            keep: 1,
        }
    }
}

/// The part of every document of a corpus, by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    parts: Vec<Part>,
}

impl Split {
    /// Decides over a corpus: the first pass.
    pub fn of(source: &CorpusSource, options: &SplitOptions) -> Result<Self, CorpusError> {
        let mut sketch = Sketch::default();
        for document in source.open()? {
            sketch.add(&document?);
        }
        Ok(sketch.split(options))
    }

    /// Sends every document to its part: the second pass, over the corpus that was decided over.
    pub fn deal(
        &self,
        documents: &mut CorpusReader,
        mut each: impl FnMut(Part, Document) -> Result<(), CorpusError>,
    ) -> Result<(), CorpusError> {
        let mut place = 0;
        while let Some(document) = documents.next() {
            let document = document?;
            let Some(&part) = self.parts.get(place) else {
                return Err(changed(documents));
            };
            each(part, document)?;
            place += 1;
        }
        if place == self.parts.len() {
            Ok(())
        } else {
            Err(changed(documents))
        }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many documents a part has.
    pub fn count(&self, part: Part) -> usize {
        self.parts.iter().filter(|&&other| other == part).count()
    }
}

fn changed(documents: &CorpusReader) -> CorpusError {
    CorpusError::file(
        documents.file(),
        0,
        "other documents than in the first pass",
        "a file that does not change meanwhile",
    )
}

/// What the decision needs to know of a corpus.
#[derive(Debug, Default)]
struct Sketch {
    label_numbers: HashMap<String, u32>,
    label_counts: Vec<u32>,
    /// Labels of all documents one after the other, and where each document's end.
    labels: Vec<u32>,
    ends: Vec<usize>,
    /// The group of documents with the same text, numbered by first occurrence.
    groups: Vec<u32>,
    group_numbers: HashMap<u64, u32>,
}

impl Sketch {
    fn add(&mut self, document: &Document) {
        for label in &document.labels {
            let number = match self.label_numbers.get(label) {
                Some(&number) => number,
                None => {
                    let number = self.label_counts.len() as u32;
                    self.label_numbers.insert(label.clone(), number);
                    self.label_counts.push(0);
                    number
                }
            };
            self.label_counts[number as usize] += 1;
            self.labels.push(number);
        }
        self.ends.push(self.labels.len());
        let next = self.group_numbers.len() as u32;
        let group = *self
            .group_numbers
            .entry(normalised_text_hash(&document.text))
            .or_insert(next);
        self.groups.push(group);
    }

    fn labels_of(&self, document: usize) -> &[u32] {
        let start = if document == 0 { 0 } else { self.ends[document - 1] };
        &self.labels[start..self.ends[document]]
    }

    fn split(self, options: &SplitOptions) -> Split {
        let documents = self.groups.len();
        let mut parts = vec![Part::Train; documents];
        // Documents by group, then the groups in a seeded order.
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.group_numbers.len()];
        for (document, &group) in self.groups.iter().enumerate() {
            members[group as usize].push(document);
        }
        members.shuffle(&mut ChaCha8Rng::seed_from_u64(options.seed));
        let wanted = |share: f64| (share.clamp(0.0, 1.0) * documents as f64).round() as usize;
        let mut quotas = [
            (Part::Test, wanted(options.test)),
            (Part::Valid, wanted(options.valid)),
        ];
        let mut in_training = self.label_counts.clone();
        for group in members {
            // The part that is furthest from its share takes the next group, so that both get a fair draw.
            quotas.sort_by_key(|&(_, left)| std::cmp::Reverse(left));
            let Some((part, left)) = quotas.iter_mut().find(|(_, left)| *left >= group.len()) else {
                if quotas.iter().all(|&(_, left)| left == 0) {
                    break;
                }
                continue;
            };
            if !self.may_leave(&group, &mut in_training, options.keep) {
                continue;
            }
            *left -= group.len();
            for document in group {
                parts[document] = *part;
            }
        }
        Split { parts }
    }

    /// Takes the group's labels out of training if every one of them keeps `keep` documents there.
    fn may_leave(&self, group: &[usize], in_training: &mut [u32], keep: u32) -> bool {
        let labels = || group.iter().flat_map(|&document| self.labels_of(document));
        for &label in labels() {
            in_training[label as usize] -= 1;
        }
        let stays = labels().all(|&label| in_training[label as usize] >= keep);
        if !stays {
            for &label in labels() {
                in_training[label as usize] += 1;
            }
        }
        stays
    }
}
