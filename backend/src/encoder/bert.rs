//! BERT-type models from a Hugging Face directory, run by our own code: int8 or f32, batches over all cores.

use std::path::Path;

use gnnxml_shared::model::encoder::SentenceEncoder;
use gnnxml_shared::model::encoder::bert::{
    Affine, Bert, BertEncoder, BertScratch, BertShape, BertWeights, Layer, Norm,
};
use gnnxml_shared::text::wordpiece::{Cleaning, WordPiece};
use rayon::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::checkpoint::Checkpoint;
use super::{Encoder, EncoderError, Precision, read_json, read_text};

/// Largest model we build: far above any BERT, far below what a broken config.json can claim.
const MOST_NUMBERS: usize = 4 << 30;

/// What the model is shown before it is rounded to eight bits: texts of many lengths, with names, numbers, lists and
/// single words, so that every channel shows its range.
const SAMPLES: &str = include_str!("samples.txt");

/// A BERT-type encoder on all cores.
#[derive(Debug)]
pub struct NativeBert {
    encoder: BertEncoder,
    fingerprint: String,
}

impl NativeBert {
    /// Opens a model directory.
    pub fn open(directory: &Path, precision: Precision) -> Result<Self, EncoderError> {
        let model = |error: &dyn std::fmt::Display| EncoderError::Model {
            directory: directory.to_path_buf(),
            fault: error.to_string(),
        };
        let (tokenizer, weights, window) = read_directory(directory)?;
        let built = match precision {
            Precision::F32 => Bert::dense(&weights),
            Precision::Int8 => Bert::int8(&weights, &sample_tokens(&tokenizer, window)),
        };
        let encoder = built
            .and_then(|bert| BertEncoder::new(tokenizer, bert, window))
            .map_err(|error| model(&error))?;
        let fingerprint = fingerprint(&weights, &encoder, precision);
        Ok(Self { encoder, fingerprint })
    }

    /// The encoder itself, as the page runs it.
    pub fn encoder(&self) -> &BertEncoder {
        &self.encoder
    }
}

impl Encoder for NativeBert {
    fn name(&self) -> &'static str {
        "bert"
    }

    fn dims(&self) -> usize {
        self.encoder.dims()
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn encode(&self, sentences: &[&str]) -> anyhow::Result<Vec<f32>> {
        let tokens = self.encoder.tokenise(sentences);
        let batches = self.encoder.batches(&tokens);
        let sums: Vec<Vec<f32>> = batches
            .par_iter()
            .map_init(BertScratch::default, |scratch, batch| {
                self.encoder.encode_batch(&tokens, batch, scratch)
            })
            .collect();
        Ok(self.encoder.gather(&tokens, &batches, &sums))
    }
}

/// Tokenizer, weights and window of a model directory.
pub fn read_directory(directory: &Path) -> Result<(WordPiece, BertWeights, usize), EncoderError> {
    let config_file = directory.join("config.json");
    let config = read_json(&config_file)?;
    let shape = shape(&config_file, &config)?;
    let tokenizer = tokenizer(directory, shape.vocabulary)?;
    let weights = weights(&Checkpoint::open(directory)?, &config, shape)?;
    // What the model was trained to read at once, where it says so.
    let window = read_json(&directory.join("sentence_bert_config.json"))
        .ok()
        .and_then(|json| json["max_seq_length"].as_u64())
        .map_or(shape.positions, |length| {
            (length as usize).clamp(8, shape.positions)
        });
    Ok((tokenizer, weights, window))
}

/// Calibration sentences as tokens.
pub fn sample_tokens(tokenizer: &WordPiece, window: usize) -> Vec<Vec<u32>> {
    let special = tokenizer.special();
    SAMPLES
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut ids = vec![special.class];
            tokenizer.encode_into(line, &mut ids);
            ids.truncate(window - 1);
            ids.push(special.separator);
            ids
        })
        .collect()
}

fn shape(file: &Path, config: &Value) -> Result<BertShape, EncoderError> {
    let bad = |fault: String| EncoderError::Config {
        file: file.to_path_buf(),
        fault,
    };
    let number = |name: &str, most: u64| {
        let value = &config[name];
        value
            .as_u64()
            .filter(|n| (1..=most).contains(n))
            .map(|n| n as usize)
            .ok_or_else(|| {
                bad(format!(
                    "\"{name}\" is {value}, expected a whole number from 1 to {most}"
                ))
            })
    };
    match config["hidden_act"].as_str() {
        None | Some("gelu") => (),
        Some(other) => return Err(bad(format!("\"hidden_act\" is {other:?}, expected \"gelu\""))),
    }
    match config["position_embedding_type"].as_str() {
        None | Some("absolute") => (),
        Some(other) => {
            return Err(bad(format!(
                "\"position_embedding_type\" is {other:?}, expected \"absolute\""
            )));
        }
    }
    let shape = BertShape {
        width: number("hidden_size", 8192)?,
        heads: number("num_attention_heads", 1024)?,
        layers: number("num_hidden_layers", 1024)?,
        inner: number("intermediate_size", 8192)?,
        vocabulary: number("vocab_size", 1 << 24)?,
        positions: number("max_position_embeddings", 1 << 20)?,
        epsilon: config["layer_norm_eps"].as_f64().unwrap_or(1e-12) as f32,
    };
    if !shape.width.is_multiple_of(shape.heads) {
        return Err(bad(format!(
            "{} heads do not divide the width {}",
            shape.heads, shape.width
        )));
    }
    let layer = 4 * shape.width * shape.width + 2 * shape.width * shape.inner;
    let all = shape.layers * layer + (shape.vocabulary + shape.positions) * shape.width;
    if all > MOST_NUMBERS {
        return Err(bad(format!(
            "it describes a model of {all} numbers, more than {MOST_NUMBERS}"
        )));
    }
    Ok(shape)
}

