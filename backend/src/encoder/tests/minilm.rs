//! all-MiniLM-L6-v2 against vectors that onnxruntime computed from the same weights
//! (tests/peers/minilm_golden.py). Needs `gnnxml encoder fetch minilm`; says so where the weights are missing.

use crate::encoder::{Encoder, Precision, bert::NativeBert, place_of};

#[derive(serde::Deserialize)]
struct Golden {
    text: String,
    vector: Vec<f32>,
}

fn golden() -> Vec<Golden> {
    serde_json::from_str(include_str!("minilm.json")).unwrap()
}

fn model(precision: Precision) -> Option<NativeBert> {
    let directory = place_of("minilm");
    if !directory.is_dir() {
        eprintln!(
            "NOT TESTED: {} is missing; run `gnnxml encoder fetch minilm`",
            directory.display()
        );
        return None;
    }
    Some(NativeBert::open(&directory, precision).unwrap())
}

#[test]
fn minilm_in_single_precision_agrees_to_the_fifth_digit() {
    let Some(model) = model(Precision::F32) else {
        return;
    };
    for Golden { text, vector } in golden() {
        let found = model.encode(&[&text]).unwrap();
        let worst = found
            .iter()
            .zip(&vector)
            .map(|(x, y)| (x - y).abs())
            .fold(0.0, f32::max);
        assert!(worst < 1e-5, "{text:?} is off by {worst}");
    }
}

#[test]
fn minilm_in_eight_bits_points_the_same_way() {
    let Some(model) = model(Precision::Int8) else {
        return;
    };
    for Golden { text, vector } in golden() {
        let found = model.encode(&[&text]).unwrap();
        let cosine: f32 = found.iter().zip(&vector).map(|(x, y)| x * y).sum();
        assert!(cosine >= 0.998, "{text:?}: cosine {cosine}");
    }
}
