//! The whole pipeline on the small corpus: from texts to tags, interrupted, resumed, damaged.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gnnxml_shared::api::{Stage, TrainEvent};
use gnnxml_shared::features::words_of_term;
use gnnxml_shared::model::tagger::FinishOptions;

use super::*;
use crate::data::CorpusSource;
use crate::matcher::DeviceChoice;

fn garden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpora/garden.jsonl")
}

fn request(out: &Path) -> TrainRequest {
    TrainRequest {
        corpus: CorpusSource::detect(garden()).unwrap(),
        valid: None,
        out: out.to_owned(),
        config: TrainConfig::of_preset("fast").unwrap(),
        device: DeviceChoice::Cpu,
        threads: 2,
        resume: false,
        stop: Arc::new(AtomicBool::new(false)),
    }
}

fn trained(directory: &Path) -> Model {
    let out = directory.join("model");
    train(&request(&out), &|_| {}).unwrap();
    Model::load(&out).unwrap()
}

#[test]
fn the_fast_preset_learns_the_small_corpus_and_its_evidence_adds_up() {
    let directory = tempfile::tempdir().unwrap();
    let model = trained(directory.path());
    let report = crate::evaluate::evaluate(&model, &CorpusSource::detect(garden()).unwrap(), 2).unwrap();
    let precision = report.get("P@1").unwrap();
    assert!(precision > 80.0, "P@1 on its own training documents: {precision}");

    let document = crate::data::open(garden()).unwrap().next().unwrap().unwrap();
    let options = FinishOptions {
        top: 3,
        explain: true,
        keygraph: true,
    };
    let response = model.tag(&document.text, options).unwrap();
    assert!(response.keygraph.is_some());
    let candidates = model.candidates(&document.text, 3).unwrap();
    for (tag, candidate) in response.tags.iter().zip(&candidates) {
        let evidence = tag.evidence.as_ref().unwrap();
        let words: f32 = evidence.words.iter().map(|w| w.weight).sum();
        let sum = evidence.bias
            + evidence.cluster
            + evidence.embedding
            + evidence.neighbours
            + evidence.name
            + words
            + evidence.other_words;
        assert!((sum - evidence.total).abs() < 1e-4);
        assert!(
            (evidence.total - candidate.log_score).abs() < 1e-3,
            "{} {}",
            evidence.total,
            candidate.log_score
        );
        for word in &evidence.words {
            for span in &word.spans {
                assert!(document.text.get(span[0]..span[1]).is_some());
            }
        }
    }

    // Without its strongest words the first tag must lose.
    let evidence = response.tags[0].evidence.as_ref().unwrap();
    let mut text = document.text.clone();
    let mut spans: Vec<[usize; 2]> = evidence
        .words
        .iter()
        .filter(|w| w.weight > 0.0)
        .take(5)
        .flat_map(|w| w.spans.clone())
        .collect();
    assert!(!spans.is_empty());
    spans.sort_unstable_by(|a, b| b.cmp(a));
    for span in spans {
        text.replace_range(span[0]..span[1], "");
    }
    let label = response.tags[0].label;
    let after = model
        .candidates(&text, 1000)
        .unwrap()
        .into_iter()
        .find(|c| c.label == label);
    assert!(after.is_none_or(|after| after.log_score < candidates[0].log_score));
}

#[test]
fn an_empty_text_gets_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let model = trained(directory.path());
    let response = model
        .tag(
            "",
            FinishOptions {
                explain: true,
                ..FinishOptions::default()
            },
        )
        .unwrap();
    assert!(response.tags.iter().all(|tag| tag.score.is_finite()));
}

#[test]
fn a_flipped_byte_in_any_part_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let model = trained(directory.path());
    let out = directory.path().join("model");
    for name in model.manifest.parts.keys() {
        let path = out.join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let message = Model::load(&out).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("damaged"), "{message}");
        std::fs::write(&path, &whole).unwrap();
    }
    let path = out.join("manifest.json");
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        assert!(Model::load(&out).is_err(), "byte {at} of the manifest");
    }
    std::fs::write(&path, &whole).unwrap();
    Model::load(&out).unwrap();
    std::fs::remove_file(out.join("rankers.bin")).unwrap();
    assert!(Model::load(&out).unwrap_err().to_string().contains("rankers.bin"));
}

