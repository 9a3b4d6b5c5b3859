//! Tagging: one text, a batch, or a stream of them; and a text's KeyGraph.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use gnnxml_shared::api::{
    ErrorBody, ErrorCode, KeyGraphRequest, StreamDocument, StreamResult, TagAnswer, TagRequest, TagResponse,
};
use gnnxml_shared::keygraph::KeyGraph;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::server::AppState;
use crate::server::extract::{Coding, JsonBody, Params, coding, next_piece, require_media_type};
use crate::server::failure::{Answer, Failure};
use crate::server::registry::LoadedModel;

use super::feedback::check_text;
use super::models::model_id;

/// How many tags are given unless the caller says otherwise.
const TOP: u32 = 10;

/// Documents of a stream that are tagged together.
const STREAM_CHUNK: usize = 64;

pub(super) fn check_top(state: &AppState, top: Option<u32>) -> Answer<usize> {
    let limit = state.limits().top;
    match top.unwrap_or(TOP.min(limit)) {
        top if (1..=limit).contains(&top) => Ok(top as usize),
        top => Err(Failure::new(
            ErrorCode::TopOutOfRange,
            format!("`top` is {top}, expected 1 to {limit} (the limit `top`)"),
        )),
    }
}

/// The model a request is answered with, from its first text to its last.
pub(super) async fn model_for(state: &AppState, wanted: Option<String>) -> Answer<Arc<LoadedModel>> {
    let Some(wanted) = wanted else {
        return state.registry().active().ok_or_else(|| {
            Failure::new(
                ErrorCode::NoActiveModel,
                "no model is active: train one and publish it, or activate one under /api/v1/models",
            )
        });
    };
    crate::server::publish::loaded(state, model_id(&wanted)?).await
}

/// Tags texts with one model, in parallel, within the server's limits.
pub(super) async fn tag_texts(
    state: &AppState,
    model: Arc<LoadedModel>,
    texts: Vec<String>,
    top: usize,
    explain: bool,
) -> Answer<(Vec<TagResponse>, f64)> {
    let permit = state.admission().enter().await.inspect_err(|_| {
        state.counters().refused_busy.fetch_add(1, Ordering::Relaxed);
    })?;
    tag_admitted(state, permit, model, texts, top, explain).await
}

async fn tag_admitted(
    state: &AppState,
    permit: OwnedSemaphorePermit,
    model: Arc<LoadedModel>,
    texts: Vec<String>,
    top: usize,
    explain: bool,
) -> Answer<(Vec<TagResponse>, f64)> {
    let count = texts.len() as u64;
    let (tagged, took) = tokio::task::spawn_blocking(move || {
        // The permit is held while the engine works, not while the client waits: a request that times out
        // does not let another one in before its work has ended.
        let _permit = permit;
        let started = Instant::now();
        let one = |text: &String| model.engine.tag(text, top, explain);
        let tagged: Result<Vec<_>, _> = if texts.len() == 1 {
            texts.iter().map(one).collect()
        } else {
            texts.par_iter().map(one).collect()
        };
        (tagged, started.elapsed())
    })
    .await
    .map_err(Failure::internal)?;
    let tagged = tagged.map_err(Failure::internal)?;
    state.counters().documents.fetch_add(count, Ordering::Relaxed);
    state
        .counters()
        .engine_micros
        .fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    Ok((tagged, took.as_secs_f64() * 1e3))
}

/// Tag one text or a batch
#[utoipa::path(post, path = "/api/v1/tag", tag = "tagging", request_body = TagRequest, responses(
    (status = 200, body = TagAnswer), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn tag(
    State(state): State<AppState>,
    JsonBody(request): JsonBody<TagRequest>,
) -> Answer<Json<TagAnswer>> {
    let texts = match (request.text, request.texts) {
        (Some(text), None) => vec![text],
        (None, Some(texts)) => texts,
        _ => {
            return Err(Failure::new(
                ErrorCode::InvalidJson,
                "give either `text` or `texts`, and not both",
            ));
        }
    };
    let limit = state.limits().batch_documents as usize;
    if texts.len() > limit {
        return Err(Failure::new(
            ErrorCode::BatchTooLarge,
            format!(
                "{} texts in one batch, the limit `batch_documents` is {limit}: send several, or stream to /api/v1/tag/stream",
                texts.len()
            ),
        ));
    }
    texts.iter().try_for_each(|text| check_text(&state, text))?;
    let top = check_top(&state, request.top)?;
    let model = model_for(&state, request.model).await?;
    let id = model.id.clone();
    let (results, milliseconds) = tag_texts(&state, model, texts, top, request.explain).await?;
    Ok(Json(TagAnswer {
        model: id,
        results,
        milliseconds,
    }))
}

/// Settings of a stream.
#[derive(Debug, Deserialize)]
pub(in crate::server) struct StreamQuery {
    #[serde(default)]
    top: Option<u32>,
    #[serde(default)]
    explain: bool,
    #[serde(default)]
    model: Option<String>,
}

