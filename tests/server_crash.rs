//! `kill -9` during an upload and at random moments: nothing acknowledged is lost, nothing half done stays.

use std::time::Duration;

use gnnxml_tests::{Server, ServerOptions, small_corpus};
use serde_json::{Value, json};

#[test]
fn a_crash_during_an_upload_leaves_the_corpora_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data).unwrap();
    let kept = server.upload("kept.jsonl", small_corpus(40)).unwrap();
    assert!(server.stop().unwrap().success());
    for point in ["upload_half_written", "upload_renamed"] {
        let options = ServerOptions {
            fail_point: Some(point.to_owned()),
            ..ServerOptions::default()
        };
        let server = Server::start_with(&data, &options).unwrap();
        assert!(
            server.upload("lost.jsonl", small_corpus(80)).is_err(),
            "{point} was never reached"
        );
        assert!(!server.died().unwrap().success());
        let server = Server::start(&data).unwrap();
        let corpora = server.get("/api/v1/corpora").unwrap();
        assert_eq!(
            corpora["corpora"].as_array().unwrap().len(),
            1,
            "{point}: {corpora}"
        );
        assert_eq!(corpora["corpora"][0]["id"], kept);
        assert_eq!(
            std::fs::read_dir(data.join("incoming")).unwrap().count(),
            0,
            "{point}"
        );
        assert_eq!(
            std::fs::read_dir(data.join("corpora")).unwrap().count(),
            1,
            "{point}"
        );
        assert!(server.stop().unwrap().success());
    }
}

#[test]
fn killed_at_random_moments_again_and_again_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut acknowledged: Vec<u64> = Vec::new();
    let mut uploads: Vec<u64> = Vec::new();
    // A small deterministic generator: the moments differ from round to round, not from run to run.
    let mut moment = 12345_u64;
    for round in 0..24 {
        let server = Server::start(&data).unwrap();
        let known = server.get("/api/v1/feedback").unwrap();
        assert!(
            known["total"].as_u64().unwrap() >= acknowledged.len() as u64,
            "round {round}"
        );
        for id in &uploads {
            server
                .get(&format!("/api/v1/corpora/{id}"))
                .unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        moment = moment
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let patience = Duration::from_millis(20 + (moment >> 33) % 200);
        let (base, client) = (server.base.clone(), server.client().clone());
        let writer = std::thread::spawn(move || {
            let (mut feedback, mut corpora) = (Vec::new(), Vec::new());
            for number in 0_u64.. {
                let body = json!({"text": format!("text {number}"), "keep_text": true, "accepted": ["a"]});
                let sent = client.post(format!("{base}/api/v1/feedback")).json(&body).send();
                match sent.and_then(reqwest::blocking::Response::json::<Value>) {
                    Ok(stored) => feedback.push(stored["id"].as_u64().unwrap()),
                    Err(_) => break,
                }
                let upload = client
                    .post(format!("{base}/api/v1/corpora?name=c.jsonl"))
                    .header("content-type", "application/octet-stream")
                    .body(small_corpus(4))
                    .send();
                match upload.and_then(reqwest::blocking::Response::json::<Value>) {
                    Ok(stored) => corpora.push(stored["id"].as_u64().unwrap()),
                    Err(_) => break,
                }
            }
            (feedback, corpora)
        });
        std::thread::sleep(patience);
        server.kill();
        let (feedback, corpora) = writer.join().unwrap();
        acknowledged.extend(feedback);
        uploads.extend(corpora);
    }
    assert!(
        acknowledged.len() > 24,
        "the rounds did some work: {}",
        acknowledged.len()
    );
    let server = Server::start(&data).unwrap();
    let export = server
        .client()
        .get(format!("{}/api/v1/feedback/export", server.base))
        .send()
        .unwrap()
        .text()
        .unwrap();
    let stored: Vec<u64> = export
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["id"]
                .as_str()
                .unwrap()[9..]
                .parse()
                .unwrap()
        })
        .collect();
    for id in acknowledged {
        assert!(stored.contains(&id), "feedback {id} was acknowledged and is lost");
    }
}