#[test]
fn a_model_of_another_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    trained(directory.path());
    let path = directory.path().join("model/manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace(&format!("\"version\": {MODEL_VERSION}"), "\"version\": 7"),
    )
    .unwrap();
    let message = Model::load(&directory.path().join("model"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("version 7"), "{message}");
}

#[test]
fn a_run_stopped_after_any_stage_resumes_to_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let whole = trained(directory.path()).manifest.parts;
    for stage in [
        Stage::Read,
        Stage::Cluster,
        Stage::Match,
        Stage::Rank,
        Stage::Calibrate,
    ] {
        let out = directory.path().join(format!("{stage:?}"));
        let first = request(&out);
        let stop = Arc::clone(&first.stop);
        let stopped = train(&first, &|event| {
            if matches!(event, TrainEvent::StageDone { stage: done, .. } if done == stage) {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!(matches!(stopped, Err(TrainError::Interrupted)), "{stage:?}");
        assert!(!out.exists());
        let reused = Mutex::new(Vec::new());
        let again = TrainRequest {
            resume: true,
            ..request(&out)
        };
        train(&again, &|event| {
            if let TrainEvent::StageReused { stage } = event {
                reused.lock().unwrap().push(stage);
            }
        })
        .unwrap();
        assert!(
            reused.into_inner().unwrap().contains(&stage),
            "{stage:?} was done again"
        );
        assert_eq!(Model::load(&out).unwrap().manifest.parts, whole, "{stage:?}");
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_byte() {
    let directory = tempfile::tempdir().unwrap();
    let on = |threads: usize| {
        let out = directory.path().join(threads.to_string());
        let request = TrainRequest {
            threads,
            ..request(&out)
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| train(&request, &|_| {})).unwrap();
        Model::load(&out).unwrap().manifest.parts
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn rankers_that_learn_along_few_directions_read_the_whole_vector() {
    let directory = tempfile::tempdir().unwrap();
    let along = |directions: usize| {
        let out = directory.path().join(directions.to_string());
        let settings = format!(
            "[encoder]\nname = \"lsa\"\ndims = 24\n[ranker]\nembedding = true\ndirections = {directions}"
        );
        let request = TrainRequest {
            config: TrainConfig::of_preset_with("fast", "test", &settings).unwrap(),
            ..request(&out)
        };
        train(&request, &|_| {}).unwrap();
        Model::load(&out).unwrap()
    };
    let (whole, few, all) = (along(0), along(6), along(24));
    assert_eq!(all.manifest.parts, whole.manifest.parts);
    assert_ne!(
        few.manifest.parts["rankers.bin"],
        whole.manifest.parts["rankers.bin"]
    );
    let document = crate::data::open(garden()).unwrap().next().unwrap().unwrap();
    let options = FinishOptions {
        top: 1,
        explain: true,
        keygraph: false,
    };
    for model in [whole, few] {
        let report = crate::evaluate::evaluate(&model, &CorpusSource::detect(garden()).unwrap(), 2).unwrap();
        assert!(report.get("P@1").unwrap() > 80.0, "{report:?}");
        let response = model.tag(&document.text, options).unwrap();
        assert_ne!(response.tags[0].evidence.as_ref().unwrap().embedding, 0.0);
    }
}

#[test]
fn a_corpus_without_a_labelled_document_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let corpus = directory.path().join("bare.jsonl");
    std::fs::write(&corpus, "{\"id\":\"a\",\"text\":\"words\",\"labels\":[]}\n").unwrap();
    let mut request = request(&directory.path().join("model"));
    request.corpus = CorpusSource::detect(&corpus).unwrap();
    let refused = train(&request, &|_| {}).unwrap_err();
    assert!(refused.is_the_callers());
    assert!(
        refused.to_string().contains("none of them with a label"),
        "{refused}"
    );
}

/// Writes documents as JSONL and answers where.
fn corpus_of(directory: &Path, documents: &[(&str, &[&str])]) -> CorpusSource {
    let path = directory.join("new.jsonl");
    let lines: String = (documents.iter().enumerate())
        .map(|(nth, (text, labels))| {
            format!(
                "{}\n",
                serde_json::json!({"id": format!("new-{nth}"), "text": text, "labels": labels})
            )
        })
        .collect();
    std::fs::write(&path, lines).unwrap();
    CorpusSource::detect(path).unwrap()
}

fn place_of(model: &Model, text: &str, label: &str) -> Option<usize> {
    let candidates = model.candidates(text, 100).unwrap();
    candidates
        .iter()
        .position(|c| model.tagger.labels[c.label as usize].name == label)
}

#[test]
fn a_model_learns_a_new_label_and_keeps_what_it_knew() {
    let directory = tempfile::tempdir().unwrap();
    let before = trained(directory.path());
    let garden = CorpusSource::detect(garden()).unwrap();
    let of = |model: &Model| crate::evaluate::evaluate(model, &garden, 2).unwrap();
    let texts: Vec<String> = (crate::data::open(self::garden()).unwrap())
        .take(3)
        .map(|document| document.unwrap().text)
        .collect();
    // Three known texts under a label nobody has heard of.
    let new: Vec<(&str, &[&str])> = texts
        .iter()
        .map(|text| (text.as_str(), &["brand new"][..]))
        .collect();
    let out = directory.path().join("learned");
    let learned = learn(&LearnRequest {
        model: directory.path().join("model"),
        corpus: Some(corpus_of(directory.path(), &new)),
        names: Vec::new(),
        out: out.clone(),
    })
    .unwrap();
    assert_eq!((learned.documents, learned.new_labels.len()), (3, 1));
    let after = Model::load(&out).unwrap();
    assert_eq!(after.tagger.labels.len(), before.tagger.labels.len() + 1);
    for text in &texts {
        let place = place_of(&after, text, "brand new");
        assert!(place.is_some_and(|place| place < 5), "{place:?}");
    }
    let (was, is) = (of(&before).get("P@1").unwrap(), of(&after).get("P@1").unwrap());
    assert!(is > was - 4.0, "P@1 fell from {was} to {is}");
}

#[test]
fn a_label_without_documents_is_found_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let model = trained(directory.path());
    let (word, text) = crate::data::open(garden())
        .unwrap()
        .map(|document| document.unwrap().text)
        .find_map(|text| {
            let words = model.tagger.tfidf.transform(&text);
            let heaviest = (0..words.len()).max_by(|&a, &b| words.values[a].total_cmp(&words.values[b]))?;
            let word = words_of_term(model.tagger.tfidf.term(words.indices[heaviest])).to_owned();
            Some((format!("{word} {word}-watching"), text))
        })
        .unwrap();
    let request = LearnRequest {
        model: directory.path().join("model"),
        corpus: None,
        names: vec![word.clone()],
        out: directory.path().join("named"),
    };
    let learned = learn(&request).unwrap();
    assert_eq!(learned.named_labels.len(), 1);
    let named = Model::load(&request.out).unwrap();
    assert!(place_of(&named, &text, &word).is_some_and(|place| place < 10));

    let message = learn(&LearnRequest {
        names: vec!["qqqqzx".into()],
        ..request.clone()
    })
    .unwrap_err()
    .to_string();
    assert!(
        message.contains("qqqqzx") && message.contains("vocabulary"),
        "{message}"
    );
    let message = learn(&LearnRequest {
        names: Vec::new(),
        ..request
    })
    .unwrap_err()
    .to_string();
    assert!(message.contains("nothing to learn"), "{message}");
}

#[test]
fn learning_is_refused_by_a_model_that_remembers_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("model");
    let mut request = request(&out);
    request.config.score.remembered_words = 0;
    train(&request, &|_| {}).unwrap();
    let error = learn(&LearnRequest {
        model: out.clone(),
        corpus: Some(corpus_of(directory.path(), &[("A text.", &["a"])])),
        names: Vec::new(),
        out,
    })
    .unwrap_err();
    assert!(
        error.is_the_callers() && error.to_string().contains("remembered_words"),
        "{error}"
    );
}

#[test]
fn learning_in_small_steps_comes_to_a_full_training_as_learning_at_once_does() {
    let directory = tempfile::tempdir().unwrap();
    let model = trained(directory.path());
    let texts: Vec<_> = crate::data::open(garden()).unwrap().map(Result::unwrap).collect();
    let path = directory.path().join("model");
    let mut due = Vec::new();
    for step in texts.chunks(model.manifest.corpus.documents / 10).take(4) {
        let new: Vec<(&str, Vec<&str>)> = (step.iter())
            .map(|d| (d.text.as_str(), d.labels.iter().map(String::as_str).collect()))
            .collect();
        let new: Vec<(&str, &[&str])> = new.iter().map(|(text, labels)| (*text, &labels[..])).collect();
        let learned = learn(&LearnRequest {
            model: path.clone(),
            corpus: Some(corpus_of(directory.path(), &new)),
            names: Vec::new(),
            out: path.clone(),
        })
        .unwrap();
        due.push(
            learned
                .retrain_due
                .is_some_and(|why| why.contains("new documents")),
        );
    }
    assert_eq!(due, [false, false, true, true]);
}

#[test]
fn validation_documents_without_a_label_do_not_move_the_score() {
    let directory = tempfile::tempdir().unwrap();
    let labelled: Vec<_> = (crate::data::open(garden()).unwrap().take(50))
        .map(Result::unwrap)
        .collect();
    let fitted = |bare: usize| {
        let path = directory.path().join(format!("valid-{bare}.jsonl"));
        let bare = (labelled.iter().cycle().take(bare)).map(|d| (d, Vec::new()));
        let lines: String = (labelled.iter().map(|d| (d, d.labels.clone())))
            .chain(bare)
            .enumerate()
            .map(|(nth, (d, labels))| {
                format!(
                    "{}\n",
                    serde_json::json!({"id": nth.to_string(), "text": d.text, "labels": labels})
                )
            })
            .collect();
        std::fs::write(&path, lines).unwrap();
        let out = directory.path().join("fitted");
        let mut request = request(&out);
        request.valid = Some(CorpusSource::detect(&path).unwrap());
        train(&request, &|_| {}).unwrap();
        Model::load(&out).unwrap().tagger.score
    };
    let (alone, beside) = (fitted(0), fitted(120));
    assert!(
        (alone.cutoff - beside.cutoff).abs() < 1e-4,
        "{alone:?} {beside:?}"
    );
    assert!((alone.margin.offset - beside.margin.offset).abs() < 1e-4);
    assert_eq!((alone.gamma, alone.lift), (beside.gamma, beside.lift));
}

#[test]
fn a_run_does_not_go_on_with_the_stages_of_other_documents() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("model");
    let ids: Vec<String> = (crate::data::open(garden()).unwrap())
        .map(|d| d.unwrap().id)
        .collect();
    let of = |ids: &[String]| TrainRequest {
        corpus: CorpusSource::detect(garden())
            .unwrap()
            .only(ids.iter().cloned().collect()),
        resume: true,
        ..request(&out)
    };
    let (some, others) = ids.split_at(ids.len() / 2);
    let first = of(some);
    let stop = Arc::clone(&first.stop);
    let stopped = train(&first, &|event| {
        if matches!(
            event,
            TrainEvent::StageDone {
                stage: Stage::Match,
                ..
            }
        ) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert!(matches!(stopped, Err(TrainError::Interrupted)));
    train(&of(&others[..some.len()]), &|event| {
        assert!(!matches!(event, TrainEvent::StageReused { .. }), "{event:?}");
    })
    .unwrap();
}
