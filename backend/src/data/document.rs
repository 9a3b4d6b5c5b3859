//! One document of a corpus.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// A text with the names of its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Document {
    /// Unique within its corpus.
    pub id: String,
    pub text: String,
    /// Label names in the order they were given, each once. Empty when the document is unlabelled.
    pub labels: Vec<String>,
}

/// Keeps the first of equal labels, in order.
pub(super) fn without_repeats(labels: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::with_capacity(labels.len());
    let first: Vec<bool> = labels.iter().map(|label| seen.insert(label.as_str())).collect();
    labels
        .into_iter()
        .zip(first)
        .filter(|(_, first)| *first)
        .map(|(label, _)| label)
        .collect()
}
