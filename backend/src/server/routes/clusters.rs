//! The label vocabulary of the active model (or of `?model=`): clusters, labels, the map.

use axum::Json;
use axum::extract::State;
use gnnxml_shared::api::{
    ClusterDetail, ClusterList, ErrorBody, ErrorCode, LabelDetail, LabelMap, LabelSearch,
};
use serde::Deserialize;

use crate::server::AppState;
use crate::server::engine::TaggingEngine;
use crate::server::extract::{Params, Segments, number};
use crate::server::failure::{Answer, Failure};

use super::tag::model_for;

/// Which model's vocabulary.
#[derive(Debug, Deserialize)]
pub(in crate::server) struct ModelQuery {
    #[serde(default)]
    model: Option<String>,
}

/// A search among labels.
#[derive(Debug, Deserialize)]
pub(in crate::server) struct SearchQuery {
    #[serde(default)]
    query: String,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    model: Option<String>,
}

/// What the map holds.
#[derive(Debug, Deserialize)]
pub(in crate::server) struct MapQuery {
    #[serde(default)]
    names: Option<bool>,
    #[serde(default)]
    model: Option<String>,
}

/// Asks the model's vocabulary, away from the async threads: a large one takes a while to lay out.
async fn ask<T: Send + 'static>(
    state: &AppState,
    model: Option<String>,
    question: impl FnOnce(&TaggingEngine) -> T + Send + 'static,
) -> Answer<T> {
    let model = model_for(state, model).await?;
    tokio::task::spawn_blocking(move || question(&model.engine))
        .await
        .map_err(Failure::internal)
}

/// All clusters
#[utoipa::path(get, path = "/api/v1/clusters", tag = "labels", params(("model" = Option<String>, Query)), responses(
    (status = 200, body = ClusterList), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn list(
    State(state): State<AppState>,
    Params(query): Params<ModelQuery>,
) -> Answer<Json<ClusterList>> {
    Ok(Json(ask(&state, query.model, TaggingEngine::clusters).await?))
}

/// One cluster with its labels
#[utoipa::path(get, path = "/api/v1/clusters/{id}", tag = "labels",
    params(("id" = u32, Path), ("model" = Option<String>, Query)), responses(
    (status = 200, body = ClusterDetail), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn one(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
    Params(query): Params<ModelQuery>,
) -> Answer<Json<ClusterDetail>> {
    let number = number(&id, "cluster", ErrorCode::ClusterNotFound)?;
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let found = ask(&state, query.model, move |engine| engine.cluster(number)).await?;
    found.map(Json).ok_or_else(|| {
        Failure::new(
            ErrorCode::ClusterNotFound,
            format!("there is no cluster {id} in the model"),
        )
    })
}

/// Labels whose name holds the words of `query`, most frequent first
#[utoipa::path(get, path = "/api/v1/labels", tag = "labels",
    params(("query" = Option<String>, Query), ("limit" = Option<u32>, Query), ("model" = Option<String>, Query)), responses(
    (status = 200, body = LabelSearch), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn search(
    State(state): State<AppState>,
    Params(query): Params<SearchQuery>,
) -> Answer<Json<LabelSearch>> {
    let limit = query.limit.unwrap_or(50);
    let most = state.limits().top;
    if !(1..=most).contains(&limit) {
        return Err(Failure::new(
            ErrorCode::InvalidParameter,
            format!("`limit` is {limit}, expected 1 to {most} (the limit `top`)"),
        ));
    }
    let words = query.query;
    Ok(Json(
        ask(&state, query.model, move |engine| {
            engine.search(&words, limit as usize)
        })
        .await?,
    ))
}

/// One label: counts, neighbours in the label graph, the words that carry it
#[utoipa::path(get, path = "/api/v1/labels/{id}", tag = "labels",
    params(("id" = u32, Path), ("model" = Option<String>, Query)), responses(
    (status = 200, body = LabelDetail), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn label(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
    Params(query): Params<ModelQuery>,
) -> Answer<Json<LabelDetail>> {
    let number = number(&id, "label", ErrorCode::LabelNotFound)?;
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let found = ask(&state, query.model, move |engine| engine.label(number)).await?;
    found.map(Json).ok_or_else(|| {
        Failure::new(
            ErrorCode::LabelNotFound,
            format!("there is no label {id} in the model"),
        )
    })
}

/// Every label's place on the map, in columns
#[utoipa::path(get, path = "/api/v1/map", tag = "labels",
    params(("names" = Option<bool>, Query), ("model" = Option<String>, Query)), responses(
    (status = 200, body = LabelMap), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn map(
    State(state): State<AppState>,
    Params(query): Params<MapQuery>,
) -> Answer<Json<LabelMap>> {
    let names = query.names.unwrap_or(true);
    Ok(Json(
        ask(&state, query.model, move |engine| engine.map(names)).await?,
    ))
}
