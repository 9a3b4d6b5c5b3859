//! Every error leaves the server through here, as `{message, code, type, link}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gnnxml_shared::api::{ErrorBody, ErrorCode};

use crate::runs::{QueueError, StoreError};

/// A refusal or a fault, ready to be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: ErrorCode,
    pub message: String,
    /// Seconds after which a client may try again.
    pub retry_after: Option<u32>,
}

/// What handlers return.
pub(super) type Answer<T> = Result<T, Failure>;

impl Failure {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(super) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Our fault: the cause goes to the log, the caller gets the request id from the answer's header.
    pub(super) fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "internal error");
        Self::new(
            ErrorCode::Internal,
            "something went wrong on the server; its log tells what, under the id in this answer's x-request-id",
        )
    }

    pub(super) fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code, self.message.clone())
    }

    /// From an input or output error: a full disk is said as such.
    pub(super) fn io(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::new(
                ErrorCode::DiskFull,
                "the disk of the data directory is full: free some space, then try again",
            ),
            _ => Self::internal(error),
        }
    }

    /// From the database; `missing` is the code of a row that is not there, `state` of one that does not allow it.
    pub(super) fn store(error: StoreError, missing: ErrorCode, state: ErrorCode) -> Self {
        match error {
            StoreError::Missing { what, id } => Self::new(missing, format!("there is no {what} {id}")),
            StoreError::State(message) => Self::new(state, message),
            other => other.into(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DiskFull(_) => Self::new(
                ErrorCode::DiskFull,
                "the disk of the data directory is full: free some space, then try again",
            ),
            StoreError::Io(error) => Self::io(&error),
            other => Self::internal(other),
        }
    }
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Full(waiting) => Self::new(
                ErrorCode::Busy,
                format!("{waiting} runs are waiting, which is the limit `queued_runs`: cancel one or wait"),
            )
            .retry_after(60),
            QueueError::Stopping => Self::new(ErrorCode::Busy, "the server is stopping").retry_after(10),
            QueueError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == ErrorCode::Unauthorized {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
