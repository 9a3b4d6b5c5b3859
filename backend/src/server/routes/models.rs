//! Published models and their bundles.

use std::path::Path;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use gnnxml_shared::api::{ErrorBody, ErrorCode, ModelList, ModelSummary};
use tokio_util::io::ReaderStream;

use crate::runs::{ModelRow, Store, remove_dir_durably};
use crate::server::AppState;
use crate::server::extract::Segments;
use crate::server::failure::{Answer, Failure};
use crate::server::page::{IMMUTABLE, accepts, media_type, names_tag};
use crate::server::publish;

/// Ids are sixteen hexadecimal digits; nothing else can name a folder.
pub(in crate::server) fn model_id(segment: &str) -> Answer<String> {
    let right = segment.len() == 16
        && segment
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if right {
        return Ok(segment.to_owned());
    }
    Err(Failure::new(
        ErrorCode::ModelNotFound,
        "there is no such model; model ids are sixteen hexadecimal digits",
    ))
}

pub(in crate::server) fn summary(state: &AppState, row: ModelRow) -> ModelSummary {
    let ModelRow { created, model } = row;
    ModelSummary {
        active: state
            .registry()
            .active()
            .is_some_and(|active| active.id == model.id),
        warm: state.registry().is_warm(&model.id),
        id: model.id,
        name: model.name,
        created,
        run: model.run,
        encoder: model.encoder,
        labels: model.labels,
        clusters: model.clusters,
        bytes: model.bytes,
        metrics: model.metrics,
    }
}

/// All models, newest first
#[utoipa::path(get, path = "/api/v1/models", tag = "models", responses(
    (status = 200, body = ModelList), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn list(State(state): State<AppState>) -> Answer<Json<ModelList>> {
    let (rows, (_, previous)) = state
        .store()
        .call(|store| Ok((store.models()?, store.active_models()?)))
        .await?;
    Ok(Json(ModelList {
        active: state.registry().active().map(|model| model.id.clone()),
        previous,
        models: rows.into_iter().map(|row| summary(&state, row)).collect(),
    }))
}

/// One model
#[utoipa::path(get, path = "/api/v1/models/{id}", tag = "models", params(("id" = String, Path)), responses(
    (status = 200, body = ModelSummary), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn one(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<Json<ModelSummary>> {
    let id = model_id(&id)?;
    let row = state.store().call(move |store| store.model(&id)).await;
    let row = row.map_err(|error| Failure::store(error, ErrorCode::ModelNotFound, ErrorCode::Internal))?;
    Ok(Json(summary(&state, row)))
}

/// Let a model tag from now on
///
/// It is loaded first; requests under way finish with the model they began with, none fails.
#[utoipa::path(post, path = "/api/v1/models/{id}/activate", tag = "models", params(("id" = String, Path)), responses(
    (status = 200, body = ModelSummary), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn activate(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<Json<ModelSummary>> {
    Ok(Json(publish::activate(&state, model_id(&id)?).await?))
}

/// Let the model before the active one tag again
#[utoipa::path(post, path = "/api/v1/models/rollback", tag = "models", responses(
    (status = 200, body = ModelSummary), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn rollback(State(state): State<AppState>) -> Answer<Json<ModelSummary>> {
    let (_, previous) = state.store().call(Store::active_models).await?;
    let previous = previous.ok_or_else(|| {
        Failure::new(
            ErrorCode::NothingToRollBack,
            "no model was active before this one",
        )
    })?;
    Ok(Json(publish::activate(&state, previous).await?))
}

/// Forget a model that is not active, with its bundle
#[utoipa::path(delete, path = "/api/v1/models/{id}", tag = "models", params(("id" = String, Path)), responses(
    (status = 204), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn delete(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<StatusCode> {
    let id = model_id(&id)?;
    let folder = state.data().models().join(&id);
    let name = id.clone();
    state
        .store()
        .call(move |store| {
            store.delete_model(&name)?;
            if let Err(error) = remove_dir_durably(&folder) {
                tracing::warn!(model = name, %error, "the model's folder could not be removed");
            }
            Ok(())
        })
        .await
        .map_err(|error| match error {
            crate::runs::StoreError::InUse => Failure::new(
                ErrorCode::ModelInUse,
                format!("model {id} is active: activate another one first"),
            ),
            other => Failure::store(other, ErrorCode::ModelNotFound, ErrorCode::Internal),
        })?;
    state.registry().forget(&id);
    Ok(StatusCode::NO_CONTENT)
}

/// A plain file name: letters, digits, dots, dashes, underscores; not hidden.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// One file of a model's bundle; it never changes under its address
#[utoipa::path(get, path = "/api/v1/models/{id}/bundle/{file}", tag = "models",
    params(("id" = String, Path), ("file" = String, Path)), responses(
    (status = 200, body = String, content_type = "application/octet-stream"), (status = 304),
    (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn bundle_file(
    State(state): State<AppState>,
    Segments((id, file)): Segments<(String, String)>,
    headers: HeaderMap,
) -> Answer<Response> {
    let id = model_id(&id)?;
    if !is_plain_name(&file) {
        return Err(Failure::new(
            ErrorCode::InvalidPath,
            "the name of a bundle's file is letters, digits, dots, dashes and underscores",
        ));
    }
    let folder = state.data().bundle(&id);
    let Some(length) = plain_file(&folder.join(&file)).await else {
        return Err(Failure::new(
            ErrorCode::FileNotFound,
            format!("model {id} has no file {file:?}"),
        ));
    };
    // The id is a digest of the manifest and the manifest names every part by its digest.
    let tag = format!("\"{id}-{file}\"");
    let mut response = Response::new(Body::empty());
    let mut coding = None;
    if headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|seen| names_tag(seen, &tag))
    {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        let mut chosen = (folder.join(&file), length);
        for (name, suffix) in [("br", "br"), ("gzip", "gz")] {
            let twin = folder.join(format!("{file}.{suffix}"));
            if accepts(&headers, name)
                && let Some(length) = plain_file(&twin).await
            {
                chosen = (twin, length);
                coding = Some(name);
                break;
            }
        }
        let opened = tokio::fs::File::open(&chosen.0)
            .await
            .map_err(|error| Failure::io(&error))?;
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, HeaderValue::from(chosen.1));
        *response.body_mut() = Body::from_stream(ReaderStream::with_capacity(opened, 64 << 10));
    }
    let answered = response.headers_mut();
    if let Some(coding) = coding {
        answered.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    answered.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(&file)));
    answered.insert(header::CACHE_CONTROL, HeaderValue::from_static(IMMUTABLE));
    answered.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answered.insert(header::ETAG, tag);
    }
    Ok(response)
}

/// The length of a file that is a file and not a link, a folder or a device.
async fn plain_file(path: &Path) -> Option<u64> {
    let meta = tokio::fs::symlink_metadata(path).await.ok()?;
    meta.is_file().then_some(meta.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_folder_are_no_names() {
        for good in ["manifest.json", "ranker-0a1b.bin", "labels_2.json"] {
            assert!(is_plain_name(good), "{good}");
        }
        for bad in [
            "", "..", ".", ".hidden", "a/b", "a\\b", "a\0", "%2e%2e", "C:", "é",
        ] {
            assert!(!is_plain_name(bad), "{bad}");
        }
        assert!(model_id("0123456789abcdef").is_ok());
        for bad in ["..", "0123456789ABCDEF", "0123456789abcde", "0123456789abcde/"] {
            assert!(model_id(bad).is_err(), "{bad}");
        }
    }
}
