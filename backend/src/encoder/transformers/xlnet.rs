//! XLNet as an encoder: every token sees every other, and attention knows distances instead of places
//! (Dai et al. 2019, Transformer-XL; Yang et al. 2019). Without memories, permutations or a second stream, which only
//! training and generation need.

use candle_core::{DType, Device, Result, Tensor};

use super::Body;
use super::layers::{Activation, Batch, Linear, Norm, Weights, shaded_softmax};
use super::settings::Settings;
use crate::encoder::EncoderError;

pub(super) struct XlNet {
    words: Tensor,
    layers: Vec<Layer>,
    width: usize,
    heads: usize,
    /// Distances beyond this count as this.
    farthest: Option<f32>,
    activation: Activation,
}

struct Layer {
    /// width × (heads · head width) each.
    query: Tensor,
    key: Tensor,
    value: Tensor,
    distance: Tensor,
    /// (heads · head width) × width.
    output: Tensor,
    /// heads × 1 × head width each: what every query knows beforehand of words, distances and segments.
    word_bias: Tensor,
    distance_bias: Tensor,
    segment_bias: Tensor,
    /// heads × head width × 2: in the same segment, in another.
    segments: Tensor,
    attention_norm: Norm,
    inner: Linear,
    outer: Linear,
    outer_norm: Norm,
}

/// The model; it can see any number of tokens at once.
pub(super) fn open(settings: &Settings, weights: &Weights<'_>) -> std::result::Result<XlNet, EncoderError> {
    if settings.word("attn_type").is_some_and(|kind| kind != "bi") {
        return Err(settings.bad("\"attn_type\" is not \"bi\": such a model does not read both ways"));
    }
    if settings.flag("bi_data") {
        return Err(settings.bad("\"bi_data\" is true, expected false"));
    }
    let (width, heads) = settings.heads("d_model", "n_head")?;
    if !width.is_multiple_of(2) {
        return Err(settings.bad(format!("\"d_model\" is {width}, expected an even number")));
    }
    let head = width / heads;
    if settings
        .optional("d_head", 1 << 16)?
        .is_some_and(|found| found != head)
    {
        return Err(settings.bad(format!("\"d_head\" is not d_model / n_head = {head}")));
    }
    let inner = settings.number("d_inner", 1 << 18)?;
    let epsilon = settings.float("layer_norm_eps", 1e-12);
    let vocabulary = settings.number("vocab_size", 1 << 24)?;
    let placing =
        |error: candle_core::Error| EncoderError::Device(format!("laying out the weights: {error}"));
    let mut layers = Vec::new();
    for index in 0..settings.number("n_layer", 1024)? {
        let place = format!("layer.{index}.rel_attn");
        let map = |name: &str| {
            let tensor = weights.tensor(&format!("{place}.{name}"), &[width, heads, head])?;
            tensor.reshape((width, heads * head)).map_err(placing)
        };
        let bias = |name: &str| {
            let tensor = weights.tensor(&format!("{place}.{name}"), &[heads, head])?;
            tensor.reshape((heads, 1, head)).map_err(placing)
        };
        let segments = weights.tensor(&format!("{place}.seg_embed"), &[2, heads, head])?;
        layers.push(Layer {
            query: map("q")?,
            key: map("k")?,
            value: map("v")?,
            distance: map("r")?,
            output: map("o")?.t().map_err(placing)?,
            word_bias: bias("r_w_bias")?,
            distance_bias: bias("r_r_bias")?,
            segment_bias: bias("r_s_bias")?,
            segments: segments
                .permute((1, 2, 0))
                .and_then(|tensor| tensor.contiguous())
                .map_err(placing)?,
            attention_norm: weights.norm(&format!("{place}.layer_norm"), width, epsilon)?,
            inner: weights.linear(&format!("layer.{index}.ff.layer_1"), inner, width)?,
            outer: weights.linear(&format!("layer.{index}.ff.layer_2"), width, inner)?,
            outer_norm: weights.norm(&format!("layer.{index}.ff.layer_norm"), width, epsilon)?,
        });
    }
    Ok(XlNet {
        words: weights.tensor("word_embedding.weight", &[vocabulary, width])?,
        layers,
        width,
        heads,
        farthest: Some(settings.float("clamp_len", -1.0) as f32).filter(|most| *most > 0.0),
        activation: Activation::read(settings, "ff_activation", Activation::Gelu)?,
    })
}

