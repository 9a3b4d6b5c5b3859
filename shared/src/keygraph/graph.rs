//! The graph itself, which can only be built valid.

use serde::{Deserialize, Serialize};

use crate::text::Span;

/// A sentence's byte range in the original text.
pub type Sentence = Span;

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
///
/// Whoever holds a `KeyGraph` may rely on this:
/// - sentences ascend and do not overlap;
/// - vertices are numbered from 0, the strongest first, the empty vertex (if any) last;
/// - a sentence is attached to one or more keywords and entities, or to the empty vertex, never to both;
/// - every span lies in one of its vertex' sentences;
/// - two keywords have an edge exactly when they share sentences, and its weight is their number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "Parts")]
pub struct KeyGraph {
    sentences: Vec<Sentence>,
    vertices: Vec<Vertex>,
    /// Each undirected edge once, `source < target`, sorted.
    edges: Vec<Edge>,
}

/// A KeyGraph as it comes over the wire, not yet believed.
#[derive(Deserialize)]
struct Parts {
    sentences: Vec<Sentence>,
    vertices: Vec<Vertex>,
    edges: Vec<Edge>,
}

/// Why something is not a KeyGraph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyGraph {
    #[error("sentence {sentence} is empty or does not follow the one before it")]
    Sentence { sentence: usize },
    #[error("{found} vertices, at most {limit} are allowed")]
    TooManyVertices { found: usize, limit: usize },
    #[error("vertex {vertex}: {problem}")]
    Vertex { vertex: usize, problem: &'static str },
    #[error("sentence {sentence} is attached to no vertex")]
    Unattached { sentence: usize },
    #[error("the edges do not say which keywords share sentences")]
    Edges,
}

impl KeyGraph {
    /// A graph of sentences and vertices; the edges follow from them.
    pub fn new(sentences: Vec<Sentence>, vertices: Vec<Vertex>) -> Result<Self, InvalidKeyGraph> {
        check_sentences(&sentences)?;
        check_vertices(&sentences, &vertices)?;
        let edges = shared_sentences(&vertices, sentences.len());
        Ok(Self {
            sentences,
            vertices,
            edges,
        })
    }

    /// The sentences, in the order of the text.
    pub fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// The vertices, the strongest first, the empty one last; `vertices()[i].id == i`.
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// Each undirected edge once, `source < target`, sorted.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The vertex that holds the sentences without any keyword, if there are such.
    pub fn empty_vertex(&self) -> Option<&Vertex> {
        self.vertices
            .last()
            .filter(|vertex| vertex.kind == VertexKind::Empty)
    }

    /// Takes the graph apart.
    pub fn into_parts(self) -> (Vec<Sentence>, Vec<Vertex>, Vec<Edge>) {
        (self.sentences, self.vertices, self.edges)
    }
}

impl TryFrom<Parts> for KeyGraph {
    type Error = InvalidKeyGraph;

    fn try_from(parts: Parts) -> Result<Self, InvalidKeyGraph> {
        let graph = Self::new(parts.sentences, parts.vertices)?;
        if graph.edges == parts.edges {
            Ok(graph)
        } else {
            Err(InvalidKeyGraph::Edges)
        }
    }
}

fn check_sentences(sentences: &[Sentence]) -> Result<(), InvalidKeyGraph> {
    let mut end = 0;
    for (sentence, span) in sentences.iter().enumerate() {
        if span.start < end || span.end <= span.start {
            return Err(InvalidKeyGraph::Sentence { sentence });
        }
        end = span.end;
    }
    Ok(())
}

