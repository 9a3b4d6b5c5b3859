//! `gnnxml bench labels`: what the label graph, its clusters and the map cost, and what they are worth.
//!
//! Three measurements, each with its own switch: `--corpus` (time and quality on a real vocabulary), `--peer`
//! (mini-batch k-means against scikit-learn's on the same matrix), `--generated` (growth).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use gnnxml_shared::features::SparseVector;
use serde::Deserialize;

use super::WrongInput;
use super::bench::peak_megabytes;
use crate::collective::SingleProcess;
use crate::cpu_time::cpu_seconds;
use crate::data::{self, LabelVocabulary};
use crate::labels::generate::Shape;
use crate::labels::{
    ClusterOptions, DenseRows, DocumentLabels, LabelClusters, LabelTerms, LabelVectors, Partition, Sampling,
    cluster_labels, cluster_labels_with, k_means_inertia, label_vectors_sparse,
    normalised_mutual_information, project_sparse,
};

/// Arguments of `gnnxml bench labels`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Cluster the labels of this corpus, by TF-IDF label vectors
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// A vocabulary with parents, to compare the clusters with its top-level branches
    #[arg(long, requires = "corpus")]
    vocabulary: Option<PathBuf>,
    /// Keep the corpus' clusters in this file, for `gnnxml clusters --model FILE`
    #[arg(long, requires = "corpus")]
    save: Option<PathBuf>,
    /// A Python with scikit-learn, to race its MiniBatchKMeans
    #[arg(long)]
    peer: Option<PathBuf>,
    /// The script that runs the peer
    #[arg(long, default_value = "tests/peers/minibatch_kmeans.py")]
    peer_script: PathBuf,
    /// Runs a measurement is the median of
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Generate a vocabulary of this many labels; several for a table of growth
    #[arg(long, value_delimiter = ',')]
    generated: Vec<usize>,
    /// Width of the generated label vectors
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// Mean labels a generated document
    #[arg(long, default_value_t = 5.45)]
    labels_per_document: f64,
    /// Filter with sampled neighbours: B labels at a time, S neighbours a step
    #[arg(long, value_names = ["B", "S"], num_args = 2)]
    sampled: Option<Vec<usize>>,
}

impl Args {
    fn options(&self) -> ClusterOptions {
        ClusterOptions {
            sampling: self.sampled.as_ref().map(|s| Sampling {
                batch: s[0],
                samples: s[1],
            }),
            ..ClusterOptions::default()
        }
    }
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    if args.corpus.is_none() && args.peer.is_none() && args.generated.is_empty() {
        return Err(WrongInput("nothing to measure: give --corpus, --peer or --generated".into()).into());
    }
    let matrix = match &args.corpus {
        Some(corpus) => Some(measure_corpus(&args, corpus)?),
        None => None,
    };
    if let Some(python) = &args.peer {
        let generated = Shape {
            labels: 50_000,
            documents: 0,
            labels_per_document: 1.0,
            width: args.width,
            topics: 500,
            seed: 3,
        };
        say!("\nmini-batch k-means, medians of {} runs, 2 threads", args.runs)?;
        say!(
            "matrix\trows\twidth\tk\tours s\tpeer s\tratio\tours cpu s\tpeer cpu s\tcpu ratio\tinertia ours/peer"
        )?;
        if let Some(matrix) = matrix {
            race(&args, python, "corpus", &matrix)?;
        }
        race(&args, python, "generated", &generated.vectors())?;
    }
    if !args.generated.is_empty() {
        say!("\nlabels\tdocuments\tnon-zeros\tgraph entries\tclusters\tstep\tseconds\tpeak MB")?;
        for &labels in &args.generated {
            growth(&args, labels)?;
        }
    }
    Ok(())
}

