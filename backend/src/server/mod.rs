//! The HTTP server: the page, the API and Annif's suggest routes over one data directory.
//!
//! It never trains (a run is a child process), never fetches an address a caller gives, never takes a path from
//! one, and never logs a document's text. Start reading at [`router`], then `guard`, which every request passes.

mod admission;
mod api_page;
mod config;
mod engine;
mod extract;
mod failure;
mod guard;
mod listen;
pub mod load;
mod observe;
mod openapi;
mod page;
mod publish;
mod registry;
mod routes;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use gnnxml_shared::api::{ErrorCode, Limits};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use config::{ApiKey, ConfigError, ConfigFile, LogFormat, ServerConfig};
pub use engine::{EngineError, TaggingEngine, open_network};
pub use failure::Failure;
pub use openapi::openapi_json;
pub use page::Page;

use crate::runs::{DataDir, DataDirError, QueueSettings, RunQueue, Store, StoreError};
use admission::Admission;
use observe::Counters;
use registry::ModelRegistry;

/// Why a server does not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot read the page's files: {0}")]
    Page(std::io::Error),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Everything a handler needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AppState {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ServerConfig,
    data: Arc<DataDir>,
    store: Store,
    queue: RunQueue,
    registry: ModelRegistry,
    /// Held while the active model changes, so that memory and database change in the same order.
    activating: tokio::sync::Mutex<()>,
    publishing: tokio::sync::Mutex<()>,
    admission: Admission,
    counters: Counters,
    page: Page,
    program: std::path::PathBuf,
}

impl AppState {
    /// Locks the data directory, opens the database, finds running children again, loads the active model.
    pub async fn start(config: ServerConfig, queue: QueueSettings) -> Result<Self, StartError> {
        config.check()?;
        let data = Arc::new(DataDir::open(&config.data)?);
        let store = Store::open(&data.database())?;
        let page = Page::read(config.web.as_deref()).map_err(StartError::Page)?;
        remove_strays(&data, &store)?;
        let program = queue.program.clone();
        let queue = RunQueue::start(
            store.clone(),
            Arc::clone(&data),
            QueueSettings {
                parallel: config.parallel_runs.max(1),
                waiting: config.limits.queued_runs as usize,
                ..queue
            },
        )
        .await?;
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let state = Self {
            inner: Arc::new(Inner {
                admission: Admission::new(cores, config.limits.waiting_requests as usize),
                registry: ModelRegistry::new(config.engine),
                config,
                data,
                store,
                queue,
                activating: tokio::sync::Mutex::default(),
                publishing: tokio::sync::Mutex::default(),
                counters: Counters::default(),
                page,
                program,
            }),
        };
        state.load_active().await?;
        Ok(state)
    }

    /// Loads the last active model; one that cannot be read gives way to the one before it.
    async fn load_active(&self) -> Result<(), StartError> {
        let (current, previous) = self.store().call(Store::active_models).await?;
        for id in [current, previous].into_iter().flatten() {
            let state = self.clone();
            let bundle = self.data().bundle(&id);
            let name = id.clone();
            let loaded = tokio::task::spawn_blocking(move || state.inner.registry.load(&name, &bundle)).await;
            match loaded {
                Ok(Ok(model)) => {
                    self.inner.registry.activate(model);
                    return Ok(());
                }
                Ok(Err(error)) => tracing::error!(model = id, %error, "a published model cannot be loaded"),
                Err(error) => tracing::error!(model = id, %error, "loading a published model panicked"),
            }
        }
        Ok(())
    }

    /// Asks running children to save, and waits for them.
    pub async fn stop(&self) {
        self.inner.queue.stop().await;
    }

    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    pub fn queue(&self) -> &RunQueue {
        &self.inner.queue
    }

    fn config(&self) -> &ServerConfig {
        &self.inner.config
    }

    fn limits(&self) -> &Limits {
        &self.inner.config.limits
    }

    fn data(&self) -> &Arc<DataDir> {
        &self.inner.data
    }

    fn registry(&self) -> &ModelRegistry {
        &self.inner.registry
    }

    fn admission(&self) -> &Admission {
        &self.inner.admission
    }

    fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    fn page(&self) -> &Page {
        &self.inner.page
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.limits().request_seconds)
    }
}

/// Folders a crash left behind before their row was committed.
fn remove_strays(data: &DataDir, store: &Store) -> Result<(), StartError> {
    let corpora: Vec<u64> = store.corpora()?.iter().map(|row| row.id).collect();
    let runs: Vec<u64> = store.runs()?.iter().map(|run| run.id).collect();
    let models: Vec<String> = store.models()?.into_iter().map(|row| row.model.id).collect();
    let removed = data.remove_strays(&corpora, &runs, &models)?;
    if removed > 0 {
        tracing::warn!(removed, "removed folders that an earlier server left half done");
    }
    Ok(())
}

