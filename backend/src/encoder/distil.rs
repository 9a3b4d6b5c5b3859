//! `static`: a transformer's knowledge of single words, kept in a table.
//!
//! Every vocabulary entry goes through the transformer alone, its hidden states are averaged, PCA keeps the strongest
//! `dims` directions, and each vector is weighted by how rare its token is, w = a/(a + p) (Arora et al. 2017, smooth inverse frequency).
//!
//! The page splits texts with WordPiece. A transformer with another tokenizer is distilled over the words of a corpus: see
//! [`vocabulary_of`] and [`distil_words`].

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use gnnxml_shared::model::encoder::bert::{Bert, BertScratch, BertWeights};
use gnnxml_shared::model::encoder::{StaticEncoder, VectorTable};
use gnnxml_shared::text::wordpiece::{Cleaning, WordPiece};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{Normalizer, OffsetReferential, OffsetType, PreTokenizer};

use super::native::Native;
use super::{Encoder, EncoderError, read_text, svd};

/// The file that marks a directory as a distilled encoder.
pub const DESCRIPTION: &str = "static.json";
const TABLE: &str = "static.safetensors";
const VOCABULARY: &str = "vocab.txt";
/// a of the frequency weight.
const SMOOTHING: f64 = 1e-3;
/// Tokens that go through the transformer at a time.
const BATCH: usize = 40;
/// Longer words, in bytes, do not enter a vocabulary.
const LONGEST_WORD: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
struct Description {
    format: u32,
    dims: usize,
    tokens: usize,
    cleaning: Cleaning,
    /// Of table and vocabulary.
    sha256: String,
}

/// Distils a transformer. `counts` are the tokens' counts in a corpus; without a corpus (empty) a token's share is taken from its
/// place in the vocabulary, since BERT's is sorted by frequency (Zipf's law).
pub fn distil(
    tokenizer: &WordPiece,
    weights: &BertWeights,
    dims: usize,
    counts: &[u64],
) -> Result<StaticEncoder, EncoderError> {
    let width = weights.shape.width;
    check_dims(dims, width)?;
    let model = Bert::dense(weights).map_err(|error| model_error(error.to_string()))?;
    compress(
        tokenizer,
        every_word(tokenizer, &model, width),
        width,
        dims,
        counts,
    )
}

/// Distils any encoder over a vocabulary made for it: each entry is encoded as the text it is.
pub fn distil_words(
    tokenizer: &WordPiece,
    encoder: &dyn Encoder,
    dims: usize,
    counts: &[u64],
) -> anyhow::Result<StaticEncoder> {
    check_dims(dims, encoder.dims())?;
    let spellings: Vec<&str> = (0..tokenizer.len() as u32)
        .map(|id| tokenizer.token(id).unwrap_or_default())
        .map(|token| {
            token
                .strip_prefix("##")
                .filter(|rest| !rest.is_empty())
                .unwrap_or(token)
        })
        .collect();
    let vectors = encoder.encode(&spellings)?;
    Ok(compress(tokenizer, vectors, encoder.dims(), dims, counts)?)
}

