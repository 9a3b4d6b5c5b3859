//! The training loop: batches from a background thread, gradients from the engine, RAdam, early stopping, checkpoints, events.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use gnnxml_shared::api::{LogLevel, Stage, TrainEvent};
use gnnxml_shared::model::matcher::{Matcher, MatcherConfig};

use super::batch::Batch;
use super::checkpoint::{self, Identity, Position, State};
use super::data::{TrainData, check_data, produce};
use super::engine::{Engine, Gradient};
use super::layout::Layout;
use super::lists::Lists;
use super::options::{TrainOptions, WordDescent, alpha, rate_factor};
use super::predict::quality;
use super::radam::{RAdam, Step};
use super::sampler::generator;
use super::table::{squared_length, update_rows};
use super::{Losses, MatcherError, Moment};
use crate::collective::{Collective, SingleProcess};

/// A finished (or interrupted) run.
#[derive(Clone, Debug)]
pub struct TrainedMatcher {
    pub matcher: Matcher,
    /// Epochs that were run, in this and earlier sittings.
    pub epochs: u32,
    /// The epoch the weights are from, from 1.
    pub best_epoch: u32,
    pub validation_loss: Option<f64>,
    pub cluster_recall: Option<f64>,
    /// Whether the run was asked to stop before its end.
    pub interrupted: bool,
    /// Share of the time that the trainer computed instead of waiting for batches.
    pub busy: f64,
    /// Seconds spent in steps, validation and checkpoints left out.
    pub step_seconds: f64,
    /// Documents seen a second, both branches counted.
    pub examples_per_second: f64,
}

/// Trains a matcher in this process alone.
pub fn train(
    data: TrainData<'_>,
    options: &TrainOptions,
    emit: &mut dyn FnMut(TrainEvent),
) -> Result<TrainedMatcher, MatcherError> {
    train_with(data, options, &SingleProcess, emit)
}

/// Trains a matcher together with the other processes of `collective`: each takes its share of every batch, gradients are summed.
pub fn train_with(
    data: TrainData<'_>,
    options: &TrainOptions,
    collective: &dyn Collective,
    emit: &mut dyn FnMut(TrainEvent),
) -> Result<TrainedMatcher, MatcherError> {
    options.check()?;
    check_data(&data, &options.model)?;
    Run::new(data, options, collective)?.go(emit)
}

/// One run, from the first step or from a checkpoint.
struct Run<'a> {
    data: TrainData<'a>,
    options: &'a TrainOptions,
    collective: &'a dyn Collective,
    config: Arc<MatcherConfig>,
    layout: Arc<Layout>,
    /// Each dense weight's learning rate, as a multiple.
    rates: Vec<f32>,
    engine: Engine,
    radam: RAdam,
    fingerprint: String,
    state: State,
    /// The best epoch's weights.
    best: Option<(Vec<f32>, Vec<f32>)>,
    resumed: bool,
    waited: Duration,
    worked: Duration,
    examples: u64,
}

impl<'a> Run<'a> {
    fn new(
        data: TrainData<'a>,
        options: &'a TrainOptions,
        collective: &'a dyn Collective,
    ) -> Result<Self, MatcherError> {
        let config = Arc::new(options.model.clone());
        let layout = Arc::new(Layout::new(&config));
        let mut dense = layout.initial(options.seed);
        start_at_the_base_rate(&layout, &mut dense, data.positives, config.clusters);
        let rows = config.embedding_tensor().map_or(0, |spec| spec.len());
        let moments = options.words.moments(rows);
        let state = State {
            dense_m: vec![0.0; dense.len()],
            dense_v: vec![0.0; dense.len()],
            dense,
            // Zero: a word says nothing until a document with it has been seen.
            embedding: vec![0.0; rows],
            embedding_m: vec![0.0; moments.0],
            embedding_v: vec![0.0; moments.1],
            position: Position::default(),
        };
        let mut run = Self {
            data,
            options,
            collective,
            engine: Engine::open(options.device, options.precision, options.composed)?,
            radam: RAdam::default(),
            fingerprint: options.fingerprint(),
            rates: layout.rates(&config, options.layer_rate),
            config,
            layout,
            state,
            best: None,
            resumed: false,
            waited: Duration::ZERO,
            worked: Duration::ZERO,
            examples: 0,
        };
        if let Some(directory) = options
            .checkpoints
            .as_deref()
            .filter(|d| options.resume && checkpoint::last(d).exists())
        {
            run.state = checkpoint::load(directory, &run.identity())?;
            if checkpoint::best(directory).exists() && run.state.position.best_loss.is_some() {
                run.best = Some(checkpoint::load_best(directory, &run.identity())?);
            }
            run.resumed = true;
        }
        Ok(run)
    }

