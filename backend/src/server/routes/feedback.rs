//! Accepted and rejected tags; exported as a corpus that `train` and `learn` read.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use gnnxml_shared::api::{ErrorBody, ErrorCode, Feedback, FeedbackList, LabelledText, NewFeedback};
use serde::Deserialize;

use crate::server::AppState;
use crate::server::extract::{JsonBody, Params, Segments, number};
use crate::server::failure::{Answer, Failure};

use super::models::model_id;

/// The most labels in one piece of feedback, and the longest name of one in bytes.
const MOST_LABELS: usize = 1000;
const LABEL_BYTES: usize = 2000;

/// How many pieces a page or an export's step holds.
const AT_ONCE: usize = 200;

pub(super) fn check_labels(labels: &[String]) -> Answer<()> {
    if labels.len() > MOST_LABELS
        || labels
            .iter()
            .any(|name| name.is_empty() || name.len() > LABEL_BYTES)
    {
        return Err(Failure::new(
            ErrorCode::InvalidParameter,
            format!("feedback has at most {MOST_LABELS} labels, each of 1 to {LABEL_BYTES} bytes"),
        ));
    }
    Ok(())
}

pub(super) fn check_text(state: &AppState, text: &str) -> Answer<()> {
    let limit = state.limits().text_bytes;
    if text.len() as u64 > limit {
        return Err(Failure::new(
            ErrorCode::TextTooLong,
            format!(
                "a text has {} bytes, the limit `text_bytes` is {limit}",
                text.len()
            ),
        ));
    }
    Ok(())
}

/// Say which tags were right and which wrong; the text is kept only with `keep_text`
#[utoipa::path(post, path = "/api/v1/feedback", tag = "feedback", request_body = NewFeedback, responses(
    (status = 201, body = Feedback), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn add(
    State(state): State<AppState>,
    JsonBody(new): JsonBody<NewFeedback>,
) -> Answer<(StatusCode, Json<Feedback>)> {
    check_labels(&new.accepted)?;
    check_labels(&new.rejected)?;
    if new.accepted.is_empty() && new.rejected.is_empty() {
        return Err(Failure::new(
            ErrorCode::InvalidParameter,
            "feedback names at least one label in `accepted` or `rejected`",
        ));
    }
    if let Some(text) = &new.text {
        check_text(&state, text)?;
    }
    let model = match new.model {
        Some(model) => Some(model_id(&model)?),
        None => state.registry().active().map(|model| model.id.clone()),
    };
    let mut feedback = Feedback {
        id: 0,
        created: crate::runs::now(),
        model,
        text: new.text.filter(|text| new.keep_text && !text.is_empty()),
        accepted: new.accepted,
        rejected: new.rejected,
    };
    let stored = feedback.clone();
    let ids = state
        .store()
        .call(move |store| store.add_feedback(&[stored]))
        .await?;
    feedback.id = ids.first().copied().unwrap_or_default();
    Ok((StatusCode::CREATED, Json(feedback)))
}

/// A page of the list.
#[derive(Debug, Deserialize)]
pub(in crate::server) struct PageQuery {
    #[serde(default)]
    before: Option<u64>,
}

/// Feedback, newest first, 200 a page
#[utoipa::path(get, path = "/api/v1/feedback", tag = "feedback", params(("before" = Option<u64>, Query)), responses(
    (status = 200, body = FeedbackList), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn list(
    State(state): State<AppState>,
    Params(query): Params<PageQuery>,
) -> Answer<Json<FeedbackList>> {
    let before = query.before.unwrap_or(u64::MAX);
    Ok(Json(
        state
            .store()
            .call(move |store| store.feedback(before, AT_ONCE))
            .await?,
    ))
}

/// Forget one piece of feedback
#[utoipa::path(delete, path = "/api/v1/feedback/{id}", tag = "feedback", params(("id" = u64, Path)), responses(
    (status = 204), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn delete(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<StatusCode> {
    let id = number(&id, "feedback", ErrorCode::FeedbackNotFound)?;
    state
        .store()
        .call(move |store| store.delete_feedback(id))
        .await
        .map_err(|error| Failure::store(error, ErrorCode::FeedbackNotFound, ErrorCode::Internal))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Kept texts with their accepted labels, as a JSONL corpus
#[utoipa::path(get, path = "/api/v1/feedback/export", tag = "feedback", responses(
    (status = 200, body = LabelledText, content_type = "application/x-ndjson"), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn export(State(state): State<AppState>) -> Response {
    let lines = async_stream::stream! {
        let mut after = 0;
        loop {
            let page = match state.store().call(move |store| store.exportable_feedback(after, AT_ONCE)).await {
                Ok(page) => page,
                Err(error) => {
                    yield Err(std::io::Error::other(error));
                    return;
                }
            };
            let Some(last) = page.last() else { return };
            after = last.id;
            let mut lines = String::new();
            for piece in page {
                let line = LabelledText {
                    id: format!("feedback-{}", piece.id),
                    text: piece.text.unwrap_or_default(),
                    labels: piece.accepted,
                };
                lines += &serde_json::to_string(&line).expect("a document is plain data");
                lines.push('\n');
            }
            yield Ok(Bytes::from(lines));
        }
    };
    let mut response = Body::from_stream(lines).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"feedback.jsonl\""),
    );
    response
}
