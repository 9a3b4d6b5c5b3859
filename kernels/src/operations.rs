//! The operations of the model, each written down as dispatches of a [`Recording`].

use crate::GpuError;
use crate::pipelines::Kernel;
use crate::recording::{Recording, View, grid};
use crate::weights::{DotLayer, Matrix};

/// Rows and outputs of a tile of the matrix products.
const TILE: usize = 16;
/// Invocations of a workgroup elsewhere.
const LANES: usize = 64;
/// Tokens a sentence may have: its scores lie in a workgroup's memory.
pub(crate) const LONGEST_SENTENCE: usize = 512;

/// What follows a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    None,
    Relu,
    Gelu,
}

impl Activation {
    fn number(self) -> usize {
        match self {
            Self::None => 0,
            Self::Relu => 1,
            Self::Gelu => 2,
        }
    }
}

/// Lists of weighted indices, one a row.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    pub(crate) rows: usize,
    pub(crate) offsets: View,
    pub(crate) indices: View,
    pub(crate) weights: View,
}

impl Lists {
    pub(crate) fn upload(
        recording: &mut Recording,
        offsets: &[u32],
        indices: &[u32],
        weights: &[f32],
    ) -> Self {
        Self {
            rows: offsets.len().saturating_sub(1),
            offsets: recording.upload(offsets),
            indices: recording.upload(indices),
            weights: recording.upload(weights),
        }
    }
}

/// Sentences that lie end to end.
#[derive(Clone, Debug)]
pub(crate) struct Sentences {
    tokens: usize,
    /// Of each token: start and length of its sentence.
    spans: View,
}

/// The rows of a text's vertex matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vertices {
    /// Keyword vertices.
    pub(crate) keywords: usize,
    /// With the text vertex, where there is one.
    pub(crate) rows: usize,
    /// c of the read-out.
    pub(crate) factor: f32,
}

fn tiles(rows: usize, outputs: usize) -> [u32; 3] {
    let tiles = |count: usize| count.div_ceil(TILE).max(1) as u32;
    [tiles(outputs), tiles(rows), 1]
}

fn elements(count: usize) -> [u32; 3] {
    grid(count.div_ceil(LANES))
}

impl Recording {
    /// activation(x Wᵀ + b).
    pub(crate) fn linear(
        &mut self,
        x: &View,
        rows: usize,
        weights: &Matrix,
        bias: Option<&View>,
        activation: Activation,
    ) -> View {
        let y = self.between(rows * weights.rows);
        self.dispatch(
            Kernel::Linear {
                precision: weights.precision,
            },
            &[
                rows.into(),
                weights.columns.into(),
                weights.rows.into(),
                weights.row_words().into(),
                activation.number().into(),
                usize::from(bias.is_some()).into(),
            ],
            &[
                x,
                &weights.words,
                &weights.scales,
                bias.unwrap_or(&weights.scales),
                &y,
            ],
            tiles(rows, weights.rows),
        );
        y
    }

    /// activation(x Wᵀ + b) over rounded activations, as the reference's eight-bit layers do it: two dispatches.
    pub(crate) fn linear_dot(
        &mut self,
        x: &View,
        rows: usize,
        layer: &DotLayer,
        activation: Activation,
    ) -> View {
        let words = layer.row_words();
        let codes = self.between(rows * words * 2);
        let steps = self.between(rows);
        self.dispatch(
            Kernel::Quantise,
            &[
                rows.into(),
                layer.inputs.into(),
                words.into(),
                layer.levels.into(),
            ],
            &[x, &layer.shrink, &codes, &steps],
            grid(rows),
        );
        let y = self.between(rows * layer.outputs);
        self.dispatch(
            Kernel::LinearDot,
            &[
                rows.into(),
                layer.outputs.into(),
                words.into(),
                activation.number().into(),
            ],
            &[&codes, &steps, &layer.weights, &layer.scales, &layer.bias, &y],
            tiles(rows, layer.outputs),
        );
        y
    }

    /// [ base | weighted sums of the table's rows ]; `base` is `(numbers, columns)`.
    pub(crate) fn gather(&mut self, base: Option<(&View, usize)>, lists: &Lists, table: &Matrix) -> View {
        let (base, base_columns) = base.unwrap_or((&lists.weights, 0));
        let whole = base_columns + table.columns;
        let out = self.between(lists.rows * whole);
        self.dispatch(
            Kernel::Gather {
                precision: table.precision,
            },
            &[
                lists.rows.into(),
                base_columns.into(),
                table.columns.into(),
                table.row_words().into(),
                table.rows.into(),
            ],
            &[
                base,
                &lists.offsets,
                &lists.indices,
                &lists.weights,
                &table.words,
                &table.scales,
                &out,
            ],
            elements(lists.rows * whole),
        );
        out
    }

