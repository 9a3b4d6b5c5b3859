//! Learning on: new documents and new labels without training again.
//!
//! A label that meets new documents moves its ranker as little as they demand: min ½‖w − w₀‖² + C Σ loss, w₀ what it knew. The
//! documents the model remembers speak through w₀; shown again to their own labels, with the few words they are remembered by, they
//! would seem misjudged and push them too far: a label is held against those of others only. A new label starts from nothing and
//! joins the cluster its documents are sent to. A label with a name and no document starts from the words of its name. Vocabulary, matcher and the
//! fitted score stay as they are; [`Learned::retrain_due`] says when that no longer does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gnnxml_shared::features::SparseVector;
use gnnxml_shared::metrics::{LabelFrequencies, Propensity};
use gnnxml_shared::model::names::LabelNames;
use gnnxml_shared::model::neighbours::{Neighbours, Remembered};
use gnnxml_shared::model::ranker::{ClusterRankers, LabelRanker};
use gnnxml_shared::model::tagger::{Prepared, ReadOptions, TagLabel};
use rayon::prelude::*;

use super::place::Place;
use super::{CorpusFacts, Model, ModelError, TrainError};
use crate::data::CorpusSource;
use crate::labels::LabelClusters;
use crate::ranker::{Costs, Loss, Problem, Rows, SolverOptions, hinge, logistic};

/// Remembered documents of its cluster, without the label, that a label is held against.
const REPLAYED: usize = 2000;
/// New documents beyond this share of the old ones call for a new training.
const MANY_DOCUMENTS: f64 = 0.2;
/// So do new labels beyond this share.
const MANY_LABELS: f64 = 0.05;
/// So do new documents of which less than this share of clusters is found.
const CLUSTER_RECALL: f64 = 0.9;
/// The cosine between a text and a label's name at which a label without documents is a toss-up.
const NAME_COSINE: f32 = 0.15;

/// What to learn, from what, to where.
#[derive(Clone, Debug)]
pub struct LearnRequest {
    pub model: PathBuf,
    pub corpus: Option<CorpusSource>,
    /// Labels to know by name alone.
    pub names: Vec<String>,
    pub out: PathBuf,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Learned {
    pub documents: usize,
    pub documents_without_labels: usize,
    /// Bad records that were left out.
    pub skipped: usize,
    /// Documents that repeat the id of another and were learned from.
    pub repeated_ids: usize,
    /// Known labels whose rankers were refitted.
    pub refitted_labels: usize,
    /// New labels with documents, and the cluster each joined.
    pub new_labels: BTreeMap<String, u32>,
    /// New labels known by name alone, and the cluster each joined.
    pub named_labels: BTreeMap<String, u32>,
    /// Share of the new documents' clusters that the matcher finds, in percent.
    pub cluster_recall: f64,
    /// Why a full training is due, if it is.
    pub retrain_due: Option<String>,
}

/// Why nothing was learned.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Train(Box<TrainError>),
    #[error(
        "{}: the model remembers no documents; expected one trained with `[score] remembered_words` above 0: train it again",
        path.display()
    )]
    Forgetful { path: PathBuf },
    #[error(
        "label {name:?}: no word of the name is in the model's vocabulary; expected a document that carries it"
    )]
    Nameless { name: String },
    #[error("nothing to learn: no labelled document and no new name")]
    Nothing,
    #[error("document {id:?}: {error:#}")]
    Document { id: String, error: anyhow::Error },
    #[error("the label clusters do not take the new labels: {0}")]
    Clusters(#[from] crate::labels::LabelError),
}

impl From<TrainError> for LearnError {
    fn from(error: TrainError) -> Self {
        Self::Train(Box::new(error))
    }
}

impl LearnError {
    /// Whether what the caller gave is at fault, rather than the machine or the program.
    pub fn is_the_callers(&self) -> bool {
        match self {
            Self::Model(error) => error.is_the_callers(),
            Self::Train(error) => error.is_the_callers(),
            Self::Forgetful { .. } | Self::Nameless { .. } | Self::Nothing => true,
            Self::Document { .. } | Self::Clusters(_) => false,
        }
    }
}

