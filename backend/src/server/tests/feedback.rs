use axum::http::StatusCode;
use gnnxml_shared::api::{ErrorCode, Feedback, FeedbackList};
use serde_json::json;

use super::Served;

#[tokio::test]
async fn a_text_is_kept_only_when_the_person_says_so() {
    let served = Served::new().await;
    let quiet = served
        .post(
            "/api/v1/feedback",
            &json!({"text": "private words", "accepted": ["a"]}),
        )
        .await;
    assert_eq!(quiet.status, StatusCode::CREATED);
    assert_eq!(quiet.json::<Feedback>().text, None);
    let agreed =
        json!({"text": "shared words", "keep_text": true, "accepted": ["a", "<b>"], "rejected": ["c"]});
    assert_eq!(
        served
            .post("/api/v1/feedback", &agreed)
            .await
            .json::<Feedback>()
            .text
            .as_deref(),
        Some("shared words")
    );
    let list: FeedbackList = served.get("/api/v1/feedback").await.json();
    assert_eq!((list.total, list.exportable), (2, 1));
    let export = served.get("/api/v1/feedback/export").await;
    let lines: Vec<serde_json::Value> = std::str::from_utf8(&export.body)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines,
        [json!({"id": "feedback-2", "text": "shared words", "labels": ["a", "<b>"]})]
    );
    for file in ["gnnxml.sqlite", "gnnxml.sqlite-wal"] {
        let bytes = std::fs::read(served.state.data().root().join(file)).unwrap_or_default();
        assert!(
            !bytes.windows(13).any(|window| window == b"private words"),
            "{file}"
        );
    }
    assert_eq!(
        served.delete("/api/v1/feedback/1").await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        served.delete("/api/v1/feedback/1").await.code(),
        ErrorCode::FeedbackNotFound
    );
}

#[tokio::test]
async fn the_export_of_feedback_is_a_corpus_that_can_be_uploaded() {
    let served = Served::new().await;
    for number in 0..450 {
        let piece = json!({"text": format!("text {number}"), "keep_text": true, "accepted": [format!("l{}", number % 7)]});
        served.post("/api/v1/feedback", &piece).await;
    }
    let export = served.get("/api/v1/feedback/export").await;
    let corpus: gnnxml_shared::api::CorpusEntry = served.upload("feedback.jsonl", export.body).await.json();
    assert_eq!((corpus.stats.documents, corpus.stats.labels), (450, 7));
}

#[tokio::test]
async fn feedback_about_nothing_is_refused() {
    let served = Served::new().await;
    assert_eq!(
        served.post("/api/v1/feedback", &json!({})).await.code(),
        ErrorCode::InvalidParameter
    );
    let odd = served.post("/api/v1/feedback", &json!({"accepted": [""]})).await;
    assert_eq!(odd.code(), ErrorCode::InvalidParameter);
}
