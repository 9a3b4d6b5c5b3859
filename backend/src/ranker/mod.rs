//! Per-label linear classifiers: p(y_ℓ | z = k, x) over TF-IDF ⊕ document embedding.
//!
//! Every label gets one L2-regularised classifier, trained the way LIBLINEAR does: dual coordinate descent over the
//! documents that the label's cluster could see ([`candidates`]), in parallel over labels, all labels reading rows of
//! one shared matrix ([`Rows`]). The room never reads files and never decides what the features are.
//!
//! Start reading at [`train_rankers`], then [`hinge`] and [`logistic`], the two solvers.

pub mod block;
pub mod candidates;
mod directions;
pub mod hinge;
mod lanes;
pub mod logistic;
pub mod platt;
mod rows;
mod solve;
mod train;

pub use directions::Directions;
pub use rows::{Rows, RowsError};
pub use solve::{Costs, Dual, Problem, SolverOptions};
pub use train::{Loss, RankerConfig, TrainedRankers, TrainingSet, train_rankers};

#[cfg(test)]
mod tests;
