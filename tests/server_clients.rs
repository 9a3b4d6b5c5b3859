//! Other people's tools against our server: `schemathesis` looks for answers outside the description.
//!
//! `GNNXML_TEST_PYTHON` names a Python that has it (`pip install annif-client==0.5.0 schemathesis`);
//! `cargo xtask test` provides one. Without it the test says that it did not run.

use std::path::PathBuf;
use std::process::Command;

use gnnxml_tests::{Server, small_corpus};
use serde_json::json;

fn python() -> Option<PathBuf> {
    let python = std::env::var_os("GNNXML_TEST_PYTHON").map(PathBuf::from);
    if python.is_none() {
        eprintln!("GNNXML_TEST_PYTHON is not set: not run");
    }
    python
}

#[test]
fn schemathesis_finds_no_server_error_and_no_answer_outside_the_description() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data")).unwrap();
    let corpus = server.upload("small.jsonl", small_corpus(80)).unwrap();
    let run = server.train(corpus, 1).unwrap();
    server
        .post(&format!("/api/v1/runs/{run}/publish"), &json!({}))
        .unwrap();
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
