//! Where and how exactly an encoder computes.

use candle_core::{DType, Device};

use super::EncoderError;
use crate::matcher::DeviceChoice;

/// How exactly our own BERT computes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// Weights in eight bits: quicker and a quarter of the size (figures in docs/results/encoders.md).
    #[default]
    Int8,
    /// Single precision.
    F32,
}

/// The numbers a transformer computes with when candle runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum NumberType {
    F32,
    /// Half the memory; quick on a GPU, slow on a CPU.
    F16,
    /// The range of f32 in half the memory; GPUs only.
    Bf16,
}

impl NumberType {
    /// As candle calls it.
    pub fn candle(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Bf16 => DType::BF16,
        }
    }
}

/// How an encoder is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Of BERT-type models that our own code runs.
    pub precision: Precision,
    pub device: DeviceChoice,
    /// Asks for candle and these numbers; `None` leaves the choice to us (our own code where it can run the model,
    /// f32 elsewhere).
    pub numbers: Option<NumberType>,
    /// Width of the vectors of a table of words, if it is wider.
    pub table_dims: Option<usize>,
}

impl From<Precision> for Options {
    fn from(precision: Precision) -> Self {
        Self {
            precision,
            ..Self::default()
        }
    }
}

impl Options {
    /// Whether our own CPU code may run a model it knows: no GPU was asked for, nor numbers it does not have.
    pub fn own_code(self) -> bool {
        !matches!(self.device, DeviceChoice::Cuda(_)) && matches!(self.numbers, None | Some(NumberType::F32))
    }

    /// The precision of our own code: f32 numbers asked for by name win.
    pub fn own_precision(self) -> Precision {
        if self.numbers == Some(NumberType::F32) {
            Precision::F32
        } else {
            self.precision
        }
    }

    /// The device and numbers candle shall use.
    pub fn candle(self) -> Result<(Device, NumberType), EncoderError> {
        let device = match self.device {
            DeviceChoice::Cpu => Device::Cpu,
            DeviceChoice::Auto => Device::cuda_if_available(0).unwrap_or(Device::Cpu),
            DeviceChoice::Cuda(number) if !candle_core::utils::cuda_is_available() => {
                return Err(EncoderError::Device(format!(
                    "cuda:{number} was asked for, but this build has no CUDA support; build with `--features cuda`, or \
                     use `--device cpu`"
                )));
            }
            DeviceChoice::Cuda(number) => Device::new_cuda(number)
                .map_err(|error| EncoderError::Device(format!("cuda:{number} cannot be used: {error}")))?,
        };
        let numbers = self.numbers.unwrap_or(NumberType::F32);
        if device.is_cpu() && numbers == NumberType::Bf16 {
            return Err(EncoderError::Device(
                "bf16 products need a GPU; on the CPU use `--dtype f32` or `--dtype f16`".into(),
            ));
        }
        Ok((device, numbers))
    }
}