/// A new document: what the model makes of it, and its labels by number, ascending.
struct Fresh {
    prepared: Prepared,
    labels: Vec<u32>,
}

/// Learns and saves.
pub fn learn(request: &LearnRequest) -> Result<Learned, LearnError> {
    Place::at(&request.out)?;
    let mut model = Model::load(&request.model)?;
    let learned = learn_into(
        &mut model,
        request.corpus.as_ref(),
        &request.names,
        &request.model,
    )?;
    model.save(&request.out)?;
    Ok(learned)
}

fn learn_into(
    model: &mut Model,
    corpus: Option<&CorpusSource>,
    names: &[String],
    path: &Path,
) -> Result<Learned, LearnError> {
    let Some(neighbours) = model.tagger.neighbours.take() else {
        return Err(LearnError::Forgetful {
            path: path.to_owned(),
        });
    };
    let mut remembered = neighbours.documents();
    let mut learned = Learned::default();
    let mut numbers: BTreeMap<String, u32> = (model.tagger.labels.iter().zip(0..))
        .map(|(label, number)| (label.name.clone(), number))
        .collect();
    let known = numbers.len();

    let mut fresh = Vec::new();
    if let Some(corpus) = corpus {
        let mut reader = corpus.open().map_err(TrainError::from)?;
        for document in &mut reader {
            let document = document.map_err(TrainError::from)?;
            if document.labels.is_empty() {
                learned.documents_without_labels += 1;
                continue;
            }
            let prepared = (model.prepare(&document.text, ReadOptions::default())).map_err(|error| {
                LearnError::Document {
                    id: document.id.clone(),
                    error,
                }
            })?;
            let mut labels: Vec<u32> = (document.labels.into_iter())
                .map(|name| {
                    let next = numbers.len() as u32;
                    *numbers.entry(name).or_insert(next)
                })
                .collect();
            labels.sort_unstable();
            labels.dedup();
            fresh.push(Fresh { prepared, labels });
        }
        learned.skipped = reader.skipped();
        learned.repeated_ids = reader.repeated().map_or(0, |(_, count)| count);
    }
    learned.documents = fresh.len();
    let with_documents = numbers.len();
    for name in names {
        let next = numbers.len() as u32;
        numbers.entry(name.clone()).or_insert(next);
    }
    if fresh.is_empty() && numbers.len() == known {
        return Err(LearnError::Nothing);
    }
    let mut new_names = vec![String::new(); numbers.len() - known];
    for (name, number) in numbers {
        if let Some(at) = (number as usize).checked_sub(known) {
            new_names[at] = name;
        }
    }

    let mut assignment = model.clusters.assignment().to_vec();
    for (at, name) in new_names.iter().enumerate() {
        let label = (known + at) as u32;
        let cluster = if known + at < with_documents {
            cluster_of_documents(&fresh, label)
        } else {
            let prepared =
                (model.prepare(name, ReadOptions::default())).map_err(|error| LearnError::Document {
                    id: name.clone(),
                    error,
                })?;
            if prepared.reading.words.is_empty() {
                return Err(LearnError::Nameless { name: name.clone() });
            }
            prepared.needed.first().copied().unwrap_or(0)
        };
        assignment.push(cluster);
        let group = if known + at < with_documents {
            &mut learned.new_labels
        } else {
            &mut learned.named_labels
        };
        group.insert(name.clone(), cluster);
    }

    let rankers = refit(model, &remembered, &fresh, &assignment, known)?;
    learned.refitted_labels = rankers
        .iter()
        .filter(|ranker| (ranker.label as usize) < known)
        .count();
    let mut changed: BTreeMap<u32, Vec<LabelRanker>> = BTreeMap::new();
    for ranker in rankers {
        changed
            .entry(assignment[ranker.label as usize])
            .or_default()
            .push(ranker);
    }
    for (at, name) in new_names.iter().enumerate().skip(with_documents - known) {
        let words = model.tagger.tfidf.transform(name);
        let label = (known + at) as u32;
        changed
            .entry(assignment[label as usize])
            .or_default()
            .push(from_name(label, &words, model.ranker_dims()));
    }
    let dims = model.ranker_dims();
    for (cluster, new) in changed {
        let rankers = &mut model.rankers[cluster as usize];
        let mut all = rankers.to_labels();
        all.retain(|old| new.iter().all(|ranker| ranker.label != old.label));
        all.extend(new);
        all.sort_unstable_by_key(|ranker| ranker.label);
        *rankers = ClusterRankers::new(all, dims);
    }

    let words_kept = model.manifest.config.score.remembered_words;
    remembered.extend(
        (fresh.iter()).map(|one| Remembered::new(&one.prepared.reading.words, &one.labels, words_kept)),
    );
    model.tagger.neighbours = Some(Neighbours::new(&remembered, model.tagger.tfidf.len()));
    model.manifest.corpus.documents += fresh.len();
    recount(model, &fresh, &new_names);
    model.tagger.names =
        LabelNames::for_score(&model.tagger.score, &model.tagger.labels, &model.tagger.tfidf);
    model.clusters = grow_clusters(model, &fresh, &assignment, known)?;
    model.manifest.labels = assignment.len();

    learned.cluster_recall = 100.0 * cluster_recall(&fresh, &assignment);
    learned.retrain_due = retrain_due(&learned, &model.manifest.corpus, assignment.len());
    Ok(learned)
}

