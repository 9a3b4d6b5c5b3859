//! The shape of the network, its switches, and the names of its weights.

use serde::{Deserialize, Serialize};

use super::MatcherError;
use crate::keygraph::MAX_VERTICES;

/// The four models the paper's ablation compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// The read-out of the vertex inputs alone, no GIN, one branch.
    V1,
    /// One branch with GIN, last layer's read-out.
    V2,
    /// Two branches, last layer's read-out.
    V3,
    /// Two branches, read-out of all layers side by side.
    #[default]
    V4,
}

/// How the messages of a vertex's neighbours are weighted; s is the number of shared sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeWeights {
    /// Every neighbour counts one, as in the paper's equation.
    Off,
    /// Every neighbour counts s.
    Shared,
    /// s divided by the vertex's total, so that a busy vertex does not drown itself.
    #[default]
    Normalised,
}

/// What the sum over the n keyword vertices is divided by in the read-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadoutNorm {
    /// 1: the paper's sum.
    Sum,
    /// √n.
    Root,
    /// n.
    #[default]
    Mean,
}

/// The shape and the switches of a matcher.
///
/// With n keyword vertices and the *text vertex* t, which stands for the whole text and is joined to all others:
///
/// ```text
/// x_v  = [ f_v | mean of E[w] over the words w of keyword v ]       f_v: sum of v's sentence vectors
/// x_t  = [ f_t | Σ_w tfidf_w · E[w] over the words of the text ]    E: trained word embedding
/// h⁰   = x
/// m_v  = (1+ε)·h_v + Σ_u a_vu·h_u + h_t       a: see EdgeWeights
/// m_t  = (1+ε)·h_t + c·Σ_v h_v                c: see ReadoutNorm
/// h^k  = ReLU(Norm(W₂·ReLU(Norm(W₁·m))))      Norm: over the hidden units of one vertex, with gain and shift
/// R_k  = h_t^k + c·Σ_v h_v^k
/// h_G  = [R_0 | R_1 | … | R_depth]            V2, V3: R_depth only
/// z    = ½(W_c·h_G^c + b_c) + ½(W_r·h_G^r + b_r)
/// ```
///
/// The paper is silent about the norm, the text vertex and E. The norm works on one vertex at a time, so a text's score
/// does not depend on its batch; the text vertex carries the words that no kept keyword's sentence holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatcherConfig {
    /// d, the width of a sentence vector.
    pub width: usize,
    /// K, the number of label clusters.
    pub clusters: usize,
    /// Rows of the trained word embedding; 0 leaves it out.
    pub vocabulary: usize,
    /// Width of the trained word embedding; 0 leaves it out.
    pub embedding: usize,
    /// Units of each hidden layer.
    pub hidden: usize,
    /// GIN layers of a branch.
    pub layers: usize,
    pub variant: Variant,
    pub edge_weights: EdgeWeights,
    pub readout: ReadoutNorm,
    /// Whether the branches share all layers but the last.
    pub shared_lower: bool,
    /// Whether ε is learned; fixed at 0 otherwise.
    pub learn_epsilon: bool,
    /// Whether the text vertex is there.
    pub text_vertex: bool,
    /// Whether vertex features are scaled to length 1.
    pub unit_features: bool,
    /// Share of read-out units silenced in training.
    pub dropout: f32,
    /// Keyword vertices kept, best rank first.
    pub max_vertices: usize,
}

/// A weight's name and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    pub name: String,
    pub shape: Vec<usize>,
}

impl TensorSpec {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a shape may claim at most: units of a layer, layers, rows of the embedding and of the classifiers.
const WIDEST: usize = 8192;
const DEEPEST: usize = 64;
const MOST_ROWS: usize = 1 << 24;

/// The prefix of the embedding's name; every other weight is dense.
pub(super) const EMBEDDING: &str = "embedding";

impl MatcherConfig {
    /// The fast shape (hidden 128, 2 layers, 16 vertices) without a word embedding.
    pub fn new(width: usize, clusters: usize) -> Self {
        Self {
            width,
            clusters,
            vocabulary: 0,
            embedding: 0,
            hidden: 128,
            layers: 2,
            variant: Variant::V4,
            edge_weights: EdgeWeights::default(),
            readout: ReadoutNorm::default(),
            shared_lower: true,
            learn_epsilon: true,
            text_vertex: true,
            unit_features: true,
            dropout: 0.1,
            max_vertices: 16,
        }
    }

    /// The fast shape with a trained word embedding of width 128.
    pub fn fast(width: usize, clusters: usize, vocabulary: usize) -> Self {
        Self {
            vocabulary,
            embedding: 128,
            ..Self::new(width, clusters)
        }
    }

    /// The full shape: hidden 512, 3 layers, 40 vertices.
    pub fn full(width: usize, clusters: usize, vocabulary: usize) -> Self {
        Self {
            hidden: 512,
            layers: 3,
            max_vertices: 40,
            ..Self::fast(width, clusters, vocabulary)
        }
    }

    /// Whether there is a word embedding.
    pub fn has_embedding(&self) -> bool {
        self.vocabulary > 0 && self.embedding > 0
    }

    /// Width of the word embedding as a vertex sees it.
    pub fn embedding_width(&self) -> usize {
        if self.has_embedding() { self.embedding } else { 0 }
    }

    /// Width of x.
    pub fn input_width(&self) -> usize {
        self.width + self.embedding_width()
    }

