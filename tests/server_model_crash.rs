//! `kill -9` at every named place on a model's way, and a full disk: the last good model answers.

use std::path::Path;

use gnnxml_tests::{Server, ServerOptions, small_corpus};
use serde_json::{Value, json};

const TEXT: &str = "The trawler left the harbour with its net; the cod quota was small.";

/// What was answered with success, and so must be there for ever.
#[derive(Debug, Default)]
struct Kept {
    corpus: u64,
    run: u64,
    model: String,
    feedback: u64,
    answer: Value,
}

/// A data directory with one of everything, and a second finished run to publish.
fn prepared(data: &Path) -> (Kept, u64) {
    let server = Server::start(data).unwrap();
    let corpus = server.upload("small.jsonl", small_corpus(120)).unwrap();
    let run = server.train(corpus, 1).unwrap();
    let model = server
        .post(&format!("/api/v1/runs/{run}/publish"), &json!({}))
        .unwrap();
    let second = server.upload("second.jsonl", small_corpus(160)).unwrap();
    let second = server.train(second, 2).unwrap();
    let feedback = server
        .post("/api/v1/feedback", &json!({"accepted": ["fishing"]}))
        .unwrap();
    let kept = Kept {
        corpus,
        run,
        model: model["id"].as_str().unwrap().to_owned(),
        feedback: feedback["id"].as_u64().unwrap(),
        answer: server.post("/api/v1/tag", &json!({"text": TEXT})).unwrap()["results"].clone(),
    };
    assert!(server.stop().unwrap().success());
    (kept, second)
}

fn check(server: &Server, kept: &Kept) {
    server.get(&format!("/api/v1/corpora/{}", kept.corpus)).unwrap();
    assert_eq!(
        server.get(&format!("/api/v1/runs/{}", kept.run)).unwrap()["status"],
        "done"
    );
    let model = server
        .post("/api/v1/tag", &json!({"text": TEXT, "model": kept.model}))
        .unwrap();
    assert_eq!(model["results"], kept.answer);
    server
        .post("/api/v1/tag", &json!({"text": TEXT}))
        .expect("some good model is active");
    let feedback = server.get("/api/v1/feedback").unwrap();
    assert!(
        feedback["feedback"]
            .as_array()
            .unwrap()
            .iter()
            .any(|piece| piece["id"] == kept.feedback)
    );
    let incoming = std::fs::read_dir(server.data().join("incoming")).unwrap().count();
    assert_eq!(incoming, 0, "what was under way is cleared");
}

/// Does what leads to the place; the server dies on the way, so the answer is never a success.
fn provoke(server: &Server, point: &str, kept: &Kept, unpublished: u64) {
    let died = match point {
        "upload_half_written" | "upload_renamed" => server
            .upload("third.jsonl", small_corpus(40))
            .map(|_| Value::Null),
        "event_read" | "event_stored" | "run_spawned" => server
            .post("/api/v1/runs", &json!({"corpus": kept.corpus, "threads": 1}))
            .and_then(|run| server.finished(run["id"].as_u64().unwrap())),
        "publish_exported" | "publish_renamed" | "publish_recorded" | "activate_loaded"
        | "activate_recorded" => server.post(&format!("/api/v1/runs/{unpublished}/publish"), &json!({})),
        other => panic!("no way to {other} is known: add one"),
    };
    assert!(died.is_err(), "{point} was never reached");
}

const FAIL_POINTS: &[&str] = &[
    "upload_half_written",
    "upload_renamed",
    "event_read",
    "event_stored",
    "publish_exported",
    "publish_renamed",
    "publish_recorded",
    "activate_loaded",
    "activate_recorded",
    "run_spawned",
];

#[test]
fn a_crash_at_any_named_place_loses_nothing_that_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (kept, unpublished) = prepared(&data);
    for point in FAIL_POINTS {
        let options = ServerOptions {
            fail_point: Some((*point).to_owned()),
            ..ServerOptions::default()
        };
        let server = Server::start_with(&data, &options).unwrap();
        provoke(&server, point, &kept, unpublished);
        server.died().unwrap();
        let server = Server::start(&data).unwrap();
        check(&server, &kept);
        // A run that was under way ends: its child was found again, or it is interrupted and can be resumed.
        for run in server.get("/api/v1/runs").unwrap()["runs"].as_array().unwrap() {
            let id = run["id"].as_u64().unwrap();
            let over = server.finished(id).unwrap();
            assert!(
                matches!(over["status"].as_str(), Some("done" | "interrupted")),
                "{point}: {over}"
            );
        }
        assert!(server.stop().unwrap().success(), "{point}");
    }
    // The place before the record leaves the old model active, the place after it the new one.
    let server = Server::start(&data).unwrap();
    assert_ne!(server.get("/api/v1/health").unwrap()["active_model"], kept.model);
}

/// A file system of its own, a few megabytes large, for as long as the value lives.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// `None` where this user may not mount.
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
            .arg(at)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}

#[test]
fn a_full_disk_fails_the_request_and_the_run_and_the_active_model_stays() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&folder.path().join("disk")) else {
        eprintln!("mounting is not allowed here: not run");
        return;
    };
    let data = disk.0.join("data");
    let (kept, _) = prepared(&data);
    let server = Server::start(&data).unwrap();
    // Fill what is left.
    let filler = disk.0.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 1 << 16]).is_ok() {}
    let refused = server
        .upload("more.jsonl", small_corpus(2000))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("disk_full"), "{refused}");
    // A run either cannot be queued, or fails; in neither case does the server or its model.
    if let Ok(run) = server.post("/api/v1/runs", &json!({"corpus": kept.corpus, "threads": 1})) {
        let over = server.finished(run["id"].as_u64().unwrap());
        if let Ok(over) = over {
            assert_eq!(over["status"], "failed", "{over}");
        }
    }
    assert_eq!(
        server.post("/api/v1/tag", &json!({"text": TEXT})).unwrap()["results"],
        kept.answer
    );
    drop(file);
    std::fs::remove_file(&filler).unwrap();
    let server = {
        server.kill();
        Server::start(&data).unwrap()
    };
    check(&server, &kept);
    server.upload("more.jsonl", small_corpus(200)).unwrap();
    drop(server);
}
