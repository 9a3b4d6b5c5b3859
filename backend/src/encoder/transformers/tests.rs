//! Tiny random models against the hidden states that the reference library computed from the same files
//! (tests/fixtures/encoders/make.py).

use std::path::PathBuf;

use candle_core::DType;
use gnnxml_shared::model::encoder::l2_normalise;

use super::*;
use crate::encoder::{Precision, open_directory};
use crate::matcher::DeviceChoice;

const ALL: [&str; 5] = ["bert", "distilbert", "roberta", "albert", "xlnet"];

#[derive(serde::Deserialize)]
struct Reference {
    sentence: String,
    ids: Vec<u32>,
    hidden: Vec<Vec<f32>>,
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/fixtures/encoders")
        .join(name)
}

fn reference(name: &str) -> Vec<Reference> {
    let text = std::fs::read_to_string(folder(name).join("reference.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn on_cpu(numbers: NumberType) -> Options {
    Options {
        device: DeviceChoice::Cpu,
        numbers: Some(numbers),
        ..Options::default()
    }
}

fn model(name: &str) -> Transformer {
    Transformer::open(&folder(name), on_cpu(NumberType::F32)).unwrap()
}

/// mean → length one, from the reference's hidden states.
fn expected_vector(reference: &Reference) -> Vec<f32> {
    let mut sum = vec![0.0; reference.hidden[0].len()];
    for token in &reference.hidden {
        for (total, x) in sum.iter_mut().zip(token) {
            *total += x;
        }
    }
    l2_normalise(&mut sum);
    sum
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}

#[test]
fn hidden_states_of_a_padded_batch_are_the_reference_librarys() {
    for name in ALL {
        let model = model(name);
        let reference = reference(name);
        let sentences: Vec<&str> = reference.iter().map(|r| r.sentence.as_str()).collect();
        let windows = model.pieces.windows(&sentences, model.window).unwrap();
        assert_eq!(windows.len(), sentences.len(), "{name}: one window a sentence");
        let lengths: Vec<usize> = windows.iter().map(|window| window.pieces.len()).collect();
        assert!(
            lengths.iter().max() > lengths.iter().min(),
            "{name}: the batch has padding"
        );
        let batch = Batch::new(&windows.iter().collect::<Vec<_>>(), &Device::Cpu).unwrap();
        let hidden: Vec<Vec<Vec<f32>>> = model.body.forward(&batch).unwrap().to_vec3().unwrap();
        for ((window, hidden), expected) in windows.iter().zip(&hidden).zip(&reference) {
            let ids: Vec<u32> = window.pieces.iter().map(|piece| piece.id).collect();
            assert_eq!(ids, expected.ids, "{name}: {:?}", expected.sentence);
            for (place, (found, expected)) in hidden.iter().zip(&expected.hidden).enumerate() {
                let off = worst(found, expected);
                assert!(off < 1e-4, "{name}: token {place} is off by {off}");
            }
        }
    }
}

#[test]
fn sentence_vectors_are_means_over_real_tokens_in_any_company() {
    for name in ALL {
        let model = model(name);
        let reference = reference(name);
        let sentences: Vec<&str> = reference.iter().map(|r| r.sentence.as_str()).collect();
        let together = model.encode(&sentences).unwrap();
        let dims = model.dims();
        assert_eq!((dims, model.name()), (32, name));
        for ((sentence, vector), reference) in sentences.iter().zip(together.chunks(dims)).zip(&reference) {
            let alone = model.encode(&[sentence]).unwrap();
            assert!(worst(&alone, vector) < 1e-5, "{name}: {sentence:?}");
            assert!(
                worst(vector, &expected_vector(reference)) < 1e-4,
                "{name}: {sentence:?}"
            );
        }
    }
}

#[test]
fn a_directory_opens_by_its_architecture_alone() {
    for name in ALL {
        let opened = open_directory(&folder(name), Precision::F32).unwrap();
        assert_eq!(opened.name(), name);
        for reference in reference(name) {
            let found = opened.encode(&[&reference.sentence]).unwrap();
            let off = worst(&found, &expected_vector(&reference));
            assert!(off < 1e-4, "{name}: {:?} is off by {off}", reference.sentence);
        }
    }
}

#[test]
fn a_sentence_longer_than_the_window_is_the_mean_of_its_windows_by_length() {
    for name in ALL {
        let mut model = model(name);
        model.window = 24;
        let text =
            "The gale rose to force nine and we hove to under a storm jib until the tide turned. ".repeat(4);
        let windows = model.pieces.windows(&[&text], model.window).unwrap();
        assert!(windows.len() > 3, "{name}: {} windows", windows.len());
        let (marks, whole) = (
            model.pieces.marks(),
            model.pieces.windows(&[&text], 100_000).unwrap(),
        );
        let tokens: usize = windows.iter().map(|window| window.pieces.len() - marks).sum();
        assert_eq!(
            tokens,
            whole[0].pieces.len() - marks,
            "{name}: nothing is cut off"
        );
        let mut mean = vec![0.0; model.dims()];
        for window in &windows {
            assert!(window.pieces.len() <= 24);
            let sums = model.sums(&[window]).unwrap();
            for (total, x) in mean.iter_mut().zip(&sums[0]) {
                *total += x;
            }
        }
        l2_normalise(&mut mean);
        assert!(worst(&model.encode(&[&text]).unwrap(), &mean) < 1e-5, "{name}");
    }
}

#[test]
fn nothing_gives_a_zero_vector_and_marks_spelled_out_are_text() {
    for name in ALL {
        let model = model(name);
        assert!(model.encode(&[""]).unwrap().iter().all(|x| *x == 0.0), "{name}");
        let marked = model
            .token_numbers(&["the tide </s> <sep> [SEP] turned"])
            .unwrap();
        let plain = model.token_numbers(&["the tide turned"]).unwrap();
        let count = |ids: &[u32], id: u32| ids.iter().filter(|other| **other == id).count();
        for piece in &model.pieces.windows(&["a"], 64).unwrap()[0].pieces {
            let spelled = model.token_numbers(&["a"]).unwrap();
            if count(&spelled[0], piece.id) == 1 && count(&plain[0], piece.id) == 1 {
                assert_eq!(
                    count(&marked[0], piece.id),
                    1,
                    "{name}: token {} came from the text",
                    piece.id
                );
            }
        }
    }
}

#[test]
fn half_precision_points_the_same_way_and_is_another_encoder() {
    for name in ALL {
        let whole = model(name);
        let half = Transformer::open(&folder(name), on_cpu(NumberType::F16)).unwrap();
        assert_eq!(NumberType::F16.candle(), DType::F16);
        assert_ne!(whole.fingerprint(), half.fingerprint());
        let text = "Plant the roses below the surface.";
        let (a, b) = (whole.encode(&[text]).unwrap(), half.encode(&[text]).unwrap());
        let cosine: f32 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
        assert!(cosine > 0.999, "{name}: {cosine}");
        assert_ne!(a, b, "{name}: half precision rounds");
    }
}

#[test]
fn numbers_and_devices_that_are_not_there_are_refused_by_name() {
    let fault = |options| {
        Transformer::open(&folder("roberta"), options)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(fault(on_cpu(NumberType::Bf16)).contains("bf16 products need a GPU"));
    if !candle_core::utils::cuda_is_available() {
        let asked = Options {
            device: DeviceChoice::Cuda(3),
            ..Options::default()
        };
        assert!(fault(asked).contains("cuda:3"));
    }
}

/// A copy of a fixture that a test may spoil.
fn copy(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

fn fault(folder: &tempfile::TempDir) -> String {
    open_directory(folder.path(), Precision::Int8)
        .err()
        .expect("a fault")
        .to_string()
}

fn edit_config(folder: &tempfile::TempDir, key: &str, value: serde_json::Value) {
    let path = folder.path().join("config.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config[key] = value;
    std::fs::write(path, config.to_string()).unwrap();
}

#[test]
fn a_spoilt_directory_of_any_architecture_is_refused_with_file_and_fault() {
    for (name, width, layers) in [
        ("roberta", "hidden_size", "num_hidden_layers"),
        ("albert", "hidden_size", "num_hidden_groups"),
        ("distilbert", "dim", "n_layers"),
        ("xlnet", "d_model", "n_layer"),
    ] {
        let spoilt = copy(name);
        edit_config(&spoilt, width, serde_json::json!(64));
        let error = fault(&spoilt);
        assert!(
            error.contains("has the shape") || error.contains("d_head"),
            "{name}: {error}"
        );
        let spoilt = copy(name);
        edit_config(&spoilt, width, serde_json::json!(-1));
        assert!(fault(&spoilt).contains(width), "{name}");
        let spoilt = copy(name);
        edit_config(&spoilt, layers, serde_json::json!(4));
        assert!(fault(&spoilt).contains("has no tensor"), "{name}");
        let spoilt = copy(name);
        edit_config(&spoilt, "vocab_size", serde_json::json!(100));
        assert!(fault(&spoilt).contains("belongs to another model"), "{name}");
        let spoilt = copy(name);
        edit_config(&spoilt, "model_type", serde_json::json!("mamba"));
        let error = fault(&spoilt);
        assert!(
            error.contains("config.json") && error.contains("xlnet"),
            "{error}"
        );
        let spoilt = copy(name);
        let weights = if name == "roberta" {
            "model-00001-of-00003.safetensors"
        } else {
            "model.safetensors"
        };
        let path = spoilt.path().join(weights);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(fault(&spoilt).contains("not whole safetensors"), "{name}");
    }
}
