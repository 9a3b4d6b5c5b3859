//! From sentences to vectors: tokens, windows, batches, mean.

use super::{Bert, BertError, BertScratch};
use crate::model::encoder::{SentenceEncoder, l2_normalise};
use crate::model::ops::rows::add_rows;
use crate::text::wordpiece::WordPiece;

/// Tokens of a batch: enough rows to use each weight many times, few enough to stay in the cache.
const BATCH_TOKENS: usize = 128;

/// A BERT-type model with its tokenizer.
#[derive(Clone, Debug)]
pub struct BertEncoder {
    tokenizer: WordPiece,
    model: Bert,
    /// Tokens of a window, opening and closing token included.
    window: usize,
}

/// Sentences as tokens, cut into windows.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    ids: Vec<u32>,
    windows: Vec<Window>,
    sentences: usize,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    sentence: usize,
    start: usize,
    end: usize,
}

impl Tokens {
    /// Tokens in all windows, opening and closing ones included.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no sentence has a token.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The token numbers of each window.
    pub fn windows(&self) -> impl Iterator<Item = &[u32]> {
        self.windows
            .iter()
            .map(|window| &self.ids[window.start..window.end])
    }
}

impl BertEncoder {
    /// Puts tokenizer and model together. `window` is the longest run of tokens given to the model at once.
    pub fn new(tokenizer: WordPiece, model: Bert, window: usize) -> Result<Self, BertError> {
        if tokenizer.len() > model.shape().vocabulary {
            return Err(BertError::Vocabulary {
                tokens: tokenizer.len(),
                vectors: model.shape().vocabulary,
            });
        }
        let window = window.min(model.shape().positions);
        if window < 3 {
            return Err(BertError::Size {
                what: "tokens of a window".into(),
                found: window,
                expected: 3,
            });
        }
        Ok(Self {
            tokenizer,
            model,
            window,
        })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &WordPiece {
        &self.tokenizer
    }

    /// The model.
    pub fn model(&self) -> &Bert {
        &self.model
    }

    /// Tokens given to the model at once.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Sentences → tokens → windows. A sentence without a token has no window; a long one several of nearly equal
    /// length, so nothing is cut off.
    pub fn tokenise(&self, sentences: &[&str]) -> Tokens {
        let mut tokens = Tokens {
            sentences: sentences.len(),
            ..Tokens::default()
        };
        let special = self.tokenizer.special();
        let room = self.window - 2;
        let mut ids = Vec::new();
        for (sentence, text) in sentences.iter().enumerate() {
            ids.clear();
            self.tokenizer.encode_into(text, &mut ids);
            if ids.is_empty() {
                continue;
            }
            let size = ids.len().div_ceil(ids.len().div_ceil(room));
            for part in ids.chunks(size) {
                let start = tokens.ids.len();
                tokens.ids.push(special.class);
                tokens.ids.extend_from_slice(part);
                tokens.ids.push(special.separator);
                tokens.windows.push(Window {
                    sentence,
                    start,
                    end: tokens.ids.len(),
                });
            }
        }
        tokens
    }

    /// Groups windows of like length into batches, the longest first.
    pub fn batches(&self, tokens: &Tokens) -> Vec<Vec<usize>> {
        let length = |index: usize| tokens.windows[index].end - tokens.windows[index].start;
        let mut order: Vec<usize> = (0..tokens.windows.len()).collect();
        order.sort_by_key(|&index| (std::cmp::Reverse(length(index)), index));
        let mut batches: Vec<Vec<usize>> = Vec::new();
        let mut filled = usize::MAX;
        for index in order {
            if filled.saturating_add(length(index)) > BATCH_TOKENS {
                batches.push(Vec::new());
                filled = 0;
            }
            filled += length(index);
            batches.last_mut().expect("a batch was opened").push(index);
        }
        batches
    }

    /// The sum of the last hidden states of each window of a batch, windows × dims.
    pub fn encode_batch(&self, tokens: &Tokens, batch: &[usize], scratch: &mut BertScratch) -> Vec<f32> {
        let mut ids = Vec::with_capacity(BATCH_TOKENS);
        let mut lengths = Vec::with_capacity(batch.len());
        for &index in batch {
            let window = tokens.windows[index];
            ids.extend_from_slice(&tokens.ids[window.start..window.end]);
            lengths.push(window.end - window.start);
        }
        let width = self.model.shape().width;
        let mut hidden = self.model.forward(&ids, &lengths, scratch);
        let mut sums = vec![0.0; batch.len() * width];
        for (sum, length) in sums.chunks_exact_mut(width).zip(lengths) {
            let (window, rest) = hidden.split_at(length * width);
            add_rows(window, sum);
            hidden = rest;
        }
        sums
    }

    /// Sentence vectors from the batches' sums. The mean over a sentence's windows, weighted by their lengths, is the
    /// sum over all its tokens up to a factor that the normalisation takes away.
    pub fn gather(&self, tokens: &Tokens, batches: &[Vec<usize>], sums: &[Vec<f32>]) -> Vec<f32> {
        let width = self.model.shape().width;
        // Windows in their own order, so that a sentence's sum does not depend on the batches.
        let mut by_window = vec![(0, 0); tokens.windows.len()];
        for (b, batch) in batches.iter().enumerate() {
            for (slot, &index) in batch.iter().enumerate() {
                by_window[index] = (b, slot);
            }
        }
        let mut vectors = vec![0.0; tokens.sentences * width];
        for (window, (b, slot)) in tokens.windows.iter().zip(by_window) {
            let vector = &mut vectors[window.sentence * width..(window.sentence + 1) * width];
            add_rows(&sums[b][slot * width..(slot + 1) * width], vector);
        }
        vectors.chunks_exact_mut(width).for_each(l2_normalise);
        vectors
    }
}

impl SentenceEncoder for BertEncoder {
    fn dims(&self) -> usize {
        self.model.shape().width
    }

    fn encode(&self, sentences: &[&str]) -> Vec<f32> {
        let tokens = self.tokenise(sentences);
        let batches = self.batches(&tokens);
        let mut scratch = BertScratch::default();
        let sums: Vec<Vec<f32>> = batches
            .iter()
            .map(|batch| self.encode_batch(&tokens, batch, &mut scratch))
            .collect();
        self.gather(&tokens, &batches, &sums)
    }

    fn transformer(&self) -> Option<&BertEncoder> {
        Some(self)
    }
}
