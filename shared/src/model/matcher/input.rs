//! What the network sees of one text: its KeyGraph cut to size, with features.

use std::borrow::Cow;

use super::{EdgeWeights, MatcherConfig, MatcherError};
use crate::features::SparseVector;
use crate::keygraph::{KeyGraph, VertexKind};

/// In [`GraphInput::origin`]: the vertex that took in the sentences of vertices beyond the limit.
pub const LEFT_OVER: u32 = u32::MAX;

/// One text for the matcher. Borrowed from a memory-mapped file in training, owned in the browser.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphInput<'a> {
    /// n, the number of keyword vertices.
    pub vertices: usize,
    /// f, row-major `(n + 1) × d`; the last row is the text vertex.
    pub features: Cow<'a, [f32]>,
    /// Row offsets of the neighbour lists, n + 1 of them.
    pub offsets: Cow<'a, [u32]>,
    /// Neighbours of each vertex, ascending; every edge stands in both its ends' lists.
    pub neighbours: Cow<'a, [u32]>,
    /// Sentences shared along each of `neighbours`.
    pub shared: Cow<'a, [f32]>,
    /// Row offsets of the keyword lists, n + 1 of them.
    pub keyword_offsets: Cow<'a, [u32]>,
    /// Embedding rows of the words of each vertex's keyword.
    pub keywords: Cow<'a, [u32]>,
    /// Embedding rows of the words of the whole text.
    pub words: Cow<'a, [u32]>,
    /// Their weights, usually TF-IDF of length 1.
    pub word_weights: Cow<'a, [f32]>,
    /// The KeyGraph vertex each vertex came from, or [`LEFT_OVER`].
    pub origin: Cow<'a, [u32]>,
}

impl GraphInput<'static> {
    /// A text without anything in it.
    pub fn empty(width: usize) -> Self {
        Self {
            vertices: 0,
            features: vec![0.0; width].into(),
            offsets: vec![0].into(),
            neighbours: Cow::default(),
            shared: Cow::default(),
            keyword_offsets: vec![0].into(),
            keywords: Cow::default(),
            words: Cow::default(),
            word_weights: Cow::default(),
            origin: Cow::default(),
        }
    }

    /// Cuts a KeyGraph to the configuration's size and lays out its features.
    ///
    /// The `max_vertices` vertices of best rank stay, in the order of the KeyGraph. A sentence that no kept vertex holds goes to the empty
    /// vertex, which is made if the KeyGraph had none. `sentence_vectors` is row-major, one row of `config.width` a sentence. `lookup` pushes the embedding rows of a keyword's words; rows
    /// outside the vocabulary, there and in `words`, are left out.
    pub fn from_keygraph(
        graph: &KeyGraph,
        sentence_vectors: &[f32],
        config: &MatcherConfig,
        words: &SparseVector,
        mut lookup: impl FnMut(&str, &mut Vec<u32>),
    ) -> Result<Self, MatcherError> {
        let d = config.width;
        let sentences = graph.sentences().len();
        if sentence_vectors.len() != sentences * d {
            return Err(MatcherError::Graph {
                what: "values of the sentence vectors (sentences × width)",
                found: sentence_vectors.len(),
                expected: sentences * d,
            });
        }
        let kept = kept_vertices(graph, config.max_vertices);
        let n = kept.len();

        let mut features = vec![0.0; (n + 1) * d];
        let mut add = |row: usize, sentence: usize| {
            let vector = &sentence_vectors[sentence * d..(sentence + 1) * d];
            for (sum, value) in features[row * d..(row + 1) * d].iter_mut().zip(vector) {
                *sum += value;
            }
        };
        for (row, vertex) in kept.iter().enumerate() {
            for &sentence in &vertex.sentences {
                add(row, sentence);
            }
        }
        for sentence in 0..sentences {
            add(n, sentence);
        }
        if config.unit_features {
            for row in features.chunks_exact_mut(d) {
                scale_to_unit(row);
            }
        }

        let (offsets, neighbours, shared) = neighbour_lists(graph, &kept);
        let known = |row: u32| (row as usize) < config.vocabulary;
        let mut keyword_offsets = vec![0u32];
        let mut keywords = Vec::new();
        let mut rows = Vec::new();
        for vertex in &kept {
            rows.clear();
            if let Some(id) = vertex.keyword {
                lookup(&graph.vertices()[id].text, &mut rows);
            }
            rows.retain(|&row| known(row));
            keywords.extend_from_slice(&rows);
            keyword_offsets.push(keywords.len() as u32);
        }
        let (words, word_weights): (Vec<u32>, Vec<f32>) = words.iter().filter(|&(row, _)| known(row)).unzip();
        Ok(Self {
            vertices: n,
            features: features.into(),
            offsets: offsets.into(),
            neighbours: neighbours.into(),
            shared: shared.into(),
            keyword_offsets: keyword_offsets.into(),
            keywords: keywords.into(),
            words: words.into(),
            word_weights: word_weights.into(),
            origin: kept.iter().map(|v| v.origin).collect::<Vec<_>>().into(),
        })
    }
}

