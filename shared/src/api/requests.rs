//! Requests that ask something about a text.

use serde::{Deserialize, Serialize};

use super::TagResponse;

/// Body of `POST /api/v1/tag`: one `text`, or a batch of `texts`, never both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TagRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<Vec<String>>,
    /// How many tags at most; 10 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<u32>,
    /// Whether every tag comes with its evidence and the answer with the KeyGraph.
    pub explain: bool,
    /// Another published model than the active one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Answer of `POST /api/v1/tag`: one result for each text, in order, all from one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TagAnswer {
    /// The model that answered.
    pub model: String,
    pub results: Vec<TagResponse>,
    /// Time in the engine, without waiting.
    pub milliseconds: f64,
}

/// One line sent to `POST /api/v1/tag/stream` (NDJSON in, NDJSON out).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StreamDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub text: String,
}

/// One line answered by `POST /api/v1/tag/stream`: either `result` or `error`, in the order of the lines sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StreamResult {
    /// Number of the line it answers, from 1.
    pub line: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TagResponse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<super::ErrorBody>,
}

/// Body of `POST /api/v1/keygraph`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyGraphRequest {
    pub text: String,
}
