//! What people said about tags: kept as training data when they agree.

use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/feedback`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewFeedback {
    /// The tagged text. Sent and stored only when the person agreed that it is kept.
    #[serde(default)]
    pub text: Option<String>,
    /// Must be true for `text` to be stored.
    #[serde(default)]
    pub keep_text: bool,
    /// Names of the labels that are right.
    #[serde(default)]
    pub accepted: Vec<String>,
    /// Names of the labels that are wrong.
    #[serde(default)]
    pub rejected: Vec<String>,
    /// The model whose tags these are; the active one without it.
    #[serde(default)]
    pub model: Option<String>,
}

/// One stored piece of feedback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Feedback {
    pub id: u64,
    /// Milliseconds since 1970.
    pub created: u64,
    pub model: Option<String>,
    /// Present only when the person agreed.
    pub text: Option<String>,
    pub accepted: Vec<String>,
    pub rejected: Vec<String>,
}

/// Answer of `GET /api/v1/feedback`, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FeedbackList {
    pub feedback: Vec<Feedback>,
    /// How many there are in all.
    pub total: u64,
    /// How many of them carry a text and an accepted label: what the export holds.
    pub exportable: u64,
}

/// A line of `GET /api/v1/feedback/export`: a kept text with its accepted labels, as a document that `train` and `learn` read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelledText {
    pub id: String,
    pub text: String,
    pub labels: Vec<String>,
}
