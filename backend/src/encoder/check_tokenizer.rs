//! Our WordPiece held against the reference library's, sentence by sentence.

use std::path::Path;

use gnnxml_shared::text::wordpiece::WordPiece;
use tokenizers::Tokenizer;

use super::transformers::reference_tokenizer;
use super::{EncoderError, bert, read_json};

/// Differences that are kept word by word; the rest is only counted.
const KEPT: usize = 10;

/// A sentence that the two split differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub sentence: String,
    pub ours: Vec<u32>,
    pub reference: Vec<u32>,
}

/// What a comparison has seen so far.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    pub sentences: u64,
    pub tokens: u64,
    pub differing: u64,
    /// The first few.
    pub differences: Vec<Difference>,
}

impl Agreement {
    /// Adds what another thread has seen.
    pub fn join(&mut self, other: Self) {
        self.sentences += other.sentences;
        self.tokens += other.tokens;
        self.differing += other.differing;
        self.differences.extend(other.differences);
        self.differences.truncate(KEPT);
    }
}

/// Both tokenizers of a model directory.
#[derive(Debug)]
pub struct TokenizerCheck {
    ours: WordPiece,
    reference: Tokenizer,
}

impl TokenizerCheck {
    /// Opens the tokenizer of a BERT-type model directory twice.
    pub fn open(directory: &Path) -> Result<Self, EncoderError> {
        let reference = reference_tokenizer(directory)?;
        let config = read_json(&directory.join("config.json"))?;
        let tokens = config["vocab_size"]
            .as_u64()
            .map_or(reference.get_vocab_size(true), |size| size as usize);
        Ok(Self {
            ours: bert::tokenizer(directory, tokens)?,
            reference,
        })
    }

    /// Splits a sentence both ways.
    pub fn compare(&self, sentence: &str, seen: &mut Agreement) -> Result<(), EncoderError> {
        let mut ours = Vec::new();
        self.ours.encode_into(sentence, &mut ours);
        let reference =
            self.reference
                .encode_fast(sentence, false)
                .map_err(|error| EncoderError::Tokenizer {
                    file: "the reference tokenizer".into(),
                    fault: error.to_string(),
                })?;
        seen.sentences += 1;
        seen.tokens += ours.len() as u64;
        if ours != reference.get_ids() {
            seen.differing += 1;
            if seen.differences.len() < KEPT {
                seen.differences.push(Difference {
                    sentence: sentence.to_owned(),
                    ours,
                    reference: reference.get_ids().to_vec(),
                });
            }
        }
        Ok(())
    }
}