/// Time and quality on a real vocabulary; returns the dense label vectors for the race.
fn measure_corpus(args: &Args, path: &Path) -> anyhow::Result<DenseRows> {
    let corpus = Corpus::read(path)?;
    let labels = corpus.names.len();
    let began = Instant::now();
    let sparse = label_vectors_sparse(&corpus.rows, corpus.words.len(), &corpus.documents, None)?;
    say!(
        "{}: {} documents, {labels} labels, {} terms; label vectors {:.2} s",
        path.display(),
        corpus.documents.documents(),
        corpus.words.len(),
        began.elapsed().as_secs_f64()
    )?;
    let options = args.options();
    let mut steps: Vec<(&'static str, Instant)> = Vec::new();
    let clusters = cluster_labels_with(
        &corpus.documents,
        LabelVectors::Sparse(sparse.clone()),
        &options,
        &SingleProcess,
        &mut |step| steps.push((step, Instant::now())),
    )?;
    steps.push(("names", Instant::now()));
    let terms = LabelTerms {
        rows: &sparse,
        vocabulary: &corpus.words,
    };
    let clusters = clusters.name(&corpus.names, Some(terms))?;
    steps.push(("end", Instant::now()));
    for pair in steps.windows(2) {
        say!("{}\t{:.3} s", pair[0].0, (pair[1].1 - pair[0].1).as_secs_f64())?;
    }
    say!(
        "in all\t{:.3} s",
        (steps[steps.len() - 1].1 - steps[0].1).as_secs_f64()
    )?;
    say!("{}", serde_json::to_string(&clusters.statistics())?)?;
    say!("{}", serde_json::to_string(clusters.report())?)?;
    if let Some(file) = &args.save {
        clusters.save(file)?;
    }
    if let Some(vocabulary) = &args.vocabulary {
        let branches = branches(&LabelVocabulary::read(vocabulary, "en")?, &corpus.names);
        say!(
            "normalised mutual information with the {} top-level branches ({} of {labels} labels have exactly one), mean of 3 seeds",
            branches.values().collect::<BTreeSet<_>>().len(),
            branches.len()
        )?;
        for method in [Partition::Graph, Partition::KMeans, Partition::Random] {
            let mut told = 0.0;
            let mut over = 0.0;
            for seed in 0..3 {
                let options = ClusterOptions {
                    method,
                    seed,
                    map: false,
                    ..options.clone()
                };
                let vectors = LabelVectors::Sparse(sparse.clone());
                let clusters = cluster_labels(&corpus.documents, vectors, &options)?;
                told += agreement(&clusters, &branches) / 3.0;
                over += f64::from(clusters.statistics().clusters_over_100) / 3.0;
            }
            say!(
                "{method:?}\t{told:.4}\tclusters over 100 documents {:.1} %",
                100.0 * over
            )?;
        }
    }
    Ok(project_sparse(&sparse, options.projection, options.seed))
}

/// How much the clusters tell about the branches, over the labels that have one.
fn agreement(clusters: &LabelClusters, branches: &BTreeMap<usize, u32>) -> f64 {
    let (found, truth): (Vec<u32>, Vec<u32>) = branches
        .iter()
        .map(|(&label, &branch)| (clusters.assignment()[label], branch))
        .unzip();
    normalised_mutual_information(&found, &truth)
}

/// Label → top-level branch, for labels with exactly one.
fn branches(vocabulary: &LabelVocabulary, names: &[String]) -> BTreeMap<usize, u32> {
    fn climb<'a>(
        vocabulary: &'a LabelVocabulary,
        id: &'a str,
        seen: &mut BTreeSet<&'a str>,
        top: &mut BTreeSet<&'a str>,
    ) {
        if !seen.insert(id) {
            return;
        }
        let known = vocabulary
            .by_id(id)
            .map(|entry| entry.parents.as_slice())
            .unwrap_or_default();
        if known.is_empty() {
            top.insert(id);
        }
        for parent in known {
            climb(vocabulary, parent, seen, top);
        }
    }
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (label, name) in names.iter().enumerate() {
        let Some(entry) = vocabulary.by_name(name).or_else(|| vocabulary.by_id(name)) else {
            continue;
        };
        let (mut seen, mut top) = (BTreeSet::new(), BTreeSet::new());
        climb(vocabulary, &entry.id, &mut seen, &mut top);
        if let (1, Some(only)) = (top.len(), top.first()) {
            let next = numbers.len() as u32;
            found.insert(label, *numbers.entry((*only).to_owned()).or_insert(next));
        }
    }
    found
}

/// What the peer prints.
#[derive(Deserialize)]
struct PeerRun {
    seconds: f64,
    cpu_seconds: f64,
    inertia: f64,
}