/// A WordPiece vocabulary of the `most` frequent words of a corpus (from [`count_words`]) and of every character, so that
/// any word of its letters has pieces.
pub fn vocabulary_of(counts: &HashMap<String, u64>, most: usize) -> Result<WordPiece, EncoderError> {
    let mut words: Vec<(&str, u64)> = counts
        .iter()
        .map(|(word, &count)| (word.as_str(), count))
        .collect();
    words.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let letters: BTreeSet<char> = words.iter().flat_map(|(word, _)| word.chars()).collect();
    let mut lines = String::from("[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
    let mut add = |token: &str, before: &str| {
        lines.push_str(before);
        lines.push_str(token);
        lines.push('\n');
    };
    // A single character is added below, once.
    let long = words.iter().filter(|(word, _)| word.chars().nth(1).is_some());
    for (word, _) in long.take(most) {
        add(word, "");
    }
    for letter in letters {
        add(letter.encode_utf8(&mut [0; 4]), "");
        add(letter.encode_utf8(&mut [0; 4]), "##");
    }
    WordPiece::from_vocabulary(&lines, Cleaning::UNCASED).map_err(|error| model_error(error.to_string()))
}

/// Counts the clean words of a text, as WordPiece sees them before it splits them.
pub fn count_words(text: &str, counts: &mut HashMap<String, u64>) -> Result<(), EncoderError> {
    let fault = |error: tokenizers::Error| model_error(error.to_string());
    let mut clean = tokenizers::NormalizedString::from(text);
    BertNormalizer::new(true, true, None, true)
        .normalize(&mut clean)
        .map_err(fault)?;
    let mut split = tokenizers::PreTokenizedString::from(clean);
    BertPreTokenizer.pre_tokenize(&mut split).map_err(fault)?;
    for (word, ..) in split.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
        if let Some(count) = counts.get_mut(word) {
            *count += 1;
        } else if word.len() <= LONGEST_WORD {
            counts.insert(word.to_owned(), 1);
        }
    }
    Ok(())
}

fn model_error(fault: String) -> EncoderError {
    EncoderError::Model {
        directory: "distillation".into(),
        fault,
    }
}

fn check_dims(dims: usize, width: usize) -> Result<(), EncoderError> {
    if dims == 0 || dims > width {
        return Err(model_error(format!(
            "{dims} dimensions asked, the transformer has {width}"
        )));
    }
    Ok(())
}

/// From a vector a token to a table: centred, turned to the strongest directions, weighted by rarity, rounded.
fn compress(
    tokenizer: &WordPiece,
    mut vectors: Vec<f32>,
    width: usize,
    dims: usize,
    counts: &[u64],
) -> Result<StaticEncoder, EncoderError> {
    let marks: Vec<bool> = (0..tokenizer.len() as u32)
        .map(|id| is_mark(tokenizer, id))
        .collect();
    centre(&mut vectors, width, &marks);
    let basis = principal_directions(&vectors, width, dims, &marks);
    let shares = shares(tokenizer.len(), counts);
    let mut table = vec![0.0_f32; tokenizer.len() * dims];
    table.par_chunks_mut(dims).enumerate().for_each(|(id, row)| {
        if marks[id] {
            return;
        }
        for (x, direction) in vectors[id * width..(id + 1) * width]
            .iter()
            .zip(basis.chunks_exact(dims))
        {
            for (sum, d) in row.iter_mut().zip(direction) {
                *sum += x * d;
            }
        }
        let weight = (SMOOTHING / (SMOOTHING + shares[id])) as f32;
        row.iter_mut().for_each(|x| *x *= weight);
    });
    let table = VectorTable::quantise(&table, dims).map_err(|error| model_error(error.to_string()))?;
    StaticEncoder::new(tokenizer.clone(), table).map_err(|error| model_error(error.to_string()))
}

/// Tokens with a role, not a meaning: `[CLS]`, `[unused7]`.
fn is_mark(tokenizer: &WordPiece, id: u32) -> bool {
    tokenizer
        .token(id)
        .is_some_and(|token| token.len() > 2 && token.starts_with('[') && token.ends_with(']'))
}

/// Mean hidden state of `[CLS] token [SEP]` for every token.
fn every_word(tokenizer: &WordPiece, model: &Bert, width: usize) -> Vec<f32> {
    let special = tokenizer.special();
    let mut vectors = vec![0.0_f32; tokenizer.len() * width];
    vectors.par_chunks_mut(BATCH * width).enumerate().for_each_init(
        BertScratch::default,
        |scratch, (batch, rows)| {
            let first = (batch * BATCH) as u32;
            let count = rows.len() / width;
            let ids: Vec<u32> = (first..first + count as u32)
                .flat_map(|id| [special.class, id, special.separator])
                .collect();
            let hidden = model.forward(&ids, &vec![3; count], scratch);
            for (row, states) in rows.chunks_exact_mut(width).zip(hidden.chunks_exact(3 * width)) {
                for (i, x) in row.iter_mut().enumerate() {
                    *x = (states[i] + states[width + i] + states[2 * width + i]) / 3.0;
                }
            }
        },
    );
    vectors
}

