//! Which processor runs a model's networks: tried, timed, remembered, and given up without losing a document.

use std::sync::{Arc, Mutex, PoisonError};

use gnnxml_shared::model::encoder::bert::{Bert, BertEncoder, BertScratch, Tokens};
use gnnxml_shared::model::matcher::{GraphInput, Matcher, MatcherConfig, MatcherError};
use gnnxml_shared::model::ops::rows::add_rows;
use gnnxml_shared::model::tagger::Tagger;
use serde::{Deserialize, Serialize};

use crate::{Gpu, GpuBert, GpuError, GpuMatcher, Report};

/// Milliseconds that a processor is timed for at least.
const PROBE_MILLISECONDS: f64 = 3.0;
/// Runs that are timed at most.
const PROBE_RUNS: u32 = 16;
/// How far logits of the two may lie apart, relative to the largest, before the GPU is not believed.
const BELIEVED: f32 = 1e-3;
/// How alike sentence vectors of the two must be.
const LIKE: f32 = 0.999;
/// Tokens of one submission of the encoder, unless a single window has more.
const BATCH_TOKENS: usize = 1024;

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Processor {
    Cpu,
    Gpu,
}

/// What the caller wants to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// Whichever a short probe finds quicker.
    #[default]
    Auto,
    Cpu,
    /// The GPU, or an error.
    Gpu,
}

/// The answer of a probe, for the caller to keep until the next time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    pub processor: Processor,
    /// The GPU that was timed.
    pub adapter: String,
    /// The network that was timed.
    pub shape: String,
    /// Milliseconds a document.
    pub cpu_milliseconds: f64,
    pub gpu_milliseconds: f64,
}

/// The logits of one document, and who computed them.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    pub logits: Vec<f32>,
    pub processor: Processor,
    /// What it cost, on a GPU.
    pub report: Option<Report>,
}

/// What a model gives a processor to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work<'m> {
    /// The graph network.
    pub matcher: Option<&'m Matcher>,
    /// The transformer that encodes sentences.
    pub encoder: Option<&'m Bert>,
}

impl<'m> Work<'m> {
    /// All that a tagger computes with networks.
    pub fn of(tagger: &'m Tagger) -> Self {
        let encoder = tagger
            .encoder
            .as_deref()
            .filter(|_| tagger.needs_vectors())
            .and_then(|encoder| encoder.transformer());
        Self {
            matcher: tagger.matcher.graph(),
            encoder: encoder.map(BertEncoder::model),
        }
    }

    /// What makes two models cost the same.
    fn shape(self) -> String {
        let matcher = self.matcher.map(|matcher| {
            let config = matcher.config();
            format!(
                "graph {}+{}>{}x{} {:?} {} vertices {} clusters",
                config.width,
                config.embedding_width(),
                config.hidden,
                config.layers,
                config.variant,
                config.max_vertices,
                config.clusters
            )
        });
        let encoder = self.encoder.map(|encoder| {
            let shape = encoder.shape();
            format!(
                "transformer {}>{}x{} {} heads",
                shape.width, shape.inner, shape.layers, shape.heads
            )
        });
        let parts: Vec<String> = matcher.into_iter().chain(encoder).collect();
        parts.join("; ")
    }
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

/// A piece of every network's work, to compare and to time.
struct Probe<'m> {
    matcher: Option<(&'m Matcher, GraphInput<'static>)>,
    /// With the tokens of a few sentences and their lengths.
    encoder: Option<(&'m Bert, Vec<u32>, Vec<usize>)>,
}

impl<'m> Probe<'m> {
    fn new(work: Work<'m>) -> Self {
        Self {
            matcher: work
                .matcher
                .map(|matcher| (matcher, probe_graph(matcher.config()))),
            encoder: work.encoder.map(|encoder| {
                let length = encoder.shape().positions.clamp(1, 16);
                let vocabulary = encoder.shape().vocabulary.max(1);
                let ids = (0..4 * length).map(|place| (place * 7919 % vocabulary) as u32);
                (encoder, ids.collect(), vec![length; 4])
            }),
        }
    }

