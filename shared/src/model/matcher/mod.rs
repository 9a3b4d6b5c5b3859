//! The matcher: a bilateral-branch graph isomorphism network from a text's KeyGraph to label clusters.
//!
//! The reference forward pass, in plain `f32`. It never trains (that is the backend's `matcher` room) and
//! never decides what a KeyGraph is (that is [`crate::keygraph`]). Start at [`MatcherConfig`], whose
//! documentation holds the equations, then [`GraphInput`], then [`Matcher::forward`].
//!
//! ```
//! use gnnxml_shared::model::matcher::{GraphInput, Matcher, MatcherConfig};
//!
//! let config = MatcherConfig { hidden: 8, layers: 1, ..MatcherConfig::new(4, 3) };
//! let matcher = Matcher::zeros(config).unwrap();
//! let logits = matcher.forward(&GraphInput::empty(4)).unwrap();
//! assert_eq!(logits.len(), 3);
//! ```

mod config;
mod forward;
mod input;
mod linear;
mod weights;

#[cfg(test)]
mod tests;

pub use config::{EdgeWeights, MatcherConfig, ReadoutNorm, TensorSpec, Variant};
pub use forward::{Matcher, probabilities, top_clusters};
pub use input::{GraphInput, LEFT_OVER};
pub use linear::matmul;
pub use weights::NamedTensor;

/// Added to the variance inside every norm.
pub const NORM_EPSILON: f32 = 1e-5;

/// What can be wrong with a configuration, its weights or a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    #[error("matcher setting `{setting}` is {found}; expected {expected}")]
    Setting {
        setting: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("matcher weight `{name}` is missing; the model expects it with shape {expected:?}")]
    MissingTensor { name: String, expected: Vec<usize> },
    #[error("matcher weight `{name}` has shape {found:?}; expected {expected:?}")]
    TensorShape {
        name: String,
        found: Vec<usize>,
        expected: Vec<usize>,
    },
    #[error("matcher weight `{name}` is not part of this model")]
    UnknownTensor { name: String },
    #[error("graph: {what}: found {found}, expected {expected}")]
    Graph {
        what: &'static str,
        found: usize,
        expected: usize,
    },
}