    /// A graph layer's messages; `own` is 1 + ε.
    pub(crate) fn aggregate(
        &mut self,
        p: &View,
        width: usize,
        vertices: Vertices,
        own: f32,
        neighbours: &Lists,
    ) -> View {
        let m = self.between(vertices.rows * width);
        self.dispatch(
            Kernel::Aggregate,
            &[
                vertices.keywords.into(),
                vertices.rows.into(),
                width.into(),
                own.into(),
                vertices.factor.into(),
            ],
            &[
                p,
                &neighbours.offsets,
                &neighbours.indices,
                &neighbours.weights,
                &m,
            ],
            elements(vertices.rows * width),
        );
        m
    }

    /// activation(norm(x + y)·gain + shift), row by row. `norm` is `(gain, shift, ε)`.
    pub(crate) fn layer_norm(
        &mut self,
        x: &View,
        y: Option<&View>,
        rows: usize,
        width: usize,
        norm: (&View, &View, f32),
        activation: Activation,
    ) -> View {
        let (gain, shift, epsilon) = norm;
        let out = self.between(rows * width);
        self.dispatch(
            Kernel::LayerNorm,
            &[
                rows.into(),
                width.into(),
                usize::from(y.is_some()).into(),
                activation.number().into(),
                epsilon.into(),
            ],
            &[x, y.unwrap_or(x), gain, shift, &out],
            grid(rows),
        );
        out
    }

    /// Says which tokens make a sentence; `lengths` are the sentences' tokens.
    pub(crate) fn sentences(&mut self, lengths: &[usize]) -> Result<Sentences, GpuError> {
        if let Some(&longest) = lengths.iter().find(|&&length| length > LONGEST_SENTENCE) {
            return Err(GpuError::TooMany {
                what: "a sentence's number of tokens",
                found: longest,
                limit: LONGEST_SENTENCE,
            });
        }
        let mut spans: Vec<[u32; 2]> = Vec::new();
        for &length in lengths {
            let start = spans.len() as u32;
            spans.extend((0..length).map(|_| [start, length as u32]));
        }
        Ok(Sentences {
            tokens: spans.len(),
            spans: self.upload(&spans),
        })
    }

    /// Attention of every token over its own sentence.
    pub(crate) fn attention(
        &mut self,
        qkv: &View,
        width: usize,
        heads: usize,
        sentences: &Sentences,
    ) -> View {
        let context = self.between(sentences.tokens * width);
        let scale = 1.0 / ((width / heads.max(1)) as f32).sqrt();
        self.dispatch(
            Kernel::Attention,
            &[sentences.tokens.into(), width.into(), heads.into(), scale.into()],
            &[qkv, &sentences.spans, &context],
            grid(sentences.tokens * heads),
        );
        context
    }

    /// Writes h's read-out at one or two places of `out`.
    pub(crate) fn read_out(
        &mut self,
        h: &View,
        width: usize,
        vertices: Vertices,
        out: &View,
        places: (usize, usize),
    ) {
        self.dispatch(
            Kernel::ReadOut,
            &[
                vertices.keywords.into(),
                vertices.rows.into(),
                width.into(),
                vertices.factor.into(),
                places.0.into(),
                places.1.into(),
            ],
            &[h, out],
            elements(width),
        );
    }

    /// Logits and probabilities of every cluster.
    pub(crate) fn classify(&mut self, read_outs: &View, heads: &Heads, alpha: f32) -> (View, View) {
        let first = &heads.weights[0];
        let clusters = first.rows;
        let logits = self.between(clusters);
        let probabilities = self.between(clusters);
        self.dispatch(
            Kernel::Classify {
                precision: first.precision,
            },
            &[
                clusters.into(),
                first.columns.into(),
                first.row_words().into(),
                heads.weights.len().into(),
                alpha.into(),
            ],
            &[
                read_outs,
                &first.words,
                &heads.weights.last().unwrap_or(first).words,
                &heads.scales,
                &heads.bias,
                &logits,
                &probabilities,
            ],
            grid(clusters),
        );
        (logits, probabilities)
    }

    /// Places and numbers of the `count` largest of `length` numbers.
    pub(crate) fn top_k(&mut self, numbers: &View, length: usize, count: usize) -> View {
        let best = self.between(count * 2);
        self.dispatch(
            Kernel::TopK,
            &[length.into(), count.into()],
            &[numbers, &best],
            [1, 1, 1],
        );
        best
    }
}

/// One head a branch, with their scales and biases one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Heads {
    pub(crate) weights: Vec<Matrix>,
    pub(crate) scales: View,
    pub(crate) bias: View,
}
