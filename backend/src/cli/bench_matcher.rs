//! `gnnxml bench matcher`: how well and how fast clusters are matched.
//!
//! One run prepares the corpus as the presets do, then prints the two linear baselines, the ablation V1–V4 (also on the clusters of tail
//! labels), network and linear classifier mixed, epoch time with the share of the product peak it reaches, and, if asked, how cost grows with documents and clusters.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use gnnxml_shared::api::TrainEvent;
use gnnxml_shared::features::{SparseVector, TfIdf, TfIdfBuilder, TransformScratch};
use gnnxml_shared::keygraph::{
    EntityLexicon, EntityLexiconBuilder, KeyGraphBuilder, Options as KeyGraphOptions,
};
use gnnxml_shared::model::encoder::SentenceEncoder as _;
use gnnxml_shared::model::matcher::{EdgeWeights, MatcherConfig, ReadoutNorm, Variant};
use gnnxml_shared::model::score::strongest;
use gnnxml_shared::model::tagger::{LsaSentences, first_sentences, keyword_graph};
use gnnxml_shared::text::Language;
use rayon::prelude::*;

use super::WrongInput;
use super::bench::cpu_seconds;
use super::bench_matcher_linear::LinearMatcher;
use crate::data::{self, Document, IdFilter};
use crate::labels::{ClusterOptions, DocumentLabels, LabelVectors, cluster_labels, label_vectors_sparse};
use crate::matcher::{
    Lists, PreparedGraphs, PreparedWriter, TrainData, TrainOptions, TrainedMatcher, ValidationData,
    measured_peak_gflops, predict, train,
};
use crate::train::{TrainConfig, best_share, term_options};

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
    corpus.describe();
    println!(
        "peak of the products before this run: {:.0} GFLOP/s on one thread, {:.0} on {}\n",
        measured_peak_gflops(1),
        measured_peak_gflops(rayon::current_num_threads()),
        rayon::current_num_threads()
    );
    println!(
        "| model | cluster recall@{0} | label recall@{0} | tail cluster recall@{0} | epochs | s an epoch | CPU s an epoch | busy | peak beside it, GFLOP/s | share of it |",
        args.top
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
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

/// A corpus, ready to be learned from.
struct Prepared {
    config: TrainConfig,
    tfidf_terms: usize,
    train_rows: Vec<SparseVector>,
    valid_rows: Vec<SparseVector>,
    train_dense: Vec<f32>,
    valid_dense: Vec<f32>,
    width: usize,
    clusters: usize,
    assignment: Vec<u32>,
    train: PreparedGraphs,
    valid: PreparedGraphs,
    train_labels: Lists,
    valid_labels: Lists,
    train_positives: Lists,
    valid_positives: Lists,
    label_documents: Lists,
    top: usize,
}

fn source(path: &Path, ids: Option<&Path>) -> anyhow::Result<data::CorpusSource> {
    let source = data::CorpusSource::detect(path)?;
    Ok(match ids {
        Some(ids) => source.only(IdFilter::from_file(ids)?),
        None => source,
    })
}

fn read(path: &Path, ids: Option<&Path>, limit: Option<usize>) -> anyhow::Result<Vec<Document>> {
    let source = source(path, ids)?;
    let documents: Result<Vec<_>, _> = source.open()?.take(limit.unwrap_or(usize::MAX)).collect();
    documents.with_context(|| format!("reading {}", path.display()))
}

impl Prepared {
    fn new(args: &Args, folder: &Path) -> anyhow::Result<Self> {
        let clock = Instant::now();
        let said = |what: &str| println!("{:6.1} s  {what}", clock.elapsed().as_secs_f64());
        let train_documents = read(&args.corpus, args.ids.as_deref(), args.limit)?;
        let valid_documents = read(&args.valid, None, args.limit)?;
        if train_documents.is_empty() || valid_documents.is_empty() {
            return Err(
                WrongInput("the corpus and the validation documents must not be empty".into()).into(),
            );
        }
        let language = Language::English;
        let config = match &args.config {
            None => TrainConfig::of_preset("fast")?,
            Some(file) => {
                let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
                TrainConfig::of_preset_with("fast", &file.display().to_string(), &text)?
            }
        };
        let terms = term_options(&source(&args.corpus, args.ids.as_deref())?, &config)?;
        let (mut tfidf, mut lexicon) = (
            TfIdfBuilder::new(terms, language),
            EntityLexiconBuilder::default(),
        );
        for document in &train_documents {
            tfidf.add(&document.text);
            lexicon.add(&document.text, language);
        }
        let (tfidf, lexicon) = (Arc::new(tfidf.finish()), lexicon.finish());
        said("vocabulary and entity lexicon learned");
        let transform = |documents: &[Document]| -> Vec<SparseVector> {
            documents
                .par_iter()
                .map_init(TransformScratch::default, |s, d| tfidf.transform_with(&d.text, s))
                .collect()
        };
        let (train_rows, valid_rows) = (transform(&train_documents), transform(&valid_documents));
        let width = if args.full { 384 } else { 128 };
        let lsa = crate::encoder::lsa::fit(&train_rows, tfidf.len(), width, 0)?;
        said("LSA fitted");
        let dense = |rows: &[SparseVector]| {
            let mut dense = vec![0.0; rows.len() * width];
            dense
                .par_chunks_mut(width)
                .zip(rows)
                .for_each(|(out, row)| lsa.project(row, out));
            dense
        };
        let mut names: Vec<&str> = train_documents
            .iter()
            .flat_map(|d| d.labels.iter().map(String::as_str))
            .collect();
        names.sort_unstable();
        names.dedup();
        let numbers = |documents: &[Document]| {
            let mut lists = Lists::new();
            for document in documents {
                let mut row: Vec<u32> = document
                    .labels
                    .iter()
                    .filter_map(|label| names.binary_search(&label.as_str()).ok().map(|n| n as u32))
                    .collect();
                row.sort_unstable();
                lists.push(row);
            }
            lists
        };
        let (train_labels, valid_labels) = (numbers(&train_documents), numbers(&valid_documents));
        let carriers = DocumentLabels::collect(train_labels.rows(), names.len())?;
        let vectors = label_vectors_sparse(&train_rows, tfidf.len(), &carriers, None)?;
        let options = ClusterOptions {
            k: args.clusters,
            map: false,
            ..config.clusters.clone()
        };
        let clusters = cluster_labels(&carriers, LabelVectors::Sparse(vectors), &options)?;
        said("labels clustered");
        let assignment = clusters.assignment().to_vec();
        let positives = |labels: &Lists| {
            let mut lists = Lists::new();
            for row in labels.rows() {
                let mut clusters: Vec<u32> = row.iter().map(|&l| assignment[l as usize]).collect();
                clusters.sort_unstable();
                clusters.dedup();
                lists.push(clusters);
            }
            lists
        };
        let shape = shape(args.full, width, clusters.len(), tfidf.len());
        let sentences = LsaSentences::new(Arc::clone(&tfidf), lsa.clone());
        let prepare = |name: &str, documents: &[Document], rows: &[SparseVector]| {
            let encoders = (&*tfidf, &lexicon, &sentences);
            prepare(&folder.join(name), documents, rows, &shape, encoders)
        };
        let train = prepare("train.graphs", &train_documents, &train_rows)?;
        let valid = prepare("valid.graphs", &valid_documents, &valid_rows)?;
        said("KeyGraphs built, vertex features laid out");
        Ok(Self {
            config,
            tfidf_terms: tfidf.len(),
            train_dense: dense(&train_rows),
            valid_dense: dense(&valid_rows),
            train_positives: positives(&train_labels),
            valid_positives: positives(&valid_labels),
            label_documents: train_labels.transposed(names.len()),
            clusters: clusters.len(),
            train_rows,
            valid_rows,
            width,
            assignment,
            train,
            valid,
            train_labels,
            valid_labels,
            top: args.top,
        })
    }

    fn describe(&self) {
        let vertices: usize = (0..self.train.len()).map(|d| self.train.get(d).vertices).sum();
        println!(
            "{} documents to learn from, {} to score, {} labels in {} clusters, {} terms, {:.1} vertices a document",
            self.train.len(),
            self.valid.len(),
            self.label_documents.len(),
            self.clusters,
            self.tfidf_terms,
            vertices as f64 / self.train.len() as f64,
        );
        let mut sizes = vec![0usize; self.clusters];
        for &cluster in &self.assignment {
            sizes[cluster as usize] += 1;
        }
        sizes.sort_unstable();
        println!(
            "clusters of {} to {} labels, half of them of {} or more; {:.2} clusters a document",
            sizes[0],
            sizes[self.clusters - 1],
            sizes[self.clusters / 2],
            self.valid_positives.items().len() as f64 / self.valid_positives.len() as f64,
        );
    }

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
        let peak = (before + peak_now()) / 2.0;
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
        );
        Ok(())
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
                eprintln!("  epoch {epoch}: {loss_conventional:.3} {loss_rebalance:.3}");
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

    fn print_row(&self, name: &str, found: &[Vec<u32>], rest: &str) {
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
        println!("| {name} | {clusters:.2} | {labels:.2} | {tail:.2} | {rest} |");
    }

    /// One-vs-all linear classifiers of the clusters on TF-IDF, and on the documents' LSA vectors.
    fn linear(&self) -> anyhow::Result<()> {
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
            self.print_row(name, &found, &format!("– | {seconds:.1} in all | – | – | – | –"));
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
    fn mixed(&self, options: &TrainOptions) -> anyhow::Result<()> {
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
        let network = train(data, options, &mut |_| {})?.matcher;
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
        self.print_row(&name, &self.strongest(&mixed), "– | – | – | – | – | –");
        Ok(())
    }

    /// Epoch time against documents and clusters, on parts and repetitions of the corpus.
    fn growth(&self, base: &TrainOptions) -> anyhow::Result<()> {
        println!("\n| documents | clusters | s an epoch | µs a document |\n|---|---|---|---|");
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
            println!(
                "| {documents} | {clusters} | {seconds:.2} | {:.0} |",
                1e6 * seconds / documents as f64
            );
        }
        Ok(())
    }
}

