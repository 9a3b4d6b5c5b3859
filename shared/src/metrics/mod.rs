//! How good a ranking of labels is: P@k, nDCG@k, their propensity-scored twins, recall, F1, coverage, calibration.
//!
//! Figures are those of the Extreme Classification Repository. Nothing here ranks or reads: rankings come in one
//! document at a time, sums go out. The sums are exact, so the figures do not depend on how documents were spread over
//! threads. Start reading at [`Evaluation`], then [`label_propensity`].

mod calibration;
mod evaluation;
mod exact_sum;
mod propensity;
mod report;

pub use evaluation::{Evaluation, EvaluationOptions};
pub use propensity::{LabelFrequencies, Propensity, label_propensity};
pub use report::{BucketFigures, CalibrationBin, EvaluationReport, FrequencyBucket};

#[cfg(test)]
mod brute_force;
#[cfg(test)]
mod tests;
