//! BERT-type sentence encoders: WordPiece, transformer layers, mean over the real tokens.
//!
//! Sentences of a batch lie end to end without padding: the linear layers see one long run of tokens, attention looks at
//! one sentence at a time. In eight bits the same code gives the same vectors on server and page.
//! Start reading at [`Bert::forward`], which is the whole model.

mod quantise;
mod sentences;
#[cfg(test)]
mod tests;

pub use sentences::{BertEncoder, Tokens};

use super::{TableError, VectorTable};
use crate::model::ops::rows::{add_layer_norm, softmax};
use crate::model::ops::{DenseLinear, Linear, LinearScratch, PackedColumns, ShapeError};

/// Why a model cannot be built from the given weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BertError {
    #[error("{what}: {found} numbers, expected {expected}")]
    Size {
        what: String,
        found: usize,
        expected: usize,
    },
    #[error("{what}: {source}")]
    Layer { what: String, source: ShapeError },
    #[error("word vectors: {0}")]
    Words(#[from] TableError),
    #[error("{heads} heads do not divide the width {width}")]
    Heads { heads: usize, width: usize },
    #[error("{what} holds a number that is not finite")]
    NotFinite { what: String },
    #[error("the tokenizer knows {tokens} tokens, the model {vectors}")]
    Vocabulary { tokens: usize, vectors: usize },
}

/// The numbers of a config.json that shape the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BertShape {
    pub width: usize,
    pub heads: usize,
    pub layers: usize,
    /// Width inside the feed-forward half of a layer.
    pub inner: usize,
    pub vocabulary: usize,
    /// Longest sentence, in tokens.
    pub positions: usize,
    pub epsilon: f32,
}

/// Scale and shift of a layer-norm.
#[derive(Clone, Debug, PartialEq)]
pub struct Norm {
    pub gamma: Vec<f32>,
    pub beta: Vec<f32>,
}

/// A linear layer's numbers in single precision, row-major `outputs × inputs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Affine {
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

/// One transformer layer; `L` is [`Affine`] as read, [`Linear`] ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer<L> {
    /// Query, key and value, one above the other.
    pub attention: L,
    pub attention_output: L,
    pub attention_norm: Norm,
    pub inner: L,
    pub outer: L,
    pub outer_norm: Norm,
}

/// The weights as a checkpoint holds them.
#[derive(Clone, Debug)]
pub struct BertWeights {
    pub shape: BertShape,
    /// vocabulary × width.
    pub words: Vec<f32>,
    /// positions × width, the vector of token type 0 already added.
    pub positions: Vec<f32>,
    pub norm: Norm,
    pub layers: Vec<Layer<Affine>>,
}

/// Word vectors in one of two precisions.
#[derive(Clone, Debug)]
pub enum Words {
    F32(Vec<f32>),
    Int8(VectorTable),
}

/// A model ready to run.
#[derive(Clone, Debug)]
pub struct Bert {
    shape: BertShape,
    words: Words,
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer<Linear>>,
}

/// Where in a layer a linear map reads its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    Attention,
    AttentionOutput,
    Inner,
    Outer,
}

/// Buffers of a forward pass; keep one a thread.
#[derive(Clone, Debug, Default)]
pub struct BertScratch {
    x: Vec<f32>,
    y: Vec<f32>,
    qkv: Vec<f32>,
    context: Vec<f32>,
    hidden: Vec<f32>,
    scores: Vec<f32>,
    packed: PackedColumns,
    linear: LinearScratch,
}

impl Bert {
    /// The model in single precision.
    pub fn dense(weights: &BertWeights) -> Result<Self, BertError> {
        weights.check()?;
        let mut layers = Vec::with_capacity(weights.layers.len());
        for (index, layer) in weights.layers.iter().enumerate() {
            layers.push(layer.build(index, |affine, _| {
                let inputs = affine.weights.len() / affine.bias.len().max(1);
                DenseLinear::new(&affine.weights, &affine.bias, inputs).map(Linear::F32)
            })?);
        }
        Self::new(
            weights.shape,
            Words::F32(weights.words.clone()),
            weights.positions.clone(),
            weights.norm.clone(),
            layers,
        )
    }

