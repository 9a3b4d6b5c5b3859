//! The figures of an evaluation, ready to print or to send.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Labels by how many training documents carry them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum FrequencyBucket {
    #[serde(rename = ">100")]
    Over100,
    #[serde(rename = "10-100")]
    From10To100,
    #[serde(rename = "2-9")]
    From2To9,
    #[serde(rename = "1")]
    One,
    /// Never seen in training; only a label added later can be here.
    #[serde(rename = "0")]
    Unseen,
}

impl FrequencyBucket {
    /// From the head of the distribution to its tail.
    pub const ALL: [Self; 5] = [
        Self::Over100,
        Self::From10To100,
        Self::From2To9,
        Self::One,
        Self::Unseen,
    ];

    /// The bucket of a label with that many training documents.
    pub fn of(count: u32) -> Self {
        match count {
            0 => Self::Unseen,
            1 => Self::One,
            2..=9 => Self::From2To9,
            10..=100 => Self::From10To100,
            _ => Self::Over100,
        }
    }
}

/// How the labels of one frequency fare among the first k.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BucketFigures {
    pub bucket: FrequencyBucket,
    pub k: usize,
    /// True labels of this frequency in the scored documents.
    pub truths: u64,
    /// Labels of this frequency among the first k.
    pub predicted: u64,
    /// Those that were right.
    pub hits: u64,
    /// hits / predicted, in percent; absent when nothing was predicted.
    pub precision: Option<f64>,
    /// hits / truths, in percent; absent when there is no such true label.
    pub recall: Option<f64>,
}

/// Predictions whose probability fell into one interval, and how often they were right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalibrationBin {
    pub from: f64,
    pub to: f64,
    pub predictions: u64,
    /// Mean probability, 0 to 1.
    pub confidence: f64,
    /// Share that was right, 0 to 1.
    pub accuracy: f64,
}

/// Everything an evaluation found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EvaluationReport {
    /// Documents that were scored.
    pub documents: u64,
    /// Documents left out because none of their labels is known.
    pub documents_without_labels: u64,
    /// True labels left out because training never saw them.
    pub unknown_labels: u64,
    /// By name, in percent: `P@1`, `nDCG@3`, `PSP@5`, `PSnDCG@5`, `R@5`, `RP@5`, `coverage@5`, `micro_f1`,
    /// `macro_f1`, `ece` over all labels that were ranked, `ece_shown` over the first ten of each document.
    pub values: BTreeMap<String, f64>,
    /// The probability at which keeping a label gives the best micro-F1 here, and that micro-F1 in percent.
    pub best_cutoff: f64,
    pub best_cutoff_micro_f1: f64,
    pub buckets: Vec<BucketFigures>,
    pub calibration: Vec<CalibrationBin>,
}

impl EvaluationReport {
    /// A figure by its name, in percent.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}
