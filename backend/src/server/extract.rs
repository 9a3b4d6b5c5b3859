//! What handlers take in: path segments, query parameters and JSON bodies, each refused with our own errors.

use std::io::Read as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use gnnxml_shared::api::ErrorCode;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;

use super::AppState;
use super::failure::{Answer, Failure};

/// The path's parameters as strings, percent-decoded once.
#[derive(Debug)]
pub(super) struct Segments<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        Path::<T>::from_request_parts(parts, state)
            .await
            .map(|Path(segments)| Self(segments))
            .map_err(|error| Failure::new(ErrorCode::InvalidParameter, error.body_text()))
    }
}

/// A number in a path; what is none cannot exist, so it is `missing`.
pub(super) fn number(segment: &str, what: &str, missing: ErrorCode) -> Answer<u64> {
    match segment.parse::<u64>() {
        // SQLite counts to 2^63 − 1.
        Ok(id) if i64::try_from(id).is_ok() => Ok(id),
        _ => Err(Failure::new(
            missing,
            format!("there is no {what} {segment:?}; {what} ids are numbers"),
        )),
    }
}

/// The query's parameters.
#[derive(Debug)]
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        Query::<T>::from_request_parts(parts, state)
            .await
            .map(|Query(params)| Self(params))
            .map_err(|error| Failure::new(ErrorCode::InvalidParameter, error.body_text()))
    }
}

/// A JSON body: `Content-Type: application/json`, plain or gzip, never more than the limit.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &AppState) -> Answer<Self> {
        require_media_type(request.headers(), "application/json")?;
        let limit = state.limits().body_bytes;
        let body = bounded_body(request, limit, state.patience()).await?;
        match serde_json::from_slice(&body) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(Failure::new(
                ErrorCode::InvalidJson,
                format!("the body is not the JSON this route takes: {error}"),
            )),
        }
    }
}

/// A form, as Annif's clients send it.
#[derive(Debug)]
pub(super) struct FormBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<AppState> for FormBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &AppState) -> Answer<Self> {
        require_media_type(request.headers(), "application/x-www-form-urlencoded")?;
        let limit = state.limits().body_bytes;
        let body = bounded_body(request, limit, state.patience()).await?;
        let form = Request::builder()
            .method("POST")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(body))
            .map_err(Failure::internal)?;
        axum::Form::<T>::from_request(form, state)
            .await
            .map(|axum::Form(value)| Self(value))
            .map_err(|error| Failure::new(ErrorCode::InvalidParameter, error.body_text()))
    }
}

/// Refuses a body of another type: another site's form can only send types a browser sends without asking.
pub(super) fn require_media_type(headers: &HeaderMap, wanted: &str) -> Answer<()> {
    let found = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = found.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(wanted) {
        return Ok(());
    }
    let found = if found.is_empty() {
        "no Content-Type"
    } else {
        found
    };
    Err(Failure::new(
        ErrorCode::UnsupportedMediaType,
        format!("found {found}, this route takes Content-Type: {wanted}"),
    ))
}

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
}

pub(super) fn coding(headers: &HeaderMap) -> Answer<Coding> {
    match headers
        .get(header::CONTENT_ENCODING)
        .map(|value| value.to_str().unwrap_or("?"))
    {
        None | Some("identity") => Ok(Coding::Identity),
        Some("gzip") => Ok(Coding::Gzip),
        Some(other) => Err(Failure::new(
            ErrorCode::UnsupportedEncoding,
            format!("found Content-Encoding: {other}, this server takes identity and gzip"),
        )),
    }
}

pub(super) fn too_large(limit: u64) -> Failure {
    Failure::new(
        ErrorCode::BodyTooLarge,
        format!("the body is larger than the limit `body_bytes` of {limit} bytes: send it in pieces"),
    )
}

/// The whole body, decompressed, or the error that names the limit. Nothing is reserved on a header's word.
async fn bounded_body(request: Request, limit: u64, patience: Duration) -> Answer<Bytes> {
    let coding = coding(request.headers())?;
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let limited =
        http_body_util::Limited::new(request.into_body(), usize::try_from(limit).unwrap_or(usize::MAX));
    let collected = tokio::time::timeout(patience, limited.collect())
        .await
        .map_err(|_| timed_out(patience))?;
    let bytes = match collected {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => return Err(too_large(limit)),
        Err(_) => {
            return Err(Failure::new(
                ErrorCode::InvalidJson,
                "the body ended before it was complete",
            ));
        }
    };
    match coding {
        Coding::Identity => Ok(bytes),
        Coding::Gzip => {
            let mut plain = Vec::new();
            flate2::read::MultiGzDecoder::new(&bytes[..])
                .take(limit + 1)
                .read_to_end(&mut plain)
                .map_err(|error| {
                    Failure::new(
                        ErrorCode::InvalidJson,
                        format!("the gzip body is damaged: {error}"),
                    )
                })?;
            if plain.len() as u64 > limit {
                return Err(too_large(limit));
            }
            Ok(plain.into())
        }
    }
}

/// The next piece of a streamed body, within the time limit.
pub(super) async fn next_piece(body: &mut Body, patience: Duration) -> Answer<Option<Bytes>> {
    loop {
        let frame = tokio::time::timeout(patience, body.frame())
            .await
            .map_err(|_| timed_out(patience))?;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(piece) = frame.into_data()
                    && !piece.is_empty()
                {
                    return Ok(Some(piece));
                }
            }
            Some(Err(_)) => {
                return Err(Failure::new(
                    ErrorCode::InvalidParameter,
                    "the body ended before it was complete; nothing was kept",
                ));
            }
        }
    }
}

pub(super) fn timed_out(patience: Duration) -> Failure {
    Failure::new(
        ErrorCode::Timeout,
        format!(
            "the request took longer than the limit `request_seconds` of {} s",
            patience.as_secs()
        ),
    )
}
