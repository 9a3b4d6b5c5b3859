//! The whole forward pass in two halves, so that a page can fetch the rankers it needs in between.
//!
//! [`Tagger::prepare`] reads a text: words, KeyGraph, vectors, cluster probabilities, and which clusters' rankers it takes.
//! [`Tagger::finish`] scores their labels. Between the two the caller brings the rankers, from memory or over the network.
//! The tagger owns no ranker, reads no file and starts no thread.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::encoder::{Lsa, SentenceEncoder, l2_normalise};
use super::explain::Explainer;
use super::matcher::{GraphInput, Matcher, MatcherError};
use super::names::{LabelNames, Mentions};
use super::neighbours::{self, Neighbours};
use super::ranker::ClusterRankers;
use super::reach::Reach;
use super::score::{Score, Signs, log_sigmoid, sigmoid};
use crate::api::{MatchedCluster, Tag, TagResponse};
use crate::features::{SparseVector, TfIdf};
use crate::keygraph::{self, EntityLexicon, KeyGraph};
use crate::text::Span;

/// Whether this build can run encoders and graph networks.
pub(crate) const NETWORKS: bool = cfg!(feature = "networks");

/// One label as the tagger knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TagLabel {
    pub name: String,
    /// Training documents.
    pub count: u32,
    /// ln(1/p_ℓ).
    pub log_inverse_propensity: f32,
}

/// Which clusters a text belongs to: a linear classifier on words, a graph network, or both.
#[derive(Clone, Debug)]
pub enum ClusterMatcher {
    /// One-vs-all over clusters; "labels" of these rankers are cluster numbers.
    Linear(ClusterRankers),
    Graph(Box<Matcher>),
    /// (1 − share)·linear + share·graph, in log-odds.
    Both {
        linear: ClusterRankers,
        graph: Box<Matcher>,
        share: f32,
    },
}

impl ClusterMatcher {
    /// The graph network, if it has one.
    #[inline]
    pub fn graph(&self) -> Option<&Matcher> {
        match self {
            Self::Linear(_) => None,
            // No bundle with a network is opened then; said here too, so that the code to run one is not linked.
            _ if !NETWORKS => None,
            Self::Graph(graph) | Self::Both { graph, .. } => Some(graph),
        }
    }

    /// The linear classifier, if it has one.
    pub fn linear(&self) -> Option<&ClusterRankers> {
        match self {
            Self::Graph(_) => None,
            Self::Linear(linear) | Self::Both { linear, .. } => Some(linear),
        }
    }

    /// How much the graph network counts, 0 to 1.
    pub fn graph_share(&self) -> f32 {
        match self {
            Self::Linear(_) => 0.0,
            Self::Graph(_) => 1.0,
            Self::Both { share, .. } => *share,
        }
    }

    /// Log-odds of every cluster. `graph_logits` are the network's, when there is one.
    pub fn log_odds(&self, words: &SparseVector, graph_logits: Option<Vec<f32>>) -> Vec<f32> {
        let linear = self.linear().map(|linear| linear.margins(words, &[]));
        match (linear, graph_logits) {
            (Some(mut linear), Some(graph)) => {
                let share = self.graph_share();
                for (odds, graph) in linear.iter_mut().zip(graph) {
                    *odds = (1.0 - share) * *odds + share * graph;
                }
                linear
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => Vec::new(),
        }
    }
}

/// Everything but the rankers.
pub struct Tagger {
    pub tfidf: Arc<TfIdf>,
    pub lexicon: EntityLexicon,
    pub keygraph: keygraph::Options,
    /// `None` when nothing looks at sentence vectors, or when they are computed elsewhere.
    pub encoder: Option<Box<dyn SentenceEncoder + Send + Sync>>,
    /// Width of a sentence vector; 0 when nothing looks at one.
    pub dims: usize,
    /// Sentences of a text that are encoded, from its beginning; the others count as zero vectors.
    pub encoded_sentences: u32,
    /// Whether rankers see the document's vector beside its words.
    pub rank_embedding: bool,
    /// What the document's vector is multiplied with before rankers see it.
    pub embedding_weight: f32,
    pub matcher: ClusterMatcher,
    /// Training documents to compare a text with; `None` when the score does without.
    pub neighbours: Option<Neighbours>,
    /// `None` when the score does without names.
    pub names: Option<LabelNames>,
    pub labels: Vec<TagLabel>,
    /// Names of the clusters.
    pub clusters: Vec<String>,
    pub score: Score,
    /// How much of a published model a text may ask for.
    pub reach: Reach,
}

impl std::fmt::Debug for Tagger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tagger")
            .field("labels", &self.labels.len())
            .field("clusters", &self.clusters.len())
            .field("words", &self.tfidf.len())
            .finish_non_exhaustive()
    }
}

