//! Starting, watching, stopping and publishing runs.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::Stream;
use gnnxml_shared::api::{
    ErrorBody, ErrorCode, ModelSummary, PublishRun, Run, RunList, StartRun, StoredEvent,
};
use serde::Deserialize;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::runs::{LiveEvent, Store, StoreError};
use crate::server::AppState;
use crate::server::extract::{JsonBody, Params, Segments, number};
use crate::server::failure::{Answer, Failure};
use crate::server::listen::asked;
use crate::server::observe::Gauge;
use crate::server::publish;

/// The longest name a run, corpus or model may have, in characters.
pub(super) const NAME_CHARACTERS: usize = 200;

/// The longest TOML of settings, in bytes.
const CONFIG_BYTES: usize = 64 << 10;

/// The most threads a run may ask for.
const MOST_THREADS: u32 = 1024;

fn run_id(segment: &str) -> Answer<u64> {
    number(segment, "run", ErrorCode::RunNotFound)
}

fn fault(error: StoreError, state: ErrorCode) -> Failure {
    Failure::store(error, ErrorCode::RunNotFound, state)
}

/// A name people can read: trimmed, no control characters, not too long.
pub(super) fn readable_name(name: Option<String>) -> Answer<Option<String>> {
    let Some(name) = name else { return Ok(None) };
    let name = name.trim();
    if name.is_empty() {
        return Ok(None);
    }
    if name.chars().count() > NAME_CHARACTERS || name.chars().any(char::is_control) {
        return Err(Failure::new(
            ErrorCode::InvalidParameter,
            format!("a name has at most {NAME_CHARACTERS} characters and none that cannot be seen"),
        ));
    }
    Ok(Some(name.to_owned()))
}

/// All runs, newest first
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", responses(
    (status = 200, body = RunList), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn list(State(state): State<AppState>) -> Answer<Json<RunList>> {
    let runs = state.store().call(Store::runs).await?;
    Ok(Json(RunList { runs }))
}

/// Start a run: it is queued and becomes a process of its own
#[utoipa::path(post, path = "/api/v1/runs", tag = "runs", request_body = StartRun, responses(
    (status = 201, body = Run), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn start(
    State(state): State<AppState>,
    JsonBody(mut settings): JsonBody<StartRun>,
) -> Answer<(StatusCode, Json<Run>)> {
    settings.name = readable_name(settings.name)?;
    check_settings(&settings)?;
    let name = settings.name.clone();
    let run = state
        .queue()
        .submit(name, settings)
        .await
        .map_err(|error| match error {
            crate::runs::QueueError::Store(error) => {
                Failure::store(error, ErrorCode::CorpusNotFound, ErrorCode::InvalidSettings)
            }
            other => other.into(),
        })?;
    Ok((StatusCode::CREATED, Json(run)))
}

fn check_settings(settings: &StartRun) -> Answer<()> {
    let wrong = |message: String| Err(Failure::new(ErrorCode::InvalidSettings, message));
    for id in [Some(settings.corpus), settings.valid].into_iter().flatten() {
        number(&id.to_string(), "corpus", ErrorCode::CorpusNotFound)?;
    }
    if settings
        .threads
        .is_some_and(|threads| threads == 0 || threads > MOST_THREADS)
    {
        return wrong(format!("`threads` is not between 1 and {MOST_THREADS}"));
    }
    let Some(config) = &settings.config else {
        return Ok(());
    };
    if config.len() > CONFIG_BYTES {
        return wrong(format!(
            "`config` has {} bytes, the limit is {CONFIG_BYTES}",
            config.len()
        ));
    }
    match config.parse::<toml::Table>() {
        Ok(table) => refuse_paths(&toml::Value::Table(table)),
        Err(error) => wrong(format!("`config` is not TOML: {}", error.message())),
    }
}

/// A setting that names a file or folder would let a caller choose what the server's machine reads.
/// Encoders may be given as a folder on the command line; here only by name.
fn refuse_paths(value: &toml::Value) -> Answer<()> {
    match value {
        toml::Value::Table(table) => table.values().try_for_each(refuse_paths),
        toml::Value::Array(values) => values.iter().try_for_each(refuse_paths),
        toml::Value::String(text) if text.contains(['/', '\\', '\0']) || text.starts_with('.') => {
            Err(Failure::new(
                ErrorCode::InvalidSettings,
                format!("{text:?} looks like a path; the settings of a run on the server may not name files"),
            ))
        }
        _ => Ok(()),
    }
}

