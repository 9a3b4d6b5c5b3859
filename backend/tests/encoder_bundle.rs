//! From an encoder to tags in a page: distil, train, export, and the same tags from the model and from its bundle.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gnnxml_backend::server::TaggingEngine;
use gnnxml_kernels::{Preference, Processor};
use gnnxml_shared::bundle::{Bundle, Opening};
use gnnxml_shared::model::score::strongest;
use gnnxml_shared::model::tagger::{FinishOptions, ReadOptions};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn garden() -> PathBuf {
    repository().join("tests/corpora/garden.jsonl")
}

fn fixture(name: &str) -> PathBuf {
    repository().join("tests/fixtures/encoders").join(name)
}

/// The program, its cache in `home`.
fn gnnxml(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gnnxml"))
        .args(arguments)
        .env("GNNXML_CACHE", home.join("cache"))
        .output()
        .unwrap()
}

fn run(home: &Path, arguments: &[&str]) -> String {
    let output = gnnxml(home, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Trains on the small corpus with an encoder that both the graph network and the rankers look at.
fn train(home: &Path, encoder: &Path) -> PathBuf {
    let config = home.join("config.toml");
    let settings = format!(
        "[encoder]\nname = {:?}\n[matcher]\nkind = \"both\"\nepochs = 2\n[ranker]\nembedding = true\n",
        text(encoder)
    );
    std::fs::write(&config, settings).unwrap();
    let model = home.join("model");
    let corpus = garden();
    run(
        home,
        &[
            "train",
            "--corpus",
            text(&corpus),
            "--out",
            text(&model),
            "--config",
            text(&config),
            "--threads",
            "2",
        ],
    );
    model
}

/// A bundle with everything brought.
fn open(folder: &Path) -> Bundle {
    let read = |file: &str| std::fs::read(folder.join(file)).unwrap();
    let mut opening = Opening::new(&read("manifest.json")).unwrap();
    let wanted: Vec<(String, String)> = opening
        .wanted()
        .map(|(role, part)| (role.to_owned(), part.file.clone()))
        .collect();
    for (role, file) in wanted {
        opening.bring(&role, read(&file)).unwrap();
    }
    let mut bundle = opening.finish().unwrap();
    for shard in 0..bundle.manifest().shards.len() {
        let file = bundle.manifest().shards[shard].part.file.clone();
        bundle.bring_shard(shard, &read(&file)).unwrap();
    }
    bundle
}

/// What a server sends packed is what it sends plain, and shorter.
fn unpacked_parts_are_the_parts(folder: &Path) {
    let mut packed_parts = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let packed = entry.unwrap().path();
        if packed.extension().is_some_and(|ending| ending == "gz") {
            let plain = std::fs::read(packed.with_extension("")).unwrap();
            let bytes = std::fs::read(&packed).unwrap();
            assert!(bytes.len() < plain.len(), "{}", packed.display());
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&bytes[..])
                .read_to_end(&mut unpacked)
                .unwrap();
            assert!(unpacked == plain, "{}", packed.display());
            packed_parts += 1;
        }
    }
    assert!(packed_parts > 0);
}

/// The server's answers from a bundle, whatever runs its graph network.
fn same_tags_on_every_engine(folder: &Path) {
    let cpu = TaggingEngine::load(folder).unwrap();
    assert_eq!(cpu.network().processor(), Processor::Cpu);
    for preference in [Preference::Cpu, Preference::Auto, Preference::Gpu] {
        let engine = TaggingEngine::load_on(folder, preference).unwrap();
        println!("{preference:?}: {:?}", engine.network().processor());
        let demanded = std::env::var("GNNXML_REQUIRE_GPU").as_deref() == Ok("1");
        if preference == Preference::Gpu && demanded {
            assert_eq!(engine.network().processor(), Processor::Gpu);
        }
        let check = || {
            let text = "Roses need sun. The soil of the garden was dry, so the gardener watered the roses.";
            let [found, expected] = [&engine, &cpu].map(|engine| engine.tag(text, 5, false).unwrap());
            assert_eq!(found.tags.len(), expected.tags.len());
            for (found, expected) in found.tags.iter().zip(&expected.tags) {
                assert!(
                    (found.score - expected.score).abs() < 5e-3,
                    "{preference:?}: {found:?} {expected:?}"
                );
            }
        };
        check();
        // A GPU that is pulled out costs no answer.
        engine.network().lose_gpu();
        check();
        check();
        assert!(!demanded || engine.network().processor() == Processor::Cpu);
    }
}

