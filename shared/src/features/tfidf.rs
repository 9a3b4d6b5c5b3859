//! TF-IDF: a text as a sparse vector of the terms in it.

use serde::{Deserialize, Serialize};

use crate::text::{Language, Span};

use super::SparseVector;
use super::terms::{Analyzer, TermBuffers, TermTable};

/// What counts as a term and how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TfIdfOptions {
    /// Terms in fewer documents are left out.
    pub min_df: u32,
    /// Terms in a larger share of the documents are left out.
    pub max_df: f32,
    /// At most that many terms, those in the most documents.
    pub max_features: usize,
    /// 1 + ln tf instead of tf.
    pub sublinear: bool,
    /// Leave out the language's stop words.
    pub stop_words: bool,
    /// Also pairs of neighbouring words (after stop words are left out).
    pub bigrams: bool,
    /// Stems instead of words.
    pub stem: bool,
    /// Words within that many first bytes of a text, where its title stands, are terms of their own besides.
    pub lead: usize,
    /// Pairs of neighbouring words of the lead, too.
    pub lead_bigrams: bool,
}

impl Default for TfIdfOptions {
    fn default() -> Self {
        Self {
            min_df: 2,
            max_df: 1.0,
            max_features: 200_000,
            sublinear: true,
            stop_words: true,
            bigrams: false,
            stem: false,
            lead: 0,
            lead_bigrams: false,
        }
    }
}

/// Parts that do not make a TF-IDF.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TfIdfError {
    #[error("found {terms} terms but {weights} idf weights, expected one weight a term")]
    Lengths { terms: usize, weights: usize },
    #[error("found the term {term:?} a second time, expected each once")]
    RepeatedTerm { term: String },
    #[error("found {value} as idf weight of {term:?}, expected a positive number")]
    Weight { term: String, value: String },
    #[error("found {bytes} bytes of terms, expected less than 4 GiB")]
    TooLarge { bytes: usize },
}

/// A TF-IDF taken apart, for a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TfIdfParts {
    pub options: TfIdfOptions,
    pub language: Language,
    /// Training documents.
    pub documents: u32,
    /// In the order of their numbers, which is the order of their bytes.
    pub terms: Vec<String>,
    pub idf: Vec<f32>,
}

/// A learned vocabulary that turns texts into vectors of length 1.
///
/// The value of term t in a document is (1 + ln tf) · idf with idf = ln((1 + n)/(1 + df)) + 1, then the vector is
/// divided by its Euclidean length: the definition of scikit-learn, so that figures compare.
///
/// ```
/// use gnnxml_shared::features::{TfIdfBuilder, TfIdfOptions};
/// use gnnxml_shared::text::Language;
/// let mut builder = TfIdfBuilder::new(TfIdfOptions { min_df: 1, ..Default::default() }, Language::English);
/// builder.add("The price of cocoa rose.");
/// builder.add("The price of sugar fell.");
/// let tfidf = builder.finish();
/// assert_eq!(tfidf.terms().collect::<Vec<_>>(), ["cocoa", "fell", "price", "rose", "sugar"]);
/// let vector = tfidf.transform("Cocoa, cocoa!");
/// assert_eq!((vector.indices, vector.values), (vec![0], vec![1.0]));
/// ```
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "TfIdfParts", into = "TfIdfParts")]
pub struct TfIdf {
    options: TfIdfOptions,
    language: Language,
    documents: u32,
    table: TermTable,
    idf: Vec<f32>,
    analyzer: Analyzer,
}

/// Buffers that [`TfIdf::transform_with`] uses again from text to text.
#[derive(Debug, Default)]
pub struct TransformScratch {
    buffers: TermBuffers,
    found: Vec<u32>,
}

impl TfIdf {
    /// From document counts, terms distinct and in order.
    pub(super) fn from_counts(
        options: TfIdfOptions,
        language: Language,
        documents: u32,
        counts: &[(Box<str>, u32)],
    ) -> Self {
        let idf = counts
            .iter()
            .map(|&(_, df)| (((1.0 + f64::from(documents)) / (1.0 + f64::from(df))).ln() + 1.0) as f32)
            .collect();
        let table = TermTable::new(counts.iter().map(|(term, _)| term.as_ref()))
            .expect("the terms of a map are distinct");
        Self::assemble(options, language, documents, table, idf)
    }

    fn assemble(
        options: TfIdfOptions,
        language: Language,
        documents: u32,
        table: TermTable,
        idf: Vec<f32>,
    ) -> Self {
        // A stop word is not in the vocabulary: looking it up costs no more than asking whether it is one. Only
        // bigrams, which reach over stop words, and stems, which a stop word may share, must ask.
        let ask = options.bigrams || options.stem || options.lead_bigrams;
        let checks = TfIdfOptions {
            stop_words: options.stop_words && ask,
            ..options.clone()
        };
        Self {
            analyzer: Analyzer::new(&checks, language),
            options,
            language,
            documents,
            table,
            idf,
        }
    }

