//! The family that norms after each half of a layer: BERT, DistilBERT, RoBERTa, ALBERT. They differ in names, in how they
//! count positions, and in whether layers share their weights.

use candle_core::{Result, Tensor};

use super::Body;
use super::layers::{Activation, Batch, Linear, Norm, Weights, shaded_softmax};
use super::settings::Settings;
use crate::encoder::EncoderError;

/// Embeddings, and layers to be walked through in order.
pub(super) struct Classic {
    words: Tensor,
    positions: Tensor,
    kinds: Option<Tensor>,
    norm: Norm,
    /// From narrow embeddings to the width of the layers.
    widen: Option<Linear>,
    layers: Vec<Layer>,
    /// Which layer runs at each step: with shared weights the same one several times.
    order: Vec<usize>,
    heads: usize,
    /// Position of the first token.
    first: usize,
    activation: Activation,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    attention_norm: Norm,
    inner: Linear,
    outer: Linear,
    outer_norm: Norm,
}

/// The names of a layer's parts.
struct Names {
    query: &'static str,
    key: &'static str,
    value: &'static str,
    output: &'static str,
    attention_norm: &'static str,
    inner: &'static str,
    outer: &'static str,
    outer_norm: &'static str,
}

const BERT: Names = Names {
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    inner: "intermediate.dense",
    outer: "output.dense",
    outer_norm: "output.LayerNorm",
};

const DISTILBERT: Names = Names {
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    output: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    inner: "ffn.lin1",
    outer: "ffn.lin2",
    outer_norm: "output_layer_norm",
};

const ALBERT: Names = Names {
    query: "attention.query",
    key: "attention.key",
    value: "attention.value",
    output: "attention.dense",
    attention_norm: "attention.LayerNorm",
    inner: "ffn",
    outer: "ffn_output",
    outer_norm: "full_layer_layer_norm",
};

/// A model and how many tokens it can see at once.
pub(super) type Opened = (Classic, usize);

/// The numbers a layer is read with.
#[derive(Clone, Copy)]
struct Sizes {
    width: usize,
    inner: usize,
    epsilon: f64,
}

/// BERT and RoBERTa: the same tensors, positions counted from elsewhere.
pub(super) fn bert(
    settings: &Settings,
    weights: &Weights<'_>,
    roberta: bool,
) -> std::result::Result<Opened, EncoderError> {
    only_absolute(settings)?;
    let (width, heads) = settings.heads("hidden_size", "num_attention_heads")?;
    let sizes = Sizes {
        width,
        inner: settings.number("intermediate_size", 1 << 18)?,
        epsilon: settings.float("layer_norm_eps", if roberta { 1e-5 } else { 1e-12 }),
    };
    let count = settings.number("num_hidden_layers", 1024)?;
    let positions = settings.number("max_position_embeddings", 1 << 20)?;
    // RoBERTa counts from one past the number of its padding token.
    let first = if roberta {
        settings.zero_or_more("pad_token_id", 1)? + 1
    } else {
        0
    };
    let window = positions
        .checked_sub(first)
        .filter(|w| *w >= 8)
        .ok_or_else(|| settings.bad(format!("{positions} positions are too few")))?;
    let layers = (0..count)
        .map(|index| Layer::read(weights, &format!("encoder.layer.{index}"), &BERT, sizes))
        .collect::<std::result::Result<_, _>>()?;
    let types = settings.optional("type_vocab_size", 1 << 10)?.unwrap_or(2);
    let model = Classic {
        words: words(settings, weights, width)?,
        positions: weights.tensor("embeddings.position_embeddings.weight", &[positions, width])?,
        kinds: Some(weights.tensor("embeddings.token_type_embeddings.weight", &[types, width])?),
        norm: weights.norm("embeddings.LayerNorm", width, sizes.epsilon)?,
        widen: None,
        layers,
        order: (0..count).collect(),
        heads,
        first,
        activation: Activation::read(settings, "hidden_act", Activation::Gelu)?,
    };
    Ok((model, window))
}

pub(super) fn distilbert(
    settings: &Settings,
    weights: &Weights<'_>,
) -> std::result::Result<Opened, EncoderError> {
    let (width, heads) = settings.heads("dim", "n_heads")?;
    let sizes = Sizes {
        width,
        inner: settings.number("hidden_dim", 1 << 18)?,
        epsilon: 1e-12,
    };
    let count = settings.number("n_layers", 1024)?;
    let positions = settings.number("max_position_embeddings", 1 << 20)?;
    let layers = (0..count)
        .map(|index| Layer::read(weights, &format!("transformer.layer.{index}"), &DISTILBERT, sizes))
        .collect::<std::result::Result<_, _>>()?;
    let model = Classic {
        words: words(settings, weights, width)?,
        positions: weights.tensor("embeddings.position_embeddings.weight", &[positions, width])?,
        kinds: None,
        norm: weights.norm("embeddings.LayerNorm", width, sizes.epsilon)?,
        widen: None,
        layers,
        order: (0..count).collect(),
        heads,
        first: 0,
        activation: Activation::read(settings, "activation", Activation::Gelu)?,
    };
    Ok((model, positions))
}

