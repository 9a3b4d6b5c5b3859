//! Learning a vocabulary: in how many documents does each term stand?

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::text::{Language, Span};

use super::terms::{Analyzer, TermBuffers, TermHasher};
use super::tfidf::{TfIdf, TfIdfOptions};

/// Counts documents by term. Several builders, one a thread, merge to the same result in any order.
#[derive(Debug)]
pub struct TfIdfBuilder {
    options: TfIdfOptions,
    language: Language,
    analyzer: Analyzer,
    buffers: TermBuffers,
    documents: u32,
    counts: HashMap<Box<str>, Count, BuildHasherDefault<TermHasher>>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    documents: u32,
    /// The document (from 1) that was counted last, so that each counts once.
    last: u32,
}

impl TfIdfBuilder {
    pub fn new(options: TfIdfOptions, language: Language) -> Self {
        Self {
            analyzer: Analyzer::new(&options, language),
            options,
            language,
            buffers: TermBuffers::default(),
            documents: 0,
            counts: HashMap::default(),
        }
    }

    /// Counts one document.
    pub fn add(&mut self, text: &str) {
        self.documents += 1;
        let (document, counts) = (self.documents, &mut self.counts);
        self.analyzer
            .terms(text, &mut self.buffers, |term, _| count(counts, term, document));
    }

    /// Counts one document whose words were found before.
    pub fn add_words(&mut self, text: &str, words: impl IntoIterator<Item = Span>) {
        self.documents += 1;
        let (document, counts) = (self.documents, &mut self.counts);
        self.analyzer
            .terms_of_words(text, words, &mut self.buffers, |term, _| {
                count(counts, term, document);
            });
    }

    /// Adds what another builder of the same options has counted.
    pub fn merge(&mut self, other: Self) {
        assert_eq!(
            (&self.options, self.language),
            (&other.options, other.language),
            "builders of different options cannot be merged"
        );
        self.documents += other.documents;
        for (term, theirs) in other.counts {
            // 0 is no document: what follows counts afresh.
            self.counts
                .entry(term)
                .or_insert(Count {
                    documents: 0,
                    last: 0,
                })
                .documents += theirs.documents;
        }
    }

    /// Documents counted so far.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Distinct terms met so far.
    pub fn terms(&self) -> usize {
        self.counts.len()
    }

    /// The vocabulary: terms in `min_df` documents or more and at most in the share `max_df`; if there are more than
    /// `max_features`, those in the most documents. Ordered by the terms' bytes.
    pub fn finish(self) -> TfIdf {
        let highest = (f64::from(self.options.max_df) * f64::from(self.documents)).floor() as u32;
        let mut kept: Vec<(Box<str>, u32)> = self
            .counts
            .into_iter()
            .map(|(term, count)| (term, count.documents))
            .filter(|&(_, documents)| documents >= self.options.min_df && documents <= highest)
            .collect();
        if kept.len() > self.options.max_features {
            kept.sort_unstable_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
            kept.truncate(self.options.max_features);
        }
        kept.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        TfIdf::from_counts(self.options, self.language, self.documents, &kept)
    }
}

fn count(counts: &mut HashMap<Box<str>, Count, BuildHasherDefault<TermHasher>>, term: &str, document: u32) {
    if let Some(known) = counts.get_mut(term) {
        if known.last != document {
            known.last = document;
            known.documents += 1;
        }
    } else {
        counts.insert(
            term.into(),
            Count {
                documents: 1,
                last: document,
            },
        );
    }
}