    /// Whether the GPU's numbers are the CPU's.
    async fn agree(&self, on_gpu: &OnGpu) -> Result<(), GpuError> {
        if let (Some((matcher, graph)), Some(on_gpu)) = (&self.matcher, &on_gpu.matcher) {
            let expected = matcher.forward(graph)?;
            agree(&on_gpu.forward(graph, 0).await?.logits, &expected)?;
        }
        if let (Some((encoder, ids, lengths)), Some(on_gpu)) = (&self.encoder, &on_gpu.encoder) {
            let width = encoder.shape().width;
            let mut scratch = BertScratch::default();
            let mut hidden = encoder.forward(ids, lengths, &mut scratch);
            let found = on_gpu.forward(ids, lengths).await?.sums;
            for (sum, &length) in found.chunks_exact(width).zip(lengths) {
                let (sentence, rest) = hidden.split_at(length * width);
                hidden = rest;
                let mut expected = vec![0.0; width];
                add_rows(sentence, &mut expected);
                let cosine = cosine(sum, &expected);
                if cosine.is_nan() || cosine < LIKE {
                    return Err(GpuError::Disagrees {
                        found: format!("a sentence vector at cosine {cosine}"),
                        expected: "its own".into(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Milliseconds on the CPU and on the GPU.
    async fn time(&self, on_gpu: &OnGpu, clock: &impl Fn() -> f64) -> Result<(f64, f64), GpuError> {
        let going =
            |begun: f64, runs: u32| runs == 0 || (clock() - begun < PROBE_MILLISECONDS && runs < PROBE_RUNS);
        let mut scratch = BertScratch::default();
        let (begun, mut runs) = (clock(), 0);
        while going(begun, runs) {
            if let Some((matcher, graph)) = &self.matcher {
                matcher.forward(graph)?;
            }
            if let Some((encoder, ids, lengths)) = &self.encoder {
                encoder.forward(ids, lengths, &mut scratch);
            }
            runs += 1;
        }
        let cpu = (clock() - begun) / f64::from(runs);
        let (begun, mut runs) = (clock(), 0);
        while going(begun, runs) {
            if let (Some((_, graph)), Some(on_gpu)) = (&self.matcher, &on_gpu.matcher) {
                on_gpu.forward(graph, 0).await?;
            }
            if let (Some((_, ids, lengths)), Some(on_gpu)) = (&self.encoder, &on_gpu.encoder) {
                on_gpu.forward(ids, lengths).await?;
            }
            runs += 1;
        }
        Ok((cpu, (clock() - begun) / f64::from(runs)))
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f32::MIN_POSITIVE)
}

/// A text as large as the network takes: keywords in a ring, a word each.
fn probe_graph(config: &MatcherConfig) -> GraphInput<'static> {
    let n = config.max_vertices.clamp(3, 64);
    let wave = |i: usize| ((i * 37 % 101) as f32 / 101.0 - 0.5) * 0.2;
    let neighbours = (0..n).flat_map(|v| {
        let (before, after) = ((v + n - 1) % n, (v + 1) % n);
        [before.min(after) as u32, before.max(after) as u32]
    });
    let words: Vec<u32> = (0..config.vocabulary.min(n)).map(|w| w as u32).collect();
    let keywords: Vec<u32> = (0..n)
        .filter(|_| !words.is_empty())
        .map(|v| words[v % words.len()])
        .collect();
    let keyword_step = u32::from(!words.is_empty());
    GraphInput {
        vertices: n,
        features: (0..(n + 1) * config.width).map(wave).collect::<Vec<_>>().into(),
        offsets: (0..=n as u32).map(|v| 2 * v).collect::<Vec<_>>().into(),
        neighbours: neighbours.collect::<Vec<_>>().into(),
        shared: vec![1.0; 2 * n].into(),
        keyword_offsets: (0..=n as u32)
            .map(|v| v * keyword_step)
            .collect::<Vec<_>>()
            .into(),
        keywords: keywords.into(),
        word_weights: words.iter().map(|&w| wave(w as usize)).collect::<Vec<_>>().into(),
        words: words.into(),
        origin: (0..n as u32).collect::<Vec<_>>().into(),
    }
}

fn agree(found: &[f32], expected: &[f32]) -> Result<(), GpuError> {
    let size = expected.iter().fold(1.0_f32, |most, z| most.max(z.abs()));
    let apart = found.iter().zip(expected).find(|(f, e)| {
        let distance = (*f - *e).abs();
        distance.is_nan() || distance > BELIEVED * size
    });
    match apart {
        None if found.len() == expected.len() => Ok(()),
        None => Err(GpuError::Disagrees {
            found: format!("{} logits", found.len()),
            expected: format!("{}", expected.len()),
        }),
        Some((found, expected)) => Err(GpuError::Disagrees {
            found: found.to_string(),
            expected: expected.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use gnnxml_shared::model::matcher::MatcherConfig;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use gnnxml_shared::model::encoder::SentenceEncoder as _;

    use crate::tests::{gpu, random_encoder, random_graph, random_matcher};

    fn clock() -> impl Fn() -> f64 {
        let begun = Instant::now();
        move || begun.elapsed().as_secs_f64() * 1e3
    }

    fn model() -> (Matcher, GraphInput<'static>) {
        let mut rng = ChaCha8Rng::seed_from_u64(41);
        let config = MatcherConfig {
            hidden: 32,
            ..MatcherConfig::fast(24, 13, 40)
        };
        let matcher = random_matcher(&mut rng, config.clone(), false);
        let graph = random_graph(&mut rng, &config, 9);
        (matcher, graph)
    }

    fn engine(matcher: &Matcher, preference: Preference, remembered: Option<Choice>) -> Engine {
        let work = Work {
            matcher: Some(matcher),
            encoder: None,
        };
        pollster::block_on(Engine::new(work, preference, remembered, clock())).unwrap()
    }

    #[test]
    fn the_probe_graph_fits_every_shape() {
        for config in [
            MatcherConfig::new(4, 3),
            MatcherConfig::fast(7, 5, 2),
            MatcherConfig::full(16, 9, 1000),
        ] {
            probe_graph(&config).check(&config).unwrap();
        }
    }

    #[test]
    fn a_lost_gpu_costs_no_document() {
        if gpu().is_none() {
            return;
        }
        let (matcher, graph) = model();
        let engine = engine(&matcher, Preference::Gpu, None);
        let cpu = |graph: &GraphInput<'_>| matcher.forward(graph);
        let before = pollster::block_on(engine.logits(&graph, cpu)).unwrap();
        assert_eq!(before.processor, Processor::Gpu);
        assert!(before.report.is_some());
        assert_eq!(engine.choice().map(|c| c.processor), Some(Processor::Gpu));

        // The device goes away underneath, without a word to the engine.
        engine.on_gpu().unwrap().gpu.device.destroy();
        let after = pollster::block_on(engine.logits(&graph, cpu)).unwrap();
        assert_eq!(after.processor, Processor::Cpu);
        assert_eq!(after.logits, matcher.forward(&graph).unwrap());
        agree(&before.logits, &after.logits).unwrap();
        assert!(engine.trouble().is_some());
        assert_eq!(engine.choice(), None, "a GPU that failed is not remembered");
        assert_eq!(engine.processor(), Processor::Cpu);
        assert!(pollster::block_on(engine.logits(&graph, cpu)).is_ok());
    }

    #[test]
    fn many_threads_share_a_gpu_and_survive_its_loss() {
        if gpu().is_none() {
            return;
        }
        let (matcher, graph) = model();
        let engine = engine(&matcher, Preference::Gpu, None);
        let expected = matcher.forward(&graph).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (engine, graph, matcher, expected) = (&engine, &graph, &matcher, &expected);
                scope.spawn(move || {
                    for run in 0..20 {
                        if (thread, run) == (0, 10) {
                            engine.lose_gpu();
                        }
                        let ran = pollster::block_on(engine.logits(graph, |g| matcher.forward(g))).unwrap();
                        agree(&ran.logits, expected).unwrap();
                    }
                });
            }
        });
        assert_eq!(engine.processor(), Processor::Cpu);
    }

    #[test]
    fn the_quicker_processor_is_chosen_and_remembered() {
        if gpu().is_none() {
            return;
        }
        let (matcher, _) = model();
        let chosen = engine(&matcher, Preference::Auto, None);
        let choice = chosen.choice().expect("there was something to choose").clone();
        let quicker = choice.gpu_milliseconds < choice.cpu_milliseconds;
        assert_eq!(choice.processor == Processor::Gpu, quicker, "{choice:?}");
        let json = serde_json::to_string(&choice).unwrap();
        let back: Choice = serde_json::from_str(&json).unwrap();
        let again = engine(&matcher, Preference::Auto, Some(back.clone()));
        assert_eq!(again.choice(), Some(&back), "nothing was timed again");

        // A remembered CPU is believed without opening a GPU; another network is timed anew.
        let slow = Choice {
            processor: Processor::Cpu,
            adapter: "none of yours".into(),
            ..choice.clone()
        };
        assert_eq!(
            engine(&matcher, Preference::Auto, Some(slow.clone())).choice(),
            Some(&slow)
        );
        let other = Choice {
            shape: "another".into(),
            ..slow
        };
        let timed = engine(&matcher, Preference::Auto, Some(other));
        assert_eq!(timed.choice().unwrap().shape, choice.shape);
    }

    #[test]
    fn sentences_are_encoded_on_the_gpu_and_on_the_cpu_when_it_is_lost() {
        if gpu().is_none() {
            return;
        }
        let encoder = random_encoder();
        let work = Work {
            matcher: None,
            encoder: Some(encoder.model()),
        };
        let engine = pollster::block_on(Engine::new(work, Preference::Gpu, None, clock())).unwrap();
        let long = "b c d ".repeat(1500);
        let sentences = ["a b c", "", long.as_str(), "d", "c c a b"];
        let tokens = encoder.tokenise(&sentences);
        let windows = pollster::block_on(engine.encode(&tokens)).expect("the GPU encodes");
        assert!(windows.batches.len() > 1, "more tokens than one submission takes");
        let found = encoder.gather(&tokens, &windows.batches, &windows.sums);
        let expected = encoder.encode(&sentences);
        let width = encoder.dims();
        for (sentence, (f, e)) in found
            .chunks_exact(width)
            .zip(expected.chunks_exact(width))
            .enumerate()
        {
            if sentences[sentence].is_empty() {
                assert_eq!(f, e);
            } else {
                assert!(cosine(f, e) > 0.9999, "sentence {sentence}: {}", cosine(f, e));
            }
        }
        engine.lose_gpu();
        assert_eq!(pollster::block_on(engine.encode(&tokens)), None);
        assert_eq!(engine.processor(), Processor::Cpu);
    }

    #[test]
    fn the_cpu_alone_asks_nobody() {
        let (matcher, graph) = model();
        let engine = engine(&matcher, Preference::Cpu, None);
        assert_eq!(engine.choice(), None);
        let ran = pollster::block_on(engine.logits(&graph, |g| matcher.forward(g))).unwrap();
        assert_eq!(ran.processor, Processor::Cpu);
        let wrong = GraphInput::empty(3);
        assert!(pollster::block_on(engine.logits(&wrong, |g| matcher.forward(g))).is_err());
        let none = pollster::block_on(Engine::new(Work::default(), Preference::Gpu, None, clock()));
        assert!(
            none.is_err(),
            "a model without a graph network has nothing for a GPU"
        );
    }

    #[test]
    fn numbers_that_differ_are_not_believed() {
        assert!(agree(&[1.0, 2.0], &[1.0, 2.0005]).is_ok());
        assert!(agree(&[1.0, 2.1], &[1.0, 2.0]).is_err());
        assert!(agree(&[f32::NAN], &[0.0]).is_err());
        assert!(agree(&[1.0], &[1.0, 2.0]).is_err());
    }
}