    fn identity(&self) -> Identity<'_> {
        Identity {
            config: &self.config,
            layout: &self.layout,
            words: self.options.words,
            fingerprint: &self.fingerprint,
        }
    }

    fn steps_in_epoch(&self) -> u64 {
        self.data.graphs.len().div_ceil(self.options.batch) as u64
    }

    fn go(mut self, emit: &mut dyn FnMut(TrainEvent)) -> Result<TrainedMatcher, MatcherError> {
        let options = self.options;
        if self.resumed {
            let message = format!(
                "matcher: going on at epoch {}, step {}",
                self.state.position.epoch + 1,
                self.state.position.step
            );
            emit(TrainEvent::Log {
                level: LogLevel::Info,
                message,
            });
        }
        let started = Instant::now();
        let first = self.state.position.epoch;
        let mut interrupted = false;
        while self.state.position.epoch < options.epochs && !self.state.position.finished {
            if !self.epoch(emit)? {
                interrupted = true;
                break;
            }
            let done = self.close_epoch(emit, started, first)?;
            self.state.position.finished |= done;
            self.save()?;
        }
        if interrupted {
            self.save()?;
            emit(TrainEvent::Interrupted {
                resumable: options.checkpoints.is_some(),
            });
        }
        let position = self.state.position.clone();
        let identity = self.identity();
        let (dense, embedding) = self.best.as_ref().map_or_else(
            || (self.state.dense.clone(), self.state.embedding.clone()),
            |(dense, embedding)| (dense.clone(), embedding.clone()),
        );
        let tensors = checkpoint::named(&identity, &dense, embedding);
        let total = (self.worked + self.waited).as_secs_f64();
        Ok(TrainedMatcher {
            matcher: Matcher::new(self.options.model.clone(), tensors)?,
            epochs: position.epoch,
            best_epoch: position.best_epoch,
            validation_loss: position.best_loss,
            cluster_recall: position.best_recall,
            interrupted,
            busy: self.worked.as_secs_f64() / total.max(1e-9),
            step_seconds: total,
            examples_per_second: self.examples as f64 / total.max(1e-9),
        })
    }

    fn save(&self) -> Result<(), MatcherError> {
        match &self.options.checkpoints {
            Some(directory) if self.collective.rank() == 0 => {
                checkpoint::save(directory, &self.identity(), &self.state)
            }
            _ => Ok(()),
        }
    }

    /// Runs the rest of the current epoch; false if the run was asked to stop.
    fn epoch(&mut self, emit: &mut dyn FnMut(TrainEvent)) -> Result<bool, MatcherError> {
        let (epoch, first_step, steps) = (
            self.state.position.epoch,
            self.state.position.step,
            self.steps_in_epoch(),
        );
        let (data, options) = (self.data, self.options);
        let config = Arc::clone(&self.config);
        let share = |n: usize| self.collective.share(n);
        let (rank_share, stop) = (&share, Arc::clone(&options.stop));
        let (sender, batches) = mpsc::sync_channel::<(usize, Batch)>(2);
        // The producer needs the collective's share of each batch, nothing else of it.
        let shares: Vec<std::ops::Range<usize>> = (0..steps)
            .map(|step| {
                let start = step as usize * options.batch;
                rank_share(options.batch.min(data.graphs.len() - start))
            })
            .collect();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                produce(
                    data,
                    options,
                    &config,
                    u64::from(epoch),
                    first_step,
                    &shares,
                    &sender,
                );
            });
            // Dropped when this closure returns, whatever the reason: the producer then stops waiting for a taker.
            let batches = batches;
            let mut last_word = Instant::now();
            for step in first_step..steps {
                let waiting = Instant::now();
                let Ok((pairs, batch)) = batches.recv() else { break };
                self.waited += waiting.elapsed();
                let working = Instant::now();
                let losses = self.step(step, pairs, batch)?;
                self.worked += working.elapsed();
                self.state.position.add(losses);
                self.state.position.step = step + 1;
                if last_word.elapsed() > Duration::from_millis(500) {
                    last_word = Instant::now();
                    let speed = self.examples as f64 / (self.worked + self.waited).as_secs_f64();
                    let all = u64::from(options.epochs) * steps;
                    let done = u64::from(epoch) * steps + step + 1;
                    let left = (all - done) as f64 * (options.batch * self.config.branches()) as f64;
                    emit(TrainEvent::Progress {
                        stage: Stage::Match,
                        done,
                        total: all,
                        per_second: speed,
                        seconds_left: Some(left / speed),
                    });
                }
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// One optimiser step.
    fn step(&mut self, step: u64, pairs: usize, batch: Batch) -> Result<Losses, MatcherError> {
        let options = self.options;
        let e = self.config.embedding_width();
        let batch = Arc::new(batch);
        let t = self.state.position.t + 1;
        let all = f64::from(options.epochs) * self.steps_in_epoch() as f64;
        let progress = (t - 1) as f64 / all;
        let moment = Moment {
            alpha: alpha(progress),
            pairs,
            positive_weight: options.positive_weight,
            dropout_key: rand::Rng::random(&mut generator(options.seed, t, u64::MAX)),
            training: true,
        };
        let mut rows = Vec::with_capacity(batch.words.len() * e);
        for &word in &batch.words {
            rows.extend_from_slice(&self.state.embedding[word as usize * e..(word as usize + 1) * e]);
        }
        let mut gradient = self.engine.gradient(
            &self.config,
            &self.layout,
            (&self.state.dense, rows),
            &batch,
            moment,
        )?;
        let mut words = std::borrow::Cow::Borrowed(&batch.words);
        if self.collective.size() > 1 {
            words = std::borrow::Cow::Owned(self.reduce(&batch.words, &mut gradient)?);
        }
        let rate = options.learning_rate * rate_factor(options, t, all);
        if !gradient.losses.total.is_finite() {
            return Err(self.not_finite(gradient.losses.total, step, rate));
        }
        if !self.config.learn_epsilon {
            for layer in self.layout.branches.iter().flat_map(|b| &b.layers) {
                layer.epsilon.of_mut(&mut gradient.dense).fill(0.0);
            }
        }
        let length = squared_length(&gradient.dense)
            + if e > 0 {
                squared_length(&gradient.words)
            } else {
                0.0
            };
        let length = length.sqrt();
        if !length.is_finite() {
            return Err(self.not_finite(length, step, rate));
        }
        let scale = if length > f64::from(options.clip) {
            (f64::from(options.clip) / length) as f32
        } else {
            1.0
        };
        let settings = Step {
            t,
            rate,
            scale,
            decay: options.weight_decay,
        };
        let state = &mut self.state;
        self.radam.update_dense(
            &mut state.dense,
            &gradient.dense,
            (&mut state.dense_m, &mut state.dense_v),
            &self.rates,
            settings,
        );
        if e > 0 {
            let settings = Step {
                rate: rate * options.embedding_rate,
                ..settings
            };
            let (table, gradient) = (&mut state.embedding, &gradient.words);
            match options.words {
                WordDescent::ByRow => {
                    let moments = (&mut state.embedding_m[..], &mut state.embedding_v[..]);
                    let radam = &self.radam;
                    radam.update_rows(table, moments, e, &words, gradient, settings);
                }
                WordDescent::ByTable => {
                    let mean_square = &mut state.embedding_v[0];
                    update_rows(table, mean_square, e, &words, gradient, settings);
                }
            }
        }
        state.position.t = t;
        self.examples += (pairs * self.config.branches()) as u64;
        Ok(gradient.losses)
    }

    /// Sums losses and gradients over all processes; the words become the union of theirs.
    fn reduce(&self, words: &[u32], gradient: &mut Gradient) -> Result<Vec<u32>, MatcherError> {
        let mut losses = [
            gradient.losses.total,
            gradient.losses.sides[0],
            gradient.losses.sides[1],
        ];
        self.collective.all_reduce(losses.as_mut_slice().into())?;
        gradient.losses = Losses {
            total: losses[0],
            sides: [losses[1], losses[2]],
        };
        self.collective.all_reduce(gradient.dense.as_mut_slice().into())?;
        let e = self.config.embedding_width();
        if e == 0 {
            return Ok(Vec::new());
        }
        let mut held = vec![0u64; self.config.vocabulary];
        let mut table = vec![0.0f32; self.config.vocabulary * e];
        for (&word, row) in words.iter().zip(gradient.words.chunks_exact(e)) {
            held[word as usize] = 1;
            table[word as usize * e..(word as usize + 1) * e].copy_from_slice(row);
        }
        self.collective.all_reduce(held.as_mut_slice().into())?;
        self.collective.all_reduce(table.as_mut_slice().into())?;
        let words: Vec<u32> = (0..held.len() as u32).filter(|&w| held[w as usize] > 0).collect();
        gradient.words = words
            .iter()
            .flat_map(|&w| table[w as usize * e..(w as usize + 1) * e].to_vec())
            .collect();
        Ok(words)
    }

    fn not_finite(&self, loss: f64, step: u64, rate: f32) -> MatcherError {
        let last_good = self
            .options
            .checkpoints
            .as_deref()
            .map(checkpoint::last)
            .filter(|path| path.exists());
        MatcherError::NotFinite {
            loss,
            epoch: self.state.position.epoch + 1,
            step: step + 1,
            rate,
            last_good,
        }
    }

    /// Validates, remembers the best weights, tells; true if patience has run out.
    fn close_epoch(
        &mut self,
        emit: &mut dyn FnMut(TrainEvent),
        started: Instant,
        first: u32,
    ) -> Result<bool, MatcherError> {
        let options = self.options;
        let steps = self.steps_in_epoch() as f64;
        let validation = self.data.validation.filter(|v| !v.graphs.is_empty()).map(|v| {
            let network = (&*self.config, &*self.layout);
            let weights = (&self.state.dense[..], &self.state.embedding[..]);
            quality(
                network,
                weights,
                v.graphs,
                v.positives,
                options.top,
                options.positive_weight,
            )
        });
        let position = &mut self.state.position;
        let better = match (validation, position.best_loss) {
            (Some(now), Some(best)) => now.loss < best,
            _ => true,
        };
        if better {
            position.best_loss = validation.map(|v| v.loss);
            position.best_recall = validation.map(|v| v.cluster_recall);
            position.best_epoch = position.epoch + 1;
            position.epochs_without_gain = 0;
        } else {
            position.epochs_without_gain += 1;
        }
        let [_, conventional, rebalance] = position.losses.map(|sum| sum / steps);
        position.epoch += 1;
        position.step = 0;
        position.losses = [0.0; 3];
        let epoch = position.epoch;
        let out_of_patience = position.epochs_without_gain >= options.patience;
        if better && validation.is_some() {
            self.best = Some((self.state.dense.clone(), self.state.embedding.clone()));
            if let Some(directory) = options
                .checkpoints
                .as_deref()
                .filter(|_| self.collective.rank() == 0)
            {
                checkpoint::save_best(
                    directory,
                    &self.identity(),
                    &self.state.dense,
                    &self.state.embedding,
                )?;
            }
        }
        let per_epoch = started.elapsed().as_secs_f64() / f64::from(epoch - first);
        emit(TrainEvent::Epoch {
            epoch,
            epochs: options.epochs,
            loss_conventional: conventional,
            loss_rebalance: rebalance,
            alpha: f64::from(alpha(f64::from(epoch) / f64::from(options.epochs))),
            validation_loss: validation.map(|v| v.loss),
            cluster_recall: validation.map(|v| v.cluster_recall),
            examples_per_second: self.examples as f64 / (self.worked + self.waited).as_secs_f64(),
            seconds_left: Some(per_epoch * f64::from(options.epochs - epoch)),
            best: better,
        });
        Ok(out_of_patience)
    }
}

/// Every classifier's bias starts at the log-odds of its cluster, so that training need not find out how common it is.
fn start_at_the_base_rate(layout: &Layout, dense: &mut [f32], positives: &Lists, clusters: usize) {
    let mut counts = vec![0.0f32; clusters];
    for &cluster in positives.items() {
        if let Some(count) = counts.get_mut(cluster as usize) {
            *count += 1.0;
        }
    }
    let documents = positives.len() as f32;
    for branch in &layout.branches {
        for (bias, count) in branch.bias.of_mut(dense).iter_mut().zip(&counts) {
            *bias = ((count + 1.0) / (documents - count + 1.0)).ln();
        }
    }
}