/// What a text is before any vector is computed.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub words: SparseVector,
    /// Where each entry of `words` stands; empty unless an explanation was asked for.
    pub spans: Vec<Vec<Span>>,
    /// There when the matcher or the caller needs it.
    pub keygraph: Option<KeyGraph>,
}

/// A text ready for its rankers.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub reading: Reading,
    /// The document's vector; empty when the rankers do without.
    pub embedding: Vec<f32>,
    /// Log-odds of every cluster.
    pub cluster_log_odds: Vec<f32>,
    /// The clusters whose rankers are needed, most probable first.
    pub needed: Vec<u32>,
    /// What similar documents say, ascending by label.
    pub votes: Vec<(u32, f32)>,
    /// The words of label names that the text holds.
    pub mentions: Mentions,
    /// What the graph network saw.
    pub graph: Option<GraphInput<'static>>,
}

/// What to read for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Build the KeyGraph even if the matcher needs none.
    pub keygraph: bool,
    /// Remember where words stand.
    pub spans: bool,
}

/// What to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishOptions {
    /// Tags at most.
    pub top: usize,
    /// Evidence for each tag; needs a reading with spans and a KeyGraph.
    pub explain: bool,
    /// Whether the answer carries the KeyGraph.
    pub keygraph: bool,
}

impl Default for FinishOptions {
    fn default() -> Self {
        Self {
            top: 10,
            explain: false,
            keygraph: false,
        }
    }
}

/// A label on its way to becoming a tag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub label: u32,
    pub cluster: u32,
    /// Its place in its cluster's rankers.
    pub position: u32,
    pub margin: f32,
    /// s of [`super::score`].
    pub log_score: f32,
}

impl Tagger {
    /// Whether the sentences of a text must be encoded.
    pub fn needs_vectors(&self) -> bool {
        self.rank_embedding || self.matcher.graph().is_some()
    }

    /// How clearly a text says a label's name.
    pub fn name_sign(&self, prepared: &Prepared, label: u32) -> f32 {
        (self.names.as_ref()).map_or(0.0, |names| names.sign(&prepared.mentions, label))
    }

    /// First step: words and, where needed, the KeyGraph.
    pub fn read(&self, text: &str, options: ReadOptions) -> Reading {
        let (words, spans) = if options.spans {
            self.tfidf.transform_with_spans(text)
        } else {
            (self.tfidf.transform(text), Vec::new())
        };
        let wanted = options.keygraph || self.needs_vectors();
        let keygraph =
            wanted.then(|| KeyGraph::build(text, self.tfidf.language(), &self.lexicon, &self.keygraph));
        Reading {
            words,
            spans,
            keygraph,
        }
    }

    /// Second step, when something looks at vectors: one row a sentence of the KeyGraph.
    ///
    /// Empty when nothing does, or when the model's encoder runs elsewhere and its vectors come from the caller.
    pub fn sentence_vectors(&self, text: &str, reading: &Reading) -> Vec<f32> {
        match (&self.encoder, &reading.keygraph) {
            (Some(encoder), Some(graph)) if self.needs_vectors() => {
                let mut vectors = encoder.encode(&first_sentences(text, graph, self.encoded_sentences));
                vectors.resize(graph.sentences().len() * self.dims, 0.0);
                vectors
            }
            _ => Vec::new(),
        }
    }

