//! Rankings in, figures out.

use std::sync::Arc;

use super::calibration::Calibration;
use super::exact_sum::ExactSum;
use super::propensity::LabelFrequencies;
use super::report::{BucketFigures, EvaluationReport, FrequencyBucket};

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationOptions {
    /// The depths k, ascending.
    pub depths: Vec<usize>,
    /// Labels with at least this probability count as given, for F1.
    pub threshold: f32,
    /// Intervals of equal width for the expected calibration error.
    pub calibration_bins: usize,
}

impl Default for EvaluationOptions {
    fn default() -> Self {
        Self {
            depths: vec![1, 3, 5],
            threshold: 0.5,
            calibration_bins: 15,
        }
    }
}

/// Steps of the search for the best cutoff.
const CUTOFF_STEPS: usize = 1000;

/// Labels of a document that are shown unless told otherwise. Far below them nearly every probability is about 0 and about
/// right, which flatters an error averaged over all.
const SHOWN: usize = 10;

/// No hit so far.
const NEVER: u32 = u32::MAX;

/// Sums over documents; merge those of several threads, then [`finish`](Self::finish).
///
/// ```
/// use std::sync::Arc;
/// use gnnxml_shared::metrics::{Evaluation, EvaluationOptions, LabelFrequencies, Propensity};
/// let labels = Arc::new(LabelFrequencies::new(vec![50, 3, 1], 100, Propensity::default()));
/// let mut evaluation = Evaluation::new(labels, EvaluationOptions::default());
/// evaluation.add(&[(0, 0.9), (2, 0.4), (1, 0.1)], &[0, 1]);
/// let report = evaluation.finish();
/// assert_eq!(report.get("P@1"), Some(100.0));
/// assert!((report.get("P@3").unwrap() - 200.0 / 3.0).abs() < 1e-9);
/// ```
#[derive(Clone, Debug)]
pub struct Evaluation {
    labels: Arc<LabelFrequencies>,
    options: EvaluationOptions,
    documents: u64,
    without_labels: u64,
    unknown_labels: u64,
    at: Vec<AtDepth>,
    /// True positives, false positives and false negatives of each label at the threshold.
    confusion: Vec<Confusion>,
    /// Best place (from 0) at which each label was ever right; [`NEVER`] if it was not.
    best_place: Vec<u32>,
    /// Of every ranked label.
    calibration: Calibration,
    /// Of the first [`SHOWN`] of each document.
    calibration_shown: Calibration,
    /// Right and wrong predictions by probability, for the best cutoff.
    cutoffs: Vec<[u64; 2]>,
    truths: u64,
}

