//! Is the server well, and what does it serve?

use serde::{Deserialize, Serialize};

/// Answer of `GET /api/v1/health`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Health {
    /// `ok`, or `stopping` while the last requests are answered.
    pub status: HealthStatus,
    /// Version of the program.
    pub version: String,
    pub uptime_seconds: f64,
    /// Id of the model that tags, when there is one.
    pub active_model: Option<String>,
    pub runs_running: u32,
    pub runs_queued: u32,
    /// Whether every request must carry an API key (except this one).
    pub needs_key: bool,
    pub limits: Limits,
}

/// See [`Health::status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    Ok,
    Stopping,
}

/// The limits this server was started with; each is named in the error of a request that passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of a JSON body, after decompression.
    pub body_bytes: u64,
    /// Bytes of all header fields together.
    pub header_bytes: u64,
    /// Bytes of an uploaded corpus.
    pub upload_bytes: u64,
    /// Bytes of one text.
    pub text_bytes: u64,
    /// Documents in one batch.
    pub batch_documents: u32,
    /// Documents in one NDJSON stream.
    pub stream_documents: u32,
    /// Largest `top`.
    pub top: u32,
    /// Seconds a request may take to arrive and be answered (uploads and streams: between two pieces).
    pub request_seconds: u64,
    /// Tagging requests that may wait at once; more get 429.
    pub waiting_requests: u32,
    /// Runs that may wait at once; more get 503.
    pub queued_runs: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            header_bytes: 16 << 10,
            upload_bytes: 8 << 30,
            text_bytes: 1 << 20,
            batch_documents: 512,
            stream_documents: 1_000_000,
            top: 1000,
            request_seconds: 30,
            waiting_requests: 256,
            queued_runs: 100,
        }
    }
}
