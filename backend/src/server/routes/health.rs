//! Health and metrics.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use gnnxml_shared::api::{ErrorBody, Health, HealthStatus, RunStatus};

use crate::server::AppState;
use crate::server::failure::Answer;

async fn run_counts(state: &AppState) -> Answer<(u32, u32)> {
    Ok(state
        .store()
        .call(|store| {
            let running = store.runs_in(&[RunStatus::Running, RunStatus::Cancelling])?.len();
            let queued = store.runs_in(&[RunStatus::Queued])?.len();
            Ok((running as u32, queued as u32))
        })
        .await?)
}

/// How the server is, which model tags, and its limits
#[utoipa::path(get, path = "/api/v1/health", tag = "server", responses(
    (status = 200, body = Health), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn health(State(state): State<AppState>) -> Answer<Json<Health>> {
    let (runs_running, runs_queued) = run_counts(&state).await?;
    let stopping = *state.queue().stopping().borrow();
    Ok(Json(Health {
        status: if stopping {
            HealthStatus::Stopping
        } else {
            HealthStatus::Ok
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: state.counters().uptime().as_secs_f64(),
        active_model: state.registry().active().map(|model| model.id.clone()),
        runs_running,
        runs_queued,
        needs_key: state.config().api_key.is_some(),
        limits: *state.limits(),
    }))
}

/// Counters for Prometheus
#[utoipa::path(get, path = "/api/v1/metrics", tag = "server", responses(
    (status = 200, body = String, content_type = "text/plain"), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn metrics(State(state): State<AppState>) -> Answer<Response> {
    let (running, queued) = run_counts(&state).await?;
    let text = state.counters().prometheus(&[
        ("gnnxml_runs_running", "gauge", f64::from(running)),
        ("gnnxml_runs_queued", "gauge", f64::from(queued)),
        (
            "gnnxml_model_active",
            "gauge",
            f64::from(u8::from(state.registry().active().is_some())),
        ),
    ]);
    Ok((
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
        .into_response())
}