    /// Third step: what the graph network sees, if there is one.
    pub fn graph_input(
        &self,
        reading: &Reading,
        sentence_vectors: &[f32],
    ) -> Result<Option<GraphInput<'static>>, MatcherError> {
        let (Some(matcher), Some(graph)) = (self.matcher.graph(), &reading.keygraph) else {
            return Ok(None);
        };
        keyword_graph(
            &self.tfidf,
            matcher.config(),
            graph,
            sentence_vectors,
            &reading.words,
        )
        .map(Some)
    }

    /// Fourth step: cluster log-odds, from the network's logits or without any.
    pub fn prepare_from(
        &self,
        reading: Reading,
        sentence_vectors: &[f32],
        graph: Option<GraphInput<'static>>,
        graph_logits: Option<Vec<f32>>,
    ) -> Prepared {
        let embedding = if self.rank_embedding {
            document_vector(sentence_vectors, self.dims, self.embedding_weight)
        } else {
            Vec::new()
        };
        let cluster_log_odds = self.matcher.log_odds(&reading.words, graph_logits);
        let needed = self.reach.within(self.score.asked(&cluster_log_odds));
        let votes = (self.neighbours.as_ref()).map_or_else(Vec::new, |all| all.votes(&reading.words));
        let mentions =
            (self.names.as_ref()).map_or_else(Mentions::default, |names| names.mentions(&reading.words));
        Prepared {
            reading,
            embedding,
            cluster_log_odds,
            needed,
            votes,
            mentions,
            graph,
        }
    }

    /// The first half: everything up to the choice of clusters.
    pub fn prepare(&self, text: &str, options: ReadOptions) -> Result<Prepared, MatcherError> {
        let reading = self.read(text, options);
        let vectors = self.sentence_vectors(text, &reading);
        self.prepare_with_vectors(reading, &vectors)
    }

    /// [`Self::prepare`] for a reading whose sentences were encoded elsewhere.
    pub fn prepare_with_vectors(&self, reading: Reading, vectors: &[f32]) -> Result<Prepared, MatcherError> {
        self.prepare_with_network(reading, vectors, Matcher::forward)
    }

    /// [`Self::prepare_with_vectors`] with the graph network's logits computed by `network`, if there is one.
    pub fn prepare_with_network(
        &self,
        reading: Reading,
        vectors: &[f32],
        network: impl FnOnce(&Matcher, &GraphInput<'_>) -> Result<Vec<f32>, MatcherError>,
    ) -> Result<Prepared, MatcherError> {
        let graph = self.graph_input(&reading, vectors)?;
        let logits = match (self.matcher.graph(), &graph) {
            (Some(matcher), Some(graph)) => Some(network(matcher, graph)?),
            _ => None,
        };
        Ok(self.prepare_from(reading, vectors, graph, logits))
    }

    /// The labels of the needed clusters with their scores, best first, at most `top`.
    ///
    /// Clusters without rankers are left out; [`Self::finish`] names them.
    pub fn candidates<'r>(
        &self,
        prepared: &Prepared,
        rankers: impl Fn(u32) -> Option<&'r ClusterRankers>,
        top: usize,
    ) -> Vec<Candidate> {
        let mut found = Vec::new();
        for &cluster in &prepared.needed {
            let Some(rankers) = rankers(cluster) else { continue };
            let log_cluster = log_sigmoid(prepared.cluster_log_odds[cluster as usize]);
            let margins = rankers.margins(&prepared.reading.words, &prepared.embedding);
            for (position, (&label, margin)) in rankers.labels().iter().zip(margins).enumerate() {
                let log_score = self.score.log_score(Signs {
                    log_cluster,
                    margin,
                    neighbours: neighbours::lift(neighbours::vote_of(&prepared.votes, label)),
                    name: self.name_sign(prepared, label),
                    log_inverse_propensity: self.labels[label as usize].log_inverse_propensity,
                });
                found.push(Candidate {
                    label,
                    cluster,
                    position: position as u32,
                    margin,
                    log_score,
                });
            }
        }
        let better =
            |a: &Candidate, b: &Candidate| b.log_score.total_cmp(&a.log_score).then(a.label.cmp(&b.label));
        if found.len() > top && top > 0 {
            found.select_nth_unstable_by(top - 1, better);
        }
        found.truncate(top);
        found.sort_unstable_by(better);
        found
    }

    /// The second half: tags, best first.
    pub fn finish<'r>(
        &self,
        prepared: &Prepared,
        rankers: impl Fn(u32) -> Option<&'r ClusterRankers>,
        options: FinishOptions,
    ) -> TagResponse {
        let candidates = self.candidates(prepared, &rankers, options.top);
        let mut explainer = options.explain.then(|| Explainer::new(self, prepared));
        let tags = candidates.into_iter().map(|candidate| {
            let evidence = (explainer.as_mut().zip(rankers(candidate.cluster)))
                .map(|(explainer, rankers)| explainer.evidence(rankers, &candidate));
            Tag {
                label: candidate.label,
                name: self.labels[candidate.label as usize].name.clone(),
                score: self.score.calibration.probability(candidate.log_score),
                cluster: candidate.cluster,
                evidence,
            }
        });
        TagResponse {
            tags: tags.collect(),
            clusters: prepared
                .needed
                .iter()
                .map(|&cluster| MatchedCluster {
                    cluster,
                    name: self.clusters.get(cluster as usize).cloned().unwrap_or_default(),
                    probability: sigmoid(prepared.cluster_log_odds[cluster as usize]),
                })
                .collect(),
            cutoff: self.score.cutoff,
            missing_clusters: prepared
                .needed
                .iter()
                .copied()
                .filter(|&c| rankers(c).is_none())
                .collect(),
            keygraph: if options.keygraph {
                prepared.reading.keygraph.clone()
            } else {
                None
            },
        }
    }
}