/// Our k-means and the peer's on one matrix, in turn, both on two threads.
fn race(args: &Args, python: &Path, what: &str, matrix: &DenseRows) -> anyhow::Result<()> {
    let (rows, width) = (matrix.rows(), matrix.width());
    let k = ClusterOptions::default().clusters(rows)?;
    let batch = ClusterOptions::default().batch;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), bytemuck::cast_slice::<f32, u8>(matrix.values()))?;
    let output = Command::new(python)
        .arg(&args.peer_script)
        .arg(file.path())
        .args([rows, width, k, batch].map(|number| number.to_string()))
        .args((0..args.runs).map(|seed| seed.to_string()))
        .envs([("OMP_NUM_THREADS", "2"), ("OPENBLAS_NUM_THREADS", "2")])
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        anyhow::bail!(
            "the peer failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let peer: Vec<PeerRun> = String::from_utf8(output.stdout)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .context("the peer printed something else than its figures")?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    let mut ours = Vec::new();
    for seed in 0..args.runs as u64 {
        let options = ClusterOptions {
            seed,
            // The peer has no second level either.
            flat_limit: usize::MAX,
            ..ClusterOptions::default()
        };
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        let inertia = threads.install(|| k_means_inertia(matrix, k, &options))?;
        ours.push(PeerRun {
            seconds: wall.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - cpu,
            inertia,
        });
    }
    let of = |runs: &[PeerRun], figure: fn(&PeerRun) -> f64| median(runs.iter().map(figure).collect());
    let (our_wall, peer_wall) = (of(&ours, |r| r.seconds), of(&peer, |r| r.seconds));
    let (our_cpu, peer_cpu) = (of(&ours, |r| r.cpu_seconds), of(&peer, |r| r.cpu_seconds));
    say!(
        "{what}\t{rows}\t{width}\t{k}\t{our_wall:.3}\t{peer_wall:.3}\t{:.2}\t{our_cpu:.3}\t{peer_cpu:.3}\t{:.2}\t{:.4}",
        peer_wall / our_wall,
        peer_cpu / our_cpu,
        of(&ours, |r| r.inertia) / of(&peer, |r| r.inertia)
    )?;
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One vocabulary of Amazon-670K's proportions: 490,449 documents for 670,091 labels.
fn growth(args: &Args, labels: usize) -> anyhow::Result<()> {
    let shape = Shape {
        labels,
        documents: (labels as u64 * 490_449 / 670_091) as usize,
        labels_per_document: args.labels_per_document,
        width: args.width,
        topics: (labels / 200).max(1),
        seed: 1,
    };
    let documents = shape.documents()?;
    let vectors = LabelVectors::Dense(shape.vectors());
    let options = args.options();
    let mut steps: Vec<(&'static str, Instant)> = Vec::new();
    let clusters = cluster_labels_with(&documents, vectors, &options, &SingleProcess, &mut |step| {
        steps.push((step, Instant::now()));
    })?;
    steps.push(("end", Instant::now()));
    let line = |step: &str, seconds: f64| {
        say!(
            "{labels}\t{}\t{}\t{}\t{}\t{step}\t{seconds:.2}\t{}",
            documents.documents(),
            documents.nonzeros(),
            clusters.report().graph_entries,
            clusters.len(),
            peak_megabytes()
        )
    };
    for pair in steps.windows(2) {
        line(pair[0].0, (pair[1].1 - pair[0].1).as_secs_f64())?;
    }
    line("in all", (steps[steps.len() - 1].1 - steps[0].1).as_secs_f64())?;
    let truth: Vec<u32> = (0..labels).map(|label| shape.topic_of(label) as u32).collect();
    say!(
        "{labels}\tnormalised mutual information with the generated topics {:.4}",
        normalised_mutual_information(clusters.assignment(), &truth)
    )?;
    Ok(())
}

/// A corpus as the measurement needs it: TF-IDF rows and label numbers.
struct Corpus {
    documents: DocumentLabels,
    names: Vec<String>,
    rows: Vec<SparseVector>,
    words: Vec<String>,
}

impl Corpus {
    /// Reads it twice: words and labels first, then rows.
    fn read(path: &Path) -> anyhow::Result<Self> {
        let mut label_names = BTreeSet::new();
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let mut count = 0u32;
        for document in data::open(path)? {
            let document = document?;
            count += 1;
            label_names.extend(document.labels);
            for word in words_of(&document.text).into_keys() {
                *seen.entry(word).or_default() += 1;
            }
        }
        // Words of a single document or of half the corpus tell labels nothing.
        let kept: BTreeMap<String, (u32, f32)> = seen
            .into_iter()
            .filter(|&(_, documents)| documents >= 3 && documents <= count / 2)
            .enumerate()
            .map(|(at, (word, documents))| (word, (at as u32, (count as f32 / documents as f32).ln())))
            .collect();
        let names: Vec<String> = label_names.into_iter().collect();
        let mut documents = DocumentLabels::new(names.len());
        let mut rows = Vec::with_capacity(count as usize);
        for document in data::open(path)? {
            let document = document?;
            let labels: Vec<u32> = document
                .labels
                .iter()
                .filter_map(|label| names.binary_search(label).ok())
                .map(|label| label as u32)
                .collect();
            documents.push(&labels)?;
            let mut row = SparseVector::default();
            for (word, times) in words_of(&document.text) {
                if let Some(&(column, idf)) = kept.get(&word) {
                    row.indices.push(column);
                    row.values.push((1.0 + (times as f32).ln()) * idf);
                }
            }
            let length = row.values.iter().map(|v| v * v).sum::<f32>().sqrt();
            for value in &mut row.values {
                *value /= length.max(f32::MIN_POSITIVE);
            }
            rows.push(row);
        }
        Ok(Self {
            documents,
            names,
            rows,
            words: kept.into_keys().collect(),
        })
    }
}

/// Words of three letters and more, lower case, with how often each occurs, in order.
fn words_of(text: &str) -> BTreeMap<String, u32> {
    let mut words = BTreeMap::new();
    for word in text.split(|c: char| !c.is_alphabetic()) {
        if word.len() >= 3 {
            *words.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    words
}
