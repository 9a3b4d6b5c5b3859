//! Corpora: documents with their labels, read as a stream, checked line by line, written atomically.
//!
//! This room never holds a whole corpus in memory and never repairs input silently: what it cannot
//! understand becomes a located [`Complaint`](gnnxml_shared::api::Complaint) or a [`CorpusError`].
//! Start reading at [`CorpusSource`], which says where documents come from and can be opened any
//! number of times, then [`CorpusReader`], which yields them.

mod annif;
mod atomic;
mod compressed;
mod delimited;
mod document;
mod error;
mod fingerprint;
mod format;
mod jsonl;
mod lines;
mod pairs;
mod parallel;
mod read_ahead;
mod reader;
mod repository;
mod reuters;
mod skos;
mod source;
mod split;
mod statistics;
mod tarball;
mod vocabulary;
mod writer;

pub use atomic::{AtomicFile, write_atomic};
pub use compressed::Compression;
pub use document::Document;
pub use error::CorpusError;
pub use format::CorpusFormat;
pub(crate) use lines::Lines;
pub use parallel::{available_threads, for_each_document};
pub(crate) use read_ahead::ReadAhead;
pub use reader::{COMPLAINTS_KEPT, Columns, CorpusReader, IdFilter, ReadOptions};
pub use reuters::{FetchError, fetch_reuters};
pub use source::{CorpusSource, open};
pub use split::{Part, Split, SplitOptions};
pub use statistics::{corpus_stats, normalised_text_hash};
pub use vocabulary::{LabelVocabulary, VocabularyEntry};
pub use writer::{CorpusWriter, WriteFormat};

#[cfg(test)]
mod tests;