impl GraphInput<'_> {
    /// a: the weight of each neighbour's message.
    pub fn message_weights(&self, edge_weights: EdgeWeights) -> Vec<f32> {
        let mut weights = Vec::with_capacity(self.neighbours.len());
        for v in 0..self.vertices {
            let shared = &self.shared[self.offsets[v] as usize..self.offsets[v + 1] as usize];
            let total: f32 = shared.iter().sum();
            weights.extend(shared.iter().map(|&s| match edge_weights {
                EdgeWeights::Off => 1.0,
                EdgeWeights::Shared => s,
                EdgeWeights::Normalised => s / total,
            }));
        }
        weights
    }

    /// The same text with vertex `left_out` and its edges taken away; its sentences stay in the text vertex.
    pub fn without(&self, left_out: usize) -> GraphInput<'static> {
        let n = self.vertices;
        let d = self.features.len() / (n + 1);
        let mut features = self.features.to_vec();
        features.drain(left_out * d..(left_out + 1) * d);
        let (mut offsets, mut neighbours, mut shared) = (vec![0u32], Vec::new(), Vec::new());
        let (mut keyword_offsets, mut keywords) = (vec![0u32], Vec::new());
        for v in (0..n).filter(|&v| v != left_out) {
            for e in self.offsets[v] as usize..self.offsets[v + 1] as usize {
                let u = self.neighbours[e];
                if u as usize != left_out {
                    neighbours.push(u - u32::from(u as usize > left_out));
                    shared.push(self.shared[e]);
                }
            }
            offsets.push(neighbours.len() as u32);
            let range = self.keyword_offsets[v] as usize..self.keyword_offsets[v + 1] as usize;
            keywords.extend_from_slice(&self.keywords[range]);
            keyword_offsets.push(keywords.len() as u32);
        }
        let mut origin = self.origin.to_vec();
        origin.remove(left_out);
        GraphInput {
            vertices: n - 1,
            features: features.into(),
            offsets: offsets.into(),
            neighbours: neighbours.into(),
            shared: shared.into(),
            keyword_offsets: keyword_offsets.into(),
            keywords: keywords.into(),
            words: self.words.to_vec().into(),
            word_weights: self.word_weights.to_vec().into(),
            origin: origin.into(),
        }
    }

    /// Checks every length and index against the configuration, so that the forward pass cannot run out of a slice.
    pub fn check(&self, config: &MatcherConfig) -> Result<(), MatcherError> {
        let n = self.vertices;
        let lengths = [
            ("feature values", self.features.len(), (n + 1) * config.width),
            ("neighbour list offsets", self.offsets.len(), n + 1),
            ("keyword list offsets", self.keyword_offsets.len(), n + 1),
            ("shared sentence counts", self.shared.len(), self.neighbours.len()),
            ("word weights", self.word_weights.len(), self.words.len()),
            ("vertex origins", self.origin.len(), n),
        ];
        for (what, found, expected) in lengths {
            if found != expected {
                return Err(MatcherError::Graph {
                    what,
                    found,
                    expected,
                });
            }
        }
        let rising = |offsets: &[u32], end: usize| {
            offsets[0] == 0 && offsets[n] as usize == end && offsets.windows(2).all(|w| w[0] <= w[1])
        };
        if !rising(&self.offsets, self.neighbours.len()) {
            return Err(MatcherError::Graph {
                what: "last neighbour offset, offsets rising from 0",
                found: self.offsets[n] as usize,
                expected: self.neighbours.len(),
            });
        }
        if !rising(&self.keyword_offsets, self.keywords.len()) {
            return Err(MatcherError::Graph {
                what: "last keyword offset, offsets rising from 0",
                found: self.keyword_offsets[n] as usize,
                expected: self.keywords.len(),
            });
        }
        if let Some(&u) = self.neighbours.iter().find(|&&u| u as usize >= n) {
            return Err(MatcherError::Graph {
                what: "neighbour, below the vertex count",
                found: u as usize,
                expected: n,
            });
        }
        if config.has_embedding()
            && let Some(&row) = self
                .words
                .iter()
                .chain(self.keywords.iter())
                .find(|&&row| row as usize >= config.vocabulary)
        {
            return Err(MatcherError::Graph {
                what: "embedding row, below the vocabulary size",
                found: row as usize,
                expected: config.vocabulary,
            });
        }
        Ok(())
    }
}

