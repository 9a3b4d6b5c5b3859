//! The solvers against LIBLINEAR's own solutions, and against each other.

use gnnxml_shared::features::SparseVector;
use serde::Deserialize;

use super::block::{LabelProblem, LocalRows};
use super::*;

/// Made by `tests/fixtures/liblinear.py`.
#[derive(Deserialize)]
struct Fixture {
    features: usize,
    rows: Vec<Vec<(u32, f32)>>,
    problems: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    positives: Vec<u32>,
    cost_positive: f64,
    cost_negative: f64,
    logistic: f64,
    squared_hinge: f64,
}

impl Reference {
    fn costs(&self) -> Costs {
        Costs {
            positive: self.cost_positive,
            negative: self.cost_negative,
        }
    }
}

fn fixture() -> (Fixture, Rows) {
    let fixture: Fixture =
        serde_json::from_str(include_str!("../../../tests/fixtures/liblinear.json")).unwrap();
    let documents: Vec<SparseVector> = (fixture.rows.iter())
        .map(|row| SparseVector {
            indices: row.iter().map(|e| e.0).collect(),
            values: row.iter().map(|e| e.1).collect(),
        })
        .collect();
    let rows = Rows::new(&documents, fixture.features, vec![], 0, 1.0).unwrap();
    (fixture, rows)
}

const TIGHT: SolverOptions = SolverOptions {
    tolerance: 1e-4,
    max_iterations: 20_000,
    seed: 3,
};

fn close(found: f64, expected: f64, what: &str) {
    let relative = (found - expected).abs() / expected;
    assert!(relative < 1e-4, "{what}: found {found}, LIBLINEAR {expected}");
}

#[test]
fn both_solvers_reach_liblinears_objective() {
    let (fixture, rows) = fixture();
    let documents: Vec<u32> = (0..rows.len() as u32).collect();
    let mut weights = vec![0.0; rows.width()];
    for (nth, reference) in fixture.problems.iter().enumerate() {
        let problem = Problem {
            rows: &rows,
            documents: &documents,
            positives: &reference.positives,
            costs: reference.costs(),
        };
        weights.fill(0.0);
        hinge::solve(&problem, &TIGHT, None, &mut weights);
        close(
            problem.objective(&weights, hinge::loss),
            reference.squared_hinge,
            &format!("hinge {nth}"),
        );
        weights.fill(0.0);
        logistic::solve(&problem, &TIGHT, None, &mut weights);
        close(
            problem.objective(&weights, logistic::loss),
            reference.logistic,
            &format!("logistic {nth}"),
        );
    }
}

/// The same matrix with its last `dims` columns as vectors of the documents.
fn with_vectors(fixture: &Fixture, dims: usize) -> Rows {
    let words = fixture.features - dims;
    let mut vectors = vec![0.0; fixture.rows.len() * dims];
    let mut documents = vec![SparseVector::default(); fixture.rows.len()];
    for (at, row) in fixture.rows.iter().enumerate() {
        for &(feature, value) in row {
            match (feature as usize).checked_sub(words) {
                Some(dimension) => vectors[at * dims + dimension] = value,
                None => {
                    documents[at].indices.push(feature);
                    documents[at].values.push(value);
                }
            }
        }
    }
    Rows::new(&documents, words, vectors, dims, 1.0).unwrap()
}

#[test]
fn a_block_of_labels_reaches_liblinears_objective_for_each() {
    let (fixture, rows) = fixture();
    block_reaches_liblinear(&fixture, &rows);
}

#[test]
fn a_block_over_words_and_vectors_reaches_liblinears_objective_for_each() {
    let (fixture, _) = fixture();
    for dims in [1, 11] {
        block_reaches_liblinear(&fixture, &with_vectors(&fixture, dims));
    }
}

fn block_reaches_liblinear(fixture: &Fixture, rows: &Rows) {
    let documents: Vec<u32> = (0..rows.len() as u32).collect();
    let local = LocalRows::new(rows, &documents);
    // More labels than fit the narrowest block, so that lanes leave and the block closes ranks.
    let labels: Vec<&Reference> = fixture.problems.iter().cycle().take(23).collect();
    let problems: Vec<LabelProblem<'_>> = (labels.iter())
        .map(|r| LabelProblem {
            positives: &r.positives,
            costs: r.costs(),
            start: None,
        })
        .collect();
    for loss in [Loss::SquaredHinge, Loss::Logistic] {
        let solutions = block::solve(&local, &problems, loss, &TIGHT);
        for (nth, (solution, reference)) in solutions.iter().zip(&labels).enumerate() {
            let mut weights = vec![0.0; rows.width()];
            for &(column, weight) in &solution.weights {
                weights[column as usize] = weight;
            }
            let problem = Problem {
                rows,
                documents: &documents,
                positives: &reference.positives,
                costs: reference.costs(),
            };
            let (found, expected) = match loss {
                Loss::SquaredHinge => (problem.objective(&weights, hinge::loss), reference.squared_hinge),
                Loss::Logistic => (problem.objective(&weights, logistic::loss), reference.logistic),
            };
            close(found, expected, &format!("{loss:?}, label {nth}"));
        }
    }
}

