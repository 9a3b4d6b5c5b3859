//! The API's description, generated from the handlers; `docs/openapi.json` is its committed copy.

use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use super::routes::{annif, clusters, corpora, feedback, health, models, runs, tag};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "GNN-XML",
        description = "Tag texts, browse label clusters, train and publish models."
    ),
    paths(
        health::health,
        health::metrics,
        super::api_page::openapi,
        tag::tag,
        tag::tag_stream,
        tag::keygraph,
        clusters::list,
        clusters::one,
        clusters::search,
        clusters::label,
        clusters::map,
        models::list,
        models::one,
        models::activate,
        models::rollback,
        models::delete,
        models::bundle_file,
        corpora::upload,
        corpora::list,
        corpora::one,
        corpora::delete,
        runs::start,
        runs::list,
        runs::one,
        runs::delete,
        runs::cancel,
        runs::resume,
        runs::publish,
        runs::events,
        feedback::add,
        feedback::list,
        feedback::delete,
        feedback::export,
        annif::info,
        annif::projects,
        annif::project,
        annif::suggest,
        annif::suggest_batch,
        annif::learn,
    ),
    tags(
        (name = "server", description = "Health, metrics, this description"),
        (name = "tagging", description = "Tags and KeyGraphs of texts"),
        (name = "labels", description = "The vocabulary of a model: clusters, labels, the map"),
        (name = "models", description = "Published models and their bundles"),
        (name = "corpora", description = "Uploaded corpora"),
        (name = "runs", description = "Training runs"),
        (name = "feedback", description = "What people said about tags"),
        (name = "annif", description = "The routes Annif's clients call"),
    )
)]
struct Description;

/// The description as pretty JSON with a final line end: what `docs/openapi.json` holds.
pub fn openapi_json() -> String {
    let mut description = Description::openapi();
    env!("CARGO_PKG_VERSION").clone_into(&mut description.info.version);
    description.info.license = None;
    description
        .components
        .get_or_insert_default()
        .add_security_scheme("key", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let mut json = description.to_pretty_json().expect("a description serialises");
    json.push('\n');
    json
}
