use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::StatusCode;
use gnnxml_shared::api::{ErrorCode, Run, RunList, RunStatus, Stage, StoredEvent, TrainEvent};
use serde_json::json;

use super::super::{AppState, ServerConfig, router};
use super::{Served, queue, request};

const CORPUS: &str = "{\"id\":\"a\",\"text\":\"Cocoa rose.\",\"labels\":[\"cocoa\"]}\n";

/// Says a little, then ends well.
const GOOD: &str = r#"
echo "$@" > arguments
echo '{"type":"stage_started","stage":"read"}'
echo '{"type":"metrics","values":{"P@1":87.5}}'
echo '{"type":"stage_done","stage":"read","seconds":0.1}'
echo '{"type":"done","seconds":0.2}'
"#;

/// Goes on until it is told to stop, and then saves.
const LONG: &str = r#"
trap 'echo "{\"type\":\"interrupted\",\"resumable\":true}"; exit 1' TERM
echo '{"type":"stage_started","stage":"match"}'
while true; do sleep 0.05; done
"#;

async fn with_corpus(training: &str) -> Served {
    let served = Served::with(|_| {}, training).await;
    assert_eq!(served.upload("c.jsonl", CORPUS).await.status, StatusCode::CREATED);
    served
}

async fn start(served: &Served) -> Run {
    let reply = served
        .post("/api/v1/runs", &json!({"corpus": 1, "seed": 7}))
        .await;
    assert_eq!(reply.status, StatusCode::CREATED);
    reply.json()
}

async fn run_of(served: &Served, id: u64) -> Run {
    served.get(&format!("/api/v1/runs/{id}")).await.json()
}

