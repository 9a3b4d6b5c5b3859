//! Transformers of Hugging Face directories through candle, on CPU or CUDA: BERT, DistilBERT, RoBERTa, ALBERT, XLNet.
//!
//! BERT and DistilBERT on a CPU are run by our own quicker code (`super::bert`); here they serve other devices and as a
//! peer. Start reading at [`Transformer::open`], then [`classic`] and [`xlnet`].

mod classic;
mod layers;
mod pieces;
mod settings;
#[cfg(test)]
mod tests;
mod xlnet;

use std::path::Path;

use candle_core::{Device, Tensor};
use gnnxml_shared::model::encoder::l2_normalise;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use self::layers::{Batch, Weights};
use self::pieces::{Pieces, Window};
use self::settings::Settings;
use super::checkpoint::Checkpoint;
use super::{Encoder, EncoderError, NumberType, Options};

/// The architectures, as an error names them.
pub const KNOWN: &str = "bert, distilbert, roberta, xlm-roberta, camembert, albert, xlnet";

/// Tokens of a batch, padding included: on a CPU each core takes a batch, a GPU wants large ones.
const CPU_TOKENS: usize = 512;
const GPU_TOKENS: usize = 16_384;

/// The layers of a model: from token numbers to last hidden states, windows × length × width.
trait Body: Send + Sync {
    fn width(&self) -> usize;

    fn forward(&self, batch: &Batch) -> candle_core::Result<Tensor>;
}

/// A transformer with its tokenizer.
pub struct Transformer {
    name: &'static str,
    body: Box<dyn Body>,
    pieces: Pieces,
    /// Tokens shown to the model at once.
    window: usize,
    device: Device,
    fingerprint: String,
}

impl std::fmt::Debug for Transformer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transformer")
            .field("name", &self.name)
            .field("window", &self.window)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl Transformer {
    /// Opens a model directory by the architecture its config.json names.
    pub fn open(directory: &Path, options: Options) -> Result<Self, EncoderError> {
        let settings = Settings::read(directory)?;
        let (device, numbers) = options.candle()?;
        let family = match settings.architecture() {
            "bert" => "bert.",
            "distilbert" => "distilbert.",
            "roberta" | "xlm-roberta" | "camembert" => "roberta.",
            "albert" => "albert.",
            "xlnet" => "transformer.",
            found => {
                return Err(EncoderError::Architecture {
                    file: settings.file().to_path_buf(),
                    found: found.into(),
                    known: KNOWN,
                });
            }
        };
        let pieces = Pieces::open(directory, settings.number("vocab_size", 1 << 24)?)?;
        let checkpoint = Checkpoint::open(directory)?;
        let weights = Weights::new(&checkpoint, family, &device, numbers.candle());
        let classic = |(model, window): classic::Opened| (Box::new(model) as Box<dyn Body>, Some(window));
        let (name, (body, positions)): (_, (Box<dyn Body>, _)) = match family {
            "bert." => ("bert", classic(classic::bert(&settings, &weights, false)?)),
            "distilbert." => ("distilbert", classic(classic::distilbert(&settings, &weights)?)),
            "roberta." => ("roberta", classic(classic::bert(&settings, &weights, true)?)),
            "albert." => ("albert", classic(classic::albert(&settings, &weights)?)),
            _ => ("xlnet", (Box::new(xlnet::open(&settings, &weights)?), None)),
        };
        let window = settings::window(directory, positions);
        if window <= pieces.marks() {
            return Err(settings.bad(format!("{window} positions leave no room for a word")));
        }
        let fingerprint = fingerprint(name, numbers, window, &settings, &pieces, &checkpoint);
        Ok(Self {
            name,
            body,
            pieces,
            window,
            device,
            fingerprint,
        })
    }

    /// Token numbers of each sentence with the marks around it, as the model is shown them.
    pub fn token_numbers(&self, sentences: &[&str]) -> Result<Vec<Vec<u32>>, EncoderError> {
        let mut numbers = vec![Vec::new(); sentences.len()];
        for window in self.pieces.windows(sentences, self.window)? {
            numbers[window.sentence].extend(window.pieces.iter().map(|piece| piece.id));
        }
        Ok(numbers)
    }

    /// The sum of the last hidden states over the real tokens of each window of a batch.
    fn sums(&self, windows: &[&Window]) -> candle_core::Result<Vec<Vec<f32>>> {
        let batch = Batch::new(windows, &self.device)?;
        batch.sum(&self.body.forward(&batch)?)?.to_vec2()
    }

    /// The longest first, in batches of like length.
    fn batches(&self, windows: &[Window]) -> Vec<Vec<usize>> {
        let most = if self.device.is_cpu() {
            CPU_TOKENS
        } else {
            GPU_TOKENS
        };
        let mut order: Vec<usize> = (0..windows.len()).collect();
        order.sort_by_key(|&index| (std::cmp::Reverse(windows[index].pieces.len()), index));
        let mut batches: Vec<Vec<usize>> = Vec::new();
        let mut room = 0;
        for index in order {
            if room == 0 {
                batches.push(Vec::new());
                room = (most / windows[index].pieces.len()).max(1);
            }
            room -= 1;
            if let Some(batch) = batches.last_mut() {
                batch.push(index);
            }
        }
        batches
    }
}

