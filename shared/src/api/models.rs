//! Published models: which there are, which one tags.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One published model. Its bundle is at `/api/v1/models/{id}/bundle/manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelSummary {
    /// Sixteen hexadecimal digits, from the content of the bundle's manifest: the same model has the same id everywhere.
    pub id: String,
    pub name: String,
    /// Milliseconds since 1970.
    pub created: u64,
    /// The run it came from, while that run is kept.
    pub run: Option<u64>,
    /// Name of the sentence encoder.
    pub encoder: String,
    pub labels: u64,
    pub clusters: u64,
    /// Bytes of the bundle on disk.
    pub bytes: u64,
    /// Figures on validation documents, in percent, by the names `evaluate --json` uses.
    pub metrics: BTreeMap<String, f64>,
    pub active: bool,
    /// Whether it is in memory, ready to answer at once.
    pub warm: bool,
}

/// Answer of `GET /api/v1/models`, newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelList {
    pub models: Vec<ModelSummary>,
    /// The model that tags.
    pub active: Option<String>,
    /// The model that tagged before it: what a rollback activates.
    pub previous: Option<String>,
}
