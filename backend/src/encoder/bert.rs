//! BERT-type models (BERT, DistilBERT) from a Hugging Face directory, run by our own code: int8 or f32, batches over all
//! cores.

use std::path::Path;

use gnnxml_shared::bundle::PageEncoder;
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

/// The architectures our own code runs: the same layers under other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Bert,
    DistilBert,
}

impl Family {
    /// The family of a model directory, if it is one of these.
    pub fn of(directory: &Path) -> Result<Option<Self>, EncoderError> {
        let config = read_json(&directory.join("config.json"))?;
        Ok(match config["model_type"].as_str() {
            Some("bert") => Some(Self::Bert),
            Some("distilbert") => Some(Self::DistilBert),
            _ => None,
        })
    }

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::DistilBert => "distilbert",
        }
    }

    fn names(self) -> &'static Names {
        match self {
            Self::Bert => &BERT,
            Self::DistilBert => &DISTILBERT,
        }
    }
}

/// What a family calls its settings and tensors.
struct Names {
    /// Before every tensor, when the encoder lies inside a model with a head.
    prefix: &'static str,
    width: &'static str,
    heads: &'static str,
    layers: &'static str,
    inner_width: &'static str,
    activation: &'static str,
    /// Before a layer's number.
    layer: &'static str,
    attention: [&'static str; 3],
    attention_output: &'static str,
    attention_norm: &'static str,
    inner: &'static str,
    outer: &'static str,
    outer_norm: &'static str,
}

const BERT: Names = Names {
    prefix: "bert.",
    width: "hidden_size",
    heads: "num_attention_heads",
    layers: "num_hidden_layers",
    inner_width: "intermediate_size",
    activation: "hidden_act",
    layer: "encoder.layer",
    attention: [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
    ],
    attention_output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    inner: "intermediate.dense",
    outer: "output.dense",
    outer_norm: "output.LayerNorm",
};

const DISTILBERT: Names = Names {
    prefix: "distilbert.",
    width: "dim",
    heads: "n_heads",
    layers: "n_layers",
    inner_width: "hidden_dim",
    activation: "activation",
    layer: "transformer.layer",
    attention: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    attention_output: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    inner: "ffn.lin1",
    outer: "ffn.lin2",
    outer_norm: "output_layer_norm",
};

/// Whether a directory's tokenizer is WordPiece, the one our own code has. Some BERTs come with another.
pub fn has_word_pieces(directory: &Path) -> bool {
    let file = directory.join("tokenizer.json");
    if !file.is_file() {
        return true;
    }
    read_json(&file).map_or(true, |json| {
        let model = &json["model"];
        matches!(model["type"].as_str(), Some("WordPiece") | None) && model["merges"].is_null()
    })
}

/// A BERT-type encoder on all cores.
#[derive(Debug)]
pub struct NativeBert {
    family: Family,
    precision: Precision,
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
        let family = Family::of(directory)?.ok_or_else(|| EncoderError::Architecture {
            file: directory.join("config.json"),
            found: "another".into(),
            known: "bert, distilbert",
        })?;
        let (tokenizer, weights, window) = read_directory(directory)?;
        let built = match precision {
            Precision::F32 => Bert::dense(&weights),
            Precision::Int8 => Bert::int8(&weights, &sample_tokens(&tokenizer, window)),
        };
        let encoder = built
            .and_then(|bert| BertEncoder::new(tokenizer, bert, window))
            .map_err(|error| model(&error))?;
        let fingerprint = fingerprint(&weights, &encoder, precision);
        Ok(Self {
            family,
            precision,
            encoder,
            fingerprint,
        })
    }

    /// How exactly it computes.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The encoder itself, as the page runs it.
    pub fn encoder(&self) -> &BertEncoder {
        &self.encoder
    }
}

impl Encoder for NativeBert {
    fn name(&self) -> &'static str {
        self.family.name()
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

    fn for_page(&self) -> Option<PageEncoder<'_>> {
        (self.precision == Precision::Int8).then_some(PageEncoder::Bert(&self.encoder))
    }
}

/// Tokenizer, weights and window of a model directory.
pub fn read_directory(directory: &Path) -> Result<(WordPiece, BertWeights, usize), EncoderError> {
    let config_file = directory.join("config.json");
    let config = read_json(&config_file)?;
    let names = Family::of(directory)?
        .ok_or_else(|| EncoderError::Architecture {
            file: config_file.clone(),
            found: config["model_type"].as_str().unwrap_or("none").into(),
            known: "bert, distilbert",
        })?
        .names();
    let shape = shape(&config_file, &config, names)?;
    let tokenizer = tokenizer(directory, shape.vocabulary)?;
    let weights = weights(&Checkpoint::open(directory)?, &config, shape, names)?;
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

fn shape(file: &Path, config: &Value, names: &Names) -> Result<BertShape, EncoderError> {
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
    let activation = names.activation;
    match config[activation].as_str() {
        None | Some("gelu") => (),
        Some(other) => return Err(bad(format!("\"{activation}\" is {other:?}, expected \"gelu\""))),
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
        width: number(names.width, 8192)?,
        heads: number(names.heads, 1024)?,
        layers: number(names.layers, 1024)?,
        inner: number(names.inner_width, 8192)?,
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

fn weights(
    checkpoint: &Checkpoint,
    config: &Value,
    shape: BertShape,
    names: &Names,
) -> Result<BertWeights, EncoderError> {
    // A bare encoder, or one inside a model with a head on top.
    let inside = checkpoint.names().any(|name| name.starts_with(names.prefix));
    let prefix = if inside { names.prefix } else { "" };
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
    // DistilBERT knows no types: what was not saved adds nothing.
    let kinds = "embeddings.token_type_embeddings.weight";
    let kind = if names.prefix == DISTILBERT.prefix && !checkpoint.contains(&format!("{prefix}{kinds}")) {
        Vec::new()
    } else {
        let types = config["type_vocab_size"].as_u64().unwrap_or(2) as usize;
        get(kinds, &[types, w])?
    };
    let mut positions = get("embeddings.position_embeddings.weight", &[shape.positions, w])?;
    for row in positions.chunks_exact_mut(w) {
        for (x, t) in row.iter_mut().zip(&kind) {
            *x += t;
        }
    }
    let mut layers = Vec::with_capacity(shape.layers);
    for layer in 0..shape.layers {
        let name = |part: &str| format!("{}.{layer}.{part}", names.layer);
        let mut attention = Affine::default();
        for part in names.attention {
            let one = affine(&name(part), w, w)?;
            attention.weights.extend(one.weights);
            attention.bias.extend(one.bias);
        }
        layers.push(Layer {
            attention,
            attention_output: affine(&name(names.attention_output), w, w)?,
            attention_norm: norm(&name(names.attention_norm))?,
            inner: affine(&name(names.inner), shape.inner, w)?,
            outer: affine(&name(names.outer), w, shape.inner)?,
            outer_norm: norm(&name(names.outer_norm))?,
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
        "bert 2 {precision:?} window {} {:x}",
        encoder.window(),
        hash.finalize()
    )
}
