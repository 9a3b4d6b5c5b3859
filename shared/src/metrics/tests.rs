//! Figures worked by hand.
//!
//! Four labels with 99, 9, 3 and 1 of N = 100 training documents, and A = B = 1, so that C = (ln 100 − 1)·2 = 7.210340
//! and 1/p_ℓ = 1 + C/(n_ℓ + 1): 1.072103, 1.721034, 2.802585, 4.605170.
//! Document A is ranked 0 2 1 and truly carries 0 and 1: right, wrong, right.
//! Document B is ranked 3 0 2 and truly carries 1, 2 and 3: right, wrong, right.

use super::*;
use std::sync::Arc;

fn example(options: EvaluationOptions) -> Evaluation {
    let labels = Arc::new(LabelFrequencies::new(
        vec![99, 9, 3, 1],
        100,
        Propensity { a: 1.0, b: 1.0 },
    ));
    let mut evaluation = Evaluation::new(labels, options);
    evaluation.add(&[(0, 0.9), (2, 0.6), (1, 0.3)], &[0, 1]);
    evaluation.add(&[(3, 0.8), (0, 0.7), (2, 0.2)], &[3, 1, 2]);
    evaluation
}

fn assert_percent(report: &EvaluationReport, name: &str, expected: f64) {
    let found = report.get(name).unwrap_or_else(|| panic!("{name} is missing"));
    assert!(
        (found - expected).abs() < 2e-4,
        "{name}: {found} instead of {expected}"
    );
}

#[test]
fn propensities_follow_the_formula() {
    // C = (ln 15539 − 1)·2.5^0.55 = 8.651109·1.655308 = 14.320252; (1 + 1.5)^−0.55 = 0.604117;
    // p = 1/(1 + 14.320252·0.604117) = 1/9.651109.
    let c = (15539_f64.ln() - 1.0) * 2.5_f64.powf(0.55);
    assert!((c - 14.3203).abs() < 1e-3, "{c}");
    assert!((1.0 / label_propensity(1, 15_539, 0.55, 1.5) - 9.6511).abs() < 1e-3);
    // A corpus of one document: C is cut at 0.
    assert_eq!(label_propensity(1, 1, 0.55, 1.5), 1.0);
}

#[test]
fn precision_recall_and_r_precision_by_hand() {
    let report = example(EvaluationOptions::default()).finish();
    assert_percent(&report, "P@1", 100.0); // both first places are right
    assert_percent(&report, "P@3", 200.0 / 3.0); // two of three, twice
    assert_percent(&report, "P@5", 40.0); // a short ranking still counts five places
    assert_percent(&report, "R@1", 100.0 * (1.0 / 2.0 + 1.0 / 3.0) / 2.0);
    assert_percent(&report, "R@3", 100.0 * (2.0 / 2.0 + 2.0 / 3.0) / 2.0);
    assert_percent(&report, "RP@1", 100.0); // min(k, truths) = 1
    assert_percent(&report, "RP@3", 100.0 * (2.0 / 2.0 + 2.0 / 3.0) / 2.0);
}

#[test]
fn ndcg_by_hand() {
    let report = example(EvaluationOptions::default()).finish();
    assert_percent(&report, "nDCG@1", 100.0);
    // DCG of both: 1/log₂2 + 1/log₂4 = 1.5. Ideal A: 1 + 1/log₂3 = 1.6309298; ideal B: that + 1/log₂4 = 2.1309298.
    assert_percent(
        &report,
        "nDCG@3",
        100.0 * (1.5 / 1.630_929_8 + 1.5 / 2.130_929_8) / 2.0,
    );
}

#[test]
fn propensity_scored_figures_by_hand() {
    let report = example(EvaluationOptions::default()).finish();
    // PSP@1: (1.072103 + 4.605170) / (1.721034 + 4.605170)
    assert_percent(&report, "PSP@1", 100.0 * 5.677_273_6 / 6.326_204_2);
    // PSP@3: gains 1.072103 + 1.721034 and 4.605170 + 2.802585; the best are those, and all three of B.
    assert_percent(&report, "PSP@3", 100.0 * 10.200_892_6 / 11.921_926_6);
    assert_percent(&report, "PSnDCG@1", 100.0 * 5.677_273_6 / 6.326_204_2);
    // Gains: A 1.072103 + 1.721034/2 = 1.932620; B 4.605170 + 2.802585/2 = 6.006463.
    // Best: A 1.721034 + 0.630930·1.072103 = 2.397456; B 4.605170 + 0.630930·2.802585 + 1.721034/2 = 7.233922.
    assert_percent(&report, "PSnDCG@3", 100.0 * 7.939_083 / 9.631_378);
}

