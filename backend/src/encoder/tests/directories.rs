//! Directories good and bad, opened as a person would give them.

use std::path::Path;

use gnnxml_shared::model::encoder::SentenceEncoder;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;

use crate::encoder::*;

const WIDTH: usize = 16;
const INNER: usize = 24;
const WORDS: [&str; 9] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "fish", "sea", "tax", "law", "##es",
];

/// Tensors of a tiny BERT, by name and shape.
fn tensors() -> Vec<(String, Vec<usize>, Vec<u8>)> {
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        (
            "embeddings.word_embeddings.weight".into(),
            vec![WORDS.len(), WIDTH],
        ),
        ("embeddings.position_embeddings.weight".into(), vec![32, WIDTH]),
        ("embeddings.token_type_embeddings.weight".into(), vec![2, WIDTH]),
        ("embeddings.LayerNorm.weight".into(), vec![WIDTH]),
        ("embeddings.LayerNorm.bias".into(), vec![WIDTH]),
    ];
    let layer = "encoder.layer.0.";
    for (name, outputs, inputs) in [
        ("attention.self.query", WIDTH, WIDTH),
        ("attention.self.key", WIDTH, WIDTH),
        ("attention.self.value", WIDTH, WIDTH),
        ("attention.output.dense", WIDTH, WIDTH),
        ("intermediate.dense", INNER, WIDTH),
        ("output.dense", WIDTH, INNER),
    ] {
        shapes.push((format!("{layer}{name}.weight"), vec![outputs, inputs]));
        shapes.push((format!("{layer}{name}.bias"), vec![outputs]));
    }
    for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
        shapes.push((format!("{layer}{name}.weight"), vec![WIDTH]));
        shapes.push((format!("{layer}{name}.bias"), vec![WIDTH]));
    }
    let mut state = 5_u32;
    shapes
        .into_iter()
        .map(|(name, shape)| {
            let bytes = (0..shape.iter().product::<usize>())
                .flat_map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    ((state >> 8) as f32 / 8_388_608.0 - 1.0).to_le_bytes()
                })
                .collect();
            (name, shape, bytes)
        })
        .collect()
}

fn write_weights(path: &Path, tensors: &[(String, Vec<usize>, Vec<u8>)]) {
    let views: Vec<(&str, TensorView<'_>)> = tensors
        .iter()
        .map(|(name, shape, data)| {
            (
                name.as_str(),
                TensorView::new(Dtype::F32, shape.clone(), data).unwrap(),
            )
        })
        .collect();
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// A whole model directory.
fn directory() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "model_type": "bert", "hidden_size": WIDTH, "num_attention_heads": 2, "num_hidden_layers": 1,
        "intermediate_size": INNER, "vocab_size": WORDS.len(), "max_position_embeddings": 32, "type_vocab_size": 2,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12
    });
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    std::fs::write(folder.path().join("vocab.txt"), WORDS.join("\n")).unwrap();
    write_weights(&folder.path().join("model.safetensors"), &tensors());
    folder
}

