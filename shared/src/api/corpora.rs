//! What a corpus looks like from outside: its figures and what was wrong with it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something wrong in a corpus file: where it stands, what was found, what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Complaint {
    pub file: String,
    /// Counted from 1; 0 when the complaint is about the whole file.
    pub line: u64,
    pub found: String,
    pub expected: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": found {}, expected {}", self.found, self.expected)
    }
}

/// How a number is spread over the documents of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Spread {
    pub mean: f64,
    /// The lower one of two.
    pub median: u64,
    pub min: u64,
    pub max: u64,
}

/// The labels of one frequency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TailShare {
    /// `>100`, `10-100`, `2-9` or `1` documents.
    pub documents: String,
    pub labels: u64,
    /// Of all labels, 0 to 1.
    pub share: f64,
}

/// A point of the long-tail curve: the label at this rank (from 1) has that many documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TailPoint {
    pub rank: u64,
    pub documents: u64,
}

/// A label and its number of documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelCount {
    pub name: String,
    pub documents: u64,
}

/// What a corpus looks like: printed by `gnnxml corpus stats`, shown before a training run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CorpusStats {
    pub documents: u64,
    pub labels: u64,
    /// Labels given, over all documents.
    pub assignments: u64,
    pub labels_per_document: Spread,
    pub documents_per_label: Spread,
    pub words_per_document: Spread,
    pub sentences_per_document: Spread,
    /// Head first: more than 100 documents, 10 to 100, 2 to 9, 1.
    pub tail: Vec<TailShare>,
    /// Labels by falling frequency, thinned to at most 200 points that are evenly spaced on a logarithmic axis.
    pub curve: Vec<TailPoint>,
    /// The most frequent labels, at most ten.
    pub most_frequent: Vec<LabelCount>,
    /// Documents whose text, case and punctuation aside, stood before.
    pub duplicates: u64,
    /// Documents without a word.
    pub empty_texts: u64,
    /// Documents without a label.
    pub unlabelled: u64,
    /// Bad records that were left out.
    pub skipped: u64,
    /// What was wrong with them; the first hundred.
    pub complaints: Vec<Complaint>,
}