/// Tag a stream: one JSON document a line in, one result a line out, in order, all by one model
///
/// Results are sent while documents still arrive: read and write at the same time.
#[utoipa::path(post, path = "/api/v1/tag/stream", tag = "tagging",
    params(("top" = Option<u32>, Query), ("explain" = Option<bool>, Query), ("model" = Option<String>, Query)),
    request_body(content = StreamDocument, content_type = "application/x-ndjson"), responses(
    (status = 200, body = StreamResult, content_type = "application/x-ndjson"), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn tag_stream(
    State(state): State<AppState>,
    Params(query): Params<StreamQuery>,
    request: Request,
) -> Answer<Response> {
    require_media_type(request.headers(), "application/x-ndjson")?;
    if coding(request.headers())? != Coding::Identity {
        return Err(Failure::new(
            ErrorCode::UnsupportedEncoding,
            "a stream is sent without Content-Encoding",
        ));
    }
    let top = check_top(&state, query.top)?;
    let model = model_for(&state, query.model).await?;
    let results = stream_results(state, model, request.into_body(), top, query.explain);
    let mut response = Body::from_stream(results).into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    Ok(response)
}

/// Lines of the stream, cut out of the pieces they arrive in.
#[derive(Debug)]
struct Lines {
    body: Body,
    rest: Vec<u8>,
    /// How far `rest` is known to hold no line end.
    searched: usize,
    ended: bool,
}

impl Lines {
    /// The next line; `None` at the end of the body.
    async fn next(&mut self, state: &AppState) -> Answer<Option<Vec<u8>>> {
        // A JSON string may take six bytes for one.
        let longest = state.limits().text_bytes as usize * 6 + 4096;
        loop {
            if let Some(at) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
                let tail = self.rest.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.rest, tail);
                line.pop();
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.rest.len();
            if self.ended {
                let last = std::mem::take(&mut self.rest);
                self.searched = 0;
                return Ok((!last.is_empty()).then_some(last));
            }
            if self.rest.len() > longest {
                return Err(Failure::new(
                    ErrorCode::TextTooLong,
                    format!("a line is longer than {longest} bytes"),
                ));
            }
            match next_piece(&mut self.body, state.patience()).await? {
                Some(piece) => self.rest.extend_from_slice(&piece),
                None => self.ended = true,
            }
        }
    }

    /// Whether a whole line is here already.
    fn has_line(&self) -> bool {
        self.rest.contains(&b'\n')
    }
}

fn stream_results(
    state: AppState,
    model: Arc<LoadedModel>,
    body: Body,
    top: usize,
    explain: bool,
) -> impl futures::Stream<Item = Result<Bytes, std::convert::Infallible>> {
    async_stream::stream! {
        let mut lines = Lines { body, rest: Vec::new(), searched: 0, ended: false };
        let mut number = 0_u64;
        let mut over = false;
        while !over {
            // What has arrived is tagged together; a slow sender gets each answer at once.
            let mut chunk: Vec<(u64, Answer<StreamDocument>)> = Vec::new();
            while chunk.len() < STREAM_CHUNK && (chunk.is_empty() || lines.has_line()) {
                match lines.next(&state).await {
                    Ok(Some(line)) => {
                        number += 1;
                        if line.trim_ascii().is_empty() { continue }
                        if number > u64::from(state.limits().stream_documents) {
                            over = true;
                            chunk.push((number, Err(Failure::new(
                                ErrorCode::BatchTooLarge,
                                format!("more lines than the limit `stream_documents` of {}", state.limits().stream_documents),
                            ))));
                            break;
                        }
                        chunk.push((number, document(&state, &line)));
                    }
                    Ok(None) => { over = true; break }
                    Err(failure) => {
                        over = true;
                        chunk.push((number + 1, Err(failure)));
                        break;
                    }
                }
            }
            let texts = chunk.iter().filter_map(|(_, parsed)| parsed.as_ref().ok()).map(|d| d.text.clone()).collect::<Vec<_>>();
            let mut tagged = if texts.is_empty() {
                Ok(Vec::new().into_iter())
            } else {
                // A stream that has begun is not refused: it waits, and its sender with it.
                match state.admission().wait().await {
                    Ok(permit) => tag_admitted(&state, permit, Arc::clone(&model), texts, top, explain)
                        .await
                        .map(|(tagged, _)| tagged.into_iter()),
                    Err(failure) => Err(failure),
                }
            };
            let mut out = Vec::new();
            for (line, parsed) in chunk {
                let mut answer = StreamResult { line, id: None, result: None, error: None };
                match (parsed, &mut tagged) {
                    (Ok(document), Ok(results)) => {
                        answer.id = document.id;
                        answer.result = results.next();
                    }
                    (Ok(document), Err(failure)) => {
                        answer.id = document.id;
                        answer.error = Some(failure.body());
                    }
                    (Err(failure), _) => answer.error = Some(failure.body()),
                }
                serde_json::to_writer(&mut out, &answer).expect("results serialise");
                out.push(b'\n');
            }
            if !out.is_empty() { yield Ok(Bytes::from(out)) }
        }
    }
}

fn document(state: &AppState, line: &[u8]) -> Answer<StreamDocument> {
    let document: StreamDocument = serde_json::from_slice(line).map_err(|error| {
        Failure::new(
            ErrorCode::InvalidJson,
            format!("not {{\"id\"?, \"text\"}}: {error}"),
        )
    })?;
    check_text(state, &document.text)?;
    Ok(document)
}

/// The KeyGraph of a text, with the active model's lexicon when there is one
#[utoipa::path(post, path = "/api/v1/keygraph", tag = "tagging", request_body = KeyGraphRequest, responses(
    (status = 200, body = KeyGraph), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn keygraph(
    State(state): State<AppState>,
    JsonBody(request): JsonBody<KeyGraphRequest>,
) -> Answer<Json<KeyGraph>> {
    check_text(&state, &request.text)?;
    let permit = state.admission().enter().await?;
    let model = state.registry().active();
    let graph = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        crate::server::engine::keygraph(model.as_deref().map(|model| &model.engine), &request.text)
    })
    .await
    .map_err(Failure::internal)?;
    Ok(Json(graph))
}
