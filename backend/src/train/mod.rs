//! The training pipeline: from a corpus to a model directory, stage by stage, each stage's result kept until the end.
//!
//! It joins the other rooms and owns no algorithm of its own beside the fitting of the score ([`fit`]). It never talks to
//! a terminal: what happens goes out as [`TrainEvent`]s. Start reading at [`train`] in `pipeline.rs`, then [`Model`].

mod codec;
mod config;
mod encode;
mod error;
mod examples;
pub mod fit;
mod gather;
mod learn;
mod matching;
mod model;
mod monotone;
mod parts;
mod pipeline;
mod place;
mod progress;
mod ranking;
mod work;

#[cfg(test)]
mod tests;

pub use codec::{PartError, PartReader, PartWriter};
pub use config::{
    CalibrationKind, ConfigError, EncoderSettings, LabelFeatures, MatcherKind, MatcherSettings, PRESETS,
    RankerSettings, ScoreSettings, TrainConfig, preset,
};
pub use error::TrainError;
pub use examples::Examples;
pub(crate) use gather::reading_of;
pub use gather::{Gathered, gather};
pub use learn::{LearnError, LearnRequest, Learned, learn};
pub(crate) use matching::{best_share, linear_solver};
pub use model::{CorpusFacts, MODEL_VERSION, Manifest, Model, ModelError, read_manifest};
pub use pipeline::{Outcome, TrainRequest, train};
pub use progress::Progress;

#[cfg(doc)]
use gnnxml_shared::api::TrainEvent;
