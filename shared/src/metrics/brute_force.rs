//! The same figures a second time, straight from their definitions over dense vectors, to hold the fast ones to.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const LABELS: usize = 12;

/// A whole evaluation as dense rows: for each document the places of all labels, and the truth.
#[derive(Clone, Debug)]
struct Dense {
    counts: Vec<u32>,
    documents: u64,
    rankings: Vec<Vec<(u32, f32)>>,
    truths: Vec<Vec<u32>>,
}

fn dense() -> impl Strategy<Value = Dense> {
    let row = (
        Just((0..LABELS as u32).collect::<Vec<_>>()).prop_shuffle(),
        proptest::collection::vec(0_u16..=1000, 0..=LABELS),
        proptest::collection::btree_set(0_u32..LABELS as u32, 0..6),
    )
        .prop_map(|(labels, mut scores, truth)| {
            scores.sort_unstable_by(|a, b| b.cmp(a));
            let ranked = labels
                .into_iter()
                .zip(scores.into_iter().map(|s| f32::from(s) / 1000.0))
                .collect();
            (ranked, truth.into_iter().collect())
        });
    (
        proptest::collection::vec(1_u32..300, LABELS),
        3_u64..100_000,
        proptest::collection::vec(row, 0..12),
    )
        .prop_map(|(counts, documents, rows): (_, _, Vec<(_, _)>)| {
            let (rankings, truths) = rows.into_iter().unzip();
            Dense {
                counts,
                documents,
                rankings,
                truths,
            }
        })
}

impl Dense {
    fn scored(&self) -> impl Iterator<Item = (&Vec<(u32, f32)>, &Vec<u32>)> {
        self.rankings
            .iter()
            .zip(&self.truths)
            .filter(|(_, truth)| !truth.is_empty())
    }

    fn weight(&self, label: u32) -> f64 {
        let c = ((self.documents as f64).ln() - 1.0).max(0.0) * 2.5_f64.powf(0.55);
        1.0 + c / (f64::from(self.counts[label as usize]) + 1.5).powf(0.55)
    }

    /// Mean over documents of what `of` says about (hits in order of place, number of true labels).
    fn mean(&self, k: usize, of: impl Fn(&[bool], usize) -> f64) -> f64 {
        let all: Vec<f64> = self
            .scored()
            .map(|(ranked, truth)| {
                let hits: Vec<bool> = ranked.iter().take(k).map(|(l, _)| truth.contains(l)).collect();
                of(&hits, truth.len())
            })
            .collect();
        if all.is_empty() {
            0.0
        } else {
            100.0 * all.iter().sum::<f64>() / all.len() as f64
        }
    }

    /// Gain of the ranking over the best gain, with a discount by place.
    fn propensity_scored(&self, k: usize, discount: impl Fn(usize) -> f64) -> f64 {
        let (mut gain, mut best) = (0.0, 0.0);
        for (ranked, truth) in self.scored() {
            for place in 0..k.min(ranked.len()) {
                if truth.contains(&ranked[place].0) {
                    gain += self.weight(ranked[place].0) * discount(place);
                }
            }
            let mut weights: Vec<f64> = truth.iter().map(|&l| self.weight(l)).collect();
            weights.sort_by(|a, b| b.partial_cmp(a).unwrap());
            for (place, weight) in weights.into_iter().enumerate().take(k) {
                best += weight * discount(place);
            }
        }
        if best == 0.0 { 0.0 } else { 100.0 * gain / best }
    }

    /// For each label: (true positives, false positives, false negatives) when `kept` decides.
    fn confusion(&self, threshold: f32) -> Vec<(f64, f64, f64)> {
        (0..LABELS as u32)
            .map(|label| {
                let (mut tp, mut fp, mut fneg) = (0.0, 0.0, 0.0);
                for (ranked, truth) in self.scored() {
                    let given = ranked.iter().any(|&(l, p)| l == label && p >= threshold);
                    match (given, truth.contains(&label)) {
                        (true, true) => tp += 1.0,
                        (true, false) => fp += 1.0,
                        (false, true) => fneg += 1.0,
                        (false, false) => {}
                    }
                }
                (tp, fp, fneg)
            })
            .collect()
    }

    fn micro_f1(&self, threshold: f32) -> f64 {
        let (tp, fp, fneg) = self
            .confusion(threshold)
            .into_iter()
            .fold((0.0, 0.0, 0.0), |sum, one| {
                (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2)
            });
        if tp == 0.0 {
            return 0.0;
        }
        let (precision, recall) = (tp / (tp + fp), tp / (tp + fneg));
        100.0 * 2.0 * precision * recall / (precision + recall)
    }