impl XlNet {
    /// A wave pattern for each distance from `length` (far before) down to 1 − `length` (far behind): 2·length × width.
    fn distances(&self, length: usize, device: &Device, dtype: DType) -> Result<Tensor> {
        let half = self.width / 2;
        let mut waves = vec![0.0_f32; 2 * length * self.width];
        for (row, waves) in waves.chunks_exact_mut(self.width).enumerate() {
            let mut distance = length as f32 - row as f32;
            if let Some(most) = self.farthest {
                distance = distance.clamp(-most, most);
            }
            for wave in 0..half {
                let slow = 10_000_f64.powf(2.0 * wave as f64 / self.width as f64);
                let angle = distance * (1.0 / slow) as f32;
                (waves[wave], waves[half + wave]) = (angle.sin(), angle.cos());
            }
        }
        Tensor::from_vec(waves, (2 * length, self.width), &Device::Cpu)?
            .to_dtype(dtype)?
            .to_device(device)
    }
}

impl Body for XlNet {
    fn width(&self) -> usize {
        self.width
    }

    fn forward(&self, batch: &Batch) -> Result<Tensor> {
        let (windows, length) = batch.ids.dims2()?;
        let mut x = self
            .words
            .index_select(&batch.ids.flatten_all()?, 0)?
            .reshape((windows, length, self.width))?;
        let distances = self.distances(length, x.device(), x.dtype())?;
        // Whether two tokens are of one segment, windows × 1 × length × length.
        let other = batch
            .kinds
            .unsqueeze(2)?
            .broadcast_ne(&batch.kinds.unsqueeze(1)?)?
            .to_dtype(x.dtype())?
            .unsqueeze(1)?;
        let shade = batch.shade()?;
        for layer in &self.layers {
            x = layer.forward(&x, &distances, &other, &shade, self.heads, self.activation)?;
        }
        Ok(x)
    }
}

impl Layer {
    fn forward(
        &self,
        x: &Tensor,
        distances: &Tensor,
        other: &Tensor,
        shade: &Tensor,
        heads: usize,
        activation: Activation,
    ) -> Result<Tensor> {
        let (windows, length, width) = x.dims3()?;
        let head = width / heads;
        let rows = x.reshape((windows * length, width))?;
        let split = |map: &Tensor| {
            rows.matmul(map)?
                .reshape((windows, length, heads, head))?
                .transpose(1, 2)?
                .contiguous()
        };
        let (query, key, value) = (split(&self.query)?, split(&self.key)?, split(&self.value)?);
        let by_word = query.broadcast_add(&self.word_bias)?.matmul(&key.t()?)?;
        let far = distances
            .matmul(&self.distance)?
            .reshape((2 * length, heads, head))?
            .permute((1, 2, 0))?
            .contiguous()?
            .broadcast_left(windows)?
            .contiguous()?;
        let by_distance = align(&query.broadcast_add(&self.distance_bias)?.matmul(&far)?)?;
        let segments = self.segments.broadcast_left(windows)?.contiguous()?;
        let by_segment = query.broadcast_add(&self.segment_bias)?.matmul(&segments)?;
        let (same, apart) = (by_segment.narrow(3, 0, 1)?, by_segment.narrow(3, 1, 1)?);
        let by_segment = other.broadcast_mul(&(apart - &same)?)?.broadcast_add(&same)?;
        let scores = ((by_word + by_distance)? + by_segment)?;
        let scores = (scores * (1.0 / (head as f64).sqrt()))?;
        let context = shaded_softmax(&scores, shade)?.matmul(&value)?;
        let context = context
            .transpose(1, 2)?
            .reshape((windows * length, heads * head))?
            .matmul(&self.output)?
            .reshape((windows, length, width))?;
        let x = self.attention_norm.forward(&(x + context)?)?;
        let hidden = activation.apply(&self.inner.forward(&x)?)?;
        self.outer_norm.forward(&(&x + self.outer.forward(&hidden)?)?)
    }
}

/// From scores by row of the distance table to scores by token: row i keeps the `length` columns from `length − i` on.
/// Read with its last two sides exchanged and one row dropped, the same memory is shifted by one more place a row.
fn align(scores: &Tensor) -> Result<Tensor> {
    let (windows, heads, length, both) = scores.dims4()?;
    scores
        .contiguous()?
        .reshape((windows, heads, both, length))?
        .narrow(2, 1, both - 1)?
        .contiguous()?
        .reshape((windows, heads, length, both - 1))?
        .narrow(3, 0, length)
}
