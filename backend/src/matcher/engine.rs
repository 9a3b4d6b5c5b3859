//! Which code computes a step's gradient, and where.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{DType, Device, Tensor, Var};
use gnnxml_shared::model::matcher::MatcherConfig;
use serde::{Deserialize, Serialize};

use super::batch::{Batch, Shard};
use super::composed::{Place, shard_loss};
use super::fused::Scratch;
use super::layout::Layout;
use super::{Losses, MatcherError, Moment};

/// `--device`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first CUDA device if this build and machine have one, else the CPU.
    #[default]
    Auto,
    Cpu,
    Cuda(usize),
}

impl std::str::FromStr for DeviceChoice {
    type Err = MatcherError;

    fn from_str(name: &str) -> Result<Self, MatcherError> {
        let number = |text: &str| text.parse().ok().map(Self::Cuda);
        let choice = match name {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            other => other.strip_prefix("cuda:").and_then(number),
        };
        choice.ok_or_else(|| MatcherError::Device {
            asked: name.to_owned(),
            reason: "expected auto, cpu, cuda or cuda:N".to_owned(),
        })
    }
}

impl DeviceChoice {
    fn open(self) -> Result<Device, MatcherError> {
        match self {
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(number) if !candle_core::utils::cuda_is_available() => Err(MatcherError::Device {
                asked: format!("cuda:{number}"),
                reason: "this build has no CUDA support; build with `--features cuda`, or use `--device cpu`"
                    .to_owned(),
            }),
            Self::Cuda(number) => Device::new_cuda(number).map_err(|error| MatcherError::Device {
                asked: format!("cuda:{number}"),
                reason: error.to_string(),
            }),
            Self::Auto => Ok(Device::cuda_if_available(0).unwrap_or(Device::Cpu)),
        }
    }
}

/// How precisely the gradient is computed. Master weights and optimiser stay `f32`; products of a lower precision are for GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    #[default]
    F32,
    Bf16,
    /// For tests and doubts.
    F64,
}

/// What a step yields.
#[derive(Debug)]
pub(super) struct Gradient {
    /// Means over the pairs.
    pub(super) losses: Losses,
    pub(super) dense: Vec<f32>,
    /// One row for each of the batch's words.
    pub(super) words: Vec<f32>,
}

/// The code that computes gradients.
#[derive(Debug)]
pub(super) enum Engine {
    /// By hand, all cores, `f32`.
    Fused(Box<Mutex<Scratch>>),
    /// By candle, any device.
    Composed(Place),
}

impl Engine {
    /// The fused one for `f32` on the CPU, candle's operations for everything else.
    pub(super) fn open(
        device: DeviceChoice,
        precision: Precision,
        composed: bool,
    ) -> Result<Self, MatcherError> {
        let device = device.open()?;
        let dtype = match precision {
            Precision::F32 => DType::F32,
            Precision::Bf16 => DType::BF16,
            Precision::F64 => DType::F64,
        };
        Ok(if device.is_cpu() && dtype == DType::F32 && !composed {
            Self::Fused(Box::default())
        } else {
            Self::Composed(Place { device, dtype })
        })
    }

    pub(super) fn gradient(
        &self,
        config: &Arc<MatcherConfig>,
        layout: &Arc<Layout>,
        (dense, words): (&[f32], Vec<f32>),
        batch: &Arc<Batch>,
        moment: Moment,
    ) -> Result<Gradient, MatcherError> {
        match self {
            Self::Fused(scratch) => {
                let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(scratch.gradient((config, layout), (dense, &words), batch, moment))
            }
            Self::Composed(place) => {
                // Candle has no tensor without elements: a lone zero stands for an empty list of words.
                let (words, shape) = if words.is_empty() {
                    (vec![0.0], (1, 1))
                } else {
                    (words, (batch.words.len(), config.embedding_width()))
                };
                let dense = Var::from_tensor(&Tensor::from_slice(dense, dense.len(), &place.device)?)?;
                let words = Var::from_tensor(&Tensor::from_vec(words, shape, &place.device)?)?;
                let mut sum = Gradient {
                    losses: Losses::default(),
                    dense: vec![0.0; dense.elem_count()],
                    words: vec![0.0; words.elem_count()],
                };
                let mut first_pair = 0;
                for shard in &batch.shards {
                    let mut pass = |shard: &Shard, first: usize| -> candle_core::Result<()> {
                        let cast = (dense.to_dtype(place.dtype)?, words.to_dtype(place.dtype)?);
                        let (total, sides) =
                            shard_loss(config, layout, place, (&cast.0, &cast.1), shard, first, moment)?;
                        let gradients = total.backward()?;
                        let scalar = |t: &Tensor| t.to_dtype(DType::F64)?.to_scalar::<f64>();
                        let mut losses = Losses {
                            total: scalar(&total)?,
                            sides: [0.0; 2],
                        };
                        for (slot, side) in losses.sides.iter_mut().zip(&sides) {
                            *slot = scalar(side)?;
                        }
                        let dense_part = flat(gradients.get(dense.as_tensor()), dense.as_tensor())?;
                        let word_part = flat(gradients.get(words.as_tensor()), words.as_tensor())?;
                        sum.losses.add(losses);
                        sum.dense.iter_mut().zip(&dense_part).for_each(|(s, g)| *s += g);
                        sum.words.iter_mut().zip(&word_part).for_each(|(s, g)| *s += g);
                        Ok(())
                    };
                    split_when_out_of_memory(shard, first_pair, &mut pass)?;
                    first_pair += shard.pairs();
                }
                sum.words.truncate(batch.words.len() * config.embedding_width());
                Ok(sum)
            }
        }
    }
}

fn flat(gradient: Option<&Tensor>, like: &Tensor) -> candle_core::Result<Vec<f32>> {
    match gradient {
        Some(gradient) => gradient.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>(),
        None => Ok(vec![0.0; like.elem_count()]),
    }
}

/// Runs a shard; when the device has no memory for it, its two halves, and so on down to single pairs. The sum is the same.
pub(super) fn split_when_out_of_memory(
    shard: &Shard,
    first_pair: usize,
    pass: &mut dyn FnMut(&Shard, usize) -> candle_core::Result<()>,
) -> Result<(), MatcherError> {
    match pass(shard, first_pair) {
        Ok(()) => Ok(()),
        Err(error) if is_out_of_memory(&error) => {
            let pairs = shard.pairs();
            if pairs < 2 {
                return Err(MatcherError::OutOfMemory(error.to_string()));
            }
            split_when_out_of_memory(&shard.part(0..pairs / 2), first_pair, pass)?;
            split_when_out_of_memory(&shard.part(pairs / 2..pairs), first_pair + pairs / 2, pass)
        }
        Err(error) => Err(error.into()),
    }
}

/// Candle passes the driver's words on.
fn is_out_of_memory(error: &candle_core::Error) -> bool {
    let text = error.to_string().to_lowercase();
    ["out of memory", "out_of_memory", "outofmemory"]
        .iter()
        .any(|words| text.contains(words))
}
