//! The routes of Annif's REST API that its clients call: each published model is a project.
//!
//! Errors carry Annif's `detail` besides our own fields. `learn` keeps the documents as feedback;
//! `gnnxml learn` or the next run takes them up.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use gnnxml_shared::api::{ErrorBody, ErrorCode, Feedback, TagResponse};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::runs::{ModelRow, Store, StoreError};
use crate::server::AppState;
use crate::server::extract::{FormBody, JsonBody, Params, Segments};
use crate::server::failure::{Answer, Failure};

use super::feedback::{check_labels, check_text};
use super::models::model_id;
use super::tag::{check_top, model_for, tag_texts};

/// The project that always is the active model.
const ACTIVE: &str = "active";

/// Our error with Annif's words beside it.
#[derive(Debug, Serialize)]
struct AnnifError {
    #[serde(flatten)]
    ours: ErrorBody,
    detail: String,
    status: u16,
    title: String,
}

/// A failure in Annif's clothes.
#[derive(Debug)]
pub(in crate::server) struct AnnifFailure(Failure);

impl From<Failure> for AnnifFailure {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl From<StoreError> for AnnifFailure {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for AnnifFailure {
    fn into_response(self) -> Response {
        let ours = self.0.body();
        let (mut parts, _) = self.0.into_response().into_parts();
        let body = AnnifError {
            detail: ours.message.clone(),
            status: parts.status.as_u16(),
            title: parts.status.canonical_reason().unwrap_or("Error").to_owned(),
            ours,
        };
        let json = Json(body).into_response();
        parts.headers.remove(axum::http::header::CONTENT_LENGTH);
        Response::from_parts(parts, json.into_body())
    }
}

/// What is served here.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::server) struct ApiInfo {
    title: String,
    version: String,
}

/// A project: one published model.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::server) struct Project {
    #[serde(rename = "project_id")]
    id: String,
    name: String,
    language: String,
    backend: Backend,
    vocab: Vocabulary,
    is_trained: bool,
    /// RFC 3339.
    modification_time: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::server) struct Backend {
    backend_id: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::server) struct Vocabulary {
    vocab_id: String,
    languages: Vec<String>,
}

/// All projects.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::server) struct Projects {
    projects: Vec<Project>,
}

/// One suggested subject. The label's name is also its identifier here.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::server) struct Suggestion {
    uri: String,
    label: String,
    notation: Option<String>,
    score: f32,
}

/// The answer to one text.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::server) struct Suggestions {
    results: Vec<Suggestion>,
}

/// A form with one text.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::server) struct SuggestForm {
    text: String,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    threshold: Option<f32>,
}

/// Several texts.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::server) struct SuggestBatch {
    documents: Vec<BatchDocument>,
}

/// One of them.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::server) struct BatchDocument {
    text: String,
    #[serde(default)]
    document_id: Option<String>,
}

/// The answer to one of several texts.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::server) struct BatchSuggestions {
    document_id: Option<String>,
    results: Vec<Suggestion>,
}

#[derive(Debug, Deserialize)]
pub(in crate::server) struct BatchQuery {
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    threshold: Option<f32>,
}

/// A text with its right subjects.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::server) struct LearnDocument {
    text: String,
    subjects: Vec<Subject>,
}

/// A subject, by identifier or by name.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::server) struct Subject {
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    label: Option<String>,
}

type AnnifAnswer<T> = Result<T, AnnifFailure>;

fn project_of(row: ModelRow, id: &str) -> Project {
    Project {
        id: id.to_owned(),
        name: row.model.name,
        language: row.model.language.clone(),
        backend: Backend {
            backend_id: "gnnxml".to_owned(),
        },
        vocab: Vocabulary {
            vocab_id: row.model.id,
            languages: vec![row.model.language],
        },
        is_trained: true,
        modification_time: Some(rfc3339(row.created)),
    }
}

/// The model id a project stands for.
async fn model_of(state: &AppState, project: &str) -> Answer<String> {
    let missing = || Failure::new(ErrorCode::ModelNotFound, format!("Project '{project}' not found"));
    if project == ACTIVE {
        return state
            .registry()
            .active()
            .map(|model| model.id.clone())
            .ok_or_else(missing);
    }
    let id = model_id(project).map_err(|_| missing())?;
    state
        .store()
        .call(move |store| store.model(&id))
        .await
        .map(|row| row.model.id)
        .map_err(|error| match error {
            StoreError::Missing { .. } => missing(),
            other => other.into(),
        })
}

