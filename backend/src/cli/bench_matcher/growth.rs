//! How the cost of an epoch grows.

use gnnxml_shared::model::matcher::MatcherConfig;

use super::prepared::Prepared;
use crate::matcher::{Lists, PreparedWriter, TrainData, TrainOptions, train};

impl Prepared {
    /// Epoch time against documents and clusters, on parts and repetitions of the corpus.
    pub(super) fn growth(&self, base: &TrainOptions) -> anyhow::Result<()> {
        say!("\n| documents | clusters | s an epoch | µs a document |\n|---|---|---|---|")?;
        let n = self.train.len();
        for (documents, clusters) in [
            (n / 3, self.clusters),
            (n, self.clusters),
            (3 * n, self.clusters),
            (n, 50),
            (n, 500),
            (n, 8000),
        ] {
            let folder = tempfile::tempdir()?;
            let mut writer = PreparedWriter::create(&folder.path().join("graphs"), self.width)?;
            let (mut positives, mut labels) = (Lists::new(), Lists::new());
            for document in 0..documents {
                writer.push(&self.train.get(document % n))?;
                let row = self.train_positives.row(document % n);
                positives.push(row.iter().map(|&c| (c as usize * 7919 % clusters) as u32));
                labels.push(self.train_labels.row(document % n).iter().copied());
            }
            let graphs = writer.finish()?;
            let label_documents = labels.transposed(self.label_documents.len());
            let options = TrainOptions {
                model: MatcherConfig {
                    clusters,
                    ..base.model.clone()
                },
                epochs: 1,
                ..base.clone()
            };
            let data = TrainData {
                graphs: &graphs,
                positives: &positives,
                label_documents: &label_documents,
                validation: None,
            };
            let seconds = train(data, &options, &mut |_| {})?.step_seconds;
            say!(
                "| {documents} | {clusters} | {seconds:.2} | {:.0} |",
                1e6 * seconds / documents as f64
            )?;
        }
        Ok(())
    }
}
