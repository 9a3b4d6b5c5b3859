//! From a finished run to the model that tags: export in a child process, check, rename, record, load, swap.
//!
//! A crash at any point leaves either a stray folder, removed at the next start, or a recorded model;
//! the model that was active stays active until the new one is in memory and the database says so.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use gnnxml_shared::api::{ErrorCode, ModelSummary, RunStatus};
use gnnxml_shared::bundle::sha256_hex;

use super::AppState;
use super::engine::{EngineError, TaggingEngine};
use super::failure::{Answer, Failure};
use super::registry::LoadedModel;
use super::routes::models::summary;
use crate::runs::{
    NewModel, StoreError, create_private_dir, fail_point, model_dir, rename_durably, sync_tree,
};

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::new(ErrorCode::ModelUnreadable, error.to_string())
    }
}

fn model_fault(error: StoreError) -> Failure {
    Failure::store(error, ErrorCode::ModelNotFound, ErrorCode::Internal)
}

/// Publishes a finished run.
pub(super) async fn publish_run(
    state: &AppState,
    run: u64,
    name: Option<String>,
    activate_it: bool,
) -> Answer<ModelSummary> {
    // One export at a time: it is heavy, and two of the same content would want the same place.
    let _one_at_a_time = state.inner.publishing.lock().await;
    let row = state.store().call(move |store| store.run(run)).await;
    let row = row.map_err(|error| Failure::store(error, ErrorCode::RunNotFound, ErrorCode::Internal))?;
    if row.run.status != RunStatus::Done {
        return Err(Failure::new(
            ErrorCode::RunNotPublishable,
            format!(
                "run {run} is {:?}; only a finished run can be published",
                row.run.status
            ),
        ));
    }
    let incoming = state.data().incoming().map_err(|error| Failure::io(&error))?;
    let bundle = incoming.path().join("bundle");
    export(state, &model_dir(&state.data().run(run)), &bundle).await?;
    fail_point("publish_exported");
    let name = name.unwrap_or(row.run.name);
    let metrics = row.run.metrics;
    let folder = incoming.path().to_owned();
    let described = blocking(move || describe(&folder)).await??;
    let new = NewModel {
        name,
        run: Some(run),
        metrics: if described.metrics.is_empty() {
            metrics
        } else {
            described.metrics.clone()
        },
        ..described
    };
    let id = new.id.clone();
    place(state, incoming, &id).await?;
    fail_point("publish_renamed");
    state
        .store()
        .call(move |store| store.add_model(&new))
        .await
        .map_err(model_fault)?;
    fail_point("publish_recorded");
    if activate_it {
        return activate(state, id).await;
    }
    let row = state
        .store()
        .call(move |store| store.model(&id))
        .await
        .map_err(model_fault)?;
    Ok(summary(state, row))
}

/// Exports in a child process: whatever the model needs in memory is gone with it.
async fn export(state: &AppState, model: &Path, bundle: &Path) -> Answer<()> {
    let output = tokio::process::Command::new(&state.inner.program)
        .arg("export")
        .arg("--model")
        .arg(model)
        .arg("--out")
        .arg(bundle)
        .env_remove("GNNXML_API_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| Failure::io(&error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().rev().take(3).collect();
    Err(Failure::new(
        ErrorCode::ModelUnreadable,
        format!(
            "the run's model cannot be exported: {}",
            last.into_iter().rev().collect::<Vec<_>>().join(" ")
        ),
    ))
}

/// Loads the bundle once, to see that it answers, and reads what the list of models shows.
fn describe(folder: &Path) -> Answer<NewModel> {
    let bundle = folder.join("bundle");
    let engine = TaggingEngine::load(&bundle)?;
    let manifest = std::fs::read(bundle.join("manifest.json")).map_err(|error| Failure::io(&error))?;
    let mut id = sha256_hex(&manifest);
    id.truncate(16);
    let mut bytes = 0;
    for entry in std::fs::read_dir(&bundle).map_err(|error| Failure::io(&error))? {
        let meta = entry
            .and_then(|entry| entry.metadata())
            .map_err(|error| Failure::io(&error))?;
        bytes += meta.len();
    }
    sync_tree(folder).map_err(|error| Failure::io(&error))?;
    Ok(NewModel {
        id,
        name: String::new(),
        run: None,
        encoder: engine.manifest().encoder.clone(),
        language: engine.manifest().language.clone(),
        labels: engine.manifest().labels,
        clusters: engine.manifest().clusters,
        bytes,
        metrics: engine.metrics(),
    })
}

/// Moves the checked bundle to its place. The same content has the same place: then there is nothing to move.
async fn place(state: &AppState, incoming: tempfile::TempDir, id: &str) -> Answer<()> {
    let target = state.data().models().join(id);
    let known = {
        let id = id.to_owned();
        state.store().call(move |store| store.model(&id)).await.is_ok()
    };
    blocking(move || -> std::io::Result<()> {
        if known && target.join("bundle").join("manifest.json").exists() {
            return Ok(());
        }
        crate::runs::remove_dir_durably(&target)?;
        create_private_dir(&target)?;
        rename_durably(&incoming.path().join("bundle"), &target.join("bundle"))
    })
    .await?
    .map_err(|error| Failure::io(&error))
}

/// The model in memory, loaded if need be.
pub(super) async fn loaded(state: &AppState, id: String) -> Answer<Arc<LoadedModel>> {
    let wanted = id.clone();
    state
        .store()
        .call(move |store| store.model(&wanted))
        .await
        .map_err(model_fault)?;
    let bundle = state.data().bundle(&id);
    let state = state.clone();
    Ok(blocking(move || state.registry().load(&id, &bundle)).await??)
}

/// Lets a model tag: loaded first, then recorded, then swapped.
pub(super) async fn activate(state: &AppState, id: String) -> Answer<ModelSummary> {
    let _in_order = state.inner.activating.lock().await;
    let model = loaded(state, id.clone()).await?;
    fail_point("activate_loaded");
    let recorded = id.clone();
    state
        .store()
        .call(move |store| store.activate_model(&recorded))
        .await
        .map_err(model_fault)?;
    fail_point("activate_recorded");
    state.registry().activate(model);
    tracing::info!(model = id, "model is active");
    let row = state
        .store()
        .call(move |store| store.model(&id))
        .await
        .map_err(model_fault)?;
    Ok(summary(state, row))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
    tokio::task::spawn_blocking(work).await.map_err(Failure::internal)
}