/// Name and version
#[utoipa::path(get, path = "/v1/", tag = "annif", responses((status = 200, body = ApiInfo)))]
pub(in crate::server) async fn info() -> Json<ApiInfo> {
    Json(ApiInfo {
        title: "GNN-XML, suggest routes of the Annif REST API".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The active model and every published one
#[utoipa::path(get, path = "/v1/projects", tag = "annif", responses(
    (status = 200, body = Projects), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn projects(State(state): State<AppState>) -> AnnifAnswer<Json<Projects>> {
    let rows = state.store().call(Store::models).await?;
    let active = state.registry().active().map(|model| model.id.clone());
    let mut projects = Vec::new();
    if let Some(row) = rows.iter().find(|row| Some(&row.model.id) == active.as_ref()) {
        projects.push(project_of(row.clone(), ACTIVE));
    }
    for row in rows {
        let id = row.model.id.clone();
        projects.push(project_of(row, &id));
    }
    Ok(Json(Projects { projects }))
}

/// One project
#[utoipa::path(get, path = "/v1/projects/{id}", tag = "annif", params(("id" = String, Path)), responses(
    (status = 200, body = Project), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn project(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> AnnifAnswer<Json<Project>> {
    let model = model_of(&state, &id).await?;
    let row = state.store().call(move |store| store.model(&model)).await?;
    Ok(Json(project_of(row, &id)))
}

fn suggestions(tagged: TagResponse, threshold: Option<f32>) -> Vec<Suggestion> {
    let least = threshold.unwrap_or(0.0);
    tagged
        .tags
        .into_iter()
        .filter(|tag| tag.score >= least)
        .map(|tag| Suggestion {
            uri: tag.name.clone(),
            label: tag.name,
            notation: None,
            score: tag.score,
        })
        .collect()
}

/// Suggest subjects for one text
#[utoipa::path(post, path = "/v1/projects/{id}/suggest", tag = "annif", params(("id" = String, Path)),
    request_body(content = SuggestForm, content_type = "application/x-www-form-urlencoded"), responses(
    (status = 200, body = Suggestions), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn suggest(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
    form: Result<FormBody<SuggestForm>, Failure>,
) -> AnnifAnswer<Json<Suggestions>> {
    let model = model_of(&state, &id).await?;
    let FormBody(form) = form?;
    check_text(&state, &form.text)?;
    let top = check_top(&state, form.limit)?;
    let model = model_for(&state, Some(model)).await?;
    let (tagged, _) = tag_texts(&state, model, vec![form.text], top, false).await?;
    let results = tagged
        .into_iter()
        .flat_map(|tagged| suggestions(tagged, form.threshold))
        .collect();
    Ok(Json(Suggestions { results }))
}

/// The most documents in one batch, as Annif has it.
const BATCH: usize = 32;

/// Suggest subjects for several texts
#[utoipa::path(post, path = "/v1/projects/{id}/suggest-batch", tag = "annif",
    params(("id" = String, Path), ("limit" = Option<u32>, Query), ("threshold" = Option<f32>, Query)),
    request_body = SuggestBatch, responses(
    (status = 200, body = [BatchSuggestions]), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn suggest_batch(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
    query: Result<Params<BatchQuery>, Failure>,
    body: Result<JsonBody<SuggestBatch>, Failure>,
) -> AnnifAnswer<Json<Vec<BatchSuggestions>>> {
    let model = model_of(&state, &id).await?;
    let (Params(query), JsonBody(batch)) = (query?, body?);
    if batch.documents.len() > BATCH {
        return Err(Failure::new(
            ErrorCode::BatchTooLarge,
            format!(
                "{} documents in one batch, the limit of this route is {BATCH}",
                batch.documents.len()
            ),
        )
        .into());
    }
    batch
        .documents
        .iter()
        .try_for_each(|document| check_text(&state, &document.text))?;
    let top = check_top(&state, query.limit)?;
    let model = model_for(&state, Some(model)).await?;
    let (ids, texts): (Vec<_>, Vec<_>) = batch
        .documents
        .into_iter()
        .map(|document| (document.document_id, document.text))
        .unzip();
    let (tagged, _) = tag_texts(&state, model, texts, top, false).await?;
    let answers = ids
        .into_iter()
        .zip(tagged)
        .map(|(document_id, tagged)| BatchSuggestions {
            document_id,
            results: suggestions(tagged, query.threshold),
        })
        .collect();
    Ok(Json(answers))
}

/// Keep texts with their right subjects as training data
#[utoipa::path(post, path = "/v1/projects/{id}/learn", tag = "annif", params(("id" = String, Path)),
    request_body = [LearnDocument], responses((status = 204), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn learn(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
    body: Result<JsonBody<Vec<LearnDocument>>, Failure>,
) -> AnnifAnswer<StatusCode> {
    let model = model_of(&state, &id).await?;
    let JsonBody(documents) = body?;
    let limit = state.limits().batch_documents as usize;
    if documents.len() > limit {
        return Err(Failure::new(
            ErrorCode::BatchTooLarge,
            format!(
                "{} documents, the limit `batch_documents` is {limit}",
                documents.len()
            ),
        )
        .into());
    }
    let mut kept = Vec::with_capacity(documents.len());
    for document in documents {
        check_text(&state, &document.text)?;
        let accepted: Vec<String> = document
            .subjects
            .into_iter()
            .filter_map(|subject| subject.label.or(subject.uri))
            .collect();
        check_labels(&accepted)?;
        kept.push(Feedback {
            id: 0,
            created: 0,
            model: Some(model.clone()),
            text: Some(document.text),
            accepted,
            rejected: Vec::new(),
        });
    }
    state.store().call(move |store| store.add_feedback(&kept)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Milliseconds since 1970 as a date and time in UTC (days to civil date after Howard Hinnant's algorithm).
fn rfc3339(millis: u64) -> String {
    let seconds = millis / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn dates_are_right_around_leap_days_and_new_year() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_735_689_599_000), "2024-12-31T23:59:59Z");
    }
}
