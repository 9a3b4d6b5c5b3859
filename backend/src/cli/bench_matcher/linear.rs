//! The linear matchers that the network is measured beside: the presets' own classifier, on words or on other rows.

use gnnxml_shared::features::SparseVector;
use gnnxml_shared::model::ranker::ClusterRankers;
use rayon::prelude::*;

use crate::matcher::Lists;
use crate::ranker::{Rows, TrainingSet, train_rankers};
use crate::train::{MatcherSettings, linear_solver};

/// One logistic regression a cluster.
#[derive(Debug)]
pub(super) struct LinearMatcher {
    clusters: ClusterRankers,
}

impl LinearMatcher {
    /// Learns from the documents that `keep`; rows are `width` wide.
    pub(super) fn fit(
        rows: &[SparseVector],
        width: usize,
        positives: &Lists,
        clusters: usize,
        settings: &MatcherSettings,
        keep: impl Fn(u32) -> bool,
    ) -> anyhow::Result<Self> {
        let rows = Rows::new(rows, width, Vec::new(), 0, 1.0)?;
        let all: Vec<u32> = (0..positives.len() as u32).filter(|&d| keep(d)).collect();
        let documents = positives.transposed(clusters);
        let of_cluster: Vec<Vec<u32>> = documents
            .rows()
            .map(|row| row.iter().copied().filter(|&d| keep(d)).collect())
            .collect();
        let set = TrainingSet {
            rows: &rows,
            label_documents: &of_cluster,
            clusters: &[(0..clusters as u32).collect()],
            candidates: &[all],
            inverse_propensity: &[],
        };
        let trained = train_rankers(&set, &linear_solver(settings, clusters), 0, None, &|_| true);
        Ok(Self {
            clusters: trained.and_then(|mut t| t.clusters.pop()).unwrap_or_default(),
        })
    }

    /// The log-odds of every cluster, document by document.
    pub(super) fn log_odds(&self, rows: &[SparseVector]) -> Vec<Vec<f32>> {
        rows.par_iter()
            .map(|row| self.clusters.margins(row, &[]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::TrainConfig;

    #[test]
    fn what_is_separable_is_separated_by_the_documents_that_were_kept() {
        let rows: Vec<SparseVector> = (0..40)
            .map(|i| SparseVector {
                indices: vec![i % 2, 2],
                values: vec![1.0, 0.3],
            })
            .collect();
        let truth: Vec<Vec<u32>> = (0..40).map(|i| vec![i % 2]).collect();
        let settings = TrainConfig::of_preset("fast").unwrap().matcher;
        let fit = |keep: &dyn Fn(u32) -> bool| {
            LinearMatcher::fit(&rows, 3, &Lists::from_rows(&truth), 2, &settings, keep).unwrap()
        };
        let right = |found: &[Vec<f32>]| {
            found
                .iter()
                .enumerate()
                .all(|(i, z)| (z[1] > z[0]) == (i % 2 == 1))
        };
        assert!(right(&fit(&|_| true).log_odds(&rows)));
        assert!(right(&fit(&|d| d >= 20).log_odds(&rows)));
        // Nobody showed it an odd document.
        assert!(!right(&fit(&|d| d % 2 == 0).log_odds(&rows)));
    }
}
