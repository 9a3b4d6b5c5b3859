//! How far probabilities are from what comes true.

use super::evaluation::ratio;
use super::exact_sum::ExactSum;
use super::report::CalibrationBin;

/// Predictions by probability, in intervals of equal width.
#[derive(Clone, Debug)]
pub(super) struct Calibration {
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    predictions: u64,
    hits: u64,
    confidence: ExactSum,
}

impl Calibration {
    pub(super) fn new(bins: usize) -> Self {
        Self {
            bins: vec![Bin::default(); bins.max(1)],
        }
    }

    /// One prediction of a probability between 0 and 1, and whether it came true.
    pub(super) fn add(&mut self, probability: f64, hit: bool) {
        let bins = self.bins.len();
        let bin = &mut self.bins[((probability * bins as f64) as usize).min(bins - 1)];
        bin.predictions += 1;
        bin.hits += u64::from(hit);
        bin.confidence.add(probability);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.bins.iter_mut().zip(&other.bins) {
            ours.predictions += theirs.predictions;
            ours.hits += theirs.hits;
            ours.confidence.merge(theirs.confidence);
        }
    }

    /// Expected calibration error: Σ_b (n_b / n)·|accuracy_b − confidence_b|.
    pub(super) fn expected_error(&self) -> f64 {
        let all: u64 = self.bins.iter().map(|bin| bin.predictions).sum();
        let gaps: f64 = (self.bins.iter())
            .map(|bin| (bin.hits as f64 - bin.confidence.value()).abs())
            .sum();
        ratio(gaps, all as f64)
    }

    /// The intervals that hold a prediction.
    pub(super) fn bins(&self) -> Vec<CalibrationBin> {
        let width = 1.0 / self.bins.len() as f64;
        (self.bins.iter().enumerate())
            .filter(|(_, bin)| bin.predictions > 0)
            .map(|(number, bin)| CalibrationBin {
                from: number as f64 * width,
                to: (number + 1) as f64 * width,
                predictions: bin.predictions,
                confidence: bin.confidence.value() / bin.predictions as f64,
                accuracy: bin.hits as f64 / bin.predictions as f64,
            })
            .collect()
    }
}
