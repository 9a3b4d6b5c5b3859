//! What every architecture here is built of: checked weights, linear maps, norms, activations, masks.

use candle_core::{D, DType, Device, Result, Tensor};

use super::pieces::Window;
use super::settings::Settings;
use crate::encoder::EncoderError;
use crate::encoder::checkpoint::Checkpoint;

/// Where tensors come from and where they go.
pub(super) struct Weights<'a> {
    checkpoint: &'a Checkpoint,
    prefix: &'static str,
    device: Device,
    dtype: DType,
}

impl<'a> Weights<'a> {
    /// `family` is what the tensors' names begin with when the encoder lies inside a model with a head.
    pub(super) fn new(
        checkpoint: &'a Checkpoint,
        family: &'static str,
        device: &Device,
        dtype: DType,
    ) -> Self {
        let inside = checkpoint.names().any(|name| name.starts_with(family));
        Self {
            checkpoint,
            prefix: if inside { family } else { "" },
            device: device.clone(),
            dtype,
        }
    }

    /// A tensor whose shape and numbers were checked.
    pub(super) fn tensor(&self, name: &str, shape: &[usize]) -> std::result::Result<Tensor, EncoderError> {
        let name = format!("{}{name}", self.prefix);
        let numbers = self.checkpoint.numbers(&name, shape)?;
        Tensor::from_vec(numbers, shape, &Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(self.dtype)?.to_device(&self.device))
            .map_err(|error| EncoderError::Device(format!("placing {name} on the device: {error}")))
    }

    pub(super) fn linear(
        &self,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> std::result::Result<Linear, EncoderError> {
        Ok(Linear {
            weight: self.tensor(&format!("{name}.weight"), &[outputs, inputs])?,
            bias: self.tensor(&format!("{name}.bias"), &[outputs])?,
        })
    }

    pub(super) fn norm(
        &self,
        name: &str,
        width: usize,
        epsilon: f64,
    ) -> std::result::Result<Norm, EncoderError> {
        // The first checkpoints called them gamma and beta.
        let old = self.checkpoint.contains(&format!("{}{name}.gamma", self.prefix));
        let (scale, shift) = if old {
            ("gamma", "beta")
        } else {
            ("weight", "bias")
        };
        Ok(Norm {
            scale: self.tensor(&format!("{name}.{scale}"), &[width])?,
            shift: self.tensor(&format!("{name}.{shift}"), &[width])?,
            epsilon: epsilon as f32,
        })
    }
}

/// x Wᵀ + b over the last dimension.
pub(super) struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut shape = x.dims().to_vec();
        let inputs = shape.pop().unwrap_or(0);
        let rows = x.reshape(((), inputs))?;
        let y = rows.matmul(&self.weight.t()?)?.broadcast_add(&self.bias)?;
        shape.push(self.weight.dim(0)?);
        y.reshape(shape)
    }
}

/// Layer-norm over the last dimension.
pub(super) struct Norm {
    scale: Tensor,
    shift: Tensor,
    epsilon: f32,
}

impl Norm {
    pub(super) fn width(&self) -> usize {
        self.scale.elem_count()
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::layer_norm(&x.contiguous()?, &self.scale, &self.shift, self.epsilon)
    }
}

/// The bend between the two halves of a feed-forward.
#[derive(Clone, Copy, Debug)]
pub(super) enum Activation {
    /// x·Φ(x).
    Gelu,
    /// Its approximation by a hyperbolic tangent.
    GeluTanh,
    Relu,
    Silu,
}

impl Activation {
    /// Reads the setting `name`; `otherwise` where the file leaves it out.
    pub(super) fn read(
        settings: &Settings,
        name: &str,
        otherwise: Self,
    ) -> std::result::Result<Self, EncoderError> {
        match settings.word(name) {
            None => Ok(otherwise),
            Some("gelu") => Ok(Self::Gelu),
            Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh") => Ok(Self::GeluTanh),
            Some("relu") => Ok(Self::Relu),
            Some("silu" | "swish") => Ok(Self::Silu),
            Some(other) => Err(settings.bad(format!(
                "\"{name}\" is {other:?}, expected gelu, gelu_new, relu or silu"
            ))),
        }
    }

    pub(super) fn apply(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gelu => x.gelu_erf(),
            Self::GeluTanh => x.gelu(),
            Self::Relu => x.relu(),
            Self::Silu => x.silu(),
        }
    }
}

/// Windows side by side, padded to the longest.
pub(super) struct Batch {
    /// windows × length.
    pub(super) ids: Tensor,
    /// Segments, windows × length.
    pub(super) kinds: Tensor,
    /// One for a real token, zero for padding; windows × length, single precision.
    pub(super) real: Tensor,
}

impl Batch {
    pub(super) fn new(windows: &[&Window], device: &Device) -> Result<Self> {
        let length = windows
            .iter()
            .map(|window| window.pieces.len())
            .max()
            .unwrap_or(0);
        let shape = (windows.len(), length);
        let (mut ids, mut kinds) = (vec![0_u32; shape.0 * length], vec![0_u32; shape.0 * length]);
        let mut real = vec![0.0_f32; shape.0 * length];
        for (row, window) in windows.iter().enumerate() {
            for (column, piece) in window.pieces.iter().enumerate() {
                let at = row * length + column;
                (ids[at], kinds[at], real[at]) = (piece.id, piece.kind, 1.0);
            }
        }
        Ok(Self {
            ids: Tensor::from_vec(ids, shape, device)?,
            kinds: Tensor::from_vec(kinds, shape, device)?,
            real: Tensor::from_vec(real, shape, device)?,
        })
    }

    /// What is added to attention scores: nothing for real tokens, a very large negative number for padding.
    pub(super) fn shade(&self) -> Result<Tensor> {
        let (windows, length) = self.real.dims2()?;
        ((&self.real - 1.0)? * 1e9)?.reshape((windows, 1, 1, length))
    }

    /// The sum of each window's real rows, windows × width.
    pub(super) fn sum(&self, hidden: &Tensor) -> Result<Tensor> {
        let real = self.real.unsqueeze(1)?;
        real.matmul(&hidden.to_dtype(DType::F32)?.contiguous()?)?
            .squeeze(1)
    }
}

/// softmax over the last dimension of scores that `shade` was added to, computed in single precision.
pub(super) fn shaded_softmax(scores: &Tensor, shade: &Tensor) -> Result<Tensor> {
    let dtype = scores.dtype();
    let scores = scores.to_dtype(DType::F32)?.broadcast_add(shade)?;
    candle_nn::ops::softmax(&scores, D::Minus1)?.to_dtype(dtype)
}