    /// From parts that were stored, checked.
    pub fn from_parts(parts: TfIdfParts) -> Result<Self, TfIdfError> {
        let TfIdfParts {
            options,
            language,
            documents,
            terms,
            idf,
        } = parts;
        if terms.len() != idf.len() {
            return Err(TfIdfError::Lengths {
                terms: terms.len(),
                weights: idf.len(),
            });
        }
        let bytes = terms.iter().map(String::len).sum();
        if u32::try_from(bytes).is_err() {
            return Err(TfIdfError::TooLarge { bytes });
        }
        if let Some(wrong) = idf
            .iter()
            .position(|weight| !weight.is_finite() || *weight <= 0.0)
        {
            return Err(TfIdfError::Weight {
                term: terms[wrong].clone(),
                value: idf[wrong].to_string(),
            });
        }
        let table = TermTable::new(terms.iter().map(String::as_str)).map_err(|repeated| {
            TfIdfError::RepeatedTerm {
                term: terms[repeated].clone(),
            }
        })?;
        Ok(Self::assemble(options, language, documents, table, idf))
    }

    /// Takes it apart again.
    pub fn to_parts(&self) -> TfIdfParts {
        TfIdfParts {
            options: self.options.clone(),
            language: self.language,
            documents: self.documents,
            terms: self.terms().map(str::to_owned).collect(),
            idf: self.idf.clone(),
        }
    }

    pub fn options(&self) -> &TfIdfOptions {
        &self.options
    }

    pub fn language(&self) -> Language {
        self.language
    }

    /// Training documents.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Number of terms: the width of the vectors.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The terms in the order of their numbers.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|number| self.table.term(number))
    }

    /// The weight of each term.
    pub fn idf(&self) -> &[f32] {
        &self.idf
    }

    /// A term by its number.
    pub fn term(&self, number: u32) -> &str {
        self.table.term(number as usize)
    }

    /// A term's number.
    pub fn index_of(&self, term: &str) -> Option<u32> {
        self.table.get(term)
    }

    /// The text's vector, of length 1, or empty if no term is in it.
    pub fn transform(&self, text: &str) -> SparseVector {
        self.transform_with(text, &mut TransformScratch::default())
    }

    /// [`transform`](Self::transform) with buffers that are kept, for many texts.
    pub fn transform_with(&self, text: &str, scratch: &mut TransformScratch) -> SparseVector {
        let TransformScratch { buffers, found } = scratch;
        found.clear();
        self.analyzer
            .terms(text, buffers, |term, _| found.extend(self.table.get(term)));
        self.weigh(found)
    }

    /// [`transform`](Self::transform) of a sentence or keyword that was cut out of its text: it has no lead.
    pub fn transform_part(&self, part: &str) -> SparseVector {
        let mut found = Vec::new();
        self.analyzer
            .terms_of_part(part, &mut TermBuffers::default(), |term, _| {
                found.extend(self.table.get(term));
            });
        self.weigh(&mut found)
    }

    /// [`transform`](Self::transform) of words that were found before, such as those of one or several sentences.
    pub fn transform_words(
        &self,
        text: &str,
        words: impl IntoIterator<Item = Span>,
        scratch: &mut TransformScratch,
    ) -> SparseVector {
        let TransformScratch { buffers, found } = scratch;
        found.clear();
        self.analyzer
            .terms_of_words(text, words, buffers, |term, _| found.extend(self.table.get(term)));
        self.weigh(found)
    }

    /// The text's vector, and for each of its entries the bytes of the words behind it, in the order of the text.
    pub fn transform_with_spans(&self, text: &str) -> (SparseVector, Vec<Vec<Span>>) {
        let mut found: Vec<(u32, Span)> = Vec::new();
        self.analyzer
            .terms(text, &mut TermBuffers::default(), |term, span| {
                found.extend(self.table.get(term).map(|number| (number, span)));
            });
        found.sort_unstable();
        let vector = self.weigh(&mut found.iter().map(|&(number, _)| number).collect::<Vec<u32>>());
        let spans = found
            .chunk_by(|left, right| left.0 == right.0)
            .map(|same| same.iter().map(|&(_, span)| span).collect())
            .collect();
        (vector, spans)
    }

    /// Counts equal term numbers, weighs them and brings the whole to length 1.
    fn weigh(&self, found: &mut [u32]) -> SparseVector {
        found.sort_unstable();
        let distinct = found.chunk_by(|left, right| left == right);
        let mut vector = SparseVector::default();
        let mut squares = 0.0_f64;
        for same in distinct {
            let frequency = same.len() as f32;
            let frequency = if self.options.sublinear {
                1.0 + frequency.ln()
            } else {
                frequency
            };
            let value = frequency * self.idf[same[0] as usize];
            squares += f64::from(value) * f64::from(value);
            vector.indices.push(same[0]);
            vector.values.push(value);
        }
        if squares > 0.0 {
            let scale = (1.0 / squares.sqrt()) as f32;
            vector.values.iter_mut().for_each(|value| *value *= scale);
        }
        vector
    }
}

impl Clone for TfIdf {
    fn clone(&self) -> Self {
        Self::assemble(
            self.options.clone(),
            self.language,
            self.documents,
            self.table.clone(),
            self.idf.clone(),
        )
    }
}

impl PartialEq for TfIdf {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
            && self.language == other.language
            && self.documents == other.documents
            && self.idf == other.idf
            && self.terms().eq(other.terms())
    }
}

impl TryFrom<TfIdfParts> for TfIdf {
    type Error = TfIdfError;

    fn try_from(parts: TfIdfParts) -> Result<Self, TfIdfError> {
        Self::from_parts(parts)
    }
}

impl From<TfIdf> for TfIdfParts {
    fn from(tfidf: TfIdf) -> Self {
        tfidf.to_parts()
    }
}