fn fault(folder: &tempfile::TempDir) -> String {
    open(folder.path().to_str().unwrap(), Precision::Int8)
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
fn a_model_directory_opens_in_both_precisions() {
    let folder = directory();
    let spec = folder.path().to_str().unwrap();
    let (int8, f32) = (
        open(spec, Precision::Int8).unwrap(),
        open(spec, Precision::F32).unwrap(),
    );
    let sentences = ["Fishes in the sea", "tax law", ""];
    let (a, b) = (int8.encode(&sentences).unwrap(), f32.encode(&sentences).unwrap());
    assert_eq!((int8.dims(), int8.name(), a.len()), (WIDTH, "bert", 3 * WIDTH));
    for (a, b) in a.chunks(WIDTH).zip(b.chunks(WIDTH)).take(2) {
        let cosine: f32 = a.iter().zip(b).map(|(x, y)| x * y).sum();
        assert!(cosine > 0.998, "{cosine}");
    }
    assert!(a[2 * WIDTH..].iter().all(|x| *x == 0.0));
    assert_ne!(int8.fingerprint(), f32.fingerprint());
}

#[test]
fn shards_and_a_prefix_make_the_same_model() {
    let whole = directory();
    let split = directory();
    std::fs::remove_file(split.path().join("model.safetensors")).unwrap();
    let renamed: Vec<_> = tensors()
        .into_iter()
        .map(|(name, shape, data)| (format!("bert.{name}"), shape, data))
        .collect();
    let (one, two) = renamed.split_at(7);
    write_weights(&split.path().join("model-1.safetensors"), one);
    write_weights(&split.path().join("model-2.safetensors"), two);
    let map: serde_json::Map<String, serde_json::Value> = renamed
        .iter()
        .enumerate()
        .map(|(i, (name, ..))| {
            (
                name.clone(),
                json!(format!("model-{}.safetensors", if i < 7 { 1 } else { 2 })),
            )
        })
        .collect();
    let index = split.path().join("model.safetensors.index.json");
    std::fs::write(&index, json!({ "weight_map": map }).to_string()).unwrap();
    let encode = |folder: &tempfile::TempDir| {
        open_directory(folder.path(), Precision::F32)
            .unwrap()
            .encode(&["law fish"])
            .unwrap()
    };
    assert_eq!(encode(&whole), encode(&split));
    std::fs::write(&index, json!({ "weight_map": { "x": "../secret" } }).to_string()).unwrap();
    assert!(fault(&split).contains("points outside"));
}

#[test]
fn a_directory_without_weights_or_with_pickle_is_refused() {
    let folder = directory();
    std::fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    assert!(fault(&folder).contains("has no weights"));
    std::fs::write(folder.path().join("pytorch_model.bin"), b"PK").unwrap();
    let error = fault(&folder);
    assert!(error.contains("pytorch_model.bin is a pickle"), "{error}");
}

#[test]
fn broken_safetensors_are_named_and_nothing_is_allocated_for_their_claims() {
    let folder = directory();
    let path = folder.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    for cut in [0, 5, 8, 100, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let error = fault(&folder);
        assert!(
            error.contains("model.safetensors is not whole"),
            "cut at {cut}: {error}"
        );
    }
    let mut claims = whole.clone();
    claims[..8].copy_from_slice(&(1_u64 << 50).to_le_bytes());
    std::fs::write(&path, &claims).unwrap();
    assert!(fault(&folder).contains("claims 1125899906842624 bytes"));
}

#[test]
fn shapes_and_numbers_that_do_not_fit_are_named() {
    let folder = directory();
    let path = folder.path().join("model.safetensors");
    let mut bad = tensors();
    bad[5].1 = vec![WIDTH * WIDTH];
    write_weights(&path, &bad);
    let error = fault(&folder);
    assert!(
        error.contains("query.weight has the shape [256]") && error.contains("[16, 16]"),
        "{error}"
    );
    let mut bad = tensors();
    bad[0].2[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
    write_weights(&path, &bad);
    assert!(fault(&folder).contains("word_embeddings.weight holds a number that is not finite at place 1"));
    write_weights(&path, &tensors()[1..]);
    assert!(fault(&folder).contains("has no tensor embeddings.word_embeddings.weight"));
}

#[test]
fn a_config_that_lies_is_refused() {
    let folder = directory();
    edit_config(&folder, "model_type", json!("mamba"));
    let error = fault(&folder);
    assert!(
        error.contains("config.json") && error.contains("\"mamba\""),
        "{error}"
    );
    let folder = directory();
    edit_config(&folder, "hidden_size", json!("wide"));
    assert!(fault(&folder).contains("\"hidden_size\" is \"wide\""));
    let folder = directory();
    edit_config(&folder, "vocab_size", json!(u64::from(u32::MAX)));
    assert!(fault(&folder).contains("\"vocab_size\""));
    let folder = directory();
    edit_config(&folder, "hidden_act", json!("swish"));
    assert!(fault(&folder).contains("\"swish\""));
    let folder = directory();
    std::fs::write(folder.path().join("config.json"), "{").unwrap();
    assert!(fault(&folder).contains("config.json: not JSON"));
}

#[test]
fn a_tokenizer_of_another_model_is_refused() {
    let folder = directory();
    std::fs::write(folder.path().join("vocab.txt"), WORDS[..8].join("\n")).unwrap();
    let error = fault(&folder);
    assert!(
        error.contains("vocab.txt") && error.contains("8 tokens") && error.contains('9'),
        "{error}"
    );
    std::fs::write(
        folder.path().join("tokenizer.json"),
        r#"{"model":{"type":"BPE","vocab":{},"merges":[]}}"#,
    )
    .unwrap();
    let error = fault(&folder);
    assert!(
        error.contains("tokenizer.json") && error.contains("knows 0 tokens"),
        "{error}"
    );
}

#[test]
fn names_that_are_no_encoder_say_what_would_be() {
    let error = |spec| open(spec, Precision::Int8).err().unwrap().to_string();
    assert!(error("word2vec").contains("expected lsa, static, minilm"));
    assert!(error("./nowhere/here").contains("no encoder"));
    assert!(error("lsa").contains("fitted on a corpus"));
}

#[test]
fn a_distilled_encoder_survives_the_disk_and_notices_damage() {
    let folder = directory();
    let (tokenizer, weights, _) = bert::read_directory(folder.path()).unwrap();
    let counts = distil::count_tokens(&tokenizer, ["fish fish sea", "law"]);
    assert_eq!(counts, [0, 0, 0, 0, 2, 1, 0, 1, 0]);
    let distilled = distil::distil(&tokenizer, &weights, 4, &counts).unwrap();
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("deep").join("static");
    distil::save(&distilled, &place).unwrap();
    distil::save(&distilled, &place).unwrap();
    let opened = open(place.to_str().unwrap(), Precision::Int8).unwrap();
    assert_eq!((opened.name(), opened.dims()), ("static", 4));
    assert_eq!(
        opened.encode(&["fishes tax"]).unwrap(),
        distilled.encode(&["fishes tax"])
    );
    assert_eq!(
        std::fs::read_dir(place.parent().unwrap()).unwrap().count(),
        1,
        "no temporary folder is left"
    );
    let table = place.join("static.safetensors");
    let mut bytes = std::fs::read(&table).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&table, bytes).unwrap();
    assert!(
        open(place.to_str().unwrap(), Precision::Int8)
            .err()
            .unwrap()
            .to_string()
            .contains("damaged")
    );
    assert!(distil::distil(&tokenizer, &weights, 17, &[]).is_err());
}

#[test]
fn a_narrower_table_keeps_the_strongest_directions_and_has_a_fingerprint_of_its_own() {
    let folder = directory();
    let (tokenizer, weights, _) = bert::read_directory(folder.path()).unwrap();
    let place = tempfile::tempdir().unwrap();
    let wide = distil::distil(&tokenizer, &weights, 8, &[]).unwrap();
    let narrow = distil::distil(&tokenizer, &weights, 4, &[]).unwrap();
    distil::save(&wide, place.path()).unwrap();
    let open_with = |table_dims| {
        let options = Options {
            table_dims,
            ..Options::default()
        };
        open(place.path().to_str().unwrap(), options).unwrap()
    };
    let (whole, cut) = (open_with(None), open_with(Some(4)));
    assert_eq!((whole.dims(), cut.dims()), (8, 4));
    assert_ne!(whole.fingerprint(), cut.fingerprint());
    let found = cut.encode(&["fishes tax"]).unwrap();
    for (a, b) in found.iter().zip(narrow.encode(&["fishes tax"])) {
        assert!((a - b).abs() < 0.03, "{found:?}");
    }
    assert_eq!(open_with(Some(300)).dims(), 8, "a table is never made wider");
}