/// One run
#[utoipa::path(get, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = u64, Path)), responses(
    (status = 200, body = Run), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn one(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<Json<Run>> {
    let id = run_id(&id)?;
    let row = state.store().call(move |store| store.run(id)).await;
    Ok(Json(row.map_err(|error| fault(error, ErrorCode::Internal))?.run))
}

/// Forget a run that is over, with its directory and events
#[utoipa::path(delete, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = u64, Path)), responses(
    (status = 204), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn delete(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<StatusCode> {
    let deleted = state.queue().delete(run_id(&id)?).await;
    deleted.map_err(|error| fault(error, ErrorCode::RunStillRunning))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a run off the queue, or stop it within two seconds
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", tag = "runs", params(("id" = u64, Path)), responses(
    (status = 200, body = Run), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn cancel(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<Json<Run>> {
    let run = state.queue().cancel(run_id(&id)?).await;
    Ok(Json(run.map_err(|error| fault(error, ErrorCode::RunNotRunning))?))
}

/// Queue a cancelled, interrupted or failed run once more; it goes on from its checkpoints
#[utoipa::path(post, path = "/api/v1/runs/{id}/resume", tag = "runs", params(("id" = u64, Path)), responses(
    (status = 200, body = Run), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn resume(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<Json<Run>> {
    let run = state
        .queue()
        .resume(run_id(&id)?)
        .await
        .map_err(|error| match error {
            crate::runs::QueueError::Store(error) => fault(error, ErrorCode::RunNotResumable),
            other => other.into(),
        })?;
    Ok(Json(run))
}

/// Publish a finished run as a model, and let it tag
#[utoipa::path(post, path = "/api/v1/runs/{id}/publish", tag = "runs", params(("id" = u64, Path)),
    request_body = PublishRun, responses(
    (status = 201, body = ModelSummary), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn publish(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
    JsonBody(body): JsonBody<PublishRun>,
) -> Answer<(StatusCode, Json<ModelSummary>)> {
    let id = run_id(&id)?;
    let name = readable_name(body.name)?;
    let model = publish::publish_run(&state, id, name, body.activate.unwrap_or(true)).await?;
    Ok((StatusCode::CREATED, Json(model)))
}

/// Where a stream of events goes on.
#[derive(Debug, Deserialize)]
pub(in crate::server) struct EventsQuery {
    /// For clients that cannot send `Last-Event-ID`.
    #[serde(default)]
    after: Option<u64>,
}

/// How many stored events are read at once.
const EVENTS_AT_ONCE: usize = 500;

/// What a run says, as server-sent events: first what it said so far, then live
///
/// Each event's id counts up; a client that comes back sends the last one as `Last-Event-ID` and misses nothing.
/// The last event is named `end` and carries the finished run.
#[utoipa::path(get, path = "/api/v1/runs/{id}/events", tag = "runs",
    params(("id" = u64, Path), ("after" = Option<u64>, Query), ("Last-Event-ID" = Option<u64>, Header)), responses(
    (status = 200, body = StoredEvent, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn events(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
    Params(query): Params<EventsQuery>,
    headers: HeaderMap,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>> {
    let id = run_id(&id)?;
    let after = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .or(query.after)
        .unwrap_or(0);
    // Listening before reading: what is stored in between is heard, and told apart by its id.
    let live = state.queue().listen(id);
    let page = read_page(&state, id, after)
        .await
        .map_err(|error| fault(error, ErrorCode::Internal))?;
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(15));
    Ok(Sse::new(event_stream(state, id, after, live, page)).keep_alive(keep_alive))
}

/// Stored events behind the last one, and the run as it was before they were read: one that was over then says nothing more.
type Page = (Run, Vec<StoredEvent>);

async fn read_page(state: &AppState, id: u64, last: u64) -> Result<Page, StoreError> {
    let page = move |store: &Store| Ok((store.run(id)?.run, store.events(id, last, EVENTS_AT_ONCE)?));
    state.store().call(page).await
}

fn event_stream(
    state: AppState,
    id: u64,
    mut last: u64,
    mut live: broadcast::Receiver<LiveEvent>,
    mut page: Page,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    async_stream::stream! {
        let _counted = Gauge::new(&state.counters().listeners);
        let mut stopping = state.queue().stopping();
        'catch_up: loop {
            let (run, stored) = page;
            let all = stored.len() < EVENTS_AT_ONCE;
            for event in stored {
                last = event.id;
                let json = serde_json::to_string(&event).expect("events serialise");
                yield Ok(Event::default().id(event.id.to_string()).data(json));
            }
            if all && run.status.is_over() {
                let json = serde_json::to_string(&run).expect("runs serialise");
                yield Ok(Event::default().event("end").data(json));
                return;
            }
            if !all {
                let Ok(next) = read_page(&state, id, last).await else { return };
                page = next;
                continue 'catch_up;
            }
            loop {
                let heard = tokio::select! {
                    heard = live.recv() => heard,
                    () = asked(&mut stopping) => return,
                };
                match heard {
                    Ok(LiveEvent::Stored { id, .. }) if id <= last => {}
                    Ok(LiveEvent::Stored { id, json }) if id == last + 1 => {
                        last = id;
                        yield Ok(Event::default().id(id.to_string()).data(&*json));
                    }
                    Ok(LiveEvent::Over { newest, json }) if newest == last => {
                        yield Ok(Event::default().event("end").data(&*json));
                        return;
                    }
                    // A gap, or too slow: the database has everything.
                    Ok(LiveEvent::Stored { .. } | LiveEvent::Over { .. }) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => {
                        live = state.queue().listen(id);
                        break;
                    }
                }
            }
            let Ok(next) = read_page(&state, id, last).await else { return };
            page = next;
        }
    }
}
