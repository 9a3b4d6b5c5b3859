//! What can be wrong with a label graph's input, told so that a person can mend it.

use std::path::PathBuf;

use crate::collective::CollectiveError;

/// Everything that stops label clustering.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    #[error("there are no labels to cluster: give a corpus whose documents carry labels")]
    NoLabels,

    #[error(
        "document {document} carries label number {label}, but there are only {labels} labels (0 to {last})",
        last = labels.saturating_sub(1)
    )]
    UnknownLabel {
        document: usize,
        label: u32,
        labels: usize,
    },

    #[error("{what}: found {found}, expected {expected}")]
    Shape {
        what: &'static str,
        found: usize,
        expected: usize,
    },

    #[error("{what} {row} holds {value} in column {column}: every entry must be a finite number")]
    NotFinite {
        what: &'static str,
        row: usize,
        column: usize,
        value: f32,
    },

    #[error(
        "{clusters} clusters were asked for, but there are only {labels} labels: ask for at most {labels}"
    )]
    TooManyClusters { clusters: usize, labels: usize },

    #[error("option {option} is {found}, expected {expected}")]
    Option {
        option: &'static str,
        found: String,
        expected: &'static str,
    },

    #[error(transparent)]
    Collective(#[from] CollectiveError),

    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        operation: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },

    #[error("{} is not a usable label cluster file: {reason}", path.display())]
    Corrupt { path: PathBuf, reason: String },
}
