//! The graph matcher of `gnnxml_shared::model::matcher` as one submission a document.

use std::sync::Arc;

use gnnxml_shared::model::matcher::{GraphInput, Matcher, MatcherConfig, NORM_EPSILON, NamedTensor};

use crate::device::Scopes;
use crate::narrow::Narrow;
use crate::operations::{Activation, Heads, Lists, Vertices};
use crate::recording::{Recording, View};
use crate::weights::Matrix;
use crate::{Gpu, GpuError, Report};

/// A matcher's weights on a GPU.
#[derive(Debug)]
pub struct GpuMatcher {
    gpu: Arc<Gpu>,
    config: MatcherConfig,
    embedding: Option<Matrix>,
    blocks: Vec<Block>,
    /// Of each branch: its layers, as places in `blocks`.
    branches: Vec<Vec<usize>>,
    heads: Heads,
}

/// What a text is to the matcher.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched {
    /// z of every cluster.
    pub logits: Vec<f32>,
    /// The clusters asked for, most probable first, with their logits.
    pub top: Vec<(u32, f32)>,
    pub report: Report,
}

#[derive(Debug)]
struct Block {
    name: String,
    first: Matrix,
    first_norm: (View, View),
    second: Matrix,
    second_norm: (View, View),
    epsilon: f32,
}

/// Where a layer's numbers come from: the input, or a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Input,
    Block(usize),
}

impl GpuMatcher {
    /// Brings a matcher's weights to the GPU: as the bytes they were published in, or in half precision.
    pub async fn new(gpu: Arc<Gpu>, matcher: &Matcher) -> Result<Self, GpuError> {
        let config = matcher.config().clone();
        let tensors = matcher.tensors();
        let scopes = Scopes::open(&gpu.device);
        let built = Self::build(gpu.clone(), config, &tensors);
        scopes.close().await?;
        built
    }

    fn build(gpu: Arc<Gpu>, config: MatcherConfig, tensors: &[NamedTensor]) -> Result<Self, GpuError> {
        let find = |name: &str| {
            let found = tensors.iter().find(|tensor| tensor.name == name);
            found.map(|tensor| tensor.data.as_slice()).unwrap_or_default()
        };
        let vector = |name: &str| -> Result<View, GpuError> {
            let numbers = bytemuck::cast_slice(find(name));
            Ok(View::Stored(gpu.store("a norm of the matcher", numbers)?))
        };
        let embedding = config
            .embedding_tensor()
            .map(|spec| {
                Matrix::store(
                    &gpu,
                    "the matcher's word embedding",
                    find(&spec.name),
                    config.embedding,
                )
            })
            .transpose()?;
        let mut blocks: Vec<Block> = Vec::new();
        let mut branches = Vec::new();
        for branch in 0..config.branches() {
            let mut layers = Vec::new();
            for layer in 1..=config.depth() {
                let name = config.layer_prefix(branch, layer);
                if let Some(known) = blocks.iter().position(|block| block.name == name) {
                    layers.push(known);
                    continue;
                }
                layers.push(blocks.len());
                let part = |suffix: &str| format!("{name}.{suffix}");
                let what = "a layer of the matcher";
                blocks.push(Block {
                    first: Matrix::store(&gpu, what, find(&part("w1")), config.layer_width(layer - 1))?,
                    first_norm: (vector(&part("gain1"))?, vector(&part("shift1"))?),
                    second: Matrix::store(&gpu, what, find(&part("w2")), config.hidden)?,
                    second_norm: (vector(&part("gain2"))?, vector(&part("shift2"))?),
                    epsilon: find(&part("epsilon")).first().copied().unwrap_or(0.0),
                    name,
                });
            }
            branches.push(layers);
        }
        let heads: Vec<(&[f32], &[f32])> = (config.branch_names().iter())
            .map(|name| (find(&format!("{name}.head.w")), find(&format!("{name}.head.b"))))
            .collect();
        let heads = store_heads(&gpu, &heads, config.readout_width())?;
        Ok(Self {
            gpu,
            config,
            embedding,
            blocks,
            branches,
            heads,
        })
    }

    /// z of every cluster and the `top` most probable ones: one upload, one submission, one read-back.
    pub async fn forward(&self, graph: &GraphInput<'_>, top: usize) -> Result<Matched, GpuError> {
        graph.check(&self.config)?;
        let mut recording = Recording::default();
        let logits = self.record(&mut recording, graph);
        recording.download(&logits);
        let top = top.min(self.config.clusters);
        if top > 0 {
            let best = recording.top_k(&logits, self.config.clusters, top);
            recording.download(&best);
        }
        let (answers, report) = self.gpu.run(recording).await?;
        let words = |index: usize| {
            answers
                .get(index)
                .map(|bytes| words_of(bytes))
                .unwrap_or_default()
        };
        let mut logits: Vec<f32> = words(0).into_iter().map(f32::from_bits).collect();
        logits.truncate(self.config.clusters);
        let top = words(1)
            .chunks_exact(2)
            .take(top)
            .map(|pair| (pair[0], f32::from_bits(pair[1])))
            .collect();
        Ok(Matched { logits, top, report })
    }

