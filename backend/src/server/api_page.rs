//! The API's description for machines, and the same for people: one plain page, no script.

use std::fmt::Write as _;
use std::sync::OnceLock;

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use gnnxml_shared::api::ErrorCode;
use serde_json::Value;

use super::openapi::openapi_json;

fn description() -> &'static str {
    static JSON: OnceLock<String> = OnceLock::new();
    JSON.get_or_init(openapi_json)
}

/// This description
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "server", responses(
    (status = 200, body = serde_json::Value)))]
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], description()).into_response()
}

/// The page at `/api`.
pub(super) async fn page() -> Response {
    static HTML: OnceLock<String> = OnceLock::new();
    let html = HTML.get_or_init(|| render(description()));
    (
        [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
        html.as_str(),
    )
        .into_response()
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
code,pre{font-family:ui-monospace,monospace;font-size:.9em}summary{cursor:pointer;padding:.3rem 0}\
.method{display:inline-block;min-width:4.5rem;font-weight:700}table{border-collapse:collapse}\
td,th{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top}pre{overflow:auto;padding:.5rem;border:1px solid #8886}";

/// Text as HTML shows it, and nothing it could run.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other => safe.push(other),
        }
    }
    safe
}

fn render(json: &str) -> String {
    let api: Value = serde_json::from_str(json).expect("our own description is JSON");
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>GNN-XML API</title>\
         <style>{STYLE}</style></head><body><h1>GNN-XML API</h1>\
         <p>For machines: <a href=\"/api/v1/openapi.json\">openapi.json</a>. Errors are \
         <code>{{message, code, type, link}}</code>; the codes are <a href=\"#errors\">below</a>. With an API key \
         configured, send <code>Authorization: Bearer KEY</code>.</p>"
    );
    for tag in api["tags"].as_array().into_iter().flatten() {
        let name = tag["name"].as_str().unwrap_or_default();
        let about = tag["description"].as_str().unwrap_or_default();
        let _ = write!(
            html,
            "<h2 id=\"{0}\">{0}</h2><p>{1}</p>",
            escape(name),
            escape(about)
        );
        for (path, methods) in api["paths"].as_object().into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                if operation["tags"][0].as_str() == Some(name) {
                    html += &render_operation(path, method, operation);
                }
            }
        }
    }
    html += "<h2 id=\"errors\">Errors</h2><table><tr><th>code</th><th>status</th><th>meaning</th></tr>";
    for code in ErrorCode::ALL {
        let _ = write!(
            html,
            "<tr id=\"{0}\"><td><code>{0}</code></td><td>{1}</td><td>{2}</td></tr>",
            code.name(),
            code.status(),
            escape(code.explanation().trim())
        );
    }
    html += "</table><h2 id=\"schemas\">Types</h2>";
    for (name, schema) in api["components"]["schemas"].as_object().into_iter().flatten() {
        let text = serde_json::to_string_pretty(schema).unwrap_or_default();
        let _ = write!(
            html,
            "<details id=\"type-{0}\"><summary><code>{0}</code></summary><pre>{1}</pre></details>",
            escape(name),
            escape(&text)
        );
    }
    html + "</body></html>"
}

fn render_operation(path: &str, method: &str, operation: &Value) -> String {
    let mut html = format!(
        "<details><summary><span class=\"method\">{}</span> <code>{}</code> {}</summary>",
        escape(&method.to_uppercase()),
        escape(path),
        escape(operation["summary"].as_str().unwrap_or_default())
    );
    if let Some(more) = operation["description"].as_str() {
        let _ = write!(html, "<p>{}</p>", escape(more));
    }
    html += "<table>";
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let _ = write!(
            html,
            "<tr><td>{}</td><td><code>{}</code></td></tr>",
            escape(parameter["in"].as_str().unwrap_or_default()),
            escape(parameter["name"].as_str().unwrap_or_default())
        );
    }
    for (media, content) in operation["requestBody"]["content"]
        .as_object()
        .into_iter()
        .flatten()
    {
        let _ = write!(
            html,
            "<tr><td>body</td><td>{} {}</td></tr>",
            escape(media),
            type_link(&content["schema"])
        );
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let mut content = String::new();
        for (media, body) in response["content"].as_object().into_iter().flatten() {
            let _ = write!(content, "{} {} ", escape(media), type_link(&body["schema"]));
        }
        let _ = write!(html, "<tr><td>{}</td><td>{content}</td></tr>", escape(status));
    }
    html + "</table></details>"
}

fn type_link(schema: &Value) -> String {
    let target = schema["$ref"]
        .as_str()
        .or_else(|| schema["items"]["$ref"].as_str());
    match target.and_then(|target| target.rsplit('/').next()) {
        Some(name) => format!("<a href=\"#type-{0}\">{0}</a>", escape(name)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_explains_every_error_code_and_runs_no_script() {
        let html = render(description());
        for code in ErrorCode::ALL {
            assert!(html.contains(&format!("id=\"{}\"", code.name())), "{code:?}");
        }
        assert!(!html.contains("<script"));
        assert!(html.contains("/api/v1/runs/{id}/events"));
    }

    #[test]
    fn the_committed_description_is_the_one_the_handlers_give() {
        let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
        let committed = std::fs::read_to_string(&committed).unwrap_or_default();
        assert!(
            committed == description(),
            "docs/openapi.json is out of date: run `cargo run -p gnnxml-backend -- serve --print-openapi > docs/openapi.json`"
        );
    }
}
