//! `gnnxml bench matcher`: how well and how fast clusters are matched.
//!
//! One run prepares the corpus as the presets do, then prints the two linear baselines, the ablation V1–V4 (also on the clusters of tail
//! labels), network and linear classifier mixed, epoch time with the share of the product peak it reaches, and, if asked, how cost grows with documents and clusters.

mod beside;
mod growth;
mod linear;
mod prepared;
mod tries;

use std::path::PathBuf;

use gnnxml_shared::api::TrainEvent;
use gnnxml_shared::model::matcher::{MatcherConfig, Variant};

use crate::cpu_time::cpu_seconds;
use crate::matcher::{TrainData, TrainOptions, TrainedMatcher, measured_peak_gflops, predict, train};
use prepared::{Prepared, shape};
use tries::changed;

/// Arguments of `gnnxml bench matcher`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Documents to learn from
    #[arg(long)]
    corpus: PathBuf,
    /// Use only the documents whose ids stand in this file
    #[arg(long)]
    ids: Option<PathBuf>,
    /// Documents to score
    #[arg(long)]
    valid: PathBuf,
    /// Use only the first so many documents of each
    #[arg(long)]
    limit: Option<usize>,
    /// Number of clusters; ⌊labels/60⌋ if not given
    #[arg(long)]
    clusters: Option<usize>,
    /// Settings in place of those of the preset `fast`, such as another partition of the labels
    #[arg(long)]
    config: Option<PathBuf>,
    /// Clusters that count as matched
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// The full shape (384, 512, 3 layers, 40 vertices) instead of the fast one (128, 128, 2 layers, 16 vertices)
    #[arg(long)]
    full: bool,
    /// Train once more with changed settings, such as `epochs=6,dropout=0.2`; may be repeated
    #[arg(long = "try")]
    tries: Vec<String>,
    /// The ablation: V1 to V4, and the network mixed with the linear classifier
    #[arg(long)]
    ablation: bool,
    /// The linear baselines
    #[arg(long)]
    linear: bool,
    /// Epoch time against documents and clusters
    #[arg(long)]
    growth: bool,
    /// Where to keep the prepared graphs; a temporary folder if not given
    #[arg(long)]
    work: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = args.work.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    let corpus = Prepared::new(args, &folder)?;
    corpus.describe()?;
    say!(
        "peak of the products before this run: {:.0} GFLOP/s on one thread, {:.0} on {}\n",
        measured_peak_gflops(1),
        measured_peak_gflops(rayon::current_num_threads()),
        rayon::current_num_threads()
    )?;
    say!(
        "| model | cluster recall@{0} | label recall@{0} | tail cluster recall@{0} | epochs | s an epoch | CPU s an epoch | busy | peak beside it, GFLOP/s | share of it |",
        args.top
    )?;
    say!("|---|---|---|---|---|---|---|---|---|---|")?;
    if args.linear {
        corpus.linear()?;
    }
    let base = corpus.options(args);
    if args.ablation {
        for variant in [Variant::V1, Variant::V2, Variant::V3, Variant::V4] {
            let model = MatcherConfig {
                variant,
                ..base.model.clone()
            };
            corpus.measure(
                &format!("{variant:?}"),
                &TrainOptions {
                    model,
                    ..base.clone()
                },
            )?;
        }
        corpus.mixed(&base)?;
    } else if args.tries.is_empty() {
        corpus.measure("default", &base)?;
    }
    for changes in &args.tries {
        corpus.measure(changes, &changed(&base, changes)?)?;
    }
    if args.growth {
        corpus.growth(&base)?;
    }
    Ok(())
}

impl Prepared {
    fn options(&self, args: &Args) -> TrainOptions {
        let model = shape(args.full, self.width, self.clusters, self.tfidf_terms);
        TrainOptions {
            top: self.top,
            ..TrainOptions::new(model)
        }
    }