    /// A model from its parts, as a bundle holds them; every size is checked against the shape.
    pub fn new(
        shape: BertShape,
        words: Words,
        positions: Vec<f32>,
        norm: Norm,
        layers: Vec<Layer<Linear>>,
    ) -> Result<Self, BertError> {
        if shape.heads == 0 || !shape.width.is_multiple_of(shape.heads) {
            return Err(BertError::Heads {
                heads: shape.heads,
                width: shape.width,
            });
        }
        let found = match &words {
            Words::F32(words) => words.len(),
            Words::Int8(table) => table.codes().len(),
        };
        same("word vectors", found, shape.vocabulary * shape.width)?;
        if let Words::Int8(table) = &words {
            same("width of the word vectors", table.dims(), shape.width)?;
        }
        same("position vectors", positions.len(), shape.positions * shape.width)?;
        same("layers", layers.len(), shape.layers)?;
        norm.check("embedding norm", shape.width)?;
        for (index, layer) in layers.iter().enumerate() {
            let (w, i) = (shape.width, shape.inner);
            for (name, linear, outputs, inputs) in [
                ("attention", &layer.attention, 3 * w, w),
                ("attention output", &layer.attention_output, w, w),
                ("inner", &layer.inner, i, w),
                ("outer", &layer.outer, w, i),
            ] {
                same(
                    &format!("outputs of layer {index}'s {name}"),
                    linear.outputs(),
                    outputs,
                )?;
                same(
                    &format!("inputs of layer {index}'s {name}"),
                    linear.inputs(),
                    inputs,
                )?;
            }
            layer
                .attention_norm
                .check(&format!("layer {index}'s attention norm"), w)?;
            layer
                .outer_norm
                .check(&format!("layer {index}'s outer norm"), w)?;
        }
        Ok(Self {
            shape,
            words,
            positions,
            norm,
            layers,
        })
    }

    /// The model's shape.
    pub fn shape(&self) -> &BertShape {
        &self.shape
    }

    /// Word vectors.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Position vectors, positions × width.
    pub fn positions(&self) -> &[f32] {
        &self.positions
    }

    /// The norm after the embeddings.
    pub fn norm(&self) -> &Norm {
        &self.norm
    }

    /// The transformer layers.
    pub fn layers(&self) -> &[Layer<Linear>] {
        &self.layers
    }

    /// Last hidden states (tokens × width) of sentences that lie end to end in `ids`, `lengths` tokens each.
    /// No sentence may be longer than the model's positions; a number outside the vocabulary counts as a zero vector.
    pub fn forward<'s>(&self, ids: &[u32], lengths: &[usize], scratch: &'s mut BertScratch) -> &'s [f32] {
        self.forward_watched(ids, lengths, scratch, |_, _, _| ())
    }

    /// [`Self::forward`], showing `watch` the input of every linear map on the way.
    pub fn forward_watched<'s>(
        &self,
        ids: &[u32],
        lengths: &[usize],
        scratch: &'s mut BertScratch,
        mut watch: impl FnMut(usize, Site, &[f32]),
    ) -> &'s [f32] {
        assert_eq!(
            lengths.iter().sum::<usize>(),
            ids.len(),
            "lengths cover the tokens"
        );
        let width = self.shape.width;
        let BertScratch {
            x,
            y,
            qkv,
            context,
            hidden,
            scores,
            packed,
            linear,
        } = scratch;
        x.clear();
        x.resize(ids.len() * width, 0.0);
        y.clear();
        y.resize(ids.len() * width, 0.0);
        qkv.resize(ids.len() * 3 * width, 0.0);
        context.resize(ids.len() * width, 0.0);
        hidden.resize(ids.len() * self.shape.inner, 0.0);

        let places = lengths.iter().flat_map(|&length| 0..length);
        for ((&id, place), (x, y)) in ids
            .iter()
            .zip(places)
            .zip(x.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)))
        {
            match &self.words {
                Words::F32(words) => {
                    if let Some(word) = words.get(id as usize * width..(id as usize + 1) * width) {
                        x.copy_from_slice(word);
                    }
                }
                Words::Int8(table) => table.add_scaled(id as usize, 1.0, x),
            }
            y.copy_from_slice(&self.positions[place * width..(place + 1) * width]);
        }
        add_layer_norm(x, y, &self.norm.gamma, &self.norm.beta, self.shape.epsilon);

        for (index, layer) in self.layers.iter().enumerate() {
            watch(index, Site::Attention, x);
            layer.attention.apply(x, qkv, linear);
            let mut start = 0;
            for &length in lengths {
                self.attend(qkv, start, length, context, scores, packed);
                start += length;
            }
            watch(index, Site::AttentionOutput, context);
            layer.attention_output.apply(context, y, linear);
            let norm = &layer.attention_norm;
            add_layer_norm(x, y, &norm.gamma, &norm.beta, self.shape.epsilon);

            watch(index, Site::Inner, x);
            layer.inner.apply_gelu(x, hidden, linear);
            watch(index, Site::Outer, hidden);
            layer.outer.apply(hidden, y, linear);
            add_layer_norm(
                x,
                y,
                &layer.outer_norm.gamma,
                &layer.outer_norm.beta,
                self.shape.epsilon,
            );
        }
        x
    }

    /// softmax(Q Kᵀ / √d) V for the sentence of `length` tokens at `start`, head by head.
    fn attend(
        &self,
        qkv: &[f32],
        start: usize,
        length: usize,
        context: &mut [f32],
        scores: &mut Vec<f32>,
        packed: &mut PackedColumns,
    ) {
        let width = self.shape.width;
        let head_width = width / self.shape.heads;
        let stride = 3 * width;
        let padded = PackedColumns::padded(length);
        scores.resize(length * padded, 0.0);
        let rows = &qkv[start * stride..(start + length) * stride];
        for head in 0..self.shape.heads {
            let (query, key, value) = (
                head * head_width,
                width + head * head_width,
                2 * width + head * head_width,
            );
            packed.pack_transposed(head_width, rows[key..].chunks(stride));
            packed.times_padded(&rows[query..], stride, length, scores, padded);
            softmax(scores, padded, length, 1.0 / (head_width as f32).sqrt());
            packed.pack_rows(head_width, rows[value..].chunks(stride));
            packed.times(
                scores,
                padded,
                length,
                &mut context[start * width + query..],
                width,
            );
        }
    }
}

