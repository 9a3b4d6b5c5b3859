//! Stage `rank`: one classifier a label, first without the held-out documents, then with them.

use gnnxml_shared::metrics::LabelFrequencies;
use gnnxml_shared::model::ranker::ClusterRankers;

use super::codec::{PartError, PartReader, PartWriter};
use super::encode::Encoded;
use super::matching::{Matched, true_clusters};
use super::parts::{put_rankers, take_rankers};
use super::pipeline::Documents;
use super::{Progress, TrainConfig, TrainError};
use crate::labels::LabelClusters;
use crate::ranker::candidates::documents_of_clusters;
use crate::ranker::{Directions, Dual, RankerConfig, Rows, TrainingSet, train_rankers};

/// The rankers by cluster.
#[derive(Debug)]
pub(super) struct Ranked {
    /// Never saw the held-out documents: what the score is fitted with.
    pub first: Vec<ClusterRankers>,
    /// Learned from all training documents: what is saved.
    pub last: Vec<ClusterRankers>,
}

pub(super) fn rank_labels(
    documents: &Documents,
    encoded: &Encoded,
    clusters: &LabelClusters,
    matched: &Matched,
    frequencies: &LabelFrequencies,
    config: &TrainConfig,
    progress: &Progress<'_>,
) -> Result<Ranked, TrainError> {
    let gathered = &documents.gathered;
    let directions = config.ranker.directions(encoded.dims).map(|count| {
        let learned = &encoded.embeddings[..documents.training * encoded.dims];
        Directions::strongest(learned, encoded.dims, count, config.seed)
    });
    let (dense, dims) = match &directions {
        Some(directions) => (directions.along(&encoded.embeddings), directions.count()),
        None if config.ranker.embedding => (encoded.embeddings.clone(), encoded.dims),
        None => (Vec::new(), 0),
    };
    let rows = Rows::new(&gathered.words, gathered.tfidf.len(), dense, dims, 1.0)?;
    let members: Vec<Vec<u32>> = (0..clusters.len() as u32)
        .map(|cluster| {
            let mut labels = clusters.members(cluster).to_vec();
            labels.sort_unstable();
            labels
        })
        .collect();
    let truth = true_clusters(documents, clusters);
    let inverse: Vec<f32> = (0..frequencies.len() as u32)
        .map(|label| frequencies.inverse_propensity(label) as f32)
        .collect();
    let labels = gathered.label_names.len() as u64;
    let total = labels * (1 + u64::from(documents.refits()));

    let solve =
        |keep: &dyn Fn(usize) -> bool, predicted: &[Vec<u32>], start: Option<&[Dual]>, before: u64| {
            let empty: &[u32] = &[];
            let candidates = documents_of_clusters(
                clusters.len(),
                truth
                    .iter()
                    .enumerate()
                    .map(|(d, t)| if keep(d) { t.as_slice() } else { empty }),
                predicted
                    .iter()
                    .enumerate()
                    .map(|(d, p)| if keep(d) { p.as_slice() } else { empty }),
            );
            let set = TrainingSet {
                rows: &rows,
                label_documents: &gathered.label_documents(keep),
                clusters: &members,
                candidates: &candidates,
                inverse_propensity: &inverse,
            };
            let solver = RankerConfig {
                keep_duals: start.is_none() && documents.refits(),
                ..config.ranker.solver()
            };
            let mut trained = train_rankers(&set, &solver, config.seed, start, &|done| {
                progress.done(before + done, Some(total));
                !progress.stopped()
            })
            .ok_or(TrainError::Interrupted)?;
            if let Some(directions) = &directions {
                for rankers in &mut trained.clusters {
                    *rankers = directions.spread(rankers);
                }
            }
            Ok::<_, TrainError>(trained)
        };
    let first = solve(&|d| !documents.held_out[d], &matched.first_predicted, None, 0)?;
    if !documents.refits() {
        return Ok(Ranked {
            last: first.clusters.clone(),
            first: first.clusters,
        });
    }
    let last = solve(
        &|d| d < documents.training,
        &matched.last_predicted,
        Some(&first.duals),
        labels,
    )?;
    progress.info(format!(
        "{} weights kept; {:.1} passes a label, then {:.1} with the held-out documents",
        last.clusters
            .iter()
            .map(ClusterRankers::weight_count)
            .sum::<usize>(),
        first.iterations as f64 / labels as f64,
        last.iterations as f64 / labels as f64,
    ));
    Ok(Ranked {
        first: first.clusters,
        last: last.clusters,
    })
}

impl Ranked {
    pub(super) fn save(&self, part: &mut PartWriter) {
        put_rankers(part, &self.first);
        put_rankers(part, &self.last);
    }

    pub(super) fn load(part: &mut PartReader, documents: &Documents) -> Result<Self, PartError> {
        let (columns, labels) = (
            documents.gathered.tfidf.len(),
            documents.gathered.label_names.len(),
        );
        Ok(Self {
            first: take_rankers(part, columns, labels)?,
            last: take_rankers(part, columns, labels)?,
        })
    }
}
