//! The whole way through a real server: upload, train in a child, publish, tag, swap, roll back, restart.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gnnxml_tests::{Server, foreign_python, program};
use serde_json::{Value, json};

const TEXT: &str = "The trawler left the harbour with its net; the cod quota was small.";

fn names(answer: &Value) -> Vec<String> {
    answer["results"][0]["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A server with two published models, of different corpora.
fn with_two_models(data: &std::path::Path) -> (Server, [String; 2]) {
    let server = Server::start(data).unwrap();
    let mut models = Vec::new();
    for documents in [160, 240] {
        let (_, model) = server.publish_small(documents, 1, None).unwrap();
        assert_eq!(model["active"], true);
        models.push(model["id"].as_str().unwrap().to_owned());
    }
    (server, models.try_into().unwrap())
}

#[test]
fn from_a_corpus_to_tags_and_back_to_the_model_before() {
    let folder = tempfile::tempdir().unwrap();
    let (server, [first, second]) = with_two_models(&folder.path().join("data"));
    let answer = server
        .post("/api/v1/tag", &json!({"text": TEXT, "top": 3}))
        .unwrap();
    assert_eq!(answer["model"], second);
    assert_eq!(names(&answer)[0], "fishing", "{answer}");

    // Explanations add up and point into the text.
    let explained = server
        .post("/api/v1/tag", &json!({"text": TEXT, "top": 1, "explain": true}))
        .unwrap();
    assert!(
        explained["results"][0]["tags"][0]["evidence"].is_object(),
        "{explained}"
    );
    assert!(explained["results"][0]["keygraph"]["vertices"].is_array());

    // A batch is answered text by text, the same as one by one.
    let batch = server
        .post(
            "/api/v1/tag",
            &json!({"texts": [TEXT, "The bank raised the credit."], "top": 3}),
        )
        .unwrap();
    assert_eq!(batch["results"][0], answer["results"][0]);

    // A stream is answered line by line, bad lines included.
    let lines = format!(
        "{}\nnot json\n{}\n",
        json!({"id": "a", "text": TEXT}),
        json!({"text": ""})
    );
    let stream = server
        .client()
        .post(format!("{}/api/v1/tag/stream?top=3", server.base));
    let stream = stream
        .header("content-type", "application/x-ndjson")
        .body(lines)
        .send()
        .unwrap()
        .text()
        .unwrap();
    let lines: Vec<Value> = stream
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "{stream}");
    assert_eq!(
        (&lines[0]["id"], &lines[0]["result"]),
        (&json!("a"), &answer["results"][0])
    );
    assert_eq!(lines[1]["error"]["code"], "invalid_json");
    assert_eq!(lines[2]["line"], 3);

    // The vocabulary of the model.
    let clusters = server.get("/api/v1/clusters").unwrap();
    assert!(!clusters["clusters"].as_array().unwrap().is_empty());
    let found = server.get("/api/v1/labels?query=fish").unwrap();
    assert_eq!(found["labels"][0]["name"], "fishing");
    let label = found["labels"][0]["id"].as_u64().unwrap();
    let label = server.get(&format!("/api/v1/labels/{label}")).unwrap();
    assert_eq!(label["name"], "fishing");
    let examples = label["examples"].as_array().unwrap();
    assert!(
        (1..=3).contains(&examples.len()) && examples.iter().all(|shown| shown["excerpt"].is_string()),
        "{label}"
    );
    let map = server.get("/api/v1/map").unwrap();
    assert_eq!(
        map["x"].as_array().unwrap().len(),
        clusters["statistics"]["labels"].as_u64().unwrap() as usize
    );

    // The bundle as the page fetches it.
    let manifest = server
        .client()
        .get(format!(
            "{}/api/v1/models/{second}/bundle/manifest.json",
            server.base
        ))
        .send()
        .unwrap();
    assert!(
        manifest.headers()["cache-control"]
            .to_str()
            .unwrap()
            .contains("immutable")
    );

    // Back, and the same answer as before; the active one cannot be deleted, the other can.
    let back = server.post("/api/v1/models/rollback", &json!({})).unwrap();
    assert_eq!(back["id"], first);
    assert_eq!(
        server.post("/api/v1/tag", &json!({"text": TEXT})).unwrap()["model"],
        first
    );
    assert!(
        server
            .delete(&format!("/api/v1/models/{first}"))
            .unwrap_err()
            .to_string()
            .contains("model_in_use")
    );
    server.delete(&format!("/api/v1/models/{second}")).unwrap();
    assert!(
        server
            .post("/api/v1/tag", &json!({"text": TEXT, "model": second}))
            .is_err()
    );

    // The active model answers at once after a restart.
    let data = server.data().to_owned();
    assert!(server.stop().unwrap().success());
    let server = Server::start(&data).unwrap();
    assert_eq!(
        server.post("/api/v1/tag", &json!({"text": TEXT})).unwrap()["model"],
        first
    );
    let log = server.log();
    assert!(
        log.contains("/api/v1/tag") && !log.contains("trawler"),
        "the log tells routes and never a text"
    );
}

#[test]
fn models_are_swapped_under_load_with_no_failed_and_no_mixed_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (server, models) = with_two_models(&folder.path().join("data"));
    let expected: Vec<Value> = models
        .iter()
        .map(|model| {
            server
                .post("/api/v1/tag", &json!({"texts": [TEXT, TEXT], "model": model}))
                .unwrap()["results"]
                .clone()
        })
        .collect();
    assert_ne!(
        expected[0], expected[1],
        "two models that answer alike would prove nothing"
    );
    let over = AtomicBool::new(false);
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let answer = server
                        .post("/api/v1/tag", &json!({"texts": [TEXT, TEXT]}))
                        .unwrap();
                    let which = models.iter().position(|model| answer["model"] == *model).unwrap();
                    assert_eq!(answer["results"], expected[which]);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..40 {
            server
                .post(
                    &format!("/api/v1/models/{}/activate", models[round % 2]),
                    &json!({}),
                )
                .unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) > 0);
}

