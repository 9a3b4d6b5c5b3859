//! A corpus made ready as the presets do it: words, label clusters, KeyGraphs with their features.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use gnnxml_shared::features::{SparseVector, TfIdf, TfIdfBuilder, TransformScratch};
use gnnxml_shared::keygraph::{
    EntityLexicon, EntityLexiconBuilder, KeyGraphBuilder, Options as KeyGraphOptions,
};
use gnnxml_shared::model::encoder::SentenceEncoder as _;
use gnnxml_shared::model::matcher::MatcherConfig;
use gnnxml_shared::model::tagger::{LsaSentences, first_sentences, keyword_graph};
use rayon::prelude::*;

use super::Args;
use crate::cli::WrongInput;
use crate::data::{self, Document, IdFilter};
use crate::labels::{ClusterOptions, DocumentLabels, LabelVectors, cluster_labels, label_vectors_sparse};
use crate::matcher::{Lists, PreparedGraphs, PreparedWriter};
use crate::train::{TrainConfig, reading_of};

/// A corpus, ready to be learned from.
pub(super) struct Prepared {
    pub(super) config: TrainConfig,
    pub(super) tfidf_terms: usize,
    pub(super) train_rows: Vec<SparseVector>,
    pub(super) valid_rows: Vec<SparseVector>,
    pub(super) train_dense: Vec<f32>,
    pub(super) valid_dense: Vec<f32>,
    pub(super) width: usize,
    pub(super) clusters: usize,
    pub(super) assignment: Vec<u32>,
    pub(super) train: PreparedGraphs,
    pub(super) valid: PreparedGraphs,
    pub(super) train_labels: Lists,
    pub(super) valid_labels: Lists,
    pub(super) train_positives: Lists,
    pub(super) valid_positives: Lists,
    pub(super) label_documents: Lists,
    pub(super) top: usize,
}

impl Prepared {
    pub(super) fn new(args: &Args, folder: &Path) -> anyhow::Result<Self> {
        let clock = Instant::now();
        let said = |what: &str| say!("{:6.1} s  {what}", clock.elapsed().as_secs_f64());
        let train_documents = read(&args.corpus, args.ids.as_deref(), args.limit)?;
        let valid_documents = read(&args.valid, None, args.limit)?;
        if train_documents.is_empty() || valid_documents.is_empty() {
            return Err(
                WrongInput("the corpus and the validation documents must not be empty".into()).into(),
            );
        }
        let config = match &args.config {
            None => TrainConfig::of_preset("fast")?,
            Some(file) => {
                let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
                TrainConfig::of_preset_with("fast", &file.display().to_string(), &text)?
            }
        };
        let (terms, language) = reading_of(&source(&args.corpus, args.ids.as_deref())?, &config)?;
        let (mut tfidf, mut lexicon) = (
            TfIdfBuilder::new(terms, language),
            EntityLexiconBuilder::default(),
        );
        for document in &train_documents {
            tfidf.add(&document.text);
            lexicon.add(&document.text, language);
        }
        let (tfidf, lexicon) = (Arc::new(tfidf.finish()), lexicon.finish());
        said("vocabulary and entity lexicon learned")?;
        let transform = |documents: &[Document]| -> Vec<SparseVector> {
            documents
                .par_iter()
                .map_init(TransformScratch::default, |s, d| tfidf.transform_with(&d.text, s))
                .collect()
        };
        let (train_rows, valid_rows) = (transform(&train_documents), transform(&valid_documents));
        let width = if args.full { 384 } else { 128 };
        let lsa = crate::encoder::lsa::fit(&train_rows, tfidf.len(), width, 0)?;
        said("LSA fitted")?;
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
        said("labels clustered")?;
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
        said("KeyGraphs built, vertex features laid out")?;
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

    pub(super) fn describe(&self) -> anyhow::Result<()> {
        let vertices: usize = (0..self.train.len()).map(|d| self.train.get(d).vertices).sum();
        say!(
            "{} documents to learn from, {} to score, {} labels in {} clusters, {} terms, {:.1} vertices a document",
            self.train.len(),
            self.valid.len(),
            self.label_documents.len(),
            self.clusters,
            self.tfidf_terms,
            vertices as f64 / self.train.len() as f64,
        )?;
        let mut sizes = vec![0usize; self.clusters];
        for &cluster in &self.assignment {
            sizes[cluster as usize] += 1;
        }
        sizes.sort_unstable();
        say!(
            "clusters of {} to {} labels, half of them of {} or more; {:.2} clusters a document",
            sizes[0],
            sizes[self.clusters - 1],
            sizes[self.clusters / 2],
            self.valid_positives.items().len() as f64 / self.valid_positives.len() as f64,
        )?;
        Ok(())
    }
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

pub(super) fn shape(full: bool, width: usize, clusters: usize, vocabulary: usize) -> MatcherConfig {
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
    let builder = || KeyGraphBuilder::new(tfidf.language(), lexicon, &KeyGraphOptions::default());
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