fn shape(full: bool, width: usize, clusters: usize, vocabulary: usize) -> MatcherConfig {
    if full {
        MatcherConfig::full(width, clusters, vocabulary)
    } else {
        MatcherConfig::fast(width, clusters, vocabulary)
    }
}

/// KeyGraphs and features of all documents, in one file.
fn prepare(
    path: &Path,
    documents: &[Document],
    rows: &[SparseVector],
    shape: &MatcherConfig,
    (tfidf, lexicon, sentences): (&TfIdf, &EntityLexicon, &LsaSentences),
) -> anyhow::Result<PreparedGraphs> {
    let mut writer = PreparedWriter::create(path, shape.width)?;
    let builder = || KeyGraphBuilder::new(Language::English, lexicon, &KeyGraphOptions::default());
    for (documents, rows) in documents.chunks(512).zip(rows.chunks(512)) {
        let graphs: Result<Vec<_>, _> = documents
            .par_iter()
            .zip(rows)
            .map_init(builder, |builder, (document, row)| {
                let graph = builder.build(&document.text);
                let vectors = sentences.encode(&first_sentences(&document.text, &graph, u32::MAX));
                keyword_graph(tfidf, shape, &graph, &vectors, row)
            })
            .collect();
        for graph in graphs? {
            writer.push(&graph)?;
        }
    }
    Ok(writer.finish()?)
}