/// The cluster that the documents of a label are sent to, all together.
fn cluster_of_documents(fresh: &[Fresh], label: u32) -> u32 {
    let mut total: Vec<f32> = Vec::new();
    for one in fresh
        .iter()
        .filter(|one| one.labels.binary_search(&label).is_ok())
    {
        total.resize(one.prepared.cluster_log_odds.len(), 0.0);
        for (sum, odds) in total.iter_mut().zip(&one.prepared.cluster_log_odds) {
            *sum += odds;
        }
    }
    (0..total.len())
        .reduce(|best, next| if total[next] > total[best] { next } else { best })
        .unwrap_or(0) as u32
}

/// New rankers for every label that a new document carries.
fn refit(
    model: &Model,
    remembered: &[Remembered],
    fresh: &[Fresh],
    assignment: &[u32],
    known: usize,
) -> Result<Vec<LabelRanker>, LearnError> {
    let settings = &model.manifest.config.ranker;
    let columns = model.tagger.tfidf.len();
    let old = remembered.len();
    let words = (remembered.iter().map(|document| &document.words))
        .chain(fresh.iter().map(|one| &one.prepared.reading.words));
    let by_words = Rows::new(words, columns, Vec::new(), 0, 1.0).map_err(TrainError::from)?;
    let dims = model.ranker_dims();
    let dense = fresh
        .iter()
        .flat_map(|one| one.prepared.embedding.iter().copied().take(dims));
    let words = fresh.iter().map(|one| &one.prepared.reading.words);
    let of_fresh = Rows::new(words, columns, dense.collect(), dims, 1.0).map_err(TrainError::from)?;
    let mut carried: Vec<u32> = fresh.iter().flat_map(|one| one.labels.iter().copied()).collect();
    carried.sort_unstable();
    carried.dedup();
    let mut by_cluster: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (number, document) in remembered.iter().enumerate() {
        let mut clusters: Vec<u32> = document.labels.iter().map(|&l| assignment[l as usize]).collect();
        clusters.sort_unstable();
        clusters.dedup();
        for cluster in clusters {
            by_cluster.entry(cluster).or_default().push(number as u32);
        }
    }
    let rankers = carried.par_iter().map(|&label| {
        let cluster = assignment[label as usize];
        let is_new = label as usize >= known;
        // Remembered documents have no vector.
        let (rows, first) = if is_new || dims == 0 {
            (&by_words, old as u32)
        } else {
            (&of_fresh, 0)
        };
        let mut documents = Vec::new();
        let mut positives = Vec::new();
        if first > 0 {
            let of_cluster = by_cluster.get(&cluster).map_or(&[][..], Vec::as_slice);
            let other = |&&number: &&u32| remembered[number as usize].labels.binary_search(&label).is_err();
            documents.extend(of_cluster.iter().filter(other).take(REPLAYED));
        }
        for (at, one) in (first..).zip(fresh) {
            let carries = one.labels.binary_search(&label).is_ok();
            if carries {
                positives.push(at);
            }
            if carries || one.prepared.needed.contains(&cluster) {
                documents.push(at);
            }
        }
        // What a label knows from many documents a few cannot unsay: they cost as much as their share of all.
        let carried_before = if is_new {
            0
        } else {
            model.tagger.labels[label as usize].count as usize
        };
        let share = positives.len() as f64 / (positives.len() + carried_before) as f64;
        let problem = Problem {
            rows,
            documents: &documents,
            positives: &positives,
            costs: Costs::even(settings.cost * share),
        };
        let options = SolverOptions {
            tolerance: settings.tolerance,
            max_iterations: settings.max_iterations,
            seed: model.manifest.config.seed ^ u64::from(label),
        };
        let before = (model.rankers[cluster as usize].to_labels().into_iter())
            .find(|ranker| ranker.label == label)
            .unwrap_or_else(|| LabelRanker {
                label,
                embedding: vec![0.0; dims],
                ..LabelRanker::default()
            });
        let mut weights = lay_out(rows, &before);
        match settings.loss {
            Loss::SquaredHinge => hinge::solve(&problem, &options, None, &mut weights),
            Loss::Logistic => logistic::solve(&problem, &options, None, &mut weights),
        };
        gather(rows, before, &weights, settings.threshold)
    });
    Ok(rankers.collect())
}

