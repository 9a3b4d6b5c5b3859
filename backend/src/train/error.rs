//! Why a run ended without a model.

use std::path::PathBuf;

use super::{ConfigError, ModelError, PartError};
use crate::data::CorpusError;
use crate::labels::LabelError;
use crate::ranker::RowsError;

/// Why a run ended without a model.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error("{}: found {documents} documents, none of them with a label; expected at least one labelled document", path.display())]
    Nothing { path: PathBuf, documents: usize },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("label clusters: {0}")]
    Labels(#[from] LabelError),
    #[error("ranker features: {0}")]
    Rows(#[from] RowsError),
    #[error("matcher: {0}")]
    Matcher(#[from] crate::matcher::MatcherError),
    #[error("graph input: {0}")]
    Graph(#[from] gnnxml_shared::model::matcher::MatcherError),
    #[error("encoder {name}: {error}")]
    NoEncoder {
        name: String,
        error: crate::encoder::EncoderError,
    },
    #[error("encoder {name}: {reason}")]
    Encoder { name: String, reason: String },
    #[error(transparent)]
    Part(#[from] PartError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error("the run was stopped; run the same command with --resume to go on where it was")]
    Interrupted,
}

impl TrainError {
    /// Whether the caller's corpus or settings are at fault, rather than the machine or the program.
    pub fn is_the_callers(&self) -> bool {
        match self {
            Self::Corpus(_) | Self::Nothing { .. } | Self::Config(_) | Self::NoEncoder { .. } => true,
            Self::Model(error) => error.is_the_callers(),
            _ => false,
        }
    }
}