fn check_vertices(sentences: &[Sentence], vertices: &[Vertex]) -> Result<(), InvalidKeyGraph> {
    let limit = super::MAX_VERTICES;
    if vertices.len() > limit {
        return Err(InvalidKeyGraph::TooManyVertices {
            found: vertices.len(),
            limit,
        });
    }
    let mut attached = vec![false; sentences.len()];
    for (i, vertex) in vertices.iter().enumerate() {
        let bad = |problem| Err(InvalidKeyGraph::Vertex { vertex: i, problem });
        if vertex.id != i {
            return bad("its id is not its place");
        }
        if vertex.sentences.is_empty() {
            return bad("it has no sentence");
        }
        if !vertex.sentences.windows(2).all(|pair| pair[0] < pair[1]) {
            return bad("its sentences do not ascend");
        }
        if vertex
            .sentences
            .last()
            .is_some_and(|last| *last >= sentences.len())
        {
            return bad("it names a sentence that does not exist");
        }
        if !vertex.rank.is_finite() || vertex.rank < 0.0 {
            return bad("its rank is no number from 0 up");
        }
        if vertex.kind == VertexKind::Empty {
            if i + 1 != vertices.len() {
                return bad("the empty vertex is not the last");
            }
            if !vertex.spans.is_empty() || !vertex.text.is_empty() || vertex.rank != 0.0 {
                return bad("the empty vertex has a text, a span or a rank");
            }
            if vertex.sentences.iter().any(|s| attached[*s]) {
                return bad("a sentence of the empty vertex has a keyword too");
            }
        } else if vertex.text.is_empty() {
            return bad("it has no text");
        } else if !spans_fill_sentences(sentences, vertex) {
            return bad("its spans do not lie in its sentences, at least one in each");
        }
        vertex.sentences.iter().for_each(|s| attached[*s] = true);
    }
    match attached.iter().position(|attached| !attached) {
        Some(sentence) => Err(InvalidKeyGraph::Unattached { sentence }),
        None => Ok(()),
    }
}

/// Whether the spans ascend, each lies in one of the vertex' sentences, and no such sentence goes without.
fn spans_fill_sentences(sentences: &[Sentence], vertex: &Vertex) -> bool {
    let mut spans = vertex.spans.iter().peekable();
    let mut end = 0;
    for s in &vertex.sentences {
        let sentence = sentences[*s];
        let mut found = false;
        while let Some([from, to]) = spans.next_if(|[from, _]| *from < sentence.end) {
            if *from < end.max(sentence.start) || *to <= *from || *to > sentence.end {
                return false;
            }
            end = *to;
            found = true;
        }
        if !found {
            return false;
        }
    }
    spans.next().is_none()
}

/// w_ij = |S_i ∩ S_j| for all pairs i < j of keywords that share a sentence.
///
/// For each i its sentences are walked once and the other vertices met there counted in one dense row, so
/// time is Σ_s |V_s|² and memory |V| besides the answer.
fn shared_sentences(vertices: &[Vertex], sentences: usize) -> Vec<Edge> {
    // CSR: the vertices of each sentence, ascending.
    let mut offsets = vec![0usize; sentences + 1];
    for s in vertices.iter().flat_map(|vertex| &vertex.sentences) {
        offsets[s + 1] += 1;
    }
    for s in 0..sentences {
        offsets[s + 1] += offsets[s];
    }
    let mut filled = offsets.clone();
    let mut members = vec![0u32; offsets[sentences]];
    for vertex in vertices {
        for s in &vertex.sentences {
            members[filled[*s]] = vertex.id as u32;
            filled[*s] += 1;
        }
    }
    let mut edges = Vec::new();
    let mut row = vec![0u32; vertices.len()];
    let mut met = Vec::new();
    for vertex in vertices {
        let source = vertex.id;
        for s in &vertex.sentences {
            let all = &members[offsets[*s]..offsets[s + 1]];
            let above = all.partition_point(|other| *other as usize <= source);
            for other in &all[above..] {
                if row[*other as usize] == 0 {
                    met.push(*other);
                }
                row[*other as usize] += 1;
            }
        }
        met.sort_unstable();
        for target in met.drain(..) {
            let weight = std::mem::take(&mut row[target as usize]);
            edges.push(Edge {
                source,
                target: target as usize,
                weight,
            });
        }
    }
    edges
}