struct Kept {
    /// The KeyGraph vertex whose text is the keyword.
    keyword: Option<usize>,
    origin: u32,
    sentences: Vec<usize>,
}

fn kept_vertices(graph: &KeyGraph, limit: usize) -> Vec<Kept> {
    let empty = graph.vertices().iter().position(|v| v.kind == VertexKind::Empty);
    let mut best: Vec<usize> = (0..graph.vertices().len())
        .filter(|&v| Some(v) != empty)
        .collect();
    best.sort_by(|&a, &b| {
        graph.vertices()[b]
            .rank
            .total_cmp(&graph.vertices()[a].rank)
            .then(a.cmp(&b))
    });
    let all = best.len() + usize::from(empty.is_some()) <= limit;
    if !all {
        best.truncate(limit - 1);
    }
    best.sort_unstable();
    let mut held = vec![false; graph.sentences().len()];
    for &v in &best {
        for &sentence in &graph.vertices()[v].sentences {
            held[sentence] = true;
        }
    }
    let mut kept: Vec<Kept> = best
        .into_iter()
        .map(|v| Kept {
            keyword: Some(v),
            origin: v as u32,
            sentences: graph.vertices()[v].sentences.clone(),
        })
        .collect();
    let homeless: Vec<usize> = (0..held.len()).filter(|&s| !held[s]).collect();
    if !homeless.is_empty() {
        kept.push(Kept {
            keyword: None,
            origin: empty.map_or(LEFT_OVER, |v| v as u32),
            sentences: homeless,
        });
    }
    kept
}

fn neighbour_lists(graph: &KeyGraph, kept: &[Kept]) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
    let mut place = vec![None; graph.vertices().len()];
    for (row, vertex) in kept.iter().enumerate() {
        if let Some(id) = vertex.keyword {
            place[id] = Some(row);
        }
    }
    let mut lists: Vec<Vec<(u32, f32)>> = vec![Vec::new(); kept.len()];
    for edge in graph.edges() {
        if let (Some(a), Some(b)) = (place[edge.source], place[edge.target]) {
            lists[a].push((b as u32, edge.weight as f32));
            lists[b].push((a as u32, edge.weight as f32));
        }
    }
    let (mut offsets, mut neighbours, mut shared) = (vec![0u32], Vec::new(), Vec::new());
    for list in &mut lists {
        list.sort_unstable_by_key(|&(u, _)| u);
        neighbours.extend(list.iter().map(|&(u, _)| u));
        shared.extend(list.iter().map(|&(_, s)| s));
        offsets.push(neighbours.len() as u32);
    }
    (offsets, neighbours, shared)
}

fn scale_to_unit(row: &mut [f32]) {
    let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
    if norm > 0.0 {
        for x in row {
            *x /= norm;
        }
    }
}
