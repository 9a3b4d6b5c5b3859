//! Training the bilateral-branch GIN that matches a text's KeyGraph to label clusters.
//!
//! The network itself, its equations and its forward pass are [`gnnxml_shared::model::matcher`]; this room finds its weights. It never
//! reads corpora, builds KeyGraphs or clusters labels: it takes [`PreparedGraphs`] and lists of positive clusters. Start at [`train`], then
//! `gin` (the network and its gradient by hand, for CPUs) beside `composed` (the same in candle's operations, for any device).

mod batch;
mod checkpoint;
mod composed;
mod data;
mod engine;
mod fused;
mod gin;
mod heads;
mod layout;
mod lists;
mod options;
mod panels;
mod predict;
mod prepared;
mod radam;
mod rows;
mod sampler;
mod sgemm;
mod table;
mod train;
mod wide;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use data::{TrainData, ValidationData};
pub use engine::{DeviceChoice, Precision};
pub use lists::Lists;
pub use options::{TrainOptions, WordDescent};
pub use predict::{MatchQuality, logits, match_quality, predict};
pub use prepared::{PreparedGraphs, PreparedWriter};
pub use radam::{RAdam, Step, StepFactors};
pub use sampler::{ReversedSampler, UniformSampler};
pub use sgemm::measured_peak_gflops;
pub use train::{TrainedMatcher, train, train_with};

/// What can go wrong in this room.
#[derive(Debug, thiserror::Error)]
pub enum MatcherError {
    #[error(transparent)]
    Model(#[from] gnnxml_shared::model::matcher::MatcherError),
    #[error("training setting `{setting}` is {found}; expected {expected}")]
    Setting {
        setting: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("training data: {what}: found {found}, expected {expected}")]
    Data {
        what: &'static str,
        found: u64,
        expected: u64,
    },
    #[error("{}: {what}: found {found}, expected {expected}", path.display())]
    File {
        path: PathBuf,
        what: &'static str,
        found: String,
        expected: String,
    },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "the loss became {loss} in epoch {epoch}, step {step}; lower the learning rate (now {rate}) or clip harder. {}",
        last_good.as_ref().map_or_else(
            || "No checkpoint was asked for, so nothing was kept".to_owned(),
            |path| format!("The last good checkpoint is {}", path.display()),
        )
    )]
    NotFinite {
        loss: f64,
        epoch: u32,
        step: u64,
        rate: f32,
        last_good: Option<PathBuf>,
    },
    #[error("device `{asked}` cannot be used: {reason}")]
    Device { asked: String, reason: String },
    #[error("not enough memory for a single pair of documents: {0}")]
    OutOfMemory(String),
    #[error("tensor operation: {0}")]
    Candle(#[from] candle_core::Error),
    #[error(transparent)]
    Collective(#[from] crate::collective::CollectiveError),
}

/// Loss sums over pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    /// αE(ĝ, g_c) + (1−α)E(ĝ, g_r).
    pub(crate) total: f64,
    /// E(ĝ, g_c) and E(ĝ, g_r).
    pub(crate) sides: [f64; 2],
}

impl Losses {
    fn add(&mut self, other: Self) {
        self.total += other.total;
        self.sides[0] += other.sides[0];
        self.sides[1] += other.sides[1];
    }

    fn scale(&mut self, factor: f64) {
        self.total *= factor;
        self.sides = self.sides.map(|side| side * factor);
    }
}

/// Where in the training a step stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) alpha: f32,
    /// Pairs the gradient is the mean over.
    pub(crate) pairs: usize,
    /// w, the weight of a positive cluster in the cross-entropy.
    pub(crate) positive_weight: f32,
    pub(crate) dropout_key: u64,
    /// Whether dropout is on.
    pub(crate) training: bool,
}

impl Moment {
    /// α and 1−α, or all for the only branch.
    pub(crate) fn shares(&self, branches: usize) -> [f32; 2] {
        if branches == 1 {
            [1.0, 0.0]
        } else {
            [self.alpha, 1.0 - self.alpha]
        }
    }
}
