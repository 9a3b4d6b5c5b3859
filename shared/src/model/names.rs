//! Labels whose own names stand in a text.
//!
//! ```text
//! u(w)    = ln(1 + L / labels with w in their name)                 a rare word names its label better
//! c_ℓ(x)  = Σ_{w ∈ name(ℓ), w ∈ x} u(w) / Σ_{w ∈ name(ℓ)} u(w)       how much of the name x says, from 0 to 1
//! sign    = c_ℓ(x)^POWER in the text + c_ℓ(lead of x)^POWER          [`LabelNames::sign`]
//! ```
//!
//! The paper's labels are numbers; ours have names, and people who tag name what they see. A ranker of a rare label has seen its name
//! a few times among hundreds of other words, so it learns little of it; this sign needs no document at all. Words are compared
//! by their stems. Everything here is worked out from vocabulary and names: nothing of it is stored.

use std::collections::HashMap;

use super::score::{Score, Weight};
use super::tagger::TagLabel;
use crate::features::{SparseVector, TfIdf, is_lead_term, words_of_term};
use crate::text::{Stemmer, fold, is_stop_word, words};

/// Half a name says much less than half of what the whole name says.
const POWER: i32 = 2;

/// No stem of any name.
const NONE: u32 = u32::MAX;

/// The names of all labels, by the stems in them.
#[derive(Clone, Debug, Default)]
pub struct LabelNames {
    /// The stem of each term of the vocabulary.
    stem_of_term: Vec<u32>,
    /// Whether a term is one of the lead.
    leads: Vec<bool>,
    /// Where each label's stems begin in `stems`, and where the last one's end.
    offsets: Vec<u32>,
    /// The stems of each label and their share of its name; shares of a name add up to 1.
    stems: Vec<(u32, f32)>,
    /// Different stems.
    count: usize,
}

/// The stems of names that stand in a text.
#[derive(Clone, Debug, Default)]
pub struct Mentions {
    in_text: Vec<bool>,
    in_lead: Vec<bool>,
}

impl LabelNames {
    /// The names, if `score` looks at them.
    pub fn for_score(score: &Score, labels: &[TagLabel], tfidf: &TfIdf) -> Option<Self> {
        (score.names != Weight::NONE)
            .then(|| Self::new(labels.iter().map(|label| label.name.as_str()), tfidf))
    }