#[test]
fn a_warm_start_reaches_the_same_objective_in_fewer_passes() {
    let (fixture, rows) = fixture();
    let all: Vec<u32> = (0..rows.len() as u32).collect();
    let most: Vec<u32> = (0..rows.len() as u32 - 8).collect();
    let reference = &fixture.problems[3];
    let solve = |documents: &[u32], start: Option<&Dual>| {
        let local = LocalRows::new(&rows, documents);
        let problem = LabelProblem {
            positives: &reference.positives,
            costs: reference.costs(),
            start,
        };
        block::solve(&local, &[problem], Loss::SquaredHinge, &TIGHT).remove(0)
    };
    let before = solve(&most, None);
    let (cold, warm) = (solve(&all, None), solve(&all, Some(&before.dual)));
    assert!(
        warm.dual.iterations <= cold.dual.iterations,
        "{} {}",
        warm.dual.iterations,
        cold.dual.iterations
    );
    let mut weights = vec![0.0; rows.width()];
    for &(column, weight) in &warm.weights {
        weights[column as usize] = weight;
    }
    let problem = Problem {
        rows: &rows,
        documents: &all,
        positives: &reference.positives,
        costs: reference.costs(),
    };
    close(
        problem.objective(&weights, hinge::loss),
        reference.squared_hinge,
        "warm",
    );
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let (fixture, rows) = fixture();
    let label_documents: Vec<Vec<u32>> = fixture
        .problems
        .iter()
        .cycle()
        .take(150)
        .map(|r| r.positives.clone())
        .collect();
    let clusters: Vec<Vec<u32>> = vec![(0..100).collect(), (100..150).collect()];
    let candidates: Vec<Vec<u32>> = vec![(0..80).collect(), (0..80).filter(|d| d % 3 != 0).collect()];
    let set = TrainingSet {
        rows: &rows,
        label_documents: &label_documents,
        clusters: &clusters,
        candidates: &candidates,
        inverse_propensity: &[],
    };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| train_rankers(&set, &RankerConfig::default(), 1, None, &|_| true))
            .unwrap()
            .clusters
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn a_stopped_training_answers_nothing() {
    let (fixture, rows) = fixture();
    let set = TrainingSet {
        rows: &rows,
        label_documents: &[fixture.problems[0].positives.clone()],
        clusters: &[vec![0]],
        candidates: &[(0..80).collect()],
        inverse_propensity: &[],
    };
    assert!(train_rankers(&set, &RankerConfig::default(), 1, None, &|_| false).is_none());
}

#[test]
fn dropping_small_weights_keeps_the_large_ones_and_the_intercept() {
    let (fixture, rows) = fixture();
    let set = TrainingSet {
        rows: &rows,
        label_documents: &[fixture.problems[0].positives.clone()],
        clusters: &[vec![0]],
        candidates: &[(0..80).collect()],
        inverse_propensity: &[],
    };
    let trained = |threshold, most_weights| {
        let config = RankerConfig {
            threshold,
            most_weights,
            ..RankerConfig::default()
        };
        train_rankers(&set, &config, 1, None, &|_| true).unwrap().clusters[0]
            .to_labels()
            .remove(0)
    };
    let (whole, cut) = (trained(0.0, usize::MAX), trained(0.5, usize::MAX));
    let expected: Vec<(u32, f32)> = whole.words.iter().copied().filter(|w| w.1.abs() >= 0.5).collect();
    assert!(!expected.is_empty() && expected.len() < whole.words.len());
    assert_eq!((cut.words, cut.bias), (expected.clone(), whole.bias));
    let counted = trained(0.0, expected.len());
    assert_eq!((counted.words, counted.bias), (expected, whole.bias));
}

#[test]
fn a_label_weighted_for_the_tail_scores_its_documents_higher() {
    let (fixture, rows) = fixture();
    let set = TrainingSet {
        rows: &rows,
        label_documents: &[fixture.problems[1].positives.clone()],
        clusters: &[vec![0]],
        candidates: &[(0..80).collect()],
        inverse_propensity: &[4.0],
    };
    let margins = |tail_weight| -> f32 {
        let config = RankerConfig {
            tail_weight,
            tolerance: 1e-3,
            max_iterations: 5000,
            threshold: 0.0,
            ..RankerConfig::default()
        };
        let trained = train_rankers(&set, &config, 1, None, &|_| true).unwrap();
        let words = |&d: &u32| {
            let row = &fixture.rows[d as usize];
            SparseVector {
                indices: row.iter().map(|e| e.0).collect(),
                values: row.iter().map(|e| e.1).collect(),
            }
        };
        let positives = fixture.problems[1].positives.iter();
        positives
            .map(|d| trained.clusters[0].margins(&words(d), &[])[0])
            .sum()
    };
    assert!(margins(1.0) > margins(0.0));
}