impl BertWeights {
    /// Every size and every number.
    pub fn check(&self) -> Result<(), BertError> {
        let BertShape {
            width: w,
            inner: i,
            vocabulary,
            positions,
            ..
        } = self.shape;
        let mut parts: Vec<(String, &[f32], usize)> = vec![
            ("word vectors".into(), &self.words, vocabulary * w),
            ("position vectors".into(), &self.positions, positions * w),
        ];
        for (index, layer) in self.layers.iter().enumerate() {
            for (name, affine, outputs, inputs) in [
                ("attention", &layer.attention, 3 * w, w),
                ("attention output", &layer.attention_output, w, w),
                ("inner", &layer.inner, i, w),
                ("outer", &layer.outer, w, i),
            ] {
                parts.push((
                    format!("weights of layer {index}'s {name}"),
                    &affine.weights,
                    outputs * inputs,
                ));
                parts.push((format!("biases of layer {index}'s {name}"), &affine.bias, outputs));
            }
        }
        for (what, numbers, expected) in parts {
            same(&what, numbers.len(), expected)?;
            finite(&what, numbers)?;
        }
        Ok(())
    }
}

impl Layer<Affine> {
    /// The same layer with every linear map made ready to run.
    fn build(
        &self,
        index: usize,
        mut make: impl FnMut(&Affine, Site) -> Result<Linear, ShapeError>,
    ) -> Result<Layer<Linear>, BertError> {
        let mut named = |affine, site, name: &str| {
            make(affine, site).map_err(|source| BertError::Layer {
                what: format!("layer {index}'s {name}"),
                source,
            })
        };
        Ok(Layer {
            attention: named(&self.attention, Site::Attention, "attention")?,
            attention_output: named(&self.attention_output, Site::AttentionOutput, "attention output")?,
            attention_norm: self.attention_norm.clone(),
            inner: named(&self.inner, Site::Inner, "inner")?,
            outer: named(&self.outer, Site::Outer, "outer")?,
            outer_norm: self.outer_norm.clone(),
        })
    }
}

impl Norm {
    fn check(&self, what: &str, width: usize) -> Result<(), BertError> {
        same(&format!("scale of the {what}"), self.gamma.len(), width)?;
        same(&format!("shift of the {what}"), self.beta.len(), width)?;
        finite(what, &self.gamma)?;
        finite(what, &self.beta)
    }
}

fn same(what: &str, found: usize, expected: usize) -> Result<(), BertError> {
    if found == expected {
        Ok(())
    } else {
        Err(BertError::Size {
            what: what.into(),
            found,
            expected,
        })
    }
}

fn finite(what: &str, numbers: &[f32]) -> Result<(), BertError> {
    if numbers.iter().all(|x| x.is_finite()) {
        Ok(())
    } else {
        Err(BertError::NotFinite { what: what.into() })
    }
}