    /// Lays out the names over the vocabulary that texts are read with.
    pub fn new<'n>(labels: impl ExactSizeIterator<Item = &'n str>, tfidf: &TfIdf) -> Self {
        let stemmer = Stemmer::new(tfidf.language());
        let mut number_of: HashMap<String, u32> = HashMap::new();
        let mut names: Vec<Vec<u32>> = Vec::with_capacity(labels.len());
        for label in labels {
            let mut name = Vec::new();
            for word in words(label) {
                let folded = fold(&label[word.range()]);
                if folded.chars().nth(1).is_none() || is_stop_word(&folded, tfidf.language()) {
                    continue;
                }
                let next = number_of.len() as u32;
                name.push(
                    *number_of
                        .entry(stemmer.stem(&folded).into_owned())
                        .or_insert(next),
                );
            }
            name.sort_unstable();
            name.dedup();
            names.push(name);
        }
        let mut carriers = vec![0u32; number_of.len()];
        for &stem in names.iter().flatten() {
            carriers[stem as usize] += 1;
        }
        let weight = |stem: u32| (names.len() as f32 / carriers[stem as usize] as f32).ln_1p();
        let (mut offsets, mut stems) = (vec![0], Vec::new());
        for name in &names {
            let whole: f32 = name.iter().map(|&stem| weight(stem)).sum();
            stems.extend(name.iter().map(|&stem| (stem, weight(stem) / whole)));
            offsets.push(stems.len() as u32);
        }
        let stem_of = |term: &str| {
            number_of
                .get(stemmer.stem(words_of_term(term)).as_ref())
                .copied()
                .unwrap_or(NONE)
        };
        Self {
            stem_of_term: tfidf.terms().map(stem_of).collect(),
            leads: tfidf.terms().map(is_lead_term).collect(),
            offsets,
            stems,
            count: carriers.len(),
        }
    }

    /// Which words of names a text holds.
    pub fn mentions(&self, text: &SparseVector) -> Mentions {
        let mut found = Mentions {
            in_text: vec![false; self.count],
            in_lead: vec![false; self.count],
        };
        for &term in &text.indices {
            let Some(&stem) = self.stem_of_term.get(term as usize).filter(|&&stem| stem != NONE) else {
                continue;
            };
            found.in_text[stem as usize] = true;
            found.in_lead[stem as usize] |= self.leads[term as usize];
        }
        found
    }

    /// How clearly a text says the name of a label: 0 for no word of it, 2 for all of it in the lead.
    pub fn sign(&self, mentions: &Mentions, label: u32) -> f32 {
        let label = label as usize;
        let (Some(&from), Some(&to)) = (self.offsets.get(label), self.offsets.get(label + 1)) else {
            return 0.0;
        };
        let name = &self.stems[from as usize..to as usize];
        let said = |held: &[bool]| -> f32 {
            let words = name.iter().filter(|(stem, _)| held[*stem as usize]);
            words.map(|(_, share)| share).sum::<f32>().powi(POWER)
        };
        said(&mentions.in_text) + said(&mentions.in_lead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{TfIdfBuilder, TfIdfOptions};
    use crate::text::Language;

    fn tfidf(lead: usize) -> TfIdf {
        let options = TfIdfOptions {
            min_df: 1,
            lead,
            ..TfIdfOptions::default()
        };
        let mut builder = TfIdfBuilder::new(options, Language::English);
        builder.add("The fisheries of the coast, and quotas for cod.");
        builder.add("Coastal fishing, a quota, sugar");
        builder.finish()
    }

    #[test]
    fn a_whole_name_counts_more_than_twice_its_half() {
        let tfidf = tfidf(0);
        let names = LabelNames::new(["fishing quota", "sugar"].into_iter(), &tfidf);
        let sign = |text, label| names.sign(&names.mentions(&tfidf.transform(text)), label);
        assert!((sign("fishing quotas", 0) - 1.0).abs() < 1e-6);
        assert!((sign("a quota for sugar", 0) - 0.25).abs() < 1e-6);
        assert_eq!(sign("a quota for sugar", 1), 1.0);
        assert_eq!(sign("cod", 0), 0.0);
    }

    #[test]
    fn a_name_in_the_lead_counts_again() {
        let tfidf = tfidf(10);
        let names = LabelNames::new(["sugar"].into_iter(), &tfidf);
        let sign = |text| names.sign(&names.mentions(&tfidf.transform(text)), 0);
        assert_eq!(sign("fisheries of cod and sugar"), 1.0);
        // Only terms the vocabulary has count: "sugar" never led a document.
        assert_eq!(sign("sugar"), 1.0);
        let names = LabelNames::new(["fishery"].into_iter(), &tfidf);
        assert_eq!(names.sign(&names.mentions(&tfidf.transform("fisheries")), 0), 2.0);
    }

    #[test]
    fn a_word_that_most_names_share_says_little() {
        let tfidf = tfidf(0);
        let labels = ["coast: cod", "coast: sugar", "coast: quota"];
        let names = LabelNames::new(labels.into_iter(), &tfidf);
        let sign = |text| names.sign(&names.mentions(&tfidf.transform(text)), 0);
        assert!(sign("the coast") < 0.12, "{}", sign("the coast"));
        assert!(sign("cod") > 0.4, "{}", sign("cod"));
    }

    #[test]
    fn names_without_words_and_labels_beyond_the_last_say_nothing() {
        let tfidf = tfidf(0);
        let names = LabelNames::new(["", "the"].into_iter(), &tfidf);
        let mentions = names.mentions(&tfidf.transform("sugar the coast"));
        assert_eq!([0, 1, 7].map(|label| names.sign(&mentions, label)), [0.0; 3]);
    }
}
