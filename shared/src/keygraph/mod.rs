//! Entities, TextRank keywords and the KeyGraph of a text.
//!
//! A KeyGraph has one vertex a keyword or named entity, and an edge between two of them for the sentences
//! they share. It is a pure function of text, language, lexicon and options: nothing here reads a clock,
//! draws a random number or leaks the order of a hash map.
//!
//! Start reading at [`KeyGraph`], then [`KeyGraphBuilder`]; `textrank` ranks words, `entities` finds names,
//! [`EntityLexiconBuilder`] learns names from a corpus.
//!
//! ```
//! use gnnxml_shared::keygraph::{EntityLexicon, KeyGraph, Options, VertexKind};
//! use gnnxml_shared::text::Language;
//!
//! let text = "Cocoa exports from Ghana rose. Ghana sells most of its cocoa to Europe.";
//! let graph = KeyGraph::build(text, Language::English, &EntityLexicon::default(), &Options::default());
//! let ghana = graph.vertices().iter().find(|vertex| vertex.text == "Ghana").unwrap();
//! assert_eq!(ghana.kind, VertexKind::Entity);
//! assert_eq!(ghana.sentences, [0, 1]);
//! ```

mod build;
pub mod drawing;
mod entities;
mod graph;
mod interner;
mod lexicon;
mod lexicon_builder;
mod phrases;
mod quantities;
mod roles;
mod textrank;
mod tokens;

#[cfg(test)]
mod tests;

pub use build::{KeyGraphBuilder, MAX_CANDIDATES, MAX_VERTICES, Options};
pub use entities::{EntityKind, Mention, entities};
pub use graph::{Edge, InvalidKeyGraph, KeyGraph, Sentence, Vertex, VertexKind};
pub use lexicon::EntityLexicon;
pub use lexicon_builder::EntityLexiconBuilder;
pub use phrases::MAX_PHRASE_WORDS;
