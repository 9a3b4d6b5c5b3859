//! Entities, TextRank keywords and the KeyGraph of a text.

use serde::{Deserialize, Serialize};

/// What a vertex stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum VertexKind {
    Keyword,
    Entity,
    /// The one vertex that holds the sentences without any keyword.
    Empty,
}

/// A sentence's byte range in the original text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sentence {
    pub start: usize,
    pub end: usize,
}

/// A keyword or entity with the sentences that hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Vertex {
    pub id: usize,
    pub text: String,
    pub kind: VertexKind,
    /// TextRank score; 0 for the empty vertex.
    pub rank: f32,
    /// Sentence numbers, ascending.
    pub sentences: Vec<usize>,
    /// Byte ranges of its occurrences in the original text.
    pub spans: Vec<[usize; 2]>,
}

/// Two keywords that share `weight` sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Edge {
    pub source: usize,
    pub target: usize,
    pub weight: u32,
}

/// The keyword co-occurrence graph of one text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyGraph {
    pub sentences: Vec<Sentence>,
    pub vertices: Vec<Vertex>,
    /// Each undirected edge once, `source < target`, sorted.
    pub edges: Vec<Edge>,
}
