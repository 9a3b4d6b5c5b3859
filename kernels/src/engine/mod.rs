//! Which processor runs a model's networks: tried, timed, remembered, and given up without losing a document.

mod choice;
mod probe;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use gnnxml_shared::model::encoder::bert::Tokens;
use gnnxml_shared::model::matcher::{GraphInput, MatcherError};

pub use self::choice::{Choice, Preference, Processor, Work};
use self::probe::Probe;
use crate::{Gpu, GpuBert, GpuError, GpuMatcher, Report};

/// Tokens of one submission of the encoder, unless a single window has more.
const BATCH_TOKENS: usize = 1024;

/// The logits of one document, and who computed them.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    pub logits: Vec<f32>,
    pub processor: Processor,
    /// What it cost, on a GPU.
    pub report: Option<Report>,
}

/// The sums of windows' hidden states, as `BertEncoder::gather` takes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSums {
    /// Window numbers of each batch.
    pub batches: Vec<Vec<usize>>,
    /// Windows × width of each batch.
    pub sums: Vec<Vec<f32>>,
}

/// A model's networks on a GPU.
#[derive(Debug)]
struct OnGpu {
    gpu: Arc<Gpu>,
    matcher: Option<GpuMatcher>,
    encoder: Option<GpuBert>,
}

/// The processor of one model's networks.
#[derive(Debug)]
pub struct Engine {
    gpu: Mutex<Option<Arc<OnGpu>>>,
    choice: Option<Choice>,
    trouble: Mutex<Option<GpuError>>,
}

impl Engine {
    /// The CPU, without asking for anything else.
    pub fn cpu() -> Self {
        Self {
            gpu: Mutex::new(None),
            choice: None,
            trouble: Mutex::new(None),
        }
    }

    /// Chooses a processor for a model. Where there is no network, or the CPU is wanted or remembered, no GPU is
    /// touched. `clock` tells milliseconds since some moment.
    ///
    /// Only [`Preference::Gpu`] fails, and only for want of a GPU that runs the model.
    pub async fn new(
        work: Work<'_>,
        preference: Preference,
        remembered: Option<Choice>,
        clock: impl Fn() -> f64,
    ) -> Result<Self, GpuError> {
        if work.matcher.is_none() && work.encoder.is_none() {
            return match preference {
                Preference::Gpu => Err(GpuError::Lacks {
                    what: "anything to do: this model has no graph network",
                }),
                _ => Ok(Self::cpu()),
            };
        }
        if preference == Preference::Cpu {
            return Ok(Self::cpu());
        }
        let shape = work.shape();
        let remembered = remembered.filter(|choice| choice.shape == shape && preference == Preference::Auto);
        if let Some(choice) = &remembered
            && choice.processor == Processor::Cpu
        {
            return Ok(Self {
                choice: remembered,
                ..Self::cpu()
            });
        }
        match Self::with_gpu(work, preference, remembered, shape, &clock).await {
            Ok(engine) => Ok(engine),
            Err(error) if preference == Preference::Gpu => Err(error),
            // What failed may work the next time: there is nothing to remember.
            Err(error) => Ok(Self {
                trouble: Mutex::new(Some(error)),
                ..Self::cpu()
            }),
        }
    }

    /// Opens the GPU, sees that it computes what the CPU does, and times both unless the answer is remembered.
    async fn with_gpu(
        work: Work<'_>,
        preference: Preference,
        remembered: Option<Choice>,
        shape: String,
        clock: &impl Fn() -> f64,
    ) -> Result<Self, GpuError> {
        let gpu = Arc::new(Gpu::open().await?);
        let adapter = gpu.name().to_owned();
        let on_gpu = OnGpu {
            matcher: match work.matcher {
                Some(matcher) => Some(GpuMatcher::new(gpu.clone(), matcher).await?),
                None => None,
            },
            encoder: match work.encoder {
                Some(encoder) => Some(GpuBert::new(gpu.clone(), encoder).await?),
                None => None,
            },
            gpu,
        };
        let probe = Probe::new(work);
        probe.agree(&on_gpu).await?;
        let choice = match remembered {
            Some(choice) if choice.adapter == adapter => choice,
            _ => {
                let (cpu, gpu) = probe.time(&on_gpu, clock).await?;
                let quicker = preference == Preference::Gpu || gpu < cpu;
                Choice {
                    processor: if quicker { Processor::Gpu } else { Processor::Cpu },
                    adapter,
                    shape,
                    cpu_milliseconds: cpu,
                    gpu_milliseconds: gpu,
                }
            }
        };
        let kept = (choice.processor == Processor::Gpu).then(|| Arc::new(on_gpu));
        Ok(Self {
            gpu: Mutex::new(kept),
            choice: Some(choice),
            trouble: Mutex::new(None),
        })
    }

