//! All labels of all clusters: the parallel loop around the solvers.

use std::sync::atomic::{AtomicU64, Ordering};

use gnnxml_shared::model::ranker::{ClusterRankers, LabelRanker};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::block::{self, LANES, LabelProblem, LocalRows};
use super::{Costs, Dual, Rows, SolverOptions};

/// Which loss the classifiers minimise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// log(1 + e^−m): margins are log-odds as they stand.
    Logistic,
    /// max(0, 1 − m)²: sparser in documents and faster; margins become log-odds by one Platt pair.
    SquaredHinge,
}

/// How the classifiers are trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankerConfig {
    pub loss: Loss,
    /// LIBLINEAR's C.
    pub cost: f64,
    /// LIBLINEAR's ε.
    pub tolerance: f64,
    pub max_iterations: usize,
    /// Weights smaller than this are dropped.
    pub threshold: f32,
    /// The strongest weights that are kept of a label, at most.
    pub most_weights: usize,
    /// Positive documents of label ℓ cost C·(1/p_ℓ)^tail_weight: 0 treats every label alike, larger lifts the tail.
    pub tail_weight: f64,
    /// Whether the answer has the dual variables, which a warm start needs and which weigh more than the weights.
    pub keep_duals: bool,
}

impl Default for RankerConfig {
    fn default() -> Self {
        Self {
            loss: Loss::SquaredHinge,
            cost: 1.0,
            tolerance: 0.1,
            max_iterations: 100,
            threshold: 0.05,
            most_weights: usize::MAX,
            tail_weight: 0.0,
            keep_duals: true,
        }
    }
}

/// What the classifiers learn from.
#[derive(Clone, Copy, Debug)]
pub struct TrainingSet<'a> {
    pub rows: &'a Rows,
    /// Each label's documents, ascending.
    pub label_documents: &'a [Vec<u32>],
    /// Each cluster's labels, ascending.
    pub clusters: &'a [Vec<u32>],
    /// Each cluster's documents, ascending ([`super::candidates`]).
    pub candidates: &'a [Vec<u32>],
    /// 1/p_ℓ of each label; read only when `tail_weight` is not 0.
    pub inverse_propensity: &'a [f32],
}

/// The classifiers of every cluster, and where each label's solver stopped.
#[derive(Clone, Debug)]
pub struct TrainedRankers {
    pub clusters: Vec<ClusterRankers>,
    /// By label, for a warm start when documents are added; without their variables unless those were to be kept.
    pub duals: Vec<Dual>,
    /// Passes over candidate documents, all labels together.
    pub iterations: u64,
}

/// Trains one classifier a label.
///
/// `start` continues from earlier dual variables. `progress` hears how many labels are done and answers whether to go on;
/// after a `false` the answer is `None`. The result does not depend on the number of threads.
pub fn train_rankers(
    set: &TrainingSet<'_>,
    config: &RankerConfig,
    seed: u64,
    start: Option<&[Dual]>,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Option<TrainedRankers> {
    // Clusters with the most work first, so that no thread is left alone with one at the end.
    let mut order: Vec<usize> = (0..set.clusters.len()).collect();
    order
        .sort_by_key(|&c| std::cmp::Reverse(set.candidates[c].len() * set.clusters[c].len().div_ceil(LANES)));
    let done = AtomicU64::new(0);
    let solved: Vec<Option<Vec<(usize, LabelRanker, Dual)>>> = order
        .par_iter()
        .with_max_len(1)
        .map(|&cluster| {
            let rows = LocalRows::new(set.rows, &set.candidates[cluster]);
            let blocks = set.clusters[cluster].par_chunks(LANES).with_max_len(1);
            let solved: Option<Vec<_>> = blocks
                .map(|labels| {
                    if !progress(done.load(Ordering::Relaxed)) {
                        return None;
                    }
                    let solved = solve_labels(set, config, seed, &rows, labels, start);
                    done.fetch_add(labels.len() as u64, Ordering::Relaxed);
                    Some(
                        solved
                            .into_iter()
                            .map(|(r, d)| (cluster, r, d))
                            .collect::<Vec<_>>(),
                    )
                })
                .collect();
            solved.map(|blocks| blocks.into_iter().flatten().collect())
        })
        .collect();

    let mut by_cluster: Vec<Vec<LabelRanker>> = vec![Vec::new(); set.clusters.len()];
    let mut duals = vec![Dual::default(); set.label_documents.len()];
    let mut iterations = 0;
    for cluster in solved {
        for (cluster, ranker, dual) in cluster? {
            iterations += dual.iterations as u64;
            duals[ranker.label as usize] = dual;
            by_cluster[cluster].push(ranker);
        }
    }
    progress(done.load(Ordering::Relaxed));
    let clusters = by_cluster
        .into_par_iter()
        .map(|mut rankers| {
            rankers.sort_unstable_by_key(|r| r.label);
            ClusterRankers::new(rankers, set.rows.dims())
        })
        .collect();
    Some(TrainedRankers {
        clusters,
        duals,
        iterations,
    })
}

/// Solves one block of a cluster's labels.
fn solve_labels(
    set: &TrainingSet<'_>,
    config: &RankerConfig,
    seed: u64,
    rows: &LocalRows,
    labels: &[u32],
    start: Option<&[Dual]>,
) -> Vec<(LabelRanker, Dual)> {
    let problems: Vec<LabelProblem<'_>> = labels
        .iter()
        .map(|&label| {
            let lift = if config.tail_weight == 0.0 {
                1.0
            } else {
                f64::from(set.inverse_propensity[label as usize]).powf(config.tail_weight)
            };
            LabelProblem {
                positives: &set.label_documents[label as usize],
                costs: Costs {
                    positive: config.cost * lift,
                    negative: config.cost,
                },
                start: start.and_then(|duals| duals.get(label as usize)),
            }
        })
        .collect();
    let options = SolverOptions {
        tolerance: config.tolerance,
        max_iterations: config.max_iterations,
        seed: seed ^ (u64::from(labels[0]) << 20),
    };
    let solutions = block::solve(rows, &problems, config.loss, &options);
    let rankers = labels.iter().zip(solutions).map(|(&label, solution)| {
        (
            keep_strong(set.rows, label, config, &solution.weights),
            if config.keep_duals {
                solution.dual
            } else {
                Dual {
                    alphas: Vec::new(),
                    ..solution.dual
                }
            },
        )
    });
    rankers.collect()
}

/// The weights at or above the threshold, as many as may be kept; embedding and intercept always are.
fn keep_strong(rows: &Rows, label: u32, config: &RankerConfig, weights: &[(u32, f32)]) -> LabelRanker {
    let mut ranker = LabelRanker {
        label,
        embedding: vec![0.0; rows.dims()],
        ..LabelRanker::default()
    };
    for &(column, weight) in weights {
        let column = column as usize;
        if column < rows.columns() {
            if weight.abs() >= config.threshold {
                ranker.words.push((rows.feature(column), weight));
            }
        } else if column < rows.columns() + rows.dims() {
            ranker.embedding[column - rows.columns()] = weight;
        } else {
            ranker.bias = weight * rows.bias();
        }
    }
    if ranker.words.len() > config.most_weights {
        let stronger = |a: &(u32, f32), b: &(u32, f32)| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0));
        ranker.words.select_nth_unstable_by(config.most_weights, stronger);
        ranker.words.truncate(config.most_weights);
        ranker.words.shrink_to_fit();
    }
    ranker.words.sort_unstable_by_key(|word| word.0);
    ranker
}
