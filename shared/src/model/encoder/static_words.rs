//! `static`: one vector a WordPiece, distilled from a transformer once. A sentence is the weighted mean of its pieces'
//! vectors; the weights (rare pieces say more) are already multiplied into the table.

use super::{SentenceEncoder, TableError, VectorTable};
use crate::text::wordpiece::WordPiece;

/// A tokenizer and one vector a token.
#[derive(Clone, Debug)]
pub struct StaticEncoder {
    tokenizer: WordPiece,
    table: VectorTable,
}

impl StaticEncoder {
    /// Puts tokenizer and table together: one row a token.
    pub fn new(tokenizer: WordPiece, table: VectorTable) -> Result<Self, TableError> {
        if tokenizer.len() != table.rows() {
            return Err(TableError::Shape {
                rows: tokenizer.len(),
                dims: table.dims(),
                codes: table.codes().len(),
            });
        }
        Ok(Self { tokenizer, table })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &WordPiece {
        &self.tokenizer
    }

    /// The vectors.
    pub fn table(&self) -> &VectorTable {
        &self.table
    }
}

impl SentenceEncoder for StaticEncoder {
    fn dims(&self) -> usize {
        self.table.dims()
    }

    fn encode(&self, sentences: &[&str]) -> Vec<f32> {
        let dims = self.dims();
        let mut vectors = vec![0.0; sentences.len() * dims];
        let mut ids = Vec::new();
        for (text, vector) in sentences.iter().zip(vectors.chunks_exact_mut(dims)) {
            ids.clear();
            self.tokenizer.encode_into(text, &mut ids);
            self.table
                .normalised_sum(ids.iter().map(|&id| (id as usize, 1.0)), vector);
        }
        vectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::wordpiece::Cleaning;

    #[test]
    fn a_sentence_is_the_direction_of_its_words() {
        let tokenizer =
            WordPiece::from_vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\ncat\ndog\n##s", Cleaning::UNCASED)
                .unwrap();
        let mut rows = vec![0.0; 7 * 2];
        rows[8..].copy_from_slice(&[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        let encoder =
            StaticEncoder::new(tokenizer.clone(), VectorTable::quantise(&rows, 2).unwrap()).unwrap();
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let found = encoder.encode(&["Cats, dogs", "xyz", "cat cat", ""]);
        for (x, y) in found.iter().zip([half, half, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]) {
            assert!((x - y).abs() < 1e-6, "{found:?}");
        }
        assert!(StaticEncoder::new(tokenizer, VectorTable::quantise(&rows[2..], 2).unwrap()).is_err());
    }
}
