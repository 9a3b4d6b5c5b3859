//! The eight-bit BERT encoder of `gnnxml_shared::model::encoder::bert` as one submission a batch of sentences.

use std::sync::Arc;

use gnnxml_shared::model::encoder::bert::{Bert, BertShape, Layer, Norm, Words};
use gnnxml_shared::model::ops::Linear;

use crate::device::Scopes;
use crate::matcher::words_of;
use crate::operations::{Activation, Lists};
use crate::recording::{Recording, View};
use crate::weights::{DotLayer, Matrix};
use crate::{Gpu, GpuError, Report};

/// An encoder's weights on a GPU.
#[derive(Debug)]
pub struct GpuBert {
    gpu: Arc<Gpu>,
    shape: BertShape,
    words: Matrix,
    positions: Matrix,
    norm: StoredNorm,
    layers: Vec<StoredLayer>,
}

/// The sums of sentences' last hidden states, and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// Sentences × width.
    pub sums: Vec<f32>,
    pub report: Report,
}

#[derive(Debug)]
struct StoredNorm {
    gamma: View,
    beta: View,
}

#[derive(Debug)]
struct StoredLayer {
    attention: DotLayer,
    attention_output: DotLayer,
    attention_norm: StoredNorm,
    inner: DotLayer,
    outer: DotLayer,
    outer_norm: StoredNorm,
}

impl GpuBert {
    /// Brings a published encoder's weights to the GPU. One in single precision is refused: it never leaves the server.
    pub async fn new(gpu: Arc<Gpu>, model: &Bert) -> Result<Self, GpuError> {
        let scopes = Scopes::open(&gpu.device);
        let built = Self::build(gpu.clone(), model);
        scopes.close().await?;
        built
    }

    fn build(gpu: Arc<Gpu>, model: &Bert) -> Result<Self, GpuError> {
        let width = model.shape().width;
        let words = match model.words() {
            Words::Int8(table) => Matrix::store_table(&gpu, "the encoder's word vectors", table)?,
            Words::F32(words) => Matrix::store_floats(&gpu, "the encoder's word vectors", words, width)?,
        };
        let positions = Matrix::store_floats(&gpu, "the encoder's positions", model.positions(), width)?;
        Ok(Self {
            shape: *model.shape(),
            words,
            positions,
            norm: store_norm(&gpu, model.norm())?,
            layers: (model.layers().iter())
                .map(|layer| store_layer(&gpu, layer))
                .collect::<Result<_, _>>()?,
            gpu,
        })
    }

    /// Sums over the tokens of sentences that lie end to end in `ids`, `lengths` tokens each.
    pub async fn forward(&self, ids: &[u32], lengths: &[usize]) -> Result<Encoded, GpuError> {
        let tokens = lengths.iter().sum::<usize>();
        if tokens != ids.len() {
            return Err(GpuError::TooMany {
                what: "the number of tokens without a sentence",
                found: ids.len().abs_diff(tokens),
                limit: 0,
            });
        }
        if let Some(&longest) = lengths.iter().find(|&&length| length > self.shape.positions) {
            return Err(GpuError::TooMany {
                what: "a sentence's number of tokens",
                found: longest,
                limit: self.shape.positions,
            });
        }
        let mut recording = Recording::default();
        let sums = self.record(&mut recording, ids, lengths)?;
        recording.download(&sums);
        let (answers, report) = self.gpu.run(recording).await?;
        let bytes = answers.first().map(Vec::as_slice).unwrap_or_default();
        let mut sums: Vec<f32> = words_of(bytes).into_iter().map(f32::from_bits).collect();
        sums.truncate(lengths.len() * self.shape.width);
        Ok(Encoded { sums, report })
    }

    fn record(&self, recording: &mut Recording, ids: &[u32], lengths: &[usize]) -> Result<View, GpuError> {
        let BertShape {
            width,
            heads,
            epsilon,
            ..
        } = self.shape;
        let rows = ids.len();
        let places: Vec<u32> = lengths.iter().flat_map(|&length| 0..length as u32).collect();
        let one_each: Vec<u32> = (0..=rows as u32).collect();
        let ones = vec![1.0_f32; rows];
        let word_lists = Lists::upload(recording, &one_each, ids, &ones);
        let place_lists = Lists {
            indices: recording.upload(&places),
            ..word_lists.clone()
        };
        let words = recording.gather(None, &word_lists, &self.words);
        let positions = recording.gather(None, &place_lists, &self.positions);
        let norm = |norm: &StoredNorm| (norm.gamma.clone(), norm.beta.clone());
        let add_norm = |recording: &mut Recording, x: &View, y: &View, stored: &StoredNorm| {
            let (gamma, beta) = norm(stored);
            recording.layer_norm(
                x,
                Some(y),
                rows,
                width,
                (&gamma, &beta, epsilon),
                Activation::None,
            )
        };
        let sentences = recording.sentences(lengths)?;
        let mut x = add_norm(recording, &words, &positions, &self.norm);
        for layer in &self.layers {
            let qkv = recording.linear_dot(&x, rows, &layer.attention, Activation::None);
            let context = recording.attention(&qkv, width, heads, &sentences);
            let y = recording.linear_dot(&context, rows, &layer.attention_output, Activation::None);
            x = add_norm(recording, &x, &y, &layer.attention_norm);
            let hidden = recording.linear_dot(&x, rows, &layer.inner, Activation::Gelu);
            let y = recording.linear_dot(&hidden, rows, &layer.outer, Activation::None);
            x = add_norm(recording, &x, &y, &layer.outer_norm);
        }
        let mut offsets = vec![0_u32];
        for &length in lengths {
            offsets.push(offsets.last().copied().unwrap_or(0) + length as u32);
        }
        let tokens: Vec<u32> = (0..rows as u32).collect();
        let lists = Lists::upload(recording, &offsets, &tokens, &ones);
        Ok(recording.gather(None, &lists, &Matrix::of_floats(x, rows, width)))
    }
}

fn store_norm(gpu: &Gpu, norm: &Norm) -> Result<StoredNorm, GpuError> {
    let store = |numbers: &[f32]| gpu.store("a norm of the encoder", bytemuck::cast_slice(numbers));
    Ok(StoredNorm {
        gamma: View::Stored(store(&norm.gamma)?),
        beta: View::Stored(store(&norm.beta)?),
    })
}

fn store_layer(gpu: &Gpu, layer: &Layer<Linear>) -> Result<StoredLayer, GpuError> {
    let store = |linear: &Linear| match linear {
        Linear::Int8(linear) => DotLayer::store(gpu, "a layer of the encoder", linear),
        Linear::F32(_) => Err(GpuError::Lacks {
            what: "room for an encoder in single precision (publish it in eight bits)",
        }),
    };
    Ok(StoredLayer {
        attention: store(&layer.attention)?,
        attention_output: store(&layer.attention_output)?,
        attention_norm: store_norm(gpu, &layer.attention_norm)?,
        inner: store(&layer.inner)?,
        outer: store(&layer.outer)?,
        outer_norm: store_norm(gpu, &layer.outer_norm)?,
    })
}