async fn until(served: &Served, id: u64, wanted: impl Fn(&Run) -> bool) -> Run {
    let begun = Instant::now();
    loop {
        let run = run_of(served, id).await;
        if wanted(&run) {
            return run;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "still {run:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn over(served: &Served, id: u64) -> Run {
    until(served, id, |run| run.status.is_over()).await
}

/// The events of a stream that ends, by SSE id, and the run it ends with.
fn parse_stream(body: &[u8]) -> (Vec<(u64, StoredEvent)>, Option<Run>) {
    let mut events = Vec::new();
    let mut end = None;
    for block in std::str::from_utf8(body)
        .unwrap()
        .split("\n\n")
        .filter(|block| !block.trim().is_empty())
    {
        let field = |name: &str| {
            block
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").or(Some("")))
        };
        let Some(data) = field("data") else { continue };
        if field("event") == Some("end") {
            end = Some(serde_json::from_str(data).unwrap());
        } else {
            events.push((
                field("id").unwrap().parse().unwrap(),
                serde_json::from_str(data).unwrap(),
            ));
        }
    }
    (events, end)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_a_child_whose_words_are_stored_and_streamed() {
    let served = with_corpus(GOOD).await;
    let queued = start(&served).await;
    let done = over(&served, queued.id).await;
    assert_eq!(
        (done.status, done.stage, done.metrics["P@1"]),
        (RunStatus::Done, Some(Stage::Read), 87.5)
    );
    assert_eq!((done.attempts, done.corpus_fingerprint.len()), (1, 64));

    let arguments = std::fs::read_to_string(served.state.data().run(done.id).join("arguments")).unwrap();
    assert!(arguments.starts_with("train --corpus "), "{arguments}");
    assert!(
        arguments.contains("--preset fast --seed 7 --json-progress"),
        "{arguments}"
    );

    let stream = served.get(&format!("/api/v1/runs/{}/events", done.id)).await;
    assert_eq!(stream.header("content-type"), "text/event-stream");
    let (events, end) = parse_stream(&stream.body);
    assert_eq!(
        events
            .iter()
            .map(|(id, event)| (*id, event.id))
            .collect::<Vec<_>>(),
        [(1, 1), (2, 2), (3, 3), (4, 4)]
    );
    assert_eq!(events[0].1.event, TrainEvent::StageStarted { stage: Stage::Read });
    assert_eq!(end.unwrap().status, RunStatus::Done);

    let resumed = request("GET", &format!("/api/v1/runs/{}/events", done.id)).header("last-event-id", "3");
    let (events, _) = parse_stream(&served.send(resumed.body(Body::empty()).unwrap()).await.body);
    assert_eq!(events.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_hears_live_what_comes_and_that_it_ended() {
    let training = "for i in 1 2 3 4 5; do sleep 0.15; echo '{\"type\":\"log\",\"level\":\"info\",\"message\":\"'$i'\"}'; done; echo '{\"type\":\"done\",\"seconds\":1}'";
    let served = with_corpus(training).await;
    let run = start(&served).await;
    let listening: Vec<_> = (0..20)
        .map(|_| {
            let app = served.app.clone();
            let asked = request("GET", &format!("/api/v1/runs/{}/events", run.id))
                .body(Body::empty())
                .unwrap();
            tokio::spawn(async move {
                use http_body_util::BodyExt as _;
                use tower::ServiceExt as _;
                let response = app.oneshot(asked).await.unwrap();
                response.into_body().collect().await.unwrap().to_bytes()
            })
        })
        .collect();
    for listener in listening {
        let (events, end) = parse_stream(&listener.await.unwrap());
        assert_eq!(
            events.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(end.unwrap().status, RunStatus::Done);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_crashes_is_failed_with_its_last_words() {
    let served = with_corpus(
        "echo '{\"type\":\"stage_started\",\"stage\":\"rank\"}'; echo 'out of <memory>' >&2; kill -9 $$",
    )
    .await;
    let failed = over(&served, start(&served).await.id).await;
    assert_eq!(
        (failed.status, failed.stage),
        (RunStatus::Failed, Some(Stage::Rank))
    );
    assert!(failed.error.as_deref().unwrap().contains("signal"), "{failed:?}");
    assert_eq!(failed.log, ["out of <memory>"]);
    assert!(failed.resumable);
    let publish = served
        .post(&format!("/api/v1/runs/{}/publish", failed.id), &json!({}))
        .await;
    assert_eq!(publish.code(), ErrorCode::RunNotPublishable);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_lets_the_child_save_and_resume_goes_on() {
    let served = with_corpus(LONG).await;
    let id = start(&served).await.id;
    until(&served, id, |run| run.stage.is_some()).await;
    assert_eq!(
        served.delete(&format!("/api/v1/runs/{id}")).await.code(),
        ErrorCode::RunStillRunning
    );
    let asked = Instant::now();
    assert_eq!(
        served
            .post(&format!("/api/v1/runs/{id}/cancel"), &json!({}))
            .await
            .status,
        StatusCode::OK
    );
    let cancelled = over(&served, id).await;
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    let again = served
        .post(&format!("/api/v1/runs/{id}/cancel"), &json!({}))
        .await;
    assert_eq!(again.code(), ErrorCode::RunNotRunning);

    super::script(served.folder.path(), GOOD);
    let resumed: Run = served
        .post(&format!("/api/v1/runs/{id}/resume"), &json!({}))
        .await
        .json();
    assert_eq!(resumed.status, RunStatus::Queued);
    let done = over(&served, id).await;
    assert_eq!((done.status, done.attempts), (RunStatus::Done, 2));
    let arguments = std::fs::read_to_string(served.state.data().run(id).join("arguments")).unwrap();
    assert!(arguments.contains("--resume"), "{arguments}");
    assert_eq!(
        served
            .post(&format!("/api/v1/runs/{id}/resume"), &json!({}))
            .await
            .code(),
        ErrorCode::RunNotResumable
    );
    assert_eq!(
        served.delete(&format!("/api/v1/runs/{id}")).await.status,
        StatusCode::NO_CONTENT
    );
    assert!(!served.state.data().run(id).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_will_not_stop_is_gone_within_two_seconds() {
    let served = with_corpus("trap '' TERM; echo '{\"type\":\"stage_started\",\"stage\":\"match\"}'; while true; do sleep 0.1; done").await;
    let id = start(&served).await.id;
    until(&served, id, |run| run.stage.is_some()).await;
    let child = served.state.store().run(id).unwrap().child.unwrap();
    let asked = Instant::now();
    served
        .post(&format!("/api/v1/runs/{id}/cancel"), &json!({}))
        .await;
    assert_eq!(over(&served, id).await.status, RunStatus::Cancelled);
    assert!(
        asked.elapsed() < Duration::from_millis(2500),
        "{:?}",
        asked.elapsed()
    );
    assert!(!child.is_alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_wait_for_each_other_and_a_waiting_one_can_be_cancelled() {
    let served = with_corpus(LONG).await;
    let first = start(&served).await.id;
    let second = start(&served).await.id;
    let third = start(&served).await.id;
    until(&served, first, |run| run.status == RunStatus::Running).await;
    let cancelled: Run = served
        .post(&format!("/api/v1/runs/{third}/cancel"), &json!({}))
        .await
        .json();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    assert_eq!(run_of(&served, second).await.status, RunStatus::Queued);
    served
        .post(&format!("/api/v1/runs/{first}/cancel"), &json!({}))
        .await;
    until(&served, second, |run| run.status == RunStatus::Running).await;
    let list: RunList = served.get("/api/v1/runs").await.json();
    assert_eq!(
        list.runs.iter().map(|run| run.id).collect::<Vec<_>>(),
        [third, second, first]
    );
    served.state.stop().await;
    assert_eq!(run_of(&served, second).await.status, RunStatus::Interrupted);
    let refused = served.post("/api/v1/runs", &json!({"corpus": 1})).await;
    assert_eq!(
        (refused.code(), refused.header("retry-after")),
        (ErrorCode::Busy, "10")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_heard_at_every_moment_of_a_start() {
    let served = with_corpus(LONG).await;
    for pause in 0..24 {
        let id = start(&served).await.id;
        tokio::time::sleep(Duration::from_micros(300 * pause)).await;
        served
            .post(&format!("/api/v1/runs/{id}/cancel"), &json!({}))
            .await;
        assert_eq!(over(&served, id).await.status, RunStatus::Cancelled);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_has_an_end() {
    let served = Served::with(|config| config.limits.queued_runs = 1, LONG).await;
    served.upload("c.jsonl", CORPUS).await;
    let first = start(&served).await.id;
    until(&served, first, |run| run.status == RunStatus::Running).await;
    start(&served).await;
    let full = served.post("/api/v1/runs", &json!({"corpus": 1})).await;
    assert_eq!(full.code(), ErrorCode::Busy);
    assert!(full.message().contains("queued_runs"));
    served.state.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_cannot_start_is_a_failed_run() {
    let served = with_corpus("exit 0").await;
    std::fs::remove_file(served.folder.path().join("train.sh")).unwrap();
    let failed = over(&served, start(&served).await.id).await;
    assert_eq!(failed.status, RunStatus::Failed);
    assert!(failed.error.unwrap().contains("could not be started"));
}

/// A server that is gone without a word, as after `kill -9`: nothing of it is asked to stop.
/// Its tasks live in a runtime of their own, which is torn down from under them.
fn abandoned(folder: &std::path::Path, training: &str, wanted: fn(&Run) -> bool) -> u64 {
    let program = super::script(folder, training);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let id = runtime.block_on(async {
        let state = AppState::start(ServerConfig::local(folder.join("data")), queue(program))
            .await
            .unwrap();
        let served = Served {
            app: router(state.clone()),
            state,
            folder: tempfile::tempdir().unwrap(),
        };
        served.upload("c.jsonl", CORPUS).await;
        let id = start(&served).await.id;
        until(&served, id, wanted).await;
        id
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    id
}

async fn restarted(folder: tempfile::TempDir) -> Served {
    let config = ServerConfig::local(folder.path().join("data"));
    let program = folder.path().join("train.sh");
    let state = AppState::start(config, queue(program)).await.unwrap();
    Served {
        app: router(state.clone()),
        state,
        folder,
    }
}

#[test]
fn a_new_server_finds_a_running_child_again_and_loses_none_of_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let training = "echo '{\"type\":\"stage_started\",\"stage\":\"read\"}'; sleep 1; echo '{\"type\":\"stage_started\",\"stage\":\"rank\"}'; sleep 0.3; echo '{\"type\":\"done\",\"seconds\":1}'";
    let id = abandoned(folder.path(), training, |run| run.stage.is_some());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let served = restarted(folder).await;
        assert_eq!(run_of(&served, id).await.status, RunStatus::Running);
        let done = over(&served, id).await;
        assert_eq!(
            (done.status, done.attempts, done.stage),
            (RunStatus::Done, 1, Some(Stage::Rank))
        );
        let events = served.state.store().events(id, 0, 100).unwrap();
        assert_eq!(events.len(), 3, "each event once: {events:?}");
    });
}

#[test]
fn a_run_whose_child_died_with_the_server_is_interrupted_and_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let training = "echo $$ > pid; echo '{\"type\":\"stage_started\",\"stage\":\"read\"}'; while true; do sleep 0.05; done";
    let id = abandoned(folder.path(), training, |run| run.stage.is_some());
    let pid = std::fs::read_to_string(folder.path().join(format!("data/runs/{id}/pid"))).unwrap();
    assert!(
        std::process::Command::new("kill")
            .args(["-9", pid.trim()])
            .status()
            .unwrap()
            .success()
    );
    super::script(folder.path(), GOOD);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let served = restarted(folder).await;
        let interrupted = over(&served, id).await;
        assert_eq!(
            (interrupted.status, interrupted.resumable),
            (RunStatus::Interrupted, true)
        );
        served
            .post(&format!("/api/v1/runs/{id}/resume"), &json!({}))
            .await;
        assert_eq!(
            until(&served, id, |run| run.attempts == 2 && run.status.is_over())
                .await
                .status,
            RunStatus::Done
        );
    });
}
