//! Any Hugging Face tokenizer: from a sentence to windows of token numbers, opening and closing tokens included.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use gnnxml_shared::text::wordpiece::{Cleaning, WordPiece};
use serde_json::json;
use tokenizers::Tokenizer;

use crate::encoder::{EncoderError, read_json, read_text};

/// A token with its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) id: u32,
    pub(super) kind: u32,
}

/// A run of tokens shown to the model at once.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The sentence it belongs to.
    pub(super) sentence: usize,
    pub(super) pieces: Vec<Piece>,
}

/// A tokenizer and the marks it puts around a sentence.
pub(super) struct Pieces {
    tokenizer: Tokenizer,
    before: Vec<Piece>,
    after: Vec<Piece>,
    /// Tokens that no text may produce, ascending.
    reserved: Vec<u32>,
    /// What the tokenizer was made from: part of a fingerprint.
    source: String,
    file: PathBuf,
}

impl Pieces {
    /// tokenizer.json where there is one, vocab.txt otherwise. `vocabulary` is what config.json says.
    pub(super) fn open(directory: &Path, vocabulary: usize) -> Result<Self, EncoderError> {
        let (tokenizer, source, file) = load(directory)?;
        let bad = |fault: String| EncoderError::Tokenizer {
            file: file.clone(),
            fault,
        };
        let tokens = tokenizer
            .get_vocab(true)
            .values()
            .max()
            .map_or(0, |last| *last as usize + 1);
        // Some models round their tables up to a multiple of 128.
        if tokens == 0 || tokens > vocabulary || vocabulary > tokens.next_multiple_of(128) {
            return Err(EncoderError::Vocabulary {
                file,
                tokens,
                expected: vocabulary,
            });
        }
        let (before, after) = marks(&tokenizer).map_err(bad)?;
        let mut reserved: Vec<u32> = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| token.special && !matches!(token.content.as_str(), "[UNK]" | "<unk>"))
            .map(|(id, _)| id)
            .collect();
        reserved.sort_unstable();
        Ok(Self {
            tokenizer,
            before,
            after,
            reserved,
            source,
            file,
        })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The marks of a sentence without a word, for distillation.
    pub(super) fn marks(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Sentences as windows of at most `window` tokens. A sentence without a token has none; a long one has several
    /// of nearly equal length, so nothing is cut off.
    pub(super) fn windows(&self, sentences: &[&str], window: usize) -> Result<Vec<Window>, EncoderError> {
        let room = window.saturating_sub(self.marks()).max(1);
        let mut windows = Vec::with_capacity(sentences.len());
        for (sentence, text) in sentences.iter().enumerate() {
            let encoding =
                self.tokenizer
                    .encode_fast(*text, false)
                    .map_err(|error| EncoderError::Tokenizer {
                        file: self.file.clone(),
                        fault: error.to_string(),
                    })?;
            // Some tokenizers find a mark's spelling among their pieces.
            let ids: Vec<u32> = encoding
                .get_ids()
                .iter()
                .copied()
                .filter(|id| self.reserved.binary_search(id).is_err())
                .collect();
            if ids.is_empty() {
                continue;
            }
            let size = ids.len().div_ceil(ids.len().div_ceil(room));
            for part in ids.chunks(size) {
                let words = part.iter().map(|&id| Piece { id, kind: 0 });
                let pieces = self.before.iter().copied().chain(words);
                windows.push(Window {
                    sentence,
                    pieces: pieces.chain(self.after.iter().copied()).collect(),
                });
            }
        }
        Ok(windows)
    }
}

/// The reference library's tokenizer, what it was made from, and the file that was in. Nothing is cut or padded.
pub(super) fn load(directory: &Path) -> Result<(Tokenizer, String, PathBuf), EncoderError> {
    let mut file = directory.join("tokenizer.json");
    let source = if file.is_file() {
        read_text(&file)?
    } else {
        file = directory.join("vocab.txt");
        wordpiece_json(directory, &file)?
    };
    let bad = |fault: String| EncoderError::Tokenizer {
        file: file.clone(),
        fault,
    };
    let mut tokenizer = Tokenizer::from_str(&source).map_err(|error| bad(error.to_string()))?;
    tokenizer
        .with_truncation(None)
        .map_err(|error| bad(error.to_string()))?;
    tokenizer.with_padding(None);
    // A special token spelled out in a document is text: it must not be able to steer the model.
    tokenizer.set_encode_special_tokens(true);
    Ok((tokenizer, source, file))
}

/// What the tokenizer puts before and after a sentence, read off a sentence of one letter.
fn marks(tokenizer: &Tokenizer) -> Result<(Vec<Piece>, Vec<Piece>), String> {
    let encode = |special| {
        let encoding = tokenizer
            .encode("a", special)
            .map_err(|error| error.to_string())?;
        let pieces = encoding.get_ids().iter().zip(encoding.get_type_ids());
        Ok::<Vec<Piece>, String>(pieces.map(|(&id, &kind)| Piece { id, kind }).collect())
    };
    let (bare, marked) = (encode(false)?, encode(true)?);
    let ids = |pieces: &[Piece]| pieces.iter().map(|piece| piece.id).collect::<Vec<_>>();
    let wanted = ids(&bare);
    let start = (0..=marked.len().saturating_sub(bare.len()))
        .find(|&start| !bare.is_empty() && ids(&marked[start..start + bare.len()]) == wanted)
        .ok_or("it has no token for the letter a, or loses it among its special tokens")?;
    Ok((marked[..start].to_vec(), marked[start + bare.len()..].to_vec()))
}

/// BERT's tokenizer.json from a vocab.txt.
fn wordpiece_json(directory: &Path, file: &Path) -> Result<String, EncoderError> {
    let text = read_text(file)?;
    let lower_case = !read_json(&directory.join("tokenizer_config.json"))
        .is_ok_and(|config| config["do_lower_case"].as_bool() == Some(false));
    // Our own reader checks the vocabulary and finds the tokens with a role.
    let ours =
        WordPiece::from_vocabulary(&text, Cleaning::UNCASED).map_err(|error| EncoderError::Tokenizer {
            file: file.to_path_buf(),
            fault: error.to_string(),
        })?;
    let vocabulary: serde_json::Map<String, serde_json::Value> = (0..ours.len() as u32)
        .filter_map(|id| Some((ours.token(id)?.to_owned(), json!(id))))
        .collect();
    let special = ours.special();
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": lower_case
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "BertProcessing", "sep": ["[SEP]", special.separator], "cls": ["[CLS]", special.class]
        },
        "decoder": null,
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary
        }
    })
    .to_string())
}
