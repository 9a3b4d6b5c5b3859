//! The server from inside: requests straight into the router, children that are small shell scripts.

mod corpora;
mod feedback;
mod page;
mod runs;
mod safety;
mod slow;

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use gnnxml_shared::api::{ErrorBody, ErrorCode};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::{AppState, ServerConfig, router};
use crate::runs::QueueSettings;

/// A server over a directory of its own.
pub(super) struct Served {
    pub(super) folder: tempfile::TempDir,
    pub(super) state: AppState,
    pub(super) app: Router,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Reply {
    pub(super) fn json<T: serde::de::DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {} {}", self.status, String::from_utf8_lossy(&self.body))
        })
    }

    /// The error's code, and that its status is the code's.
    pub(super) fn code(&self) -> ErrorCode {
        let body: ErrorBody = self.json();
        assert_eq!(self.status.as_u16(), body.code.status());
        assert_eq!(body.link, format!("/api#{}", body.code.name()));
        body.code
    }

    pub(super) fn message(&self) -> String {
        self.json::<ErrorBody>().message
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A script in place of the program that trains.
pub(super) fn script(folder: &Path, body: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join("train.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

pub(super) fn queue(program: PathBuf) -> QueueSettings {
    QueueSettings {
        program,
        parallel: 1,
        waiting: 100,
        patience: Duration::from_millis(1500),
    }
}

impl Served {
    pub(super) async fn new() -> Self {
        Self::with(|_| {}, "exit 1").await
    }

    pub(super) async fn with(change: impl FnOnce(&mut ServerConfig), training: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = ServerConfig::local(folder.path().join("data"));
        change(&mut config);
        let program = script(folder.path(), training);
        let state = AppState::start(config, queue(program)).await.unwrap();
        Self {
            app: router(state.clone()),
            state,
            folder,
        }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Reply {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        self.send(request("GET", path).body(Body::empty()).unwrap()).await
    }

    pub(super) async fn delete(&self, path: &str) -> Reply {
        self.send(request("DELETE", path).body(Body::empty()).unwrap())
            .await
    }

    pub(super) async fn post(&self, path: &str, json: &serde_json::Value) -> Reply {
        let request = request("POST", path).header("content-type", "application/json");
        self.send(request.body(Body::from(json.to_string())).unwrap())
            .await
    }

    pub(super) async fn upload(&self, name: &str, content: impl Into<Body>) -> Reply {
        let request = request("POST", &format!("/api/v1/corpora?name={name}"));
        let request = request.header("content-type", "application/octet-stream");
        self.send(request.body(content.into()).unwrap()).await
    }
}

/// A request as a client on this machine sends it.
pub(super) fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1:8080")
}