/// A ranker as a weight vector over the columns of `rows`.
fn lay_out(rows: &Rows, ranker: &LabelRanker) -> Vec<f32> {
    let mut by_feature = vec![0.0; rows.columns()];
    for &(feature, weight) in &ranker.words {
        by_feature[feature as usize] = weight;
    }
    let mut weights = vec![0.0; rows.width()];
    for (column, weight) in weights[..rows.columns()].iter_mut().enumerate() {
        *weight = by_feature[rows.feature(column) as usize];
    }
    weights[rows.columns()..rows.columns() + rows.dims()].copy_from_slice(&ranker.embedding[..rows.dims()]);
    if rows.bias() > 0.0 {
        weights[rows.columns() + rows.dims()] = ranker.bias / rows.bias();
    }
    weights
}

/// The ranker that `weights` are; what `rows` do not reach stays as it was.
fn gather(rows: &Rows, mut ranker: LabelRanker, weights: &[f32], threshold: f32) -> LabelRanker {
    ranker.words = (0..rows.columns())
        .filter(|&column| weights[column].abs() >= threshold)
        .map(|column| (rows.feature(column), weights[column]))
        .collect();
    ranker.words.sort_unstable_by_key(|word| word.0);
    ranker.embedding[..rows.dims()].copy_from_slice(&weights[rows.columns()..rows.columns() + rows.dims()]);
    ranker.bias = weights[rows.columns() + rows.dims()] * rows.bias();
    ranker
}

/// A ranker that knows the words of a name: margin 0 at [`NAME_COSINE`], −1 for a text that shares none of them.
fn from_name(label: u32, name: &SparseVector, dims: usize) -> LabelRanker {
    LabelRanker {
        label,
        bias: -1.0,
        words: name
            .iter()
            .map(|(word, weight)| (word, weight / NAME_COSINE))
            .collect(),
        embedding: vec![0.0; dims],
    }
}