    /// Trains, scores and prints a row. The peak is the mean of what was found right before and right after.
    fn measure(&self, name: &str, options: &TrainOptions) -> anyhow::Result<()> {
        let peak_now = || measured_peak_gflops(rayon::current_num_threads());
        let (before, cpu) = (peak_now(), cpu_seconds());
        let trained = self.train(options)?;
        let cpu = (cpu_seconds() - cpu) / f64::from(trained.epochs);
        let peak = f64::midpoint(before, peak_now());
        let found: Vec<Vec<u32>> = predict(&trained.matcher, &self.valid, self.top)?
            .into_iter()
            .map(|top| top.into_iter().map(|(cluster, _)| cluster).collect())
            .collect();
        let steps = trained.step_seconds / f64::from(trained.epochs);
        let share = self.products(&options.model) / steps / 1e9 / peak;
        self.print_row(
            name,
            &found,
            &format!(
                "{} | {steps:.2} | {cpu:.2} | {:.1} % | {peak:.0} | {:.0} %",
                trained.epochs,
                100.0 * trained.busy,
                100.0 * share
            ),
        )
    }

    /// Without validation: the scored documents must not choose the epoch they are scored with.
    fn train(&self, options: &TrainOptions) -> anyhow::Result<TrainedMatcher> {
        let data = TrainData {
            graphs: &self.train,
            positives: &self.train_positives,
            label_documents: &self.label_documents,
            validation: None,
        };
        Ok(train(data, options, &mut |event| {
            if let TrainEvent::Epoch {
                epoch,
                loss_conventional,
                loss_rebalance,
                ..
            } = event
            {
                tell!("  epoch {epoch}: {loss_conventional:.3} {loss_rebalance:.3}");
            }
        })?)
    }

    /// Floating-point operations of the products of an epoch: forward, and twice that backward.
    fn products(&self, model: &MatcherConfig) -> f64 {
        let rows: usize = (0..self.train.len())
            .map(|d| model.rows(self.train.get(d).vertices))
            .sum();
        let mut a_row = 0;
        for layer in 1..=model.depth() {
            // The first layer's input gets a gradient in its embedded columns only.
            let backward = if layer == 1 {
                model.input_width() + model.embedding_width()
            } else {
                2 * model.hidden
            };
            a_row += model.hidden * (model.layer_width(layer - 1) + backward + 3 * model.hidden);
        }
        let a_document = 3 * model.clusters * model.readout_width();
        2.0 * model.branches() as f64
            * (rows as f64 * a_row as f64 + self.train.len() as f64 * a_document as f64)
    }

    fn print_row(&self, name: &str, found: &[Vec<u32>], rest: &str) -> anyhow::Result<()> {
        let share = |of: &dyn Fn(usize) -> (usize, usize)| {
            let (mut hits, mut all) = (0, 0);
            for document in 0..found.len() {
                let (h, a) = of(document);
                hits += h;
                all += a;
            }
            100.0 * hits as f64 / all.max(1) as f64
        };
        let clusters = share(&|d| {
            let truth = self.valid_positives.row(d);
            (truth.iter().filter(|c| found[d].contains(c)).count(), truth.len())
        });
        let labels = share(&|d| {
            let truth = self.valid_labels.row(d);
            (
                truth
                    .iter()
                    .filter(|&&l| found[d].contains(&self.assignment[l as usize]))
                    .count(),
                truth.len(),
            )
        });
        // A tail label has at most ten training documents; its cluster counts once a document.
        let tail = share(&|d| {
            let rare = |&&l: &&u32| self.label_documents.row(l as usize).len() <= 10;
            let mut truth: Vec<u32> = self
                .valid_labels
                .row(d)
                .iter()
                .filter(rare)
                .map(|&l| self.assignment[l as usize])
                .collect();
            truth.sort_unstable();
            truth.dedup();
            (truth.iter().filter(|c| found[d].contains(c)).count(), truth.len())
        });
        say!("| {name} | {clusters:.2} | {labels:.2} | {tail:.2} | {rest} |")?;
        Ok(())
    }
}
