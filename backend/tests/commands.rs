//! `gnnxml predict`, `evaluate` and `learn` as people and programs use them: what they answer, what they refuse, what they exit with.

mod program;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use gnnxml_backend::server::TaggingEngine;
use gnnxml_backend::train::Model;
use gnnxml_shared::model::tagger::FinishOptions;
use program::{assert_exit, command, garden, said};
use serde_json::{Value, json};

/// Far more than an answer takes, far less than a patient test.
const SOON: Duration = Duration::from_secs(60);

/// One line of the corpus.
fn first_document() -> String {
    let corpus = BufReader::new(std::fs::File::open(garden()).unwrap());
    corpus.lines().next().unwrap().unwrap()
}

/// A folder for the whole run with a model of the small corpus in it.
fn home() -> &'static Path {
    static HOME: OnceLock<tempfile::TempDir> = OnceLock::new();
    let trained = || {
        let home = tempfile::tempdir().unwrap();
        // A graph network, so that there is evidence from vertices.
        let settings = "[encoder]\nname = \"lsa\"\n[matcher]\nkind = \"both\"\nepochs = 2\n";
        let config = home.path().join("config.toml");
        std::fs::write(&config, settings).unwrap();
        let trained = command(home.path())
            .args(["train", "--threads", "2", "--corpus"])
            .arg(garden())
            .arg("--out")
            .arg(home.path().join("model"))
            .arg("--config")
            .arg(config)
            .output()
            .unwrap();
        assert!(trained.status.success(), "{}", said(&trained));
        home
    };
    HOME.get_or_init(trained).path()
}

fn model() -> PathBuf {
    home().join("model")
}

fn gnnxml(arguments: &[&str]) -> Output {
    command(home()).args(arguments).output().unwrap()
}