/// ALBERT: narrow embeddings, and groups of layers that are walked through again and again.
pub(super) fn albert(
    settings: &Settings,
    weights: &Weights<'_>,
) -> std::result::Result<Opened, EncoderError> {
    only_absolute(settings)?;
    let (width, heads) = settings.heads("hidden_size", "num_attention_heads")?;
    let narrow = settings.number("embedding_size", 1 << 16)?;
    let sizes = Sizes {
        width,
        inner: settings.number("intermediate_size", 1 << 18)?,
        epsilon: settings.float("layer_norm_eps", 1e-12),
    };
    let steps = settings.number("num_hidden_layers", 1024)?;
    let groups = settings.optional("num_hidden_groups", 1024)?.unwrap_or(1);
    let inside = settings.optional("inner_group_num", 64)?.unwrap_or(1);
    if groups > steps {
        return Err(settings.bad(format!("{groups} groups for {steps} layers")));
    }
    let positions = settings.number("max_position_embeddings", 1 << 20)?;
    let mut layers = Vec::new();
    for group in 0..groups {
        for index in 0..inside {
            let name = format!("encoder.albert_layer_groups.{group}.albert_layers.{index}");
            layers.push(Layer::read(weights, &name, &ALBERT, sizes)?);
        }
    }
    let order = (0..steps)
        .flat_map(|step| {
            let group = step * groups / steps;
            group * inside..(group + 1) * inside
        })
        .collect();
    let types = settings.optional("type_vocab_size", 1 << 10)?.unwrap_or(2);
    let model = Classic {
        words: words(settings, weights, narrow)?,
        positions: weights.tensor("embeddings.position_embeddings.weight", &[positions, narrow])?,
        kinds: Some(weights.tensor("embeddings.token_type_embeddings.weight", &[types, narrow])?),
        norm: weights.norm("embeddings.LayerNorm", narrow, sizes.epsilon)?,
        widen: Some(weights.linear("encoder.embedding_hidden_mapping_in", width, narrow)?),
        layers,
        order,
        heads,
        first: 0,
        activation: Activation::read(settings, "hidden_act", Activation::GeluTanh)?,
    };
    Ok((model, positions))
}

fn words(
    settings: &Settings,
    weights: &Weights<'_>,
    width: usize,
) -> std::result::Result<Tensor, EncoderError> {
    let vocabulary = settings.number("vocab_size", 1 << 24)?;
    weights.tensor("embeddings.word_embeddings.weight", &[vocabulary, width])
}

fn only_absolute(settings: &Settings) -> std::result::Result<(), EncoderError> {
    match settings.word("position_embedding_type") {
        None | Some("absolute") => Ok(()),
        Some(other) => Err(settings.bad(format!(
            "\"position_embedding_type\" is {other:?}, expected \"absolute\""
        ))),
    }
}

impl Layer {
    fn read(
        weights: &Weights<'_>,
        place: &str,
        names: &Names,
        sizes: Sizes,
    ) -> std::result::Result<Self, EncoderError> {
        let Sizes {
            width,
            inner,
            epsilon,
        } = sizes;
        let linear =
            |name: &str, outputs, inputs| weights.linear(&format!("{place}.{name}"), outputs, inputs);
        let norm = |name: &str| weights.norm(&format!("{place}.{name}"), width, epsilon);
        Ok(Self {
            query: linear(names.query, width, width)?,
            key: linear(names.key, width, width)?,
            value: linear(names.value, width, width)?,
            output: linear(names.output, width, width)?,
            attention_norm: norm(names.attention_norm)?,
            inner: linear(names.inner, inner, width)?,
            outer: linear(names.outer, width, inner)?,
            outer_norm: norm(names.outer_norm)?,
        })
    }

    fn forward(&self, x: &Tensor, shade: &Tensor, heads: usize, activation: Activation) -> Result<Tensor> {
        let (windows, length, width) = x.dims3()?;
        let split = |linear: &Linear| {
            linear
                .forward(x)?
                .reshape((windows, length, heads, width / heads))?
                .transpose(1, 2)?
                .contiguous()
        };
        let (query, key, value) = (split(&self.query)?, split(&self.key)?, split(&self.value)?);
        let scale = 1.0 / ((width / heads) as f64).sqrt();
        let scores = ((query * scale)?).matmul(&key.t()?)?;
        let context = shaded_softmax(&scores, shade)?.matmul(&value)?;
        let context = context.transpose(1, 2)?.reshape((windows, length, width))?;
        let x = self
            .attention_norm
            .forward(&(x + self.output.forward(&context)?)?)?;
        let hidden = activation.apply(&self.inner.forward(&x)?)?;
        self.outer_norm.forward(&(&x + self.outer.forward(&hidden)?)?)
    }
}

impl Body for Classic {
    fn width(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.outer_norm.width())
    }

    fn forward(&self, batch: &Batch) -> Result<Tensor> {
        let (windows, length) = batch.ids.dims2()?;
        let lookup = |table: &Tensor, numbers: &Tensor| {
            table
                .index_select(&numbers.flatten_all()?, 0)?
                .reshape((windows, length, ()))
        };
        let mut x = lookup(&self.words, &batch.ids)?;
        x = x.broadcast_add(&self.positions.narrow(0, self.first, length)?)?;
        if let Some(kinds) = &self.kinds {
            x = (x + lookup(kinds, &batch.kinds)?)?;
        }
        x = self.norm.forward(&x)?;
        if let Some(widen) = &self.widen {
            x = widen.forward(&x)?;
        }
        let shade = batch.shade()?;
        for &step in &self.order {
            x = self.layers[step].forward(&x, &shade, self.heads, self.activation)?;
        }
        Ok(x)
    }
}