/// Exports a model and holds the bundle's tags against `gnnxml predict`'s.
fn same_tags(home: &Path, model: &Path, encoder: &str) {
    let folder = home.join("bundle");
    let note = "The texts are the garden's own.";
    run(
        home,
        &[
            "export",
            "--model",
            text(model),
            "--out",
            text(&folder),
            "--licence-note",
            note,
        ],
    );
    unpacked_parts_are_the_parts(&folder);
    same_tags_on_every_engine(&folder);
    let bundle = open(&folder);
    let [weights, own] = &bundle.manifest().licence_notes[..] else {
        panic!("{:?}", bundle.manifest().licence_notes)
    };
    assert!(
        weights.starts_with("The sentence encoder's weights come from "),
        "{weights}"
    );
    assert!(!weights.contains(text(home)) && own == note, "{weights} {own}");
    assert_eq!(bundle.manifest().encoder, encoder);
    assert!(bundle.tagger().needs_vectors());
    let corpus = garden();
    let predicted = run(
        home,
        &["predict", "--model", text(model), "--top", "5", text(&corpus)],
    );
    let texts = std::fs::read_to_string(&corpus).unwrap();
    let (mut first_agrees, mut passed_over) = (0, 0);
    for (line, document) in predicted.lines().zip(texts.lines()) {
        let predicted: serde_json::Value = serde_json::from_str(line).unwrap();
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        assert_eq!(predicted["id"], document["id"]);
        let prepared = bundle
            .prepare(document["text"].as_str().unwrap(), ReadOptions::default())
            .unwrap();
        let options = FinishOptions {
            top: 100,
            ..FinishOptions::default()
        };
        let tags = bundle.finish(&prepared, options).tags;
        let first = tags[0].name.clone();
        let found: BTreeMap<String, f32> = tags.into_iter().map(|tag| (tag.name, tag.score)).collect();
        let labels = predicted["labels"].as_array().unwrap();
        assert_eq!(labels.len(), 5);
        for label in labels {
            let (name, score) = (
                label["name"].as_str().unwrap(),
                label["score"].as_f64().unwrap() as f32,
            );
            let in_bundle = found.get(name).copied().or_else(|| {
                // Rounding moves a cluster that is just probable enough to be asked to where it is not: the very next one.
                passed_over += 1;
                let mut wider = prepared.clone();
                wider.needed = strongest(&wider.cluster_log_odds, wider.needed.len() + 1);
                let tags = bundle.finish(&wider, options).tags;
                tags.into_iter().find(|tag| tag.name == name).map(|tag| tag.score)
            });
            assert!(
                in_bundle.is_some_and(|found| (found - score).abs() < 0.02),
                "{}: {name} scores {in_bundle:?} in the bundle, {score} in the model",
                document["id"],
            );
        }
        first_agrees += u32::from(labels[0]["name"] == first.as_str());
    }
    assert!(
        passed_over <= 3,
        "{passed_over} of 1,000 tags lie in a cluster the bundle passes over"
    );
    assert!(
        first_agrees >= 190,
        "only {first_agrees} of 200 first tags are the same"
    );
}

#[test]
fn a_model_on_distilled_word_vectors_tags_the_same_from_its_bundle() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (table, corpus) = (home.join("static"), garden());
    run(
        home,
        &[
            "encoder",
            "distil",
            "--from",
            text(&fixture("bert")),
            "--out",
            text(&table),
            "--dims",
            "16",
            "--corpus",
            text(&corpus),
        ],
    );
    let model = train(home, &table);
    same_tags(home, &model, "static");
}

#[test]
fn a_model_on_a_transformer_tags_the_same_from_its_bundle() {
    let home = tempfile::tempdir().unwrap();
    let model = train(home.path(), &fixture("distilbert"));
    same_tags(home.path(), &model, "bert");
    an_evaluation_does_without_a_cache(home.path(), &model);
    the_bundle_says_what_a_text_may_ask_for(home.path(), &model);
}

