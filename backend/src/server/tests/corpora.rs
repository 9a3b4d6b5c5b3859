use std::io::Write as _;

use axum::body::Body;
use axum::http::StatusCode;
use gnnxml_shared::api::{CorpusEntry, CorpusList, ErrorCode, Run};
use serde_json::json;

use super::{Served, request};

const TWO: &str = "{\"id\":\"a\",\"text\":\"Cocoa rose.\",\"labels\":[\"cocoa\"]}\n\
                   {\"id\":\"b\",\"text\":\"Wheat fell.\",\"labels\":[\"wheat\",\"grain\"]}\n";

#[tokio::test]
async fn an_upload_answers_with_figures_and_with_complaints_by_line() {
    let served = Served::new().await;
    let bad = format!("{TWO}this is not json\n{{\"id\":\"c\",\"text\":\"Oil.\",\"labels\":[\"oil\"]}}\n");
    let reply = served.upload("laws.jsonl", bad).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let corpus: CorpusEntry = reply.json();
    assert_eq!(
        (corpus.name.as_str(), corpus.format.as_str()),
        ("laws.jsonl", "jsonl")
    );
    assert_eq!((corpus.stats.documents, corpus.stats.labels), (3, 4));
    assert_eq!(corpus.stats.skipped, 1);
    assert_eq!(
        (
            corpus.stats.complaints[0].file.as_str(),
            corpus.stats.complaints[0].line
        ),
        ("laws.jsonl", 3)
    );
    let list: CorpusList = served.get("/api/v1/corpora").await.json();
    assert_eq!(list.corpora, std::slice::from_ref(&corpus));
    // The documents that are kept are good ones only, wherever the upload came from.
    let kept = served.state.data().corpus(corpus.id).join("corpus.jsonl");
    assert_eq!(std::fs::read_to_string(kept).unwrap().lines().count(), 3);
    assert_eq!(
        served.delete("/api/v1/corpora/1").await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        served.get("/api/v1/corpora/1").await.code(),
        ErrorCode::CorpusNotFound
    );
    assert!(!served.state.data().corpus(corpus.id).exists());
}

#[tokio::test]
async fn a_packed_upload_is_unpacked_and_cannot_grow_past_the_limit() {
    let served = Served::with(|config| config.limits.upload_bytes = 100_000, "exit 1").await;
    let gzip = |text: &str| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let good: CorpusEntry = served.upload("c.jsonl.gz", gzip(TWO)).await.json();
    assert_eq!(good.stats.documents, 2);
    let long = "a ".repeat(1000);
    let line = |id: usize| format!("{{\"id\":\"{id}\",\"text\":\"{long}\",\"labels\":[\"x\"]}}\n");
    let bomb = (0..1000).map(line).collect::<Vec<_>>().concat();
    let bomb = gzip(&bomb);
    assert!(bomb.len() < 100_000);
    let reply = served.upload("c.jsonl.gz", bomb).await;
    assert_eq!(reply.code(), ErrorCode::UploadTooLarge);
    assert!(reply.message().contains("upload_bytes"));
    let large = served.upload("c.jsonl", vec![b' '; 100_001]).await;
    assert_eq!(large.code(), ErrorCode::UploadTooLarge);
    let incoming = served.state.data().root().join("incoming");
    assert_eq!(
        std::fs::read_dir(incoming).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[tokio::test]
async fn what_is_no_corpus_is_refused_with_its_place() {
    let served = Served::new().await;
    let empty = served.upload("c.jsonl", "").await;
    assert_eq!(empty.code(), ErrorCode::CorpusUnreadable);
    let image = served
        .upload("c.jsonl", b"\x89PNG\r\n\x1a\n\0\0\0".to_vec())
        .await;
    assert_eq!(image.code(), ErrorCode::CorpusUnreadable);
    assert!(image.message().contains("c.jsonl"), "{}", image.message());
    assert!(
        !image.message().contains("incoming"),
        "our own paths stay ours: {}",
        image.message()
    );
    let wrong = request("POST", "/api/v1/corpora").header("content-type", "text/plain");
    let wrong = served.send(wrong.body(Body::from(TWO)).unwrap()).await;
    assert_eq!(wrong.code(), ErrorCode::UnsupportedMediaType);
    let list: CorpusList = served.get("/api/v1/corpora").await.json();
    assert!(list.corpora.is_empty());
}

#[tokio::test]
async fn a_name_with_html_or_a_path_stays_a_name() {
    let served = Served::new().await;
    let reply = served
        .upload("..%2F..%2F%3Cscript%3Ealert(1)%3C%2Fscript%3E.jsonl", TWO)
        .await;
    let corpus: CorpusEntry = reply.json();
    assert_eq!(corpus.name, "../../<script>alert(1)</script>.jsonl");
    assert!(reply.header("content-type").starts_with("application/json"));
    let kept: Vec<_> = std::fs::read_dir(served.state.data().corpus(corpus.id))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(kept, ["corpus.jsonl"]);
    assert_eq!(
        served.upload("a%0Ab", TWO).await.code(),
        ErrorCode::InvalidParameter
    );
}

#[tokio::test]
async fn a_corpus_that_a_run_uses_cannot_be_deleted() {
    let served = Served::new().await;
    served.upload("c.jsonl", TWO).await;
    let run: Run = served.post("/api/v1/runs", &json!({"corpus": 1})).await.json();
    assert_eq!(run.settings.corpus, 1);
    assert_eq!(
        served.delete("/api/v1/corpora/1").await.code(),
        ErrorCode::CorpusInUse
    );
    assert_eq!(
        served.post("/api/v1/runs", &json!({"corpus": 9})).await.code(),
        ErrorCode::CorpusNotFound
    );
}
