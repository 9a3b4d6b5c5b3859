//! Text as the rest of the program sees it: sentences, words with byte spans, folding, stop words, stems.
//!
//! Everything here speaks in byte offsets of the *original* text, so that a page can highlight what a
//! model used. Nothing here copies the text, and nothing is English unless the caller says so: what
//! depends on a language takes a [`Language`].
//!
//! Start reading at [`sentences()`], then [`words()`].
//!
//! ```
//! use gnnxml_shared::text::{Language, fold, is_stop_word, sentences, words};
//!
//! let text = "Dr. Ada met the E.U. envoys. They spoke of cod.";
//! let first = sentences(text, Language::English)[0];
//! assert_eq!(&text[first.range()], "Dr. Ada met the E.U. envoys.");
//!
//! let folded: Vec<_> = words(text).map(|word| fold(&text[word.range()])).collect();
//! assert_eq!(folded[3], "the");
//! assert!(is_stop_word(&folded[3], Language::English));
//! assert!(!is_stop_word(&folded[3], Language::German));
//! ```

use serde::{Deserialize, Serialize};

mod abbreviations;
mod english;
mod guess;
mod language;
mod lines;
mod sentences;
mod stems;
mod stop_words;
mod unicode;
pub mod wordpiece;
mod words;

pub use guess::LanguageGuess;
pub use language::{Language, UnknownLanguage};
pub use sentences::{MAX_SENTENCE_BYTES, sentences};
pub use stems::{StemCache, Stemmer};
pub use stop_words::is_stop_word;
pub use words::{Words, fold, fold_into, words};

/// A byte range of the original text, on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to, not including, `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// For slicing: `&text[span.range()]`.
    pub const fn range(self) -> std::ops::Range<usize> {
        self.start..self.end
    }

    /// Length in bytes.
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether the span holds nothing.
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }
}
