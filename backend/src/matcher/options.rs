//! How to learn: every setting of a run, and the schedules they draw.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gnnxml_shared::model::matcher::MatcherConfig;

use super::MatcherError;
use super::engine::{DeviceChoice, Precision};

/// How the word embedding moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WordDescent {
    /// By RAdam, row by row: rare words are learned as quickly as common ones, to the letter.
    ByRow,
    /// By gradients of one scale for the whole table ([`super::table`]): rare words stay near zero.
    #[default]
    ByTable,
}

impl WordDescent {
    /// How many first and second moments a table of so many numbers has.
    pub(super) fn moments(self, numbers: usize) -> (usize, usize) {
        match self {
            Self::ByRow => (numbers, numbers),
            Self::ByTable => (0, 1),
        }
    }
}

/// How to learn. Rate, warm-up and patience are the paper's; the embedding's and the layers' rates and the word dropout were chosen by
/// measurement (docs/results/matcher.md), the other defaults are starting points.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    pub model: MatcherConfig,
    /// t_max.
    pub epochs: u32,
    /// Pairs of documents a step.
    pub batch: usize,
    /// Pairs computed together: a thread's portion on the CPU, what fits on the device at once on a GPU. A step adds its shards up.
    pub shard: usize,
    pub learning_rate: f32,
    /// The rate at the end of the run, as a share of `learning_rate`; it falls linearly after the warm-up.
    pub final_rate: f32,
    /// Share of the steps in which the rate rises.
    pub warm_up: f32,
    pub words: WordDescent,
    /// The embedding's rate, as a multiple of `learning_rate`.
    pub embedding_rate: f32,
    /// The rate of the layers and of what the classifiers make of them, as a multiple of `learning_rate`.
    pub layer_rate: f32,
    /// Decoupled weight decay of the dense weights and of the touched rows.
    pub weight_decay: f32,
    /// Largest length of the gradient.
    pub clip: f32,
    /// w, the weight of a positive cluster in the cross-entropy.
    pub positive_weight: f32,
    /// Share of a text's words that a step does not see.
    pub word_dropout: f32,
    /// Epochs without a better validation loss before the run stops.
    pub patience: u32,
    /// Clusters that count as matched in the recall.
    pub top: usize,
    pub seed: u64,
    pub device: DeviceChoice,
    pub precision: Precision,
    /// Candle's operations even where the fused ones would do.
    pub composed: bool,
    /// Where to keep the run's state.
    pub checkpoints: Option<PathBuf>,
    /// Go on from the checkpoint, if there is one.
    pub resume: bool,
    /// Names the corpus; a checkpoint of another one is refused.
    pub corpus: String,
    /// Set by a signal handler: the run saves and stops after the current step.
    pub stop: Arc<AtomicBool>,
}

impl TrainOptions {
    /// For a network that matches alone.
    pub fn new(model: MatcherConfig) -> Self {
        Self {
            model,
            epochs: 8,
            batch: 64,
            shard: 16,
            learning_rate: 0.01,
            final_rate: 0.02,
            warm_up: 0.1,
            words: WordDescent::ByTable,
            embedding_rate: 0.1,
            layer_rate: 0.03,
            weight_decay: 0.0,
            clip: 5.0,
            positive_weight: 1.0,
            word_dropout: 0.0,
            patience: 10,
            top: 10,
            seed: 0,
            device: DeviceChoice::Auto,
            precision: Precision::F32,
            composed: false,
            checkpoints: None,
            resume: false,
            corpus: String::new(),
            stop: Arc::default(),
        }
    }

    /// For a network beside the linear classifier of the same words: alone it would match worse so, but it is worth most where it says
    /// something else.
    #[must_use]
    pub fn beside_linear(self) -> Self {
        Self {
            words: WordDescent::ByRow,
            embedding_rate: 1.0,
            layer_rate: 1.0,
            ..self
        }
    }

    /// Everything besides the model's shape that changes the result.
    pub(super) fn fingerprint(&self) -> String {
        format!(
            "corpus {:?}, epochs {}, batch {}, shard {}, words {:?}, rate {} {} {} {} {}, decay {}, clip {}, positive {}, word dropout {}, top {}, seed {}, {:?}, composed {}",
            self.corpus,
            self.epochs,
            self.batch,
            self.shard,
            self.words,
            self.learning_rate,
            self.final_rate,
            self.warm_up,
            self.embedding_rate,
            self.layer_rate,
            self.weight_decay,
            self.clip,
            self.positive_weight,
            self.word_dropout,
            self.top,
            self.seed,
            self.precision,
            self.composed,
        )
    }

    pub(super) fn check(&self) -> Result<(), MatcherError> {
        self.model.validate()?;
        let wrong = |setting, found: String, expected| {
            Err(MatcherError::Setting {
                setting,
                found,
                expected,
            })
        };
        if self.epochs == 0 {
            return wrong("epochs", "0".to_owned(), "at least 1");
        }
        if self.batch == 0 || self.shard == 0 {
            return wrong(
                "batch",
                format!("{} in shards of {}", self.batch, self.shard),
                "at least 1 in shards of at least 1",
            );
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return wrong(
                "learning_rate",
                self.learning_rate.to_string(),
                "a positive number",
            );
        }
        if !(0.0..1.0).contains(&self.word_dropout) {
            return wrong(
                "word_dropout",
                self.word_dropout.to_string(),
                "0 up to, but not, 1",
            );
        }
        Ok(())
    }
}

/// α = 1 − (t/t_max)². The paper counts t in epochs; counted in steps, a run of few epochs has the same parabola.
pub(super) fn alpha(progress: f64) -> f32 {
    (1.0 - progress * progress) as f32
}

/// Rises linearly over the warm-up, then falls linearly to `final_rate`.
pub(super) fn rate_factor(options: &TrainOptions, t: u64, all: f64) -> f32 {
    let warm = (f64::from(options.warm_up) * all).max(1.0);
    let t = t as f64;
    if t < warm {
        return (t / warm) as f32;
    }
    let fallen = ((t - warm) / (all - warm).max(1.0)).min(1.0) as f32;
    1.0 - fallen * (1.0 - options.final_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_falls_on_a_parabola_from_one_to_zero() {
        assert_eq!([0.0, 0.5, 1.0].map(alpha), [1.0, 0.75, 0.0]);
    }

    #[test]
    fn the_rate_warms_up_then_falls_in_a_straight_line() {
        let options = TrainOptions {
            warm_up: 0.1,
            final_rate: 0.1,
            ..TrainOptions::new(MatcherConfig::new(4, 2))
        };
        let at = |t| rate_factor(&options, t, 100.0);
        assert!((at(5) - 0.5).abs() < 1e-6);
        assert!((at(10) - 1.0).abs() < 1e-6);
        assert!((at(55) - 0.55).abs() < 1e-6);
        assert!((at(100) - 0.1).abs() < 1e-6);
    }
}
