//! Every request, response and event that crosses the wire.
//!
//! The server answers with these types, the page reads them, `gnnxml train --json-progress` prints them.
//! With the feature `openapi` each carries its schema.

mod clusters;
mod progress;
mod tagging;

pub use clusters::{
    ClusterDetail, ClusterList, ClusterStatistics, ClusterSummary, ExampleDocument, LabelDetail, LabelMap,
    LabelNeighbour, LabelSearch, LabelSummary, TermWeight,
};
pub use progress::{LogLevel, Stage, TrainEvent};
pub use tagging::{
    Evidence, MatchedCluster, SentenceEvidence, Tag, TagResponse, VertexEvidence, WordEvidence,
};