/// `lsa` as a sentence encoder: the model's own vocabulary, then the projection.
#[derive(Debug)]
pub struct LsaSentences {
    tfidf: Arc<TfIdf>,
    lsa: Lsa,
}

impl LsaSentences {
    /// Projects sentences over `tfidf`'s terms.
    pub fn new(tfidf: Arc<TfIdf>, lsa: Lsa) -> Self {
        Self { tfidf, lsa }
    }
}

impl SentenceEncoder for LsaSentences {
    fn dims(&self) -> usize {
        self.lsa.dims()
    }

    fn encode(&self, sentences: &[&str]) -> Vec<f32> {
        let mut vectors = vec![0.0; sentences.len() * self.lsa.dims()];
        for (sentence, vector) in sentences
            .iter()
            .zip(vectors.chunks_exact_mut(self.lsa.dims().max(1)))
        {
            self.lsa.project(&self.tfidf.transform_part(sentence), vector);
        }
        vectors
    }
}

/// What the graph network sees of a text: training and tagging lay it out with the same call.
pub fn keyword_graph(
    tfidf: &TfIdf,
    config: &super::matcher::MatcherConfig,
    graph: &KeyGraph,
    sentence_vectors: &[f32],
    words: &SparseVector,
) -> Result<GraphInput<'static>, MatcherError> {
    GraphInput::from_keygraph(graph, sentence_vectors, config, words, |keyword, rows| {
        rows.extend(tfidf.transform_part(keyword).indices);
    })
}

/// The texts of the first sentences of a KeyGraph, at most `most`.
pub fn first_sentences<'t>(text: &'t str, graph: &KeyGraph, most: u32) -> Vec<&'t str> {
    let sentences = graph.sentences().iter().take(most as usize);
    sentences.map(|s| &text[s.start..s.end]).collect()
}

/// The document's vector: the sum of its sentences' vectors, brought to length `weight`.
pub fn document_vector(sentence_vectors: &[f32], dims: usize, weight: f32) -> Vec<f32> {
    let mut sum = vec![0.0; dims];
    if dims > 0 {
        for sentence in sentence_vectors.chunks_exact(dims) {
            for (total, value) in sum.iter_mut().zip(sentence) {
                *total += value;
            }
        }
        l2_normalise(&mut sum);
        for value in &mut sum {
            *value *= weight;
        }
    }
    sum
}