/// Every route there is.
pub fn router(state: AppState) -> Router {
    use routes::{annif, clusters, corpora, feedback, health, models, runs, tag};

    // Bodies and answers of these may take as long as their pieces keep coming.
    let streamed = Router::new()
        .route("/api/v1/corpora", post(corpora::upload))
        .route("/api/v1/tag/stream", post(tag::tag_stream))
        .route("/api/v1/runs/{id}/events", get(runs::events))
        .route("/api/v1/runs/{id}/publish", post(runs::publish))
        .route("/api/v1/feedback/export", get(feedback::export))
        .route("/api/v1/models/{id}/bundle/{file}", get(models::bundle_file));
    let prompt = Router::new()
        .route("/api/v1/health", get(health::health))
        .route("/api/v1/metrics", get(health::metrics))
        .route("/metrics", get(health::metrics))
        .route("/api/v1/openapi.json", get(api_page::openapi))
        .route("/api", get(api_page::page))
        .route("/api/v1/models", get(models::list))
        .route("/api/v1/models/rollback", post(models::rollback))
        .route("/api/v1/models/{id}", get(models::one).delete(models::delete))
        .route("/api/v1/models/{id}/activate", post(models::activate))
        .route("/api/v1/clusters", get(clusters::list))
        .route("/api/v1/clusters/{id}", get(clusters::one))
        .route("/api/v1/labels", get(clusters::search))
        .route("/api/v1/labels/{id}", get(clusters::label))
        .route("/api/v1/map", get(clusters::map))
        .route("/api/v1/keygraph", post(tag::keygraph))
        .route("/api/v1/tag", post(tag::tag))
        .route("/api/v1/corpora", get(corpora::list))
        .route("/api/v1/corpora/{id}", get(corpora::one).delete(corpora::delete))
        .route("/api/v1/runs", get(runs::list).post(runs::start))
        .route("/api/v1/runs/{id}", get(runs::one).delete(runs::delete))
        .route("/api/v1/runs/{id}/cancel", post(runs::cancel))
        .route("/api/v1/runs/{id}/resume", post(runs::resume))
        .route("/api/v1/feedback", get(feedback::list).post(feedback::add))
        .route("/api/v1/feedback/{id}", delete(feedback::delete))
        .route("/v1", get(annif::info))
        .route("/v1/", get(annif::info))
        .route("/v1/projects", get(annif::projects))
        .route("/v1/projects/{id}", get(annif::project))
        .route("/v1/projects/{id}/suggest", post(annif::suggest))
        .route("/v1/projects/{id}/suggest-batch", post(annif::suggest_batch))
        .route("/v1/projects/{id}/learn", post(annif::learn))
        .route_layer(from_fn_with_state(state.clone(), in_time));
    prompt
        .merge(streamed)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        // Outermost last: a request is observed, then guarded, then routed.
        .layer(axum::middleware::from_fn(catch_panic))
        .layer(from_fn_with_state(state.clone(), guard::guard))
        .layer(from_fn_with_state(state.clone(), observe::observe))
        .with_state(state)
}

/// The whole answer within the time limit.
async fn in_time(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let patience = state.patience();
    match tokio::time::timeout(patience, next.run(request)).await {
        Ok(response) => response,
        Err(_) => extract::timed_out(patience).into_response(),
    }
}

/// A handler that panics costs its own request an error and nobody else anything.
async fn catch_panic(request: Request, next: Next) -> Response {
    use futures::FutureExt as _;
    match std::panic::AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .await
    {
        Ok(response) => response,
        Err(_) => Failure::internal("a handler panicked").into_response(),
    }
}

/// The page's files, its views, or an error in our own words.
async fn no_route(State(state): State<AppState>, request: Request) -> Response {
    let path = request.uri().path();
    let readable = matches!(*request.method(), Method::GET | Method::HEAD);
    let api = path == "/api" || path == "/v1" || path.starts_with("/api/") || path.starts_with("/v1/");
    if readable
        && !api
        && let Some(file) = state.page().answer(path, request.headers())
    {
        return file;
    }
    Failure::new(
        ErrorCode::RouteNotFound,
        "there is nothing at this address; /api lists what there is",
    )
    .into_response()
}

async fn no_method(request: Request) -> Response {
    Failure::new(
        ErrorCode::MethodNotAllowed,
        format!(
            "this address does not take {}; /api lists what it takes",
            request.method()
        ),
    )
    .into_response()
}

/// Serves until `stop` turns true, then lets the last answers and the running children end.
pub async fn serve(listener: TcpListener, state: AppState, stop: watch::Receiver<bool>) {
    let app = router(state.clone());
    let children = async {
        listen::asked(&mut stop.clone()).await;
        state.stop().await;
    };
    tokio::join!(
        listen::accept(listener, app, state.clone(), stop.clone()),
        children
    );
}