    fn record(&self, recording: &mut Recording, graph: &GraphInput<'_>) -> View {
        let config = &self.config;
        let vertices = Vertices {
            keywords: graph.vertices,
            rows: config.rows(graph.vertices),
            factor: config.readout_factor(graph.vertices),
        };
        let neighbours = Lists::upload(
            recording,
            &graph.offsets,
            &graph.neighbours,
            &graph.message_weights(config.edge_weights),
        );
        let x = self.input(recording, graph, vertices.rows);

        let mut outputs: Vec<Option<View>> = vec![None; self.blocks.len()];
        for layers in &self.branches {
            let mut h = x.clone();
            for &layer in layers {
                let output = match &outputs[layer] {
                    Some(known) => known.clone(),
                    None => self.blocks[layer].record(recording, config, &h, vertices, &neighbours),
                };
                outputs[layer] = Some(output.clone());
                h = output;
            }
        }

        let read_outs = recording.between(config.readout_width() * self.branches.len());
        for (source, width, places) in self.read_outs() {
            let h = match source {
                Source::Input => &x,
                Source::Block(block) => outputs[block].as_ref().expect("every block was recorded above"),
            };
            recording.read_out(h, width, vertices, &read_outs, places);
        }
        recording.classify(&read_outs, &self.heads, 0.5).0
    }

    /// x: features side by side with embedded words.
    fn input(&self, recording: &mut Recording, graph: &GraphInput<'_>, rows: usize) -> View {
        let width = self.config.width;
        let features = recording.upload(&graph.features[..rows * width]);
        let Some(embedding) = &self.embedding else {
            return features;
        };
        let mut offsets = graph.keyword_offsets.to_vec();
        let mut words = graph.keywords.to_vec();
        let mut weights = Vec::with_capacity(words.len() + graph.words.len());
        for list in graph.keyword_offsets.windows(2) {
            let count = (list[1] - list[0]) as usize;
            weights.extend(std::iter::repeat_n(1.0 / count.max(1) as f32, count));
        }
        if rows > graph.vertices {
            words.extend_from_slice(&graph.words);
            weights.extend_from_slice(&graph.word_weights);
            offsets.push(words.len() as u32);
        }
        let lists = Lists::upload(recording, &offsets, &words, &weights);
        recording.gather(Some((&features, width)), &lists, embedding)
    }

    /// Every read-out once, with the one or two places where branches expect it.
    fn read_outs(&self) -> Vec<(Source, usize, (usize, usize))> {
        let config = &self.config;
        let mut found: Vec<(Source, usize, (usize, usize))> = Vec::new();
        for (branch, layers) in self.branches.iter().enumerate() {
            let mut sources: Vec<(Source, usize)> = vec![(Source::Input, config.input_width())];
            sources.extend(layers.iter().map(|&layer| (Source::Block(layer), config.hidden)));
            if !config.reads_all_layers() {
                sources.drain(..sources.len() - 1);
            }
            let mut place = branch * config.readout_width();
            for (source, width) in sources {
                match found.iter_mut().find(|(known, ..)| *known == source) {
                    Some((_, _, places)) => places.1 = place,
                    None => found.push((source, width, (place, place))),
                }
                place += width;
            }
        }
        found
    }
}

impl Block {
    /// h^k from h^{k-1}: the product first, then the messages, as the reference does it.
    fn record(
        &self,
        recording: &mut Recording,
        config: &MatcherConfig,
        h: &View,
        vertices: Vertices,
        neighbours: &Lists,
    ) -> View {
        let (rows, hidden) = (vertices.rows, config.hidden);
        let p = recording.linear(h, rows, &self.first, None, Activation::None);
        let m = recording.aggregate(&p, hidden, vertices, 1.0 + self.epsilon, neighbours);
        let norm = |norm: &(View, View)| (norm.0.clone(), norm.1.clone());
        let (gain, shift) = norm(&self.first_norm);
        let inner = (&gain, &shift, NORM_EPSILON);
        let m = recording.layer_norm(&m, None, rows, hidden, inner, Activation::Relu);
        let product = recording.linear(&m, rows, &self.second, None, Activation::None);
        let (gain, shift) = norm(&self.second_norm);
        let outer = (&gain, &shift, NORM_EPSILON);
        recording.layer_norm(&product, None, rows, hidden, outer, Activation::Relu)
    }
}

/// The heads, all in the same precision.
fn store_heads(gpu: &Gpu, heads: &[(&[f32], &[f32])], width: usize) -> Result<Heads, GpuError> {
    let what = "a head of the matcher";
    let matrices: Vec<&[f32]> = heads.iter().map(|(w, _)| *w).collect();
    let bias: Vec<f32> = heads.iter().flat_map(|(_, b)| b.iter().copied()).collect();
    let mut scales = vec![1.0_f32];
    let weights = match Narrow::all(&matrices, width) {
        Some(narrow) => {
            scales = narrow.iter().flat_map(|n| n.scales.iter().copied()).collect();
            narrow
                .iter()
                .map(|narrow| Matrix::store_narrow(gpu, what, narrow))
                .collect::<Result<_, _>>()?
        }
        None => matrices
            .iter()
            .map(|w| Matrix::store_floats(gpu, what, w, width))
            .collect::<Result<_, _>>()?,
    };
    Ok(Heads {
        weights,
        scales: View::Stored(gpu.store(what, bytemuck::cast_slice(&scales))?),
        bias: View::Stored(gpu.store(what, bytemuck::cast_slice(&bias))?),
    })
}

/// Little-endian words, wherever the bytes lie.
pub(crate) fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}