/// Takes the mean of all real words away.
fn centre(vectors: &mut [f32], width: usize, marks: &[bool]) {
    let mut mean = vec![0.0_f64; width];
    let mut count = 0_usize;
    for (row, _) in vectors.chunks_exact(width).zip(marks).filter(|(_, mark)| !**mark) {
        count += 1;
        for (m, x) in mean.iter_mut().zip(row) {
            *m += f64::from(*x);
        }
    }
    let mean: Vec<f32> = mean.iter().map(|m| (m / count.max(1) as f64) as f32).collect();
    vectors.par_chunks_mut(width).for_each(|row| {
        for (x, m) in row.iter_mut().zip(&mean) {
            *x -= m;
        }
    });
}

/// The leading eigenvectors of the covariance, row-major `width × dims`.
fn principal_directions(vectors: &[f32], width: usize, dims: usize, marks: &[bool]) -> Vec<f32> {
    let real: Vec<f32> = vectors
        .chunks_exact(width)
        .zip(marks)
        .filter(|(_, mark)| !**mark)
        .flat_map(|(row, _)| row.iter().copied())
        .collect();
    let (_, eigenvectors) = svd::symmetric_eigen(svd::gram(&real, width), width);
    let mut basis = vec![0.0; width * dims];
    for row in 0..width {
        for column in 0..dims {
            basis[row * dims + column] = eigenvectors[row * width + column] as f32;
        }
    }
    basis
}

/// Each token's share of running text.
fn shares(tokens: usize, counts: &[u64]) -> Vec<f64> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        let harmonic: f64 = (1..=tokens).map(|rank| 1.0 / rank as f64).sum();
        return (1..=tokens).map(|rank| 1.0 / (rank as f64 * harmonic)).collect();
    }
    (0..tokens)
        .map(|id| counts.get(id).copied().unwrap_or(0) as f64 / total as f64)
        .collect()
}

/// Counts tokens in texts.
pub fn count_tokens<S: AsRef<str>>(tokenizer: &WordPiece, texts: impl IntoIterator<Item = S>) -> Vec<u64> {
    let mut counts = vec![0; tokenizer.len()];
    let mut ids = Vec::new();
    for text in texts {
        ids.clear();
        tokenizer.encode_into(text.as_ref(), &mut ids);
        for &id in &ids {
            counts[id as usize] += 1;
        }
    }
    counts
}

/// Writes a distilled encoder as a directory: everything beside it first, then one rename.
pub fn save(encoder: &StaticEncoder, directory: &Path) -> Result<(), EncoderError> {
    let table = encoder.table();
    let vocabulary = encoder.tokenizer().vocabulary();
    let codes: &[u8] = bytemuck::cast_slice(table.codes());
    let scales: Vec<u8> = table.scales().iter().flat_map(|s| s.to_le_bytes()).collect();
    let view = |dtype, shape, data| {
        TensorView::new(dtype, shape, data).map_err(|error| EncoderError::Model {
            directory: directory.to_path_buf(),
            fault: error.to_string(),
        })
    };
    let tensors = [
        ("codes", view(Dtype::I8, vec![table.rows(), table.dims()], codes)?),
        ("scales", view(Dtype::F32, vec![table.rows()], &scales)?),
    ];
    let bytes = safetensors::serialize(tensors, None).map_err(|error| EncoderError::Safetensors {
        file: directory.join(TABLE),
        fault: error.to_string(),
    })?;
    let description = Description {
        format: 1,
        dims: table.dims(),
        tokens: table.rows(),
        cleaning: encoder.tokenizer().cleaning(),
        sha256: checksum(&bytes, &vocabulary),
    };
    let json = serde_json::to_string_pretty(&description).expect("plain numbers and strings");
    super::fetch::install(
        directory,
        &[
            (TABLE, &bytes),
            (VOCABULARY, vocabulary.as_bytes()),
            (DESCRIPTION, json.as_bytes()),
        ],
    )
}

