//! Every request, response and event that crosses the wire.
//!
//! The server answers with these types, the page reads them, `gnnxml train --json-progress` prints them.
//! With the feature `openapi` each carries its schema.

mod clusters;
mod corpora;
mod error;
mod feedback;
mod health;
mod models;
mod progress;
mod requests;
mod runs;
mod tagging;
mod uploads;

pub use clusters::{
    ClusterDetail, ClusterList, ClusterStatistics, ClusterSummary, ExampleDocument, LabelDetail, LabelMap,
    LabelNeighbour, LabelSearch, LabelSummary, TermWeight,
};
pub use corpora::{Complaint, CorpusStats, LabelCount, Spread, TailPoint, TailShare};
pub use error::{ErrorBody, ErrorCode, ErrorType};
pub use feedback::{Feedback, FeedbackList, LabelledText, NewFeedback};
pub use health::{Health, HealthStatus, Limits};
pub use models::{ModelList, ModelSummary};
pub use progress::{LogLevel, Stage, TrainEvent};
pub use requests::{KeyGraphRequest, StreamDocument, StreamResult, TagAnswer, TagRequest};
pub use runs::{Preset, PublishRun, Run, RunList, RunStatus, StartRun, StoredEvent};
pub use tagging::{
    Evidence, MatchedCluster, SentenceEvidence, Tag, TagResponse, VertexEvidence, WordEvidence,
};
pub use uploads::{CorpusEntry, CorpusList};