/// Counts and propensities with the new documents.
fn recount(model: &mut Model, fresh: &[Fresh], new_names: &[String]) {
    let labels = &mut model.tagger.labels;
    labels.extend(new_names.iter().map(|name| TagLabel {
        name: name.clone(),
        ..TagLabel::default()
    }));
    for &label in fresh.iter().flat_map(|one| &one.labels) {
        labels[label as usize].count += 1;
    }
    let counts = labels.iter().map(|label| label.count).collect();
    let documents = model.manifest.corpus.documents as u64;
    let frequencies = LabelFrequencies::new(counts, documents, Propensity::default());
    for (label, number) in labels.iter_mut().zip(0..) {
        label.log_inverse_propensity = frequencies.inverse_propensity(number).ln() as f32;
    }
}

/// The partition with the new labels in it: each stands at its cluster's place on the map.
fn grow_clusters(
    model: &Model,
    fresh: &[Fresh],
    assignment: &[u32],
    known: usize,
) -> Result<LabelClusters, LearnError> {
    let mut parts = model.clusters.parts().clone();
    for (label, &cluster) in assignment.iter().enumerate().skip(known) {
        let name = &model.tagger.labels[label].name;
        parts
            .positions
            .push(beside(parts.clusters[cluster as usize].position, name));
        parts.closeness.push(0.0);
        if !parts.names.is_empty() {
            parts.names.push(name.clone());
        }
        let end = parts.neighbour_starts.last().copied().unwrap_or(0);
        parts.neighbour_starts.push(end);
    }
    parts.assignment = assignment.to_vec();
    parts.counts = model.tagger.labels.iter().map(|label| label.count).collect();
    parts.documents += fresh.len() as u32;
    for one in fresh {
        let mut clusters: Vec<u32> = one.labels.iter().map(|&l| assignment[l as usize]).collect();
        clusters.sort_unstable();
        clusters.dedup();
        for cluster in clusters {
            parts.clusters[cluster as usize].documents += 1;
        }
    }
    Ok(LabelClusters::new(parts)?)
}

/// A place near `centre` that depends on the name alone.
fn beside(centre: [f32; 2], name: &str) -> [f32; 2] {
    let hash = (name.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let angle = (hash >> 40) as f32 / (1u64 << 24) as f32 * std::f32::consts::TAU;
    let place = |at: f32, shift: f32| (at + 0.01 * shift).clamp(0.0, 1.0);
    [place(centre[0], angle.cos()), place(centre[1], angle.sin())]
}

/// The share of the new documents' clusters that the matcher would look into.
fn cluster_recall(fresh: &[Fresh], assignment: &[u32]) -> f64 {
    let (mut found, mut all) = (0, 0);
    for one in fresh {
        for &label in &one.labels {
            all += 1;
            found += usize::from(one.prepared.needed.contains(&assignment[label as usize]));
        }
    }
    if all == 0 { 1.0 } else { found as f64 / all as f64 }
}

/// Judged by all that was learned since the full training, in however many steps.
fn retrain_due(learned: &Learned, corpus: &CorpusFacts, labels: usize) -> Option<String> {
    let (documents, known) = (corpus.trained_documents, corpus.trained_labels);
    let new_documents = corpus.documents.saturating_sub(documents);
    let new_labels = labels.saturating_sub(known);
    if new_documents as f64 > MANY_DOCUMENTS * documents as f64 {
        return Some(format!(
            "{new_documents} new documents on top of {documents}: words they brought are not in the vocabulary"
        ));
    }
    if new_labels as f64 > (MANY_LABELS * known as f64).max(5.0) {
        return Some(format!(
            "{new_labels} new labels on top of {known}: the clusters no longer fit them"
        ));
    }
    if learned.cluster_recall < 100.0 * CLUSTER_RECALL {
        return Some(format!(
            "only {:.1} % of the new documents' labels lie in the clusters they are sent to",
            learned.cluster_recall
        ));
    }
    None
}
