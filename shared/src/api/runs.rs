//! Training runs: what to start, how they stand, what they said.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Stage, TrainEvent};

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Queued,
    Running,
    /// Asked to stop, not yet gone.
    Cancelling,
    Cancelled,
    /// The child or the server went away in the middle; it can be resumed.
    Interrupted,
    Failed,
    Done,
}

impl RunStatus {
    /// Whether nothing more will happen unless someone resumes it.
    pub fn is_over(self) -> bool {
        matches!(
            self,
            Self::Cancelled | Self::Interrupted | Self::Failed | Self::Done
        )
    }

    /// Whether `resume` takes it.
    pub fn is_resumable(self) -> bool {
        matches!(self, Self::Cancelled | Self::Interrupted | Self::Failed)
    }
}

/// A preset's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    #[default]
    Fast,
    Balanced,
    Best,
}

impl Preset {
    /// The name as `gnnxml train --preset` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Best => "best",
        }
    }
}

/// Body of `POST /api/v1/runs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// Id of the corpus to train on.
    pub corpus: u64,
    /// Id of a corpus to validate on; without it some training documents are held out.
    #[serde(default)]
    pub valid: Option<u64>,
    /// A name for people.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub preset: Preset,
    /// TOML that overrides settings of the preset, as `gnnxml train --config` reads it.
    #[serde(default)]
    pub config: Option<String>,
    #[serde(default)]
    pub seed: Option<u64>,
    /// Worker threads of the child; all cores without it.
    #[serde(default)]
    pub threads: Option<u32>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Run {
    pub id: u64,
    pub name: String,
    pub status: RunStatus,
    /// What it was started with.
    pub settings: StartRun,
    /// SHA-256 of the training corpus' file, in hexadecimal.
    pub corpus_fingerprint: String,
    /// Milliseconds since 1970.
    pub created: u64,
    pub started: Option<u64>,
    pub finished: Option<u64>,
    /// How often it was started: 1, and one more a resume.
    pub attempts: u32,
    /// The stage it is in, or ended in.
    pub stage: Option<Stage>,
    /// How far that stage is, 0 to 1.
    pub stage_progress: Option<f64>,
    /// Newest figures on validation documents, in percent.
    pub metrics: BTreeMap<String, f64>,
    /// Why it failed.
    pub error: Option<String>,
    /// The last lines the child wrote to its error stream; only for runs that did not end well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// Whether `resume` takes it.
    pub resumable: bool,
    /// The model published from it.
    pub model: Option<String>,
}

/// Answer of `GET /api/v1/runs`, newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunList {
    pub runs: Vec<Run>,
}

/// One stored event: the `data` of a server-sent event of `GET /api/v1/runs/{id}/events`.
///
/// The SSE `id` is [`StoredEvent::id`]: send the last one seen as `Last-Event-ID` and the stream goes on after it.
/// The stream ends with an SSE event named `end` whose data is the final [`Run`]. Comment lines keep it alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoredEvent {
    /// Counts up from 1 within the run, over all its attempts.
    pub id: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    pub event: TrainEvent,
}

/// Body of `POST /api/v1/runs/{id}/publish`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PublishRun {
    /// A name for people; the run's name without it.
    pub name: Option<String>,
    /// Whether it tags from now on; yes unless told otherwise.
    pub activate: Option<bool>,
}