fn an_evaluation_does_without_a_cache(home: &Path, model: &Path) {
    let corpus = garden();
    let arguments = [
        "evaluate",
        "--model",
        text(model),
        "--corpus",
        text(&corpus),
        "--json",
    ];
    let with_cache = run(home, &arguments);
    std::fs::remove_dir_all(home.join("cache")).unwrap();
    std::fs::write(home.join("cache"), "no folder").unwrap();
    let without = gnnxml(home, &arguments);
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(without.status.success(), "{said}");
    assert!(said.contains("Every sentence is encoded anew"), "{said}");
    // Cached vectors are rounded to sixteen bits, so the figures are close and not the same.
    let of = |report: &[u8]| serde_json::from_slice::<serde_json::Value>(report).unwrap();
    let (anew, cached) = (of(&without.stdout), of(with_cache.as_bytes()));
    assert_eq!(anew["documents"], cached["documents"]);
    let (anew, cached) = (anew["P@1"].as_f64().unwrap(), cached["P@1"].as_f64().unwrap());
    assert!((anew - cached).abs() <= 1.0, "{anew} {cached}");
}

fn the_bundle_says_what_a_text_may_ask_for(home: &Path, model: &Path) {
    for (option, expected) in [
        (&[][..], Some(1_000_000)),
        (&["--fetch", "70"], Some(70_000)),
        (&["--fetch", "0"], None),
    ] {
        let folder = home.join("limited");
        let export = ["export", "--model", text(model), "--out", text(&folder)];
        run(home, &[&export[..], option].concat());
        assert_eq!(open(&folder).manifest().text_bytes, expected);
    }
}

#[test]
fn an_encoder_the_page_cannot_run_is_refused_with_the_way_out() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let model = train(home, &fixture("roberta"));
    let bundle = home.join("bundle");
    let refused = gnnxml(home, &["export", "--model", text(&model), "--out", text(&bundle)]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("roberta") && said.contains("gnnxml encoder distil"),
        "{said}"
    );
    assert!(!bundle.join("manifest.json").exists());

    // The way out: over the words of a corpus, since RoBERTa's own tokenizer does not run in the page.
    let (table, corpus, from) = (home.join("static"), garden(), fixture("roberta"));
    let distil = [
        "encoder",
        "distil",
        "--from",
        text(&from),
        "--out",
        text(&table),
        "--dims",
        "16",
    ];
    let without = gnnxml(home, &distil);
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("--corpus"));
    run(home, &[&distil[..], &["--corpus", text(&corpus)]].concat());
    let model = train(home, &table);
    same_tags(home, &model, "static");
}

#[test]
fn the_tokenizer_check_finds_agreement_and_says_how_much_it_saw() {
    let home = tempfile::tempdir().unwrap();
    let (corpus, model) = (garden(), fixture("bert"));
    let said = run(
        home.path(),
        &[
            "encoder",
            "check-tokenizer",
            "--corpus",
            text(&corpus),
            "--model",
            text(&model),
        ],
    );
    assert!(said.contains("tokens: 0 split differently"), "{said}");
    let sentences: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(sentences > 500, "{said}");
}

#[test]
fn a_model_whose_encoder_changed_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (table, corpus) = (home.join("static"), garden());
    let distil = |dims: &str, from: &str| {
        let arguments = [
            "encoder",
            "distil",
            "--from",
            from,
            "--out",
            text(&table),
            "--dims",
            dims,
        ];
        run(home, &[&arguments[..], &["--corpus", text(&corpus)]].concat());
    };
    distil("16", text(&fixture("bert")));
    let model = train(home, &table);
    let question = home.join("question.jsonl");
    std::fs::write(&question, "{\"id\":\"1\",\"text\":\"Roses need sun.\"}\n").unwrap();
    let predict = || gnnxml(home, &["predict", "--model", text(&model), text(&question)]);
    assert!(predict().status.success());
    std::fs::remove_dir_all(&table).unwrap();
    distil("16", text(&fixture("distilbert")));
    let refused = predict();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(
        message.contains("not those the model learned from") && message.contains("train again"),
        "{message}"
    );
}