impl Encoder for Transformer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dims(&self) -> usize {
        self.body.width()
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn encode(&self, sentences: &[&str]) -> anyhow::Result<Vec<f32>> {
        let windows = self.pieces.windows(sentences, self.window)?;
        let batches = self.batches(&windows);
        let run = |batch: &Vec<usize>| {
            let together: Vec<&Window> = batch.iter().map(|&index| &windows[index]).collect();
            self.sums(&together)
        };
        // A GPU takes one batch after the other; on a CPU every core takes its own.
        let sums: Vec<Vec<Vec<f32>>> = if self.device.is_cpu() {
            batches.par_iter().map(run).collect::<Result<_, _>>()?
        } else {
            batches.iter().map(run).collect::<Result<_, _>>()?
        };
        // In the windows' own order: the sum over all of a sentence's tokens is, up to a factor that the normalisation
        // takes away, the mean of its windows weighted by their lengths.
        let mut of_window = vec![&[][..]; windows.len()];
        for (batch, sums) in batches.iter().zip(&sums) {
            for (&index, sum) in batch.iter().zip(sums) {
                of_window[index] = sum;
            }
        }
        let dims = self.dims();
        let mut vectors = vec![0.0; sentences.len() * dims];
        for (window, sum) in windows.iter().zip(of_window) {
            let vector = &mut vectors[window.sentence * dims..(window.sentence + 1) * dims];
            for (total, x) in vector.iter_mut().zip(sum) {
                *total += x;
            }
        }
        if let Some(at) = vectors.iter().position(|x| !x.is_finite()) {
            anyhow::bail!(
                "the {} model gives a vector that is not finite for sentence {}; try `--dtype f32`",
                self.name,
                at / dims
            );
        }
        vectors.chunks_exact_mut(dims.max(1)).for_each(l2_normalise);
        Ok(vectors)
    }
}

/// The reference library's tokenizer of a model directory: nothing cut, nothing padded, special tokens in a text are text.
pub fn reference_tokenizer(directory: &Path) -> Result<tokenizers::Tokenizer, EncoderError> {
    Ok(pieces::load(directory)?.0)
}

/// Everything a vector depends on but the device, whose rounding is below what the cache keeps.
fn fingerprint(
    name: &str,
    numbers: NumberType,
    window: usize,
    settings: &Settings,
    pieces: &Pieces,
    checkpoint: &Checkpoint,
) -> String {
    let mut hash = Sha256::new();
    hash.update(settings.text());
    hash.update(pieces.source());
    checkpoint.feed(|bytes| hash.update(bytes));
    format!("{name} 1 {numbers:?} window {window} {:x}", hash.finalize())
}