    fn macro_f1(&self, threshold: f32) -> f64 {
        let each: Vec<f64> = self
            .confusion(threshold)
            .into_iter()
            .filter(|(tp, _, fneg)| tp + fneg > 0.0)
            .map(|(tp, fp, fneg)| {
                if tp == 0.0 {
                    0.0
                } else {
                    tp / (tp + f64::midpoint(fp, fneg))
                }
            })
            .collect();
        if each.is_empty() {
            0.0
        } else {
            100.0 * each.iter().sum::<f64>() / each.len() as f64
        }
    }

    fn coverage(&self, k: usize) -> f64 {
        let occurring: Vec<u32> = (0..LABELS as u32)
            .filter(|l| self.scored().any(|(_, truth)| truth.contains(l)))
            .collect();
        let covered = occurring
            .iter()
            .filter(|l| {
                self.scored()
                    .any(|(r, truth)| truth.contains(l) && r.iter().take(k).any(|(x, _)| x == *l))
            })
            .count();
        if occurring.is_empty() {
            0.0
        } else {
            100.0 * covered as f64 / occurring.len() as f64
        }
    }

    fn evaluate(&self, rows: std::ops::Range<usize>) -> Evaluation {
        let labels = Arc::new(LabelFrequencies::new(
            self.counts.clone(),
            self.documents,
            Propensity::default(),
        ));
        let mut evaluation = Evaluation::new(labels, EvaluationOptions::default());
        for row in rows {
            evaluation.add(&self.rankings[row], &self.truths[row]);
        }
        evaluation
    }
}

fn by_log(place: usize) -> f64 {
    std::f64::consts::LN_2 / ((place + 2) as f64).ln()
}

proptest! {
    #[test]
    fn the_accumulator_agrees_with_the_definitions(dense in dense()) {
        let report = dense.evaluate(0..dense.rankings.len()).finish();
        let close = |name: String, expected: f64| {
            let found = report.get(&name).unwrap();
            prop_assert!((found - expected).abs() < 1e-6, "{}: {} instead of {}", name, found, expected);
            Ok(())
        };
        let count = |hits: &[bool]| hits.iter().filter(|&&h| h).count() as f64;
        for k in [1, 3, 5] {
            close(format!("P@{k}"), dense.mean(k, |hits, _| count(hits) / k as f64))?;
            close(format!("R@{k}"), dense.mean(k, |hits, truths| count(hits) / truths as f64))?;
            close(format!("RP@{k}"), dense.mean(k, |hits, truths| count(hits) / truths.min(k) as f64))?;
            close(format!("nDCG@{k}"), dense.mean(k, |hits, truths| {
                let dcg: f64 = hits.iter().enumerate().filter(|(_, h)| **h).map(|(p, _)| by_log(p)).sum();
                dcg / (0..truths.min(k)).map(by_log).sum::<f64>()
            }))?;
            close(format!("PSP@{k}"), dense.propensity_scored(k, |_| 1.0))?;
            close(format!("PSnDCG@{k}"), dense.propensity_scored(k, by_log))?;
            close(format!("coverage@{k}"), dense.coverage(k))?;
        }
        close("micro_f1".into(), dense.micro_f1(0.5))?;
        close("macro_f1".into(), dense.macro_f1(0.5))?;
        let best = (0..=1000_u16).map(|s| dense.micro_f1(f32::from(s) / 1000.0)).fold(0.0, f64::max);
        prop_assert!((report.best_cutoff_micro_f1 - best).abs() < 1e-6);
        prop_assert!((dense.micro_f1(report.best_cutoff as f32) - best).abs() < 1e-6);
    }

    #[test]
    fn merging_gives_the_same_bits_however_the_documents_were_spread(dense in dense(), cut in 0_usize..12) {
        let rows = dense.rankings.len();
        let cut = cut.min(rows);
        let whole = dense.evaluate(0..rows).finish();
        let (head, mut tail) = (dense.evaluate(0..cut), dense.evaluate(cut..rows));
        tail.merge(&head);
        prop_assert_eq!(whole, tail.finish());
    }

    #[test]
    fn every_figure_is_a_percentage(dense in dense()) {
        for (name, value) in dense.evaluate(0..dense.rankings.len()).finish().values {
            prop_assert!((0.0..=100.0 + 1e-9).contains(&value), "{} is {}", name, value);
        }
    }
}