/// Opens a distilled encoder.
pub fn open(directory: &Path) -> Result<Native<StaticEncoder>, EncoderError> {
    let file = directory.join(DESCRIPTION);
    let bad = |fault: String| EncoderError::Config {
        file: file.clone(),
        fault,
    };
    let description: Description =
        serde_json::from_str(&read_text(&file)?).map_err(|error| bad(error.to_string()))?;
    if description.format != 1 {
        return Err(bad(format!(
            "format {}, this program reads format 1",
            description.format
        )));
    }
    let vocabulary = read_text(&directory.join(VOCABULARY))?;
    let table_file = directory.join(TABLE);
    let bytes = std::fs::read(&table_file).map_err(|source| EncoderError::Io {
        path: table_file.clone(),
        source,
    })?;
    if checksum(&bytes, &vocabulary) != description.sha256 {
        return Err(bad(format!(
            "{TABLE} or {VOCABULARY} is damaged: the checksum differs"
        )));
    }
    let broken = |fault: String| EncoderError::Safetensors {
        file: table_file.clone(),
        fault,
    };
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| broken(error.to_string()))?;
    let get = |name: &str, dtype: Dtype| {
        let tensor = tensors.tensor(name).map_err(|error| broken(error.to_string()))?;
        if tensor.dtype() == dtype {
            Ok(tensor.data())
        } else {
            Err(broken(format!(
                "{name} holds {:?}, expected {dtype:?}",
                tensor.dtype()
            )))
        }
    };
    let codes: Vec<i8> = get("codes", Dtype::I8)?.iter().map(|&b| b as i8).collect();
    let scales: Vec<f32> = get("scales", Dtype::F32)?
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let table = VectorTable::from_parts(description.dims, scales, codes)
        .map_err(|error| broken(error.to_string()))?;
    let tokenizer = WordPiece::from_vocabulary(&vocabulary, description.cleaning).map_err(|error| {
        EncoderError::Tokenizer {
            file: directory.join(VOCABULARY),
            fault: error.to_string(),
        }
    })?;
    let tokens = tokenizer.len();
    let encoder = StaticEncoder::new(tokenizer, table).map_err(|_| EncoderError::Vocabulary {
        file: directory.join(VOCABULARY),
        tokens,
        expected: description.tokens,
    })?;
    Ok(Native::new(
        "static",
        format!("static 1 {}", description.sha256),
        encoder,
    ))
}

/// The same encoder with the first `dims` numbers of every vector: the strongest directions come first.
pub fn narrowed(encoder: Native<StaticEncoder>, dims: usize) -> Result<Native<StaticEncoder>, EncoderError> {
    let table = encoder.inner().table();
    if dims == 0 || dims >= table.dims() {
        return Ok(encoder);
    }
    let rows = table.codes().chunks_exact(table.dims()).zip(table.scales());
    let numbers: Vec<f32> = rows
        .flat_map(|(row, scale)| row[..dims].iter().map(move |&code| f32::from(code) * scale))
        .collect();
    let table = VectorTable::quantise(&numbers, dims).map_err(|error| model_error(error.to_string()))?;
    let fingerprint = format!("{}, first {dims}", encoder.fingerprint());
    let tokenizer = encoder.inner().tokenizer().clone();
    let encoder = StaticEncoder::new(tokenizer, table).map_err(|error| model_error(error.to_string()))?;
    Ok(Native::new("static", fingerprint, encoder))
}

fn checksum(table: &[u8], vocabulary: &str) -> String {
    format!(
        "{:x}",
        Sha256::new()
            .chain_update(table)
            .chain_update(vocabulary)
            .finalize()
    )
}