    /// What runs the next document.
    pub fn processor(&self) -> Processor {
        if self.on_gpu().is_some() {
            Processor::Gpu
        } else {
            Processor::Cpu
        }
    }

    /// The answer to remember; nothing when there was nothing to choose, or when the GPU has failed since.
    pub fn choice(&self) -> Option<&Choice> {
        let failed = self.processor() == Processor::Cpu;
        (self.choice.as_ref()).filter(|choice| choice.processor == Processor::Cpu || !failed)
    }

    /// Why the GPU is not used, if it was tried in vain or failed.
    pub fn trouble(&self) -> Option<GpuError> {
        self.trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Gives the GPU up as pulling it out would; the next document still gets its answer.
    pub fn lose_gpu(&self) {
        if let Some(on_gpu) = self.on_gpu() {
            on_gpu.gpu.destroy();
        }
    }

    /// The logits of a document. Whatever happens to the GPU, `cpu` answers in its place; a GPU that failed for good is
    /// not asked again.
    pub async fn logits(
        &self,
        graph: &GraphInput<'_>,
        cpu: impl FnOnce(&GraphInput<'_>) -> Result<Vec<f32>, MatcherError>,
    ) -> Result<Ran, MatcherError> {
        let on_gpu = self.on_gpu();
        if let Some(matcher) = on_gpu.as_ref().and_then(|on_gpu| on_gpu.matcher.as_ref()) {
            match matcher.forward(graph, 0).await {
                Ok(matched) if matched.logits.iter().all(|z| z.is_finite()) => {
                    return Ok(Ran {
                        logits: matched.logits,
                        processor: Processor::Gpu,
                        report: Some(matched.report),
                    });
                }
                // This document does not suit it; the next may.
                Ok(_) | Err(GpuError::Model(_) | GpuError::TooLarge { .. } | GpuError::TooMany { .. }) => (),
                Err(error) => self.give_up(error),
            }
        }
        Ok(Ran {
            logits: cpu(graph)?,
            processor: Processor::Cpu,
            report: None,
        })
    }

    /// The hidden states of tokenised sentences, summed by window; nothing where the CPU is to encode them.
    pub async fn encode(&self, tokens: &Tokens) -> Option<WindowSums> {
        let on_gpu = self.on_gpu()?;
        let encoder = on_gpu.encoder.as_ref()?;
        let mut found = WindowSums::default();
        let mut waiting = Vec::new();
        let mut ids: Vec<u32> = Vec::new();
        let mut lengths = Vec::new();
        let mut windows = tokens.windows().enumerate().peekable();
        while let Some((window, part)) = windows.next() {
            waiting.push(window);
            lengths.push(part.len());
            ids.extend_from_slice(part);
            let fits = (windows.peek()).is_some_and(|(_, next)| ids.len() + next.len() <= BATCH_TOKENS);
            if fits {
                continue;
            }
            match encoder.forward(&ids, &lengths).await {
                Ok(encoded) if encoded.sums.iter().all(|x| x.is_finite()) => {
                    found.sums.push(encoded.sums);
                    found.batches.push(std::mem::take(&mut waiting));
                    ids.clear();
                    lengths.clear();
                }
                Ok(_) | Err(GpuError::TooLarge { .. } | GpuError::TooMany { .. }) => return None,
                Err(error) => {
                    self.give_up(error);
                    return None;
                }
            }
        }
        Some(found)
    }

    fn on_gpu(&self) -> Option<Arc<OnGpu>> {
        self.gpu.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn give_up(&self, error: GpuError) {
        *self.gpu.lock().unwrap_or_else(PoisonError::into_inner) = None;
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}