#[derive(Clone, Debug, Default)]
struct AtDepth {
    hits: u64,
    recall: ExactSum,
    r_precision: ExactSum,
    ndcg: ExactSum,
    psp_gain: ExactSum,
    psp_best: ExactSum,
    psdcg_gain: ExactSum,
    psdcg_best: ExactSum,
    buckets: [BucketCounts; FrequencyBucket::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct BucketCounts {
    truths: u64,
    predicted: u64,
    hits: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Confusion {
    both: u32,
    predicted: u32,
    truth: u32,
}

impl Evaluation {
    /// `labels`: the training counts that propensities and frequency buckets come from.
    pub fn new(labels: Arc<LabelFrequencies>, options: EvaluationOptions) -> Self {
        let known = labels.len();
        Self {
            at: vec![AtDepth::default(); options.depths.len()],
            confusion: vec![Confusion::default(); known],
            best_place: vec![NEVER; known],
            calibration: Calibration::new(options.calibration_bins),
            calibration_shown: Calibration::new(options.calibration_bins),
            cutoffs: vec![[0; 2]; CUTOFF_STEPS + 1],
            labels,
            options,
            documents: 0,
            without_labels: 0,
            unknown_labels: 0,
            truths: 0,
        }
    }

    /// Counts true labels of a document that the model cannot know; they are left out of `truth` in [`add`](Self::add).
    pub fn add_unknown_labels(&mut self, count: usize) {
        self.unknown_labels += count as u64;
    }

    /// One document: its labels ranked best first with their probabilities, and its true labels in any order.
    ///
    /// A label may stand only once in `ranked`. A document without a true label is counted and left out. For F1 and
    /// the best cutoff the ranking must reach down to the threshold.
    pub fn add(&mut self, ranked: &[(u32, f32)], truth: &[u32]) {
        let mut truth = truth.to_vec();
        truth.sort_unstable();
        truth.dedup();
        if truth.is_empty() {
            self.without_labels += 1;
            return;
        }
        self.documents += 1;
        self.truths += truth.len() as u64;
        let hit: Vec<bool> = ranked
            .iter()
            .map(|(label, _)| truth.binary_search(label).is_ok())
            .collect();
        let mut weights: Vec<f64> = truth
            .iter()
            .map(|&label| self.labels.inverse_propensity(label))
            .collect();
        weights.sort_unstable_by(|left, right| right.total_cmp(left));
        for (at, &k) in self.at.iter_mut().zip(&self.options.depths) {
            at.add(&self.labels, k, ranked, &hit, &truth, &weights);
        }
        self.add_decisions(ranked, &hit, &truth);
    }

    /// Everything that looks at probabilities or at labels rather than at places.
    fn add_decisions(&mut self, ranked: &[(u32, f32)], hit: &[bool], truth: &[u32]) {
        for &label in truth {
            self.confusion[label as usize].truth += 1;
        }
        for (place, (&(label, probability), &hit)) in ranked.iter().zip(hit).enumerate() {
            let confusion = &mut self.confusion[label as usize];
            if probability >= self.options.threshold {
                confusion.predicted += 1;
                confusion.both += u32::from(hit);
            }
            if hit {
                let best = &mut self.best_place[label as usize];
                *best = (*best).min(place as u32);
            }
            // NaN becomes 0: a prediction without a probability is one without confidence.
            let probability = f64::from(probability).clamp(0.0, 1.0);
            let probability = if probability.is_nan() { 0.0 } else { probability };
            self.calibration.add(probability, hit);
            if place < SHOWN {
                self.calibration_shown.add(probability, hit);
            }
            // The nudge keeps a probability written with three digits in its own step despite single precision.
            let step = (probability * CUTOFF_STEPS as f64 + 1e-3) as usize;
            self.cutoffs[step.min(CUTOFF_STEPS)][usize::from(!hit)] += 1;
        }
    }

    /// Adds what another thread has seen. Both must have been made with the same labels and options.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(
            self.options, other.options,
            "evaluations of different settings cannot be merged"
        );
        assert_eq!(
            self.labels.len(),
            other.labels.len(),
            "evaluations of different labels cannot be merged"
        );
        self.documents += other.documents;
        self.without_labels += other.without_labels;
        self.unknown_labels += other.unknown_labels;
        self.truths += other.truths;
        for (ours, theirs) in self.at.iter_mut().zip(&other.at) {
            ours.merge(theirs);
        }
        for (ours, theirs) in self.confusion.iter_mut().zip(&other.confusion) {
            ours.both += theirs.both;
            ours.predicted += theirs.predicted;
            ours.truth += theirs.truth;
        }
        for (ours, &theirs) in self.best_place.iter_mut().zip(&other.best_place) {
            *ours = (*ours).min(theirs);
        }
        self.calibration.merge(&other.calibration);
        self.calibration_shown.merge(&other.calibration_shown);
        for (ours, theirs) in self.cutoffs.iter_mut().zip(&other.cutoffs) {
            ours[0] += theirs[0];
            ours[1] += theirs[1];
        }
    }

    /// The figures, in percent.
    pub fn finish(&self) -> EvaluationReport {
        let documents = self.documents as f64;
        let mut values = std::collections::BTreeMap::new();
        let mut buckets = Vec::new();
        for (at, &k) in self.at.iter().zip(&self.options.depths) {
            let mut put = |name: &str, value: f64| values.insert(format!("{name}@{k}"), 100.0 * value);
            put("P", ratio(at.hits as f64, documents * k as f64));
            put("R", ratio(at.recall.value(), documents));
            put("RP", ratio(at.r_precision.value(), documents));
            put("nDCG", ratio(at.ndcg.value(), documents));
            put("PSP", ratio(at.psp_gain.value(), at.psp_best.value()));
            put("PSnDCG", ratio(at.psdcg_gain.value(), at.psdcg_best.value()));
            put("coverage", self.coverage(k));
            for (bucket, counts) in FrequencyBucket::ALL.into_iter().zip(at.buckets) {
                if counts.truths + counts.predicted > 0 {
                    buckets.push(counts.figures(bucket, k));
                }
            }
        }
        values.insert("micro_f1".into(), 100.0 * self.micro_f1());
        values.insert("macro_f1".into(), 100.0 * self.macro_f1());
        values.insert("ece".into(), 100.0 * self.calibration.expected_error());
        values.insert(
            "ece_shown".into(),
            100.0 * self.calibration_shown.expected_error(),
        );
        let (best_cutoff, best) = self.best_cutoff();
        EvaluationReport {
            documents: self.documents,
            documents_without_labels: self.without_labels,
            unknown_labels: self.unknown_labels,
            values,
            best_cutoff,
            best_cutoff_micro_f1: 100.0 * best,
            buckets,
            calibration: self.calibration.bins(),
        }
    }

    /// Share of the labels that occur in the truth and are right at least once among the first k.
    fn coverage(&self, k: usize) -> f64 {
        let occurring = self.confusion.iter().filter(|label| label.truth > 0).count();
        let covered = self
            .best_place
            .iter()
            .filter(|&&place| (place as usize) < k && place != NEVER)
            .count();
        ratio(covered as f64, occurring as f64)
    }

    /// F1 of all decisions together: 2·TP / (predicted + true).
    fn micro_f1(&self) -> f64 {
        let sum = |part: fn(&Confusion) -> u32| -> f64 {
            self.confusion
                .iter()
                .map(|label| u64::from(part(label)))
                .sum::<u64>() as f64
        };
        ratio(
            2.0 * sum(|label| label.both),
            sum(|label| label.predicted) + sum(|label| label.truth),
        )
    }

    /// Mean F1 of the labels that occur in the truth; a label that is never right counts 0.
    fn macro_f1(&self) -> f64 {
        let occurring: Vec<f64> = self
            .confusion
            .iter()
            .filter(|label| label.truth > 0)
            .map(|label| 2.0 * f64::from(label.both) / (f64::from(label.predicted) + f64::from(label.truth)))
            .collect();
        ratio(occurring.iter().sum(), occurring.len() as f64)
    }

    /// The highest of the best cutoffs among 0, 0.001, … 1, with its micro-F1.
    fn best_cutoff(&self) -> (f64, f64) {
        let (mut right, mut predicted) = (0_u64, 0_u64);
        let mut best = (1.0, 0.0);
        for (step, [hits, misses]) in self.cutoffs.iter().enumerate().rev() {
            right += hits;
            predicted += hits + misses;
            let f1 = ratio(2.0 * right as f64, (predicted + self.truths) as f64);
            if f1 > best.1 {
                best = (step as f64 / CUTOFF_STEPS as f64, f1);
            }
        }
        best
    }
}

impl AtDepth {
    /// `weights`: 1/p of the true labels, largest first.
    fn add(
        &mut self,
        labels: &LabelFrequencies,
        k: usize,
        ranked: &[(u32, f32)],
        hit: &[bool],
        truth: &[u32],
        weights: &[f64],
    ) {
        let bucket = |label: u32| FrequencyBucket::of(labels.count(label)) as usize;
        let (mut hits, mut dcg, mut ps_gain, mut ps_dcg) = (0_u32, 0.0, 0.0, 0.0);
        for (place, (&(label, _), &hit)) in ranked.iter().zip(hit).take(k).enumerate() {
            let counts = &mut self.buckets[bucket(label)];
            counts.predicted += 1;
            if hit {
                counts.hits += 1;
                hits += 1;
                dcg += discount(place);
                ps_gain += labels.inverse_propensity(label);
                ps_dcg += labels.inverse_propensity(label) * discount(place);
            }
        }
        for &label in truth {
            self.buckets[bucket(label)].truths += 1;
        }
        let reachable = truth.len().min(k);
        self.hits += u64::from(hits);
        self.recall.add(f64::from(hits) / truth.len() as f64);
        self.r_precision.add(ratio(f64::from(hits), reachable as f64));
        self.ndcg.add(ratio(dcg, (0..reachable).map(discount).sum()));
        self.psp_gain.add(ps_gain);
        self.psp_best.add(weights.iter().take(k).sum());
        self.psdcg_gain.add(ps_dcg);
        self.psdcg_best.add(
            weights
                .iter()
                .take(k)
                .enumerate()
                .map(|(place, weight)| weight * discount(place))
                .sum(),
        );
    }

    fn merge(&mut self, other: &Self) {
        self.hits += other.hits;
        self.recall.merge(other.recall);
        self.r_precision.merge(other.r_precision);
        self.ndcg.merge(other.ndcg);
        self.psp_gain.merge(other.psp_gain);
        self.psp_best.merge(other.psp_best);
        self.psdcg_gain.merge(other.psdcg_gain);
        self.psdcg_best.merge(other.psdcg_best);
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            ours.truths += theirs.truths;
            ours.predicted += theirs.predicted;
            ours.hits += theirs.hits;
        }
    }
}

impl BucketCounts {
    fn figures(self, bucket: FrequencyBucket, k: usize) -> BucketFigures {
        let percent = |of: u64| {
            if of == 0 {
                None
            } else {
                Some(100.0 * self.hits as f64 / of as f64)
            }
        };
        BucketFigures {
            bucket,
            k,
            truths: self.truths,
            predicted: self.predicted,
            hits: self.hits,
            precision: percent(self.predicted),
            recall: percent(self.truths),
        }
    }
}

/// 1 / log₂(place + 2) for a place from 0.
fn discount(place: usize) -> f64 {
    1.0 / (place as f64 + 2.0).log2()
}

/// A part of a whole; nothing of nothing is 0.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}
