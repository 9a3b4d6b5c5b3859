//! A real server process from outside: who may start it, who may come in, how it stops.

use std::process::{Command, Stdio};

use gnnxml_tests::{Server, ServerOptions, program, small_corpus};
use serde_json::json;

#[test]
fn a_server_that_others_can_reach_does_not_start_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Command::new(program())
        .args(["serve", "--addr", "0.0.0.0:0", "--data"])
        .arg(folder.path().join("data"))
        .env_remove("GNNXML_API_KEY")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("API key"));
    assert!(
        !folder.path().join("data").exists(),
        "refused before anything is touched"
    );
}

#[test]
fn a_second_server_on_the_same_directory_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = Server::start(&data).unwrap();
    let refusal = Server::start(&data).unwrap_err().to_string();
    assert!(refusal.contains(&format!("process {}", first.id())), "{refusal}");
    first.get("/api/v1/health").unwrap();
}

#[test]
fn the_key_opens_the_door_and_is_never_logged() {
    let folder = tempfile::tempdir().unwrap();
    let key = "abcdefghijklmnopqrstuvwxyz";
    let options = ServerOptions {
        environment: vec![
            ("GNNXML_API_KEY".to_owned(), key.to_owned()),
            ("RUST_LOG".to_owned(), "trace".to_owned()),
        ],
        ..ServerOptions::default()
    };
    let server = Server::start_with(&folder.path().join("data"), &options).unwrap();
    assert!(
        server
            .get("/api/v1/runs")
            .unwrap_err()
            .to_string()
            .contains("unauthorized")
    );
    let request = server
        .client()
        .get(format!("{}/api/v1/runs", server.base))
        .bearer_auth(key);
    assert!(request.send().unwrap().status().is_success());
    let wrong = server
        .client()
        .get(format!("{}/api/v1/runs", server.base))
        .bearer_auth("not-the-key-at-all");
    assert_eq!(wrong.send().unwrap().status().as_u16(), 401);
    let log = server.log();
    assert!(!log.contains(key) && !log.contains("not-the-key-at-all"));
}

#[test]
fn a_run_is_a_process_of_its_own_and_its_end_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data")).unwrap();
    let corpus = server.upload("small.jsonl", small_corpus(40)).unwrap();
    // A setting the program does not know: the child itself refuses, and says why.
    let body = json!({"corpus": corpus, "config": "no_such_setting = 1"});
    let run = server.post("/api/v1/runs", &body).unwrap()["id"]
        .as_u64()
        .unwrap();
    let failed = server.finished(run).unwrap();
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(!failed["log"].as_array().unwrap().is_empty(), "{failed}");
    let stream = server
        .client()
        .get(format!("{}/api/v1/runs/{run}/events", server.base))
        .send()
        .unwrap()
        .text()
        .unwrap();
    assert!(stream.contains("event: end"), "{stream}");
    server.delete(&format!("/api/v1/runs/{run}")).unwrap();
    server.delete(&format!("/api/v1/corpora/{corpus}")).unwrap();
}

#[test]
fn a_stop_is_clean_and_what_was_stored_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data).unwrap();
    let text = "A sentence that nobody should find in a log.";
    let graph = server.post("/api/v1/keygraph", &json!({"text": text})).unwrap();
    assert!(!graph["vertices"].as_array().unwrap().is_empty());
    server
        .post(
            "/api/v1/feedback",
            &json!({"text": text, "keep_text": true, "accepted": ["a"]}),
        )
        .unwrap();
    assert!(server.stop().unwrap().success());
    let server = Server::start(&data).unwrap();
    assert_eq!(
        server.get("/api/v1/feedback").unwrap()["feedback"][0]["text"],
        text
    );
    let log = server.log();
    assert!(
        log.contains("/api/v1/keygraph") && !log.contains("nobody should find"),
        "{log}"
    );
}
