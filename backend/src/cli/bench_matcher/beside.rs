//! The rows beside the network's own: linear classifiers, and network and linear classifier mixed as the presets mix them.

use std::time::Instant;

use gnnxml_shared::features::SparseVector;
use gnnxml_shared::model::score::strongest;
use rayon::prelude::*;

use super::linear::LinearMatcher;
use super::prepared::Prepared;
use crate::matcher::{Lists, PreparedGraphs, PreparedWriter, TrainData, TrainOptions, ValidationData, train};
use crate::train::best_share;

impl Prepared {
    /// One-vs-all linear classifiers of the clusters on TF-IDF, and on the documents' LSA vectors.
    pub(super) fn linear(&self) -> anyhow::Result<()> {
        let as_sparse = |dense: &[f32]| -> Vec<SparseVector> {
            let row = |values: &[f32]| SparseVector {
                indices: (0..values.len() as u32).collect(),
                values: values.to_vec(),
            };
            dense.chunks_exact(self.width).map(row).collect()
        };
        let (train_dense, valid_dense) = (as_sparse(&self.train_dense), as_sparse(&self.valid_dense));
        for (name, width, train_rows, valid_rows) in [
            (
                "linear on TF-IDF",
                self.tfidf_terms,
                &self.train_rows,
                &self.valid_rows,
            ),
            ("linear on LSA vectors", self.width, &train_dense, &valid_dense),
        ] {
            let clock = Instant::now();
            let linear = self.fit_linear(train_rows, width, |_| true)?;
            let seconds = clock.elapsed().as_secs_f64();
            let found = self.strongest(&linear.log_odds(valid_rows));
            self.print_row(name, &found, &format!("– | {seconds:.1} in all | – | – | – | –"))?;
        }
        Ok(())
    }

    fn fit_linear(
        &self,
        rows: &[SparseVector],
        width: usize,
        keep: impl Fn(u32) -> bool,
    ) -> anyhow::Result<LinearMatcher> {
        let settings = &self.config.matcher;
        LinearMatcher::fit(rows, width, &self.train_positives, self.clusters, settings, keep)
    }

    fn strongest(&self, log_odds: &[Vec<f32>]) -> Vec<Vec<u32>> {
        log_odds.par_iter().map(|z| strongest(z, self.top)).collect()
    }

    /// Network and linear classifier mixed as the presets mix them: both learn without some documents, on which their shares are
    /// fitted and the network is stopped; then the linear one learns from all.
    pub(super) fn mixed(&self, options: &TrainOptions) -> anyhow::Result<()> {
        let one_in = (1.0 / self.config.score.hold_out).round() as usize;
        let parts: [Vec<usize>; 2] = [false, true].map(|held| {
            (0..self.train.len())
                .filter(|d| (d % one_in == 0) == held)
                .collect()
        });
        let folder = tempfile::tempdir()?;
        let graphs = |name: &str, part: &[usize]| -> anyhow::Result<PreparedGraphs> {
            let mut writer = PreparedWriter::create(&folder.path().join(name), self.width)?;
            for &document in part {
                writer.push(&self.train.get(document))?;
            }
            Ok(writer.finish()?)
        };
        let lists = |all: &Lists, part: &[usize]| {
            let mut lists = Lists::new();
            for &document in part {
                lists.push(all.row(document).iter().copied());
            }
            lists
        };
        let [learned, held] = &parts;
        let (learned_graphs, held_graphs) = (graphs("learned", learned)?, graphs("held", held)?);
        let held_positives = lists(&self.train_positives, held);
        let data = TrainData {
            graphs: &learned_graphs,
            positives: &lists(&self.train_positives, learned),
            label_documents: &lists(&self.train_labels, learned).transposed(self.label_documents.len()),
            validation: Some(ValidationData {
                graphs: &held_graphs,
                positives: &held_positives,
            }),
        };
        let network = train(data, &options.clone().beside_linear(), &mut |_| {})?.matcher;
        let logits = |graphs: &PreparedGraphs| -> Result<Vec<Vec<f32>>, _> {
            (0..graphs.len())
                .into_par_iter()
                .map(|document| network.forward(&graphs.get(document)))
                .collect()
        };
        let is_held = |document: u32| (document as usize).is_multiple_of(one_in);
        let words = (&self.train_rows, self.tfidf_terms);
        let first = self.fit_linear(words.0, words.1, |d| !is_held(d))?;
        let held_rows: Vec<SparseVector> = held.iter().map(|&d| self.train_rows[d].clone()).collect();
        let held_logits = logits(&held_graphs)?;
        let share = best_share(
            &first.log_odds(&held_rows),
            &held_logits.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &held_positives.rows().collect::<Vec<_>>(),
        );
        let last = self.fit_linear(words.0, words.1, |_| true)?;
        let mut mixed = last.log_odds(&self.valid_rows);
        for (z, logits) in mixed.iter_mut().zip(logits(&self.valid)?) {
            for (z, g) in z.iter_mut().zip(logits) {
                *z = (1.0 - share) * *z + share * g;
            }
        }
        let name = format!(
            "{:?} and linear, the network's share {share:.1}",
            options.model.variant
        );
        self.print_row(&name, &self.strongest(&mixed), "– | – | – | – | – | –")
    }
}