/// `gnnxml predict` with its ends in our hands.
fn predict(arguments: &[&str]) -> Child {
    command(home())
        .args(["predict", "--threads", "2", "--model"])
        .arg(model())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The answer to `input` on standard input.
fn predicted(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = predict(arguments);
    // A program that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn evaluate(corpus: &Path, arguments: &[&str]) -> Output {
    command(home())
        .args(["evaluate", "--threads", "2", "--json", "--model"])
        .arg(model())
        .arg("--corpus")
        .arg(corpus)
        .args(arguments)
        .output()
        .unwrap()
}

fn answers(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn ids(output: &Output) -> Vec<String> {
    let answers = answers(output);
    answers
        .iter()
        .map(|answer| answer["id"].as_str().unwrap().to_owned())
        .collect()
}

/// A corpus of these lines.
fn corpus(name: &str, lines: &[Value]) -> PathBuf {
    let path = home().join(name);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    path
}

fn roses(id: &str, labels: &[&str]) -> Value {
    json!({"id": id, "text": "Prune the roses before the buds swell.", "labels": labels})
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_document_is_answered_while_the_input_is_still_open() {
    let mut child = predict(&["-"]);
    let mut input = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, answered) = channel();
    std::thread::spawn(move || {
        for line in output.lines() {
            let _ = sender.send(line.unwrap());
        }
    });
    // An empty line, too, is shorter than what tells a packed file.
    for (line, id) in [
        ("\n", "1"),
        ("{\"id\":\"a\",\"text\":\"roses\"}\n", "a"),
        ("{\"text\":\"sails\"}\n", "3"),
    ] {
        input.write_all(line.as_bytes()).unwrap();
        let answer: Value = serde_json::from_str(&answered.recv_timeout(SOON).unwrap()).unwrap();
        assert_eq!(answer["id"], id);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_empty_line_and_an_empty_input_are_no_mistake() {
    let output = predicted(
        &["-"],
        b"{\"id\":\"a\",\"text\":\"roses\"}\n\n{\"id\":\"c\",\"text\":\"\"}",
    );
    assert_exit(&output, 0);
    assert_eq!(ids(&output), ["a", "2", "c"]);
    let output = predicted(&["-"], b"");
    assert_exit(&output, 0);
    assert!(output.stdout.is_empty());
}

#[test]
fn documents_before_a_bad_line_are_answered() {
    let output = predicted(
        &["-"],
        b"{\"id\":\"a\",\"text\":\"roses\"}\n{\"id\":\"b\",\"text\":\"sails\"}\n{oops\n{\"text\":\"tea\"}\n",
    );
    assert_exit(&output, 2);
    assert_eq!(ids(&output), ["a", "b"]);
    let said = said(&output);
    assert!(
        said.contains("standard input:3: found no JSON at column 2, expected"),
        "{said}"
    );

    let file = home().join("latin.jsonl");
    std::fs::write(
        &file,
        b"{\"id\":\"a\",\"text\":\"roses\"}\n{\"text\":\"caf\xe9\"}\n",
    )
    .unwrap();
    let output = predicted(&[file.to_str().unwrap()], b"");
    assert_exit(&output, 2);
    assert_eq!(ids(&output), ["a"]);
    assert!(
        self::said(&output).contains("latin.jsonl:2"),
        "{}",
        self::said(&output)
    );
}

#[test]
fn packed_input_is_told_by_its_content_and_a_byte_order_mark_is_passed_over() {
    let plain = b"\xef\xbb\xbf{\"id\":\"a\",\"text\":\"roses\"}\r\n{\"id\":\"b\",\"text\":\"sails\"}\n";
    let output = predicted(&["-"], plain);
    assert_exit(&output, 0);
    assert_eq!(ids(&output), ["a", "b"]);

    let packed = gzipped(plain);
    let from_pipe = predicted(&["-"], &packed);
    assert_exit(&from_pipe, 0);
    assert_eq!(from_pipe.stdout, output.stdout);

    // No .gz in its name.
    let file = home().join("packed.jsonl");
    std::fs::write(&file, &packed).unwrap();
    assert_eq!(predicted(&[file.to_str().unwrap()], b"").stdout, output.stdout);

    let zstd = ruzstd::encoding::compress_to_vec(&plain[..], ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(predicted(&["-"], &zstd).stdout, output.stdout);
}

#[test]
fn plain_text_is_a_document_a_line() {
    let output = predicted(&["--text", "--top", "1"], b"Prune the roses.\n{\"text\": 1}\n");
    assert_exit(&output, 0);
    assert_eq!(ids(&output), ["1", "2"]);
    assert!(
        answers(&output)
            .iter()
            .all(|answer| answer["labels"].as_array().unwrap().len() <= 1)
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let cut = home().join("cut.gz");
    let packed = gzipped(&std::fs::read(garden()).unwrap());
    std::fs::write(&cut, &packed[..packed.len() / 2]).unwrap();
    let output = predicted(&[cut.to_str().unwrap()], b"");
    assert_exit(&output, 2);
    assert!(said(&output).contains("cut.gz:"), "{}", said(&output));
    assert!(said(&output).contains("truncated"), "{}", said(&output));
    // What could be unpacked was answered.
    assert!(ids(&output).len() > 10);

    let folder = home().join("folder");
    std::fs::create_dir_all(&folder).unwrap();
    let output = predicted(&[folder.to_str().unwrap()], b"");
    assert_exit(&output, 2);
    assert!(said(&output).contains("folder: "), "{}", said(&output));

    let output = predicted(&["nope.jsonl"], b"");
    assert_exit(&output, 2);
    let said = said(&output);
    assert!(
        said.contains("nope.jsonl") && said.matches("os error").count() == 1,
        "{said}"
    );
}

#[test]
fn a_cutoff_is_a_probability_or_auto() {
    for wrong in ["nan", "1.5", "-0.1", "inf", "high"] {
        let output = predicted(&[&format!("--cutoff={wrong}")], b"");
        assert_exit(&output, 2);
        assert!(
            said(&output).contains("expected a probability from 0 to 1, or auto"),
            "{}",
            said(&output)
        );
    }
    // A text of the corpus: whether a passing remark is above the cut-off of so small a model is chance.
    let document = first_document();
    let labels = |cutoff: &str| {
        let output = predicted(&["--cutoff", cutoff], document.as_bytes());
        assert_exit(&output, 0);
        answers(&output)[0]["labels"].as_array().unwrap().len()
    };
    assert_eq!((labels("0"), labels("1")), (10, 0));
    assert!((1..10).contains(&labels("auto")));
}

#[test]
fn an_explanation_brings_the_graph_that_its_numbers_are_of() {
    let first = first_document();
    let plain = &answers(&predicted(&["-"], first.as_bytes()))[0];
    assert!(plain.get("keygraph").is_none() && plain["labels"][0].get("evidence").is_none());

    let explained = &answers(&predicted(&["--explain", "-"], first.as_bytes()))[0];
    let graph = &explained["keygraph"];
    let sentences = graph["sentences"].as_array().unwrap().len() as u64;
    let vertices: Vec<u64> = (graph["vertices"].as_array().unwrap().iter())
        .map(|vertex| vertex["id"].as_u64().unwrap())
        .collect();
    let (mut sentences_named, mut vertices_named) = (0, 0);
    let labels = explained["labels"].as_array().unwrap();
    for label in labels {
        let evidence = &label["evidence"];
        for sentence in evidence["sentences"].as_array().unwrap() {
            assert!(sentence["sentence"].as_u64().unwrap() < sentences, "{sentence}");
            sentences_named += 1;
        }
        for vertex in evidence["vertices"].as_array().unwrap() {
            assert!(vertices.contains(&vertex["vertex"].as_u64().unwrap()), "{vertex}");
            vertices_named += 1;
        }
    }
    assert!(sentences_named > 0 && vertices_named > 0);
}

#[test]
fn what_is_left_out_of_an_evaluation_is_counted_and_told() {
    let path = corpus(
        "mixed.jsonl",
        &[
            roses("a", &["roses", "alchemy"]),
            roses("a", &["roses"]),
            roses("b", &[]),
            roses("c", &["alchemy"]),
            json!({"id": "d", "labels": ["roses"]}),
        ],
    );
    let output = evaluate(&path, &["--skip-bad", "1"]);
    assert_exit(&output, 0);
    let report = &answers(&output)[0];
    for (key, expected) in [
        ("documents", 2),
        ("documents_without_labels", 2),
        ("unknown_labels", 2),
        ("skipped", 1),
        ("repeated_ids", 1),
    ] {
        assert_eq!(report[key], expected, "{key}");
    }
    assert!(report["ece"].is_number() && report["ece_shown"].is_number());
    let said = said(&output);
    assert!(
        said.contains("1 documents repeat the id of another and were kept") && said.contains("mixed.jsonl:2"),
        "{said}"
    );
    assert!(
        said.contains("1 bad records left out") && said.contains("mixed.jsonl:5"),
        "{said}"
    );

    assert_exit(&evaluate(&path, &[]), 2);
    // A repeated document that nobody asked for is not among those that were kept.
    let wanted = home().join("wanted.txt");
    std::fs::write(&wanted, "c\nb\n").unwrap();
    let output = evaluate(&path, &["--skip-bad", "1", "--ids", wanted.to_str().unwrap()]);
    assert_exit(&output, 2);
    assert!(
        !self::said(&output).contains("repeat the id"),
        "{}",
        self::said(&output)
    );
}

#[test]
fn an_evaluation_of_nothing_is_refused() {
    for (name, line, why) in [
        (
            "unlabelled.jsonl",
            roses("a", &[]),
            "none of 1 documents has a label",
        ),
        (
            "unknown.jsonl",
            roses("a", &["alchemy"]),
            "none of the labels of 1 documents is known to the model",
        ),
    ] {
        let output = evaluate(&corpus(name, &[line]), &[]);
        assert_exit(&output, 2);
        assert!(
            said(&output).contains(&format!("{name}: {why}")),
            "{}",
            said(&output)
        );
        assert!(output.stdout.is_empty());
    }
    let nobody = home().join("nobody.txt");
    std::fs::write(&nobody, "nobody\n").unwrap();
    let output = evaluate(&garden(), &["--ids", nobody.to_str().unwrap()]);
    assert_exit(&output, 2);
    assert!(said(&output).contains("found no document"), "{}", said(&output));
}

#[test]
fn a_split_tells_what_it_left_out() {
    let lines = [
        roses("a", &["roses"]),
        roses("a", &["roses"]),
        roses("b", &["roses"]),
    ];
    let path = corpus("repeated.jsonl", &lines);
    let out = home().join("split");
    let split = |skip: &str| {
        let (path, out) = (path.to_str().unwrap(), out.to_str().unwrap());
        gnnxml(&["corpus", "split", path, "--out", out, "--skip-bad", skip])
    };
    assert_exit(&split("0"), 2);
    let output = split("1");
    assert_exit(&output, 0);
    let said = said(&output);
    assert!(
        said.contains("1 bad records left out") && said.contains("repeated.jsonl:2"),
        "{said}"
    );
    assert!(!said.contains("were kept"), "{said}");
}

/// Rare labels weigh by how many documents there were to learn from, and `learn` adds to them.
#[test]
fn a_model_that_learned_on_and_its_bundle_count_the_same_documents() {
    let documents: Vec<Value> = BufReader::new(std::fs::File::open(garden()).unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    let again = |document: &Value| {
        let mut document = document.clone();
        document["id"] = format!("again {}", document["id"]).into();
        document
    };
    let lines: Vec<Value> = documents.iter().take(60).map(again).collect();
    let (new, model, learned, bundle) = (
        corpus("new.jsonl", &lines),
        model(),
        home().join("learned"),
        home().join("bundle"),
    );
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    assert_exit(
        &gnnxml(&[
            "learn",
            "--model",
            &path(&model),
            "--corpus",
            &path(&new),
            "--out",
            &path(&learned),
        ]),
        0,
    );
    assert_exit(
        &gnnxml(&["export", "--model", &path(&learned), "--out", &path(&bundle)]),
        0,
    );
    // Eight bits may move a tag of a text; only those whose first tag stayed are counted.
    let (ours, theirs) = (
        Model::load(&learned).unwrap(),
        TaggingEngine::load(&bundle).unwrap(),
    );
    let stayed = |document: &&Value| {
        let text = document["text"].as_str().unwrap();
        let first = FinishOptions {
            top: 1,
            ..FinishOptions::default()
        };
        ours.tag(text, first).unwrap().tags[0].name == theirs.tag(text, 1, false).unwrap().tags[0].name
    };
    let same: Vec<Value> = documents.iter().filter(stayed).cloned().collect();
    assert!(
        same.len() * 20 >= documents.len() * 19,
        "{} of {}",
        same.len(),
        documents.len()
    );
    let same = corpus("same.jsonl", &same);
    let report = |model: &Path| {
        let output = gnnxml(&[
            "evaluate",
            "--model",
            &path(model),
            "--corpus",
            &path(&same),
            "--json",
        ]);
        assert_exit(&output, 0);
        answers(&output).remove(0)
    };
    let (whole, published) = (report(&learned), report(&bundle));
    assert_eq!(whole["P@1"], published["P@1"]);
    assert_eq!(whole["PSP@1"], published["PSP@1"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (garden, model) = (garden(), model());
    let (garden, model) = (garden.to_str().unwrap(), model.to_str().unwrap());
    for arguments in [
        &["evaluate", "--model", model, "--corpus", garden, "--json"][..],
        &["evaluate", "--model", model, "--corpus", garden],
        &["predict", "--model", model, garden],
        &["train", "--print-preset", "fast"],
        &["serve", "--print-openapi"],
        &["corpus", "stats", garden],
        &["corpus", "stats", garden, "--json"],
        &["keygraph", garden],
        &["clusters", "--model", model],
        &["bench", "keygraph", "--corpus", garden],
    ] {
        let mut child = command(home())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
        assert!(
            !said(&output).contains("panicked") && !said(&output).contains("gnnxml: "),
            "{}",
            said(&output)
        );
    }
}

#[test]
fn exit_codes_tell_wrong_usage_from_done() {
    let (garden, model) = (garden(), model());
    let (garden, model) = (garden.to_str().unwrap(), model.to_str().unwrap());
    for (arguments, code) in [
        (&["evaluate", "--model", model, "--corpus", garden][..], 0),
        (&["evaluate", "--model", model], 2),
        (&["evaluate", "--model", model, "--corpus", "nope.jsonl"], 2),
        (&["evaluate", "--model", "nope", "--corpus", garden], 2),
        (&["predict", "--model", "nope", garden], 2),
        (&["predict", "--model", model, "--cutoff", "NaN", garden], 2),
        (&["learn", "--model", model, "--corpus", "nope.jsonl"], 2),
        (&["train", "--print-preset", "nope"], 2),
    ] {
        let output = gnnxml(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).matches("os error").count() <= 1,
            "{}",
            said(&output)
        );
    }
}
