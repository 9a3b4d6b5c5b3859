//! Other people's tools against our server: `schemathesis` looks for answers outside the description.

use std::process::Command;

use gnnxml_tests::{Server, foreign_python};
use serde_json::json;

#[test]
fn schemathesis_finds_no_server_error_and_no_answer_outside_the_description() {
    let Some(python) = foreign_python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data")).unwrap();
    server.publish_small(80, 1, None).unwrap();
    server
        .post("/api/v1/feedback", &json!({"accepted": ["a"]}))
        .unwrap();
    let said = Command::new(python.with_file_name("schemathesis"))
        .arg("run")
        .arg(format!("{}/api/v1/openapi.json", server.base))
        .args([
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        ])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            "10",
            "--seed",
            "1",
        ])
        .args([
            "--request-timeout",
            "20",
            "--generation-database",
            "none",
            "--no-color",
        ])
        // Publishing exports a model and starting trains one: exercised by the other tests, too heavy for hundreds.
        .args(["--exclude-path-regex", "/(publish|events)$"])
        .env(
            "SCHEMATHESIS_HOOKS",
            concat!(env!("CARGO_MANIFEST_DIR"), "/peers/schemathesis_ndjson.py"),
        )
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        said.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
}
