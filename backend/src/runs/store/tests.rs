use gnnxml_shared::api::{Feedback, Preset, RunStatus, Stage, StartRun, TrainEvent};

use super::*;
use crate::runs::ChildIdentity;

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("db")).unwrap();
    (folder, store)
}

fn corpus(store: &Store) -> u64 {
    let new = NewCorpus {
        name: "Laws".into(),
        file: "corpus.jsonl".into(),
        format: "jsonl".into(),
        bytes: 10,
        sha256: "ab".into(),
        report: "{}".into(),
    };
    store.add_corpus(&new, |_| Ok(())).unwrap().id
}

fn run(store: &Store, corpus: u64) -> u64 {
    let settings = StartRun {
        corpus,
        valid: None,
        name: None,
        preset: Preset::Fast,
        config: None,
        seed: None,
        threads: None,
    };
    let new = NewRun {
        name: "first".into(),
        settings,
        fingerprint: "ab".into(),
    };
    store.add_run(&new).unwrap().id
}

fn model(id: &str, run: Option<u64>) -> NewModel {
    NewModel {
        id: id.into(),
        name: "m".into(),
        run,
        encoder: "lsa".into(),
        language: "fi".into(),
        labels: 3,
        clusters: 1,
        bytes: 5,
        metrics: [("P@1".to_owned(), 90.5)].into(),
    }
}

#[test]
fn a_corpus_whose_files_cannot_be_placed_is_not_recorded() {
    let (_folder, store) = store();
    let id = corpus(&store);
    let row = store.corpus(id).unwrap();
    let failed = store.add_corpus(&row.corpus, |_| Err(std::io::Error::other("disk")));
    assert!(failed.is_err());
    assert_eq!(store.corpora().unwrap().len(), 1);
}

#[test]
fn a_corpus_in_use_stays_until_its_run_is_deleted() {
    let (_folder, store) = store();
    let corpus = corpus(&store);
    let run = run(&store, corpus);
    assert!(matches!(store.delete_corpus(corpus), Err(StoreError::InUse)));
    store
        .move_run(run, &[RunStatus::Queued], RunStatus::Cancelled)
        .unwrap();
    store.delete_run(run).unwrap();
    store.delete_corpus(corpus).unwrap();
    assert!(matches!(
        store.delete_corpus(corpus),
        Err(StoreError::Missing { .. })
    ));
}

#[test]
fn events_count_up_over_attempts_and_carry_stage_and_metrics_into_the_run() {
    let (_folder, store) = store();
    let corpus = corpus(&store);
    let id = run(&store, corpus);
    store.claim_run(id).unwrap().unwrap();
    assert!(store.claim_run(id).unwrap().is_none(), "a run is claimed once");
    let progress = TrainEvent::Progress {
        stage: Stage::Rank,
        done: 1,
        total: 4,
        per_second: 1.0,
        seconds_left: None,
    };
    let metrics = TrainEvent::Metrics {
        values: [("P@1".to_owned(), 88.0)].into(),
    };
    store.append_events(id, 100, &[progress, metrics]).unwrap();
    let row = store.run(id).unwrap();
    assert_eq!(row.run.stage, Some(Stage::Rank));
    assert_eq!(row.run.stage_progress, Some(0.25));
    assert_eq!(row.run.metrics["P@1"], 88.0);
    assert_eq!(row.event_offset, 100);

    store
        .move_run(id, &[RunStatus::Running], RunStatus::Queued)
        .unwrap();
    let again = store.claim_run(id).unwrap().unwrap();
    assert_eq!((again.run.attempts, again.attempt_after), (2, 2));
    store
        .append_events(id, 120, &[TrainEvent::Done { seconds: 1.0 }])
        .unwrap();
    let ids: Vec<u64> = store
        .events(id, 1, 10)
        .unwrap()
        .iter()
        .map(|event| event.id)
        .collect();
    assert_eq!(ids, [2, 3]);
    assert_eq!(
        store.latest_events(id, 2, 9).unwrap(),
        [TrainEvent::Done { seconds: 1.0 }]
    );
}

#[test]
fn a_child_is_remembered_while_it_runs_and_forgotten_when_it_ends() {
    let (_folder, store) = store();
    let corpus = corpus(&store);
    let id = run(&store, corpus);
    store.claim_run(id).unwrap();
    let child = ChildIdentity {
        pid: 42,
        start_ticks: 7,
    };
    store.run_has_child(id, child).unwrap();
    assert_eq!(store.run(id).unwrap().child, Some(child));
    let outcome = RunOutcome {
        status: RunStatus::Failed,
        error: Some("no".into()),
        log: vec!["line".into()],
    };
    let ended = store.run_ended(id, &outcome).unwrap();
    assert_eq!((ended.status, ended.resumable), (RunStatus::Failed, true));
    assert_eq!(store.run(id).unwrap().child, None);
    assert!(
        store
            .move_run(id, &[RunStatus::Running], RunStatus::Queued)
            .is_err()
    );
}

#[test]
fn activation_remembers_the_model_before_and_the_active_one_cannot_be_deleted() {
    let (_folder, store) = store();
    store.add_model(&model("a", None)).unwrap();
    store.add_model(&model("b", None)).unwrap();
    store.activate_model("a").unwrap();
    store.activate_model("b").unwrap();
    store.activate_model("b").unwrap();
    assert_eq!(
        store.active_models().unwrap(),
        (Some("b".into()), Some("a".into()))
    );
    assert!(matches!(store.delete_model("b"), Err(StoreError::InUse)));
    store.delete_model("a").unwrap();
    assert_eq!(store.active_models().unwrap(), (Some("b".into()), None));
    assert!(matches!(
        store.activate_model("a"),
        Err(StoreError::Missing { .. })
    ));
}

#[test]
fn a_model_outlives_the_run_it_came_from() {
    let (_folder, store) = store();
    let corpus = corpus(&store);
    let id = run(&store, corpus);
    store.add_model(&model("a", Some(id))).unwrap();
    assert_eq!(store.run(id).unwrap().run.model.as_deref(), Some("a"));
    store
        .move_run(id, &[RunStatus::Queued], RunStatus::Cancelled)
        .unwrap();
    store.delete_run(id).unwrap();
    assert_eq!(store.model("a").unwrap().model.run, None);
}

#[test]
fn feedback_without_text_or_without_an_accepted_label_is_not_exported() {
    let (_folder, store) = store();
    let piece = |text: Option<&str>, accepted: &[&str]| Feedback {
        id: 0,
        created: 0,
        model: None,
        text: text.map(Into::into),
        accepted: accepted.iter().map(|&name| name.to_owned()).collect(),
        rejected: vec!["x".into()],
    };
    store
        .add_feedback(&[
            piece(Some("kept"), &["a"]),
            piece(None, &["a"]),
            piece(Some("none right"), &[]),
        ])
        .unwrap();
    let list = store.feedback(u64::MAX, 2).unwrap();
    assert_eq!((list.total, list.exportable, list.feedback.len()), (3, 1, 2));
    let export = store.exportable_feedback(0, 10).unwrap();
    assert_eq!(export.len(), 1);
    assert_eq!(export[0].text.as_deref(), Some("kept"));
}

#[test]
fn the_database_is_sound_and_a_newer_one_is_refused() {
    let (folder, store) = store();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    drop(store);
    let path = folder.path().join("db");
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    drop(raw);
    assert!(matches!(
        Store::open(&path),
        Err(StoreError::Newer { found: 99, .. })
    ));
}