/// tokenizer.json where there is one, vocab.txt otherwise.
pub(super) fn tokenizer(directory: &Path, vocabulary: usize) -> Result<WordPiece, EncoderError> {
    let json = directory.join("tokenizer.json");
    let (file, read) = if json.is_file() {
        let text = read_text(&json)?;
        (json, WordPiece::from_tokenizer_json(&text))
    } else {
        let file = directory.join("vocab.txt");
        let text = read_text(&file)?;
        let cased = read_json(&directory.join("tokenizer_config.json"))
            .is_ok_and(|config| config["do_lower_case"].as_bool() == Some(false));
        let cleaning = if cased { Cleaning::CASED } else { Cleaning::UNCASED };
        (file, WordPiece::from_vocabulary(&text, cleaning))
    };
    let tokenizer = read.map_err(|error| EncoderError::Tokenizer {
        file: file.clone(),
        fault: error.to_string(),
    })?;
    if tokenizer.len() != vocabulary {
        return Err(EncoderError::Vocabulary {
            file,
            tokens: tokenizer.len(),
            expected: vocabulary,
        });
    }
    Ok(tokenizer)
}

fn weights(checkpoint: &Checkpoint, config: &Value, shape: BertShape) -> Result<BertWeights, EncoderError> {
    // A bare encoder, or one inside a model with a head on top.
    let inside = checkpoint.names().any(|name| name.starts_with("bert."));
    let prefix = if inside { "bert." } else { "" };
    let get = |name: &str, dims: &[usize]| checkpoint.numbers(&format!("{prefix}{name}"), dims);
    let w = shape.width;
    let norm = |name: &str| -> Result<Norm, EncoderError> {
        // The first checkpoints called them gamma and beta.
        let old = checkpoint.contains(&format!("{prefix}{name}.gamma"));
        let (gamma, beta) = if old {
            ("gamma", "beta")
        } else {
            ("weight", "bias")
        };
        Ok(Norm {
            gamma: get(&format!("{name}.{gamma}"), &[w])?,
            beta: get(&format!("{name}.{beta}"), &[w])?,
        })
    };
    let affine = |name: &str, outputs: usize, inputs: usize| -> Result<Affine, EncoderError> {
        Ok(Affine {
            weights: get(&format!("{name}.weight"), &[outputs, inputs])?,
            bias: get(&format!("{name}.bias"), &[outputs])?,
        })
    };
    let types = config["type_vocab_size"].as_u64().unwrap_or(2) as usize;
    let kind = get("embeddings.token_type_embeddings.weight", &[types, w])?;
    let mut positions = get("embeddings.position_embeddings.weight", &[shape.positions, w])?;
    for row in positions.chunks_exact_mut(w) {
        for (x, t) in row.iter_mut().zip(&kind) {
            *x += t;
        }
    }
    let mut layers = Vec::with_capacity(shape.layers);
    for layer in 0..shape.layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let mut attention = Affine::default();
        for part in ["query", "key", "value"] {
            let one = affine(&name(&format!("attention.self.{part}")), w, w)?;
            attention.weights.extend(one.weights);
            attention.bias.extend(one.bias);
        }
        layers.push(Layer {
            attention,
            attention_output: affine(&name("attention.output.dense"), w, w)?,
            attention_norm: norm(&name("attention.output.LayerNorm"))?,
            inner: affine(&name("intermediate.dense"), shape.inner, w)?,
            outer: affine(&name("output.dense"), w, shape.inner)?,
            outer_norm: norm(&name("output.LayerNorm"))?,
        });
    }
    Ok(BertWeights {
        shape,
        words: get("embeddings.word_embeddings.weight", &[shape.vocabulary, w])?,
        positions,
        norm: norm("embeddings.LayerNorm")?,
        layers,
    })
}

/// Everything a vector depends on: weights, vocabulary, window, precision, and the version of this code's arithmetic.
fn fingerprint(weights: &BertWeights, encoder: &BertEncoder, precision: Precision) -> String {
    let mut hash = Sha256::new();
    let mut add = |numbers: &[f32]| hash.update(bytemuck::cast_slice::<f32, u8>(numbers));
    add(&weights.words);
    add(&weights.positions);
    for layer in &weights.layers {
        for affine in [
            &layer.attention,
            &layer.attention_output,
            &layer.inner,
            &layer.outer,
        ] {
            add(&affine.weights);
            add(&affine.bias);
        }
        for norm in [&layer.attention_norm, &layer.outer_norm] {
            add(&norm.gamma);
            add(&norm.beta);
        }
    }
    add(&weights.norm.gamma);
    add(&weights.norm.beta);
    hash.update(encoder.tokenizer().vocabulary().as_bytes());
    hash.update(format!("{:?}", encoder.tokenizer().cleaning()).as_bytes());
    if precision == Precision::Int8 {
        hash.update(SAMPLES.as_bytes());
    }
    format!(
        "bert 1 {precision:?} window {} {:x}",
        encoder.window(),
        hash.finalize()
    )
}