#[test]
fn f1_and_coverage_by_hand() {
    let report = example(EvaluationOptions::default()).finish();
    // At 0.5: A is given {0, 2}, B {3, 0}; two of the four are right, five are true: 2·2/(4 + 5).
    assert_percent(&report, "micro_f1", 400.0 / 9.0);
    // Label 0: 2·1/(2 + 1); labels 1 and 2 never right; label 3: 2·1/(1 + 1).
    assert_percent(&report, "macro_f1", 100.0 * (2.0 / 3.0 + 0.0 + 0.0 + 1.0) / 4.0);
    // Labels 0 and 3 are right in first place; 1 and 2 in third.
    assert_percent(&report, "coverage@1", 50.0);
    assert_percent(&report, "coverage@3", 100.0);
}

#[test]
fn calibration_and_best_cutoff_by_hand() {
    let report = example(EvaluationOptions {
        calibration_bins: 2,
        ..Default::default()
    })
    .finish();
    // Below 0.5: 0.3 and 0.2, both right: |2 − 0.5|. Above: 0.9, 0.6, 0.8, 0.7, two right: |2 − 3.0|.
    assert_percent(&report, "ece", 100.0 * (1.5 + 1.0) / 6.0);
    assert_eq!(report.calibration.len(), 2);
    assert_eq!(report.calibration[1].predictions, 4);
    // Keeping all six: 2·4/(6 + 5); every higher cutoff is worse.
    assert!((report.best_cutoff - 0.2).abs() < 1e-9);
    assert!((report.best_cutoff_micro_f1 - 800.0 / 11.0).abs() < 1e-9);
}

#[test]
fn the_calibration_error_of_what_is_shown_stops_at_ten_labels() {
    let labels = Arc::new(LabelFrequencies::new(vec![5; 12], 100, Propensity::default()));
    let mut evaluation = Evaluation::new(
        labels,
        EvaluationOptions {
            calibration_bins: 2,
            ..Default::default()
        },
    );
    // Right at 0.75, wrong at 0.25 nine times; then, not shown any more, one right and one wrong at 0.
    let shown = [(0, 0.75)].into_iter().chain((1..10).map(|label| (label, 0.25)));
    let ranked: Vec<(u32, f32)> = shown.chain([(10, 0.0), (11, 0.0)]).collect();
    evaluation.add(&ranked, &[0, 10]);
    let report = evaluation.finish();
    // Above 0.5: |1 − 0.75|. Below: nothing right of 9·0.25, |0 − 2.25|.
    assert_percent(&report, "ece_shown", 100.0 * (0.25 + 2.25) / 10.0);
    // The two below add one that is right: |1 − 2.25|, among twelve.
    assert_percent(&report, "ece", 100.0 * (0.25 + 1.25) / 12.0);
    assert_eq!(report.calibration[0].predictions, 11);
}

#[test]
fn frequency_buckets_by_hand() {
    let report = example(EvaluationOptions {
        depths: vec![3],
        ..Default::default()
    })
    .finish();
    let counts: Vec<_> = report
        .buckets
        .iter()
        .map(|b| (b.bucket, b.truths, b.predicted, b.hits))
        .collect();
    assert_eq!(
        counts,
        [
            (FrequencyBucket::From10To100, 1, 2, 1),
            (FrequencyBucket::From2To9, 3, 3, 2),
            (FrequencyBucket::One, 1, 1, 1),
        ]
    );
    assert_eq!(report.buckets[0].precision, Some(50.0));
    assert_eq!(report.buckets[1].recall, Some(200.0 / 3.0));
}

#[test]
fn documents_without_a_true_label_are_left_out_and_counted() {
    let mut evaluation = example(EvaluationOptions::default());
    let before = evaluation.finish();
    evaluation.add(&[(0, 0.99)], &[]);
    evaluation.add_unknown_labels(2);
    let after = evaluation.finish();
    assert_eq!(after.values, before.values);
    assert_eq!(
        (
            after.documents,
            after.documents_without_labels,
            after.unknown_labels
        ),
        (2, 1, 2)
    );
}

#[test]
fn an_evaluation_of_nothing_is_all_zeros() {
    let labels = Arc::new(LabelFrequencies::new(vec![], 0, Propensity::default()));
    let report = Evaluation::new(labels, EvaluationOptions::default()).finish();
    assert_eq!(report.documents, 0);
    assert!(report.values.values().all(|&value| value == 0.0));
}