    /// GIN layers that are really there: none in V1.
    pub fn depth(&self) -> usize {
        if self.variant == Variant::V1 {
            0
        } else {
            self.layers
        }
    }

    /// One branch or two.
    pub fn branches(&self) -> usize {
        match self.variant {
            Variant::V1 | Variant::V2 => 1,
            Variant::V3 | Variant::V4 => 2,
        }
    }

    /// The names of the branches, as they prefix their weights.
    pub fn branch_names(&self) -> &'static [&'static str] {
        &["conventional", "rebalance"][..self.branches()]
    }

    /// Whether h_G holds every layer.
    pub fn reads_all_layers(&self) -> bool {
        self.variant == Variant::V4
    }

    /// Width of h^k.
    pub fn layer_width(&self, layer: usize) -> usize {
        if layer == 0 {
            self.input_width()
        } else {
            self.hidden
        }
    }

    /// Width of h_G.
    pub fn readout_width(&self) -> usize {
        if self.reads_all_layers() {
            (0..=self.depth()).map(|k| self.layer_width(k)).sum()
        } else {
            self.layer_width(self.depth())
        }
    }

    /// Rows of a text's vertex matrix: its keyword vertices and the text vertex.
    pub fn rows(&self, vertices: usize) -> usize {
        vertices + usize::from(self.text_vertex)
    }

    /// c, the factor on the keyword vertices' sum.
    pub fn readout_factor(&self, vertices: usize) -> f32 {
        match self.readout {
            ReadoutNorm::Sum => 1.0,
            ReadoutNorm::Root => 1.0 / (vertices.max(1) as f32).sqrt(),
            ReadoutNorm::Mean => 1.0 / vertices.max(1) as f32,
        }
    }

    /// The prefix of the weights of layer `layer` (from 1) of branch `branch`.
    pub fn layer_prefix(&self, branch: usize, layer: usize) -> String {
        if self.branches() == 2 && self.shared_lower && layer < self.depth() {
            format!("shared.{layer}")
        } else {
            format!("{}.{layer}", self.branch_names()[branch])
        }
    }

    /// Every dense weight, in the order checkpoints and bundles hold them. Matrices are `[out, in]`.
    pub fn dense_tensors(&self) -> Vec<TensorSpec> {
        let mut tensors: Vec<TensorSpec> = Vec::new();
        let mut push = |name: String, shape: Vec<usize>| {
            if !tensors.iter().any(|t| t.name == name) {
                tensors.push(TensorSpec { name, shape });
            }
        };
        for branch in 0..self.branches() {
            for layer in 1..=self.depth() {
                let prefix = self.layer_prefix(branch, layer);
                let hidden = self.hidden;
                push(format!("{prefix}.w1"), vec![hidden, self.layer_width(layer - 1)]);
                push(format!("{prefix}.gain1"), vec![hidden]);
                push(format!("{prefix}.shift1"), vec![hidden]);
                push(format!("{prefix}.w2"), vec![hidden, hidden]);
                push(format!("{prefix}.gain2"), vec![hidden]);
                push(format!("{prefix}.shift2"), vec![hidden]);
                push(format!("{prefix}.epsilon"), vec![1]);
            }
            let name = self.branch_names()[branch];
            push(
                format!("{name}.head.w"),
                vec![self.clusters, self.readout_width()],
            );
            push(format!("{name}.head.b"), vec![self.clusters]);
        }
        tensors
    }

    /// The word embedding, `[vocabulary, embedding]`, if there is one.
    pub fn embedding_tensor(&self) -> Option<TensorSpec> {
        self.has_embedding().then(|| TensorSpec {
            name: EMBEDDING.to_owned(),
            shape: vec![self.vocabulary, self.embedding],
        })
    }

    /// Every weight: the embedding first, then the dense ones.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        self.embedding_tensor()
            .into_iter()
            .chain(self.dense_tensors())
            .collect()
    }

    /// Whether the shape makes sense at all, and is one that a machine can lay out: a file may claim any.
    pub fn validate(&self) -> Result<(), MatcherError> {
        let bounds = [
            ("width", self.width, 1..=WIDEST, "1 to 8192"),
            ("hidden", self.hidden, 1..=WIDEST, "1 to 8192"),
            ("embedding", self.embedding, 0..=WIDEST, "0 to 8192"),
            ("layers", self.layers, 1..=DEEPEST, "1 to 64"),
            ("clusters", self.clusters, 1..=MOST_ROWS, "1 to 16777216"),
            ("vocabulary", self.vocabulary, 0..=MOST_ROWS, "0 to 16777216"),
            ("max_vertices", self.max_vertices, 1..=MAX_VERTICES, "1 to 2000"),
        ];
        for (setting, found, bound, expected) in bounds {
            if !bound.contains(&found) {
                return Err(MatcherError::Setting {
                    setting,
                    found: found.to_string(),
                    expected,
                });
            }
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(MatcherError::Setting {
                setting: "dropout",
                found: self.dropout.to_string(),
                expected: "0 up to, but not, 1",
            });
        }
        if (self.vocabulary == 0) != (self.embedding == 0) {
            return Err(MatcherError::Setting {
                setting: "embedding",
                found: format!("{} × {}", self.vocabulary, self.embedding),
                expected: "vocabulary and embedding both 0 or both positive",
            });
        }
        Ok(())
    }
}
