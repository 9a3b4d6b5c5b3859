//! The forward pass: equations in [`MatcherConfig`].

use super::linear::matmul;
use super::weights::in_order;
use super::{GraphInput, MatcherConfig, MatcherError, NORM_EPSILON, NamedTensor};

/// A trained matcher, ready to score texts.
#[derive(Clone, Debug)]
pub struct Matcher {
    config: MatcherConfig,
    embedding: Vec<f32>,
    blocks: Vec<Block>,
    branches: Vec<Branch>,
}

/// The MLP of one GIN layer; matrices are stored `[in, out]` for the product.
#[derive(Clone, Debug)]
struct Block {
    name: String,
    inputs: usize,
    w1: Vec<f32>,
    gain1: Vec<f32>,
    shift1: Vec<f32>,
    w2: Vec<f32>,
    gain2: Vec<f32>,
    shift2: Vec<f32>,
    epsilon: f32,
}

#[derive(Clone, Debug)]
struct Branch {
    /// Indices into `blocks`, layer 1 first.
    layers: Vec<usize>,
    /// `[clusters, readout]`.
    head: Vec<f32>,
    bias: Vec<f32>,
}

/// A text after everything that leaving a vertex out does not change.
struct Projected {
    /// x, rows × input width.
    x: Vec<f32>,
    /// W₁·x of every distinct first layer, rows × hidden.
    first: Vec<(usize, Vec<f32>)>,
}

impl Matcher {
    /// Takes the weights [`MatcherConfig::tensors`] names, in any order.
    pub fn new(config: MatcherConfig, tensors: Vec<NamedTensor>) -> Result<Self, MatcherError> {
        let mut tensors = in_order(&config, tensors)?;
        let embedding = if config.has_embedding() {
            tensors.remove(0).data
        } else {
            Vec::new()
        };
        let find = |name: &str| {
            tensors
                .iter()
                .find(|t| t.name == name)
                .map(|t| t.data.clone())
                .unwrap_or_default()
        };
        let mut blocks: Vec<Block> = Vec::new();
        let mut branches = Vec::new();
        for branch in 0..config.branches() {
            let mut layers = Vec::new();
            for layer in 1..=config.depth() {
                let name = config.layer_prefix(branch, layer);
                let known = blocks.iter().position(|b| b.name == name);
                layers.push(known.unwrap_or(blocks.len()));
                if known.is_none() {
                    let part = |suffix: &str| find(&format!("{name}.{suffix}"));
                    let inputs = config.layer_width(layer - 1);
                    blocks.push(Block {
                        inputs,
                        w1: transposed(&part("w1"), config.hidden, inputs),
                        gain1: part("gain1"),
                        shift1: part("shift1"),
                        w2: transposed(&part("w2"), config.hidden, config.hidden),
                        gain2: part("gain2"),
                        shift2: part("shift2"),
                        epsilon: part("epsilon")[0],
                        name,
                    });
                }
            }
            let name = config.branch_names()[branch];
            branches.push(Branch {
                layers,
                head: find(&format!("{name}.head.w")),
                bias: find(&format!("{name}.head.b")),
            });
        }
        Ok(Self {
            config,
            embedding,
            blocks,
            branches,
        })
    }

    /// The shape and the switches.
    pub fn config(&self) -> &MatcherConfig {
        &self.config
    }