/// `base` with settings changed by name.
fn changed(base: &TrainOptions, changes: &str) -> anyhow::Result<TrainOptions> {
    let mut options = base.clone();
    for change in changes.split(',').filter(|c| !c.is_empty()) {
        let wrong = || {
            WrongInput(format!(
                "--try: found {change:?}, expected name=value with a known name"
            ))
        };
        let (name, value) = change.split_once('=').ok_or_else(wrong)?;
        let number = || value.parse::<f32>().map_err(|_| wrong());
        let whole = || value.parse::<usize>().map_err(|_| wrong());
        let model = &mut options.model;
        match name {
            "epochs" => options.epochs = whole()? as u32,
            "batch" => options.batch = whole()?,
            "shard" => options.shard = whole()?,
            "rate" => options.learning_rate = number()?,
            "final_rate" => options.final_rate = number()?,
            "embedding_rate" => options.embedding_rate = number()?,
            "decay" => options.weight_decay = number()?,
            "clip" => options.clip = number()?,
            "positive_weight" => options.positive_weight = number()?,
            "seed" => options.seed = whole()? as u64,
            "word_dropout" => options.word_dropout = number()?,
            "dropout" => model.dropout = number()?,
            "hidden" => model.hidden = whole()?,
            "layers" => model.layers = whole()?,
            "embedding" => {
                model.embedding = whole()?;
                model.vocabulary = if model.embedding == 0 {
                    0
                } else {
                    base.model.vocabulary
                };
            }
            "shared_lower" => model.shared_lower = whole()? != 0,
            "learn_epsilon" => model.learn_epsilon = whole()? != 0,
            "text_vertex" => model.text_vertex = whole()? != 0,
            "edge_weights" => {
                model.edge_weights = match value {
                    "off" => EdgeWeights::Off,
                    "shared" => EdgeWeights::Shared,
                    "normalised" => EdgeWeights::Normalised,
                    _ => return Err(wrong().into()),
                }
            }
            "readout" => {
                model.readout = match value {
                    "sum" => ReadoutNorm::Sum,
                    "root" => ReadoutNorm::Root,
                    "mean" => ReadoutNorm::Mean,
                    _ => return Err(wrong().into()),
                }
            }
            "variant" => {
                model.variant = match value {
                    "v1" => Variant::V1,
                    "v2" => Variant::V2,
                    "v3" => Variant::V3,
                    "v4" => Variant::V4,
                    _ => return Err(wrong().into()),
                }
            }
            _ => return Err(wrong().into()),
        }
    }
    Ok(options)
}