#[test]
fn the_server_and_the_command_line_give_the_same_tags() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data")).unwrap();
    let (run, _) = server.publish_small(160, 1, None).unwrap();
    let served = names(
        &server
            .post("/api/v1/tag", &json!({"text": TEXT, "top": 3}))
            .unwrap(),
    );
    let model = server.data().join(format!("runs/{run}/model"));
    let input = folder.path().join("input.txt");
    std::fs::write(&input, format!("{TEXT}\n")).unwrap();
    let printed = Command::new(program())
        .args(["predict", "--top", "3", "--text", "--model"])
        .arg(&model)
        .arg(&input)
        .output()
        .unwrap();
    assert!(
        printed.status.success(),
        "{}",
        String::from_utf8_lossy(&printed.stderr)
    );
    let line: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let printed: Vec<&str> = line["labels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|label| label["name"].as_str().unwrap())
        .collect();
    assert_eq!(served, printed);
}

#[test]
fn annif_client_lists_projects_suggests_and_learns() {
    let Some(python) = foreign_python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data")).unwrap();
    server.publish_small(160, 1, Some("Small <b>model</b>")).unwrap();
    let script = r#"
import sys
from annif_client import AnnifClient
annif = AnnifClient(api_base=sys.argv[1] + "/v1/")
assert annif.api_info["version"], annif.api_info
projects = annif.projects
assert [p["project_id"] for p in projects][0] == "active" and len(projects) == 2, projects
assert projects[0]["name"] == "Small <b>model</b>" and projects[0]["is_trained"]
assert projects[0]["language"] == sys.argv[2] and projects[0]["vocab"]["languages"] == [sys.argv[2]], projects
assert annif.get_project("active")["backend"]["backend_id"] == "gnnxml"
text = "The trawler left the harbour with its net; the cod quota was small."
found = annif.suggest("active", text, limit=3)
assert found[0]["label"] == "fishing" and len(found) <= 3, found
assert set(found[0]) == {"uri", "label", "notation", "score"}
assert all(s["score"] >= 0.5 for s in annif.suggest("active", text, threshold=0.5))
batch = annif.suggest_batch("active", [{"text": text, "document_id": "d0"}, {"text": "The bank and its credit."}], limit=2)
assert batch[0]["document_id"] == "d0" and batch[0]["results"] == found[:2], batch
annif.learn("active", [{"text": text, "subjects": [{"uri": "fishing", "label": "fishing"}]}])
for wrong in (lambda: annif.get_project("nothing"), lambda: annif.suggest("nothing", text)):
    try:
        wrong()
    except ValueError as error:
        assert "nothing" in str(error)
    else:
        raise AssertionError("a project that does not exist was found")
"#;
    let models = server.get("/api/v1/models").unwrap();
    let id = models["active"].as_str().unwrap();
    let manifest = server
        .get(&format!("/api/v1/models/{id}/bundle/manifest.json"))
        .unwrap();
    let said = Command::new(python)
        .args(["-c", script, &server.base, manifest["language"].as_str().unwrap()])
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let feedback = server.get("/api/v1/feedback").unwrap();
    assert_eq!(
        (&feedback["total"], &feedback["exportable"]),
        (&json!(1), &json!(1))
    );
}