    /// Every weight under its name, `[out, in]`, in the order of [`MatcherConfig::tensors`].
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let hidden = self.config.hidden;
        let value = |name: &str| -> Vec<f32> {
            if name == super::config::EMBEDDING {
                return self.embedding.clone();
            }
            for (branch, prefix) in self.branches.iter().zip(self.config.branch_names()) {
                if name.strip_prefix(prefix) == Some(".head.w") {
                    return branch.head.clone();
                }
                if name.strip_prefix(prefix) == Some(".head.b") {
                    return branch.bias.clone();
                }
            }
            let (block, part) = name
                .rsplit_once('.')
                .expect("layer weights are named prefix.part");
            let block = self
                .blocks
                .iter()
                .find(|b| b.name == block)
                .expect("every layer has its block");
            match part {
                "w1" => transposed(&block.w1, block.inputs, hidden),
                "gain1" => block.gain1.clone(),
                "shift1" => block.shift1.clone(),
                "w2" => transposed(&block.w2, hidden, hidden),
                "gain2" => block.gain2.clone(),
                "shift2" => block.shift2.clone(),
                _ => vec![block.epsilon],
            }
        };
        let specs = self.config.tensors().into_iter();
        specs
            .map(|s| NamedTensor {
                data: value(&s.name),
                name: s.name,
                shape: s.shape,
            })
            .collect()
    }

    /// z: one logit a cluster, α = 0.5.
    pub fn forward(&self, graph: &GraphInput<'_>) -> Result<Vec<f32>, MatcherError> {
        graph.check(&self.config)?;
        Ok(self.logits(graph, &self.project(graph)))
    }

    /// z with vertex `vertex` left out of the graph.
    pub fn forward_without(&self, graph: &GraphInput<'_>, vertex: usize) -> Result<Vec<f32>, MatcherError> {
        graph.check(&self.config)?;
        if vertex >= graph.vertices {
            return Err(MatcherError::Graph {
                what: "vertex to leave out, below the vertex count",
                found: vertex,
                expected: graph.vertices,
            });
        }
        let projected = self.project(graph);
        Ok(self.logits(&graph.without(vertex), &projected.without(vertex, &self.config)))
    }

    /// z with each vertex left out in turn. The first layer's product, the costliest, is computed once for all.
    pub fn forward_without_each(&self, graph: &GraphInput<'_>) -> Result<Vec<Vec<f32>>, MatcherError> {
        graph.check(&self.config)?;
        let projected = self.project(graph);
        let each = |v| self.logits(&graph.without(v), &projected.without(v, &self.config));
        Ok((0..graph.vertices).map(each).collect())
    }

    /// x and W₁·x.
    fn project(&self, graph: &GraphInput<'_>) -> Projected {
        let (config, n) = (&self.config, graph.vertices);
        let (d, e, width) = (config.width, config.embedding_width(), config.input_width());
        let rows = config.rows(n);
        let mut x = vec![0.0; rows * width];
        for (row, out) in x.chunks_exact_mut(width).enumerate() {
            let (features, embedded) = out.split_at_mut(d);
            features.copy_from_slice(&graph.features[row * d..(row + 1) * d]);
            if e == 0 {
                continue;
            }
            if row == n {
                for (&word, &weight) in graph.words.iter().zip(graph.word_weights.iter()) {
                    add_scaled(embedded, &self.embedding[word as usize * e..][..e], weight);
                }
            } else {
                let words = &graph.keywords
                    [graph.keyword_offsets[row] as usize..graph.keyword_offsets[row + 1] as usize];
                let share = 1.0 / words.len().max(1) as f32;
                for &word in words {
                    add_scaled(embedded, &self.embedding[word as usize * e..][..e], share);
                }
            }
        }
        let mut first: Vec<(usize, Vec<f32>)> = Vec::new();
        for branch in &self.branches {
            if let Some(&block) = branch.layers.first()
                && first.iter().all(|(b, _)| *b != block)
            {
                let mut product = vec![0.0; rows * config.hidden];
                matmul(
                    &x,
                    rows,
                    width,
                    &self.blocks[block].w1,
                    config.hidden,
                    &mut product,
                );
                first.push((block, product));
            }
        }
        Projected { x, first }
    }

    fn logits(&self, graph: &GraphInput<'_>, projected: &Projected) -> Vec<f32> {
        let config = &self.config;
        let weights = graph.message_weights(config.edge_weights);
        let mut logits = vec![0.0; config.clusters];
        let share = 1.0 / self.branches.len() as f32;
        // The layers both branches share are computed once: (block, its output) of the first branch.
        let mut computed: Vec<(usize, Vec<f32>)> = Vec::new();
        for branch in &self.branches {
            let mut readout = Vec::with_capacity(config.readout_width());
            if config.reads_all_layers() || branch.layers.is_empty() {
                read_out(
                    config,
                    graph.vertices,
                    &projected.x,
                    config.input_width(),
                    &mut readout,
                );
            }
            let mut h: Vec<f32> = Vec::new();
            for (k, &layer) in branch.layers.iter().enumerate() {
                if let Some((_, output)) = computed.iter().find(|(b, _)| *b == layer) {
                    h.clone_from(output);
                } else {
                    let product = if k == 0 {
                        let (_, product) = projected
                            .first
                            .iter()
                            .find(|(b, _)| *b == layer)
                            .expect("projected above");
                        product.clone()
                    } else {
                        let rows = config.rows(graph.vertices);
                        let mut product = vec![0.0; rows * config.hidden];
                        matmul(
                            &h,
                            rows,
                            config.hidden,
                            &self.blocks[layer].w1,
                            config.hidden,
                            &mut product,
                        );
                        product
                    };
                    h = self.blocks[layer].after_projection(config, graph, &weights, &product);
                    computed.push((layer, h.clone()));
                }
                if config.reads_all_layers() || k + 1 == branch.layers.len() {
                    read_out(config, graph.vertices, &h, config.hidden, &mut readout);
                }
            }
            for (k, logit) in logits.iter_mut().enumerate() {
                let row = &branch.head[k * readout.len()..(k + 1) * readout.len()];
                *logit += share * (dot(row, &readout) + branch.bias[k]);
            }
        }
        logits
    }
}

