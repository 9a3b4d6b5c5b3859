//! What a training run says while it runs: one JSON object a line, the same for terminal, database and page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The stages of a training run, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Corpus read, vocabulary and entity lexicon learned.
    Read,
    /// KeyGraphs built, sentences encoded, vertex features laid out.
    Encode,
    /// Label graph built, filtered and cut into clusters.
    Cluster,
    /// Bilateral GIN trained.
    Match,
    /// Per-label classifiers trained.
    Rank,
    /// Score mixture and calibration fitted on validation documents.
    Calibrate,
    /// Model directory written.
    Save,
}

impl Stage {
    /// Every stage, in the order a run passes them.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Encode,
        Self::Cluster,
        Self::Match,
        Self::Rank,
        Self::Calibrate,
        Self::Save,
    ];
}

/// How loud a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Info,
    Warning,
    Error,
}

/// One event of a training run.
///
/// ```
/// use gnnxml_shared::api::{Stage, TrainEvent};
/// let line = serde_json::to_string(&TrainEvent::StageStarted { stage: Stage::Read }).unwrap();
/// assert_eq!(line, r#"{"type":"stage_started","stage":"read"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TrainEvent {
    StageStarted {
        stage: Stage,
    },
    /// A stage found its result from an earlier, interrupted run.
    StageReused {
        stage: Stage,
    },
    Progress {
        stage: Stage,
        done: u64,
        total: u64,
        per_second: f64,
        seconds_left: Option<f64>,
    },
    StageDone {
        stage: Stage,
        seconds: f64,
        /// What all threads of the run took together; 0 from a run that did not say.
        #[serde(default)]
        cpu_seconds: f64,
    },
    /// One epoch of the matcher.
    Epoch {
        epoch: u32,
        epochs: u32,
        /// E(ĝ, g_c), the natural distribution.
        loss_conventional: f64,
        /// E(ĝ, g_r), the reversed distribution.
        loss_rebalance: f64,
        alpha: f64,
        validation_loss: Option<f64>,
        /// Share of true clusters among the matched ones on validation documents, 0 to 1.
        cluster_recall: Option<f64>,
        examples_per_second: f64,
        seconds_left: Option<f64>,
        /// Whether this is the best epoch so far.
        best: bool,
    },
    /// Figures on the validation documents, in percent, by the names `evaluate --json` uses.
    Metrics {
        values: BTreeMap<String, f64>,
    },
    Log {
        level: LogLevel,
        message: String,
    },
    /// The run was asked to stop and saved what it had.
    Interrupted {
        resumable: bool,
    },
    Done {
        seconds: f64,
    },
    Failed {
        message: String,
    },
}