impl Projected {
    fn without(&self, vertex: usize, config: &MatcherConfig) -> Self {
        let drop_row = |rows: &[f32], width: usize| {
            let mut rows = rows.to_vec();
            rows.drain(vertex * width..(vertex + 1) * width);
            rows
        };
        Self {
            x: drop_row(&self.x, config.input_width()),
            first: self
                .first
                .iter()
                .map(|(b, p)| (*b, drop_row(p, config.hidden)))
                .collect(),
        }
    }
}

impl Block {
    /// h^k from p = W₁·h^{k-1}: the sum over neighbours commutes with the product, and p is the narrower of the two.
    fn after_projection(
        &self,
        config: &MatcherConfig,
        graph: &GraphInput<'_>,
        weights: &[f32],
        p: &[f32],
    ) -> Vec<f32> {
        let (n, hidden) = (graph.vertices, config.hidden);
        let rows = config.rows(n);
        let mut m = vec![0.0; rows * hidden];
        for (v, out) in m.chunks_exact_mut(hidden).enumerate() {
            add_scaled(out, &p[v * hidden..(v + 1) * hidden], 1.0 + self.epsilon);
            if v == n {
                let factor = config.readout_factor(n);
                for u in 0..n {
                    add_scaled(out, &p[u * hidden..(u + 1) * hidden], factor);
                }
            } else {
                for e in graph.offsets[v] as usize..graph.offsets[v + 1] as usize {
                    let u = graph.neighbours[e] as usize;
                    add_scaled(out, &p[u * hidden..(u + 1) * hidden], weights[e]);
                }
                if config.text_vertex {
                    add_scaled(out, &p[n * hidden..], 1.0);
                }
            }
            norm_relu(out, &self.gain1, &self.shift1);
        }
        let mut h = vec![0.0; rows * hidden];
        matmul(&m, rows, hidden, &self.w2, hidden, &mut h);
        for row in h.chunks_exact_mut(hidden) {
            norm_relu(row, &self.gain2, &self.shift2);
        }
        h
    }
}

/// R_k = h_t + c·Σ_v h_v.
fn read_out(config: &MatcherConfig, n: usize, h: &[f32], width: usize, out: &mut Vec<f32>) {
    let start = out.len();
    out.resize(start + width, 0.0);
    let sum = &mut out[start..];
    let factor = config.readout_factor(n);
    for (v, row) in h.chunks_exact(width).enumerate() {
        add_scaled(sum, row, if v == n { 1.0 } else { factor });
    }
}

/// ReLU(gain·(x − mean)/√(variance + ε) + shift), in place.
fn norm_relu(x: &mut [f32], gain: &[f32], shift: &[f32]) {
    let count = x.len() as f32;
    let mean = x.iter().sum::<f32>() / count;
    let variance = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / count;
    let scale = 1.0 / (variance + NORM_EPSILON).sqrt();
    for ((v, g), s) in x.iter_mut().zip(gain).zip(shift) {
        *v = ((*v - mean) * scale * g + s).max(0.0);
    }
}

fn add_scaled(out: &mut [f32], x: &[f32], factor: f32) {
    for (o, v) in out.iter_mut().zip(x) {
        *o += factor * v;
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0f32; LANES];
    let (head, tail) = a.split_at(a.len() - a.len() % LANES);
    for (x, y) in head.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for i in 0..LANES {
            sums[i] += x[i] * y[i];
        }
    }
    let rest: f32 = tail.iter().zip(&b[head.len()..]).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

fn transposed(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut out = vec![0.0; matrix.len()];
    for r in 0..rows {
        for c in 0..columns {
            out[c * rows + r] = matrix[r * columns + c];
        }
    }
    out
}

/// σ of every logit.
pub fn probabilities(logits: &[f32]) -> Vec<f32> {
    logits.iter().map(|z| 1.0 / (1.0 + (-z).exp())).collect()
}

/// The `top` clusters of highest logit with their probabilities, most probable first, ties by number.
pub fn top_clusters(logits: &[f32], top: usize) -> Vec<(u32, f32)> {
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    let better = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    if top < order.len() {
        order.select_nth_unstable_by(top, better);
        order.truncate(top);
    }
    order.sort_unstable_by(better);
    order
        .into_iter()
        .map(|k| (k, 1.0 / (1.0 + (-logits[k as usize]).exp())))
        .collect()
}
