//! The stages of a run in order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gnnxml_shared::api::{Stage, TrainEvent};
use gnnxml_shared::features::words_of_term;
use gnnxml_shared::metrics::{Evaluation, EvaluationOptions, LabelFrequencies, Propensity};
use gnnxml_shared::model::names::LabelNames;
use gnnxml_shared::model::neighbours::{self, Neighbours, Remembered};
use gnnxml_shared::model::reach::Reach;
use gnnxml_shared::model::score::{Score, log_sigmoid, strongest};
use gnnxml_shared::model::tagger::{LsaSentences, TagLabel, Tagger};
use rayon::prelude::*;

use super::config::LabelFeatures;
use super::encode::{Encoded, encode, open_encoder};
use super::fit::{self, HeldOut, Outcome as Scored};
use super::matching::{Matched, match_clusters};
use super::model::{CorpusFacts, Model};
use super::place::Place;
use super::progress::Spent;
use super::ranking::{Ranked, rank_labels};
use super::work::Work;
use super::{Gathered, Progress, TrainConfig, TrainError, gather};
use crate::data::CorpusSource;
use crate::labels::{
    DocumentLabels, LabelClusters, LabelTerms, LabelVectors, cluster_labels, label_vectors_dense,
    label_vectors_sparse,
};
use crate::matcher::DeviceChoice;

/// What to train, from what, to where.
#[derive(Clone, Debug)]
pub struct TrainRequest {
    pub corpus: CorpusSource,
    /// Fits the score; without it a part of the training documents is held out.
    pub valid: Option<CorpusSource>,
    pub out: PathBuf,
    pub config: TrainConfig,
    pub device: DeviceChoice,
    pub threads: usize,
    /// Go on with the stages an interrupted run of the same settings and corpus finished.
    pub resume: bool,
    /// Set by a signal handler: the run stops at the next opportunity and stays resumable.
    pub stop: Arc<AtomicBool>,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// Figures on the held-out documents, in percent.
    pub metrics: BTreeMap<String, f64>,
    pub seconds: f64,
}

/// The documents of a run: training documents, then those of the validation corpus.
#[derive(Debug)]
pub(super) struct Documents {
    pub gathered: Gathered,
    /// How many are training documents.
    pub training: usize,
    /// Not learned from until the score is fitted.
    pub held_out: Vec<bool>,
}

impl Documents {
    /// Whether held-out documents join the training set once the score is fitted.
    pub(super) fn refits(&self) -> bool {
        self.training == self.held_out.len() && self.held_out.iter().any(|&held| held)
    }

    pub(super) fn len(&self) -> usize {
        self.held_out.len()
    }
}

/// Trains a model and saves it.
pub fn train(request: &TrainRequest, emit: &(dyn Fn(TrainEvent) + Sync)) -> Result<Outcome, TrainError> {
    let started = Instant::now();
    let config = &request.config;
    let place = Place::at(&request.out)?;
    let fingerprint = request.corpus.fingerprint()?;
    let mut read = vec![fingerprint.clone()];
    if let Some(valid) = &request.valid {
        read.push(valid.fingerprint()?);
    }
    let encoder = open_encoder(config, request.device)?;
    read.extend(encoder.as_ref().map(|encoder| encoder.fingerprint()));
    let work = Work::open(place.work(), config, &read, request.resume)?;
    let progress = |stage| Progress::new(stage, emit, &request.stop);

    let gathered = work.stage(Stage::Read, emit, Gathered::load, Gathered::save, || {
        gather(&request.corpus, config, request.threads, &progress(Stage::Read))
    })?;
    let documents = with_validation(gathered, request, &progress(Stage::Read))?;
    tell_counts(&documents, &progress(Stage::Read));
    let encoded = work.stage(
        Stage::Encode,
        emit,
        |part| Encoded::load(part, &work),
        |encoded, part| encoded.save(part),
        || encode(&documents, encoder, request, &work, &progress(Stage::Encode)),
    )?;
    let clusters = work.stage(
        Stage::Cluster,
        emit,
        |part| {
            let bytes: Vec<u8> = part.u32s()?.into_iter().map(|b| b as u8).collect();
            LabelClusters::from_bytes(&bytes)
                .map_err(|e| part.wrong("clusters", e, "a partition of the labels"))
        },
        |clusters, part| part.u32s(&clusters.to_bytes().into_iter().map(u32::from).collect::<Vec<_>>()),
        || cluster(&documents, &encoded, config, &progress(Stage::Cluster)),
    )?;
    let matched = work.stage(
        Stage::Match,
        emit,
        |part| Matched::load(part, &documents, clusters.len()),
        |matched, part| matched.save(part),
        || {
            match_clusters(
                &documents,
                &encoded,
                &clusters,
                request,
                &work,
                &progress(Stage::Match),
            )
        },
    )?;
    let frequencies = frequencies(&documents);
    let ranked = work.stage(
        Stage::Rank,
        emit,
        |part| Ranked::load(part, &documents),
        |ranked, part| ranked.save(part),
        || {
            rank_labels(
                &documents,
                &encoded,
                &clusters,
                &matched,
                &frequencies,
                config,
                &progress(Stage::Rank),
            )
        },
    )?;
    let frequencies = Arc::new(frequencies);
    let (score, metrics) = work.stage(
        Stage::Calibrate,
        emit,
        |part| {
            let text = part.text()?;
            serde_json::from_str(&text).map_err(|e| part.wrong("score", e, "a fitted score"))
        },
        |fitted, part| part.text(&serde_json::to_string(fitted).expect("a score is plain data")),
        || {
            Ok(calibrate(
                &documents,
                &encoded,
                &matched,
                &ranked,
                &frequencies,
                config,
            ))
        },
    )?;
    emit(TrainEvent::Metrics {
        values: metrics.clone(),
    });
    progress(Stage::Save).check()?;

    emit(TrainEvent::StageStarted { stage: Stage::Save });
    let saving = Spent::now();
    let corpus = CorpusFacts {
        fingerprint,
        documents: documents.training,
        trained_documents: documents.training,
        trained_labels: documents.gathered.label_names.len(),
        documents_without_labels: documents.gathered.without_labels,
        held_out: documents.held_out.iter().filter(|&&held| held).count(),
    };
    let mut model = assemble(
        documents,
        encoded,
        clusters,
        matched,
        ranked,
        score,
        &frequencies,
        config,
        corpus,
    );
    model.manifest.metrics.clone_from(&metrics);
    model.save(&request.out)?;
    work.remove();
    emit(saving.done(Stage::Save));
    let seconds = started.elapsed().as_secs_f64();
    emit(TrainEvent::Done { seconds });
    Ok(Outcome { metrics, seconds })
}

/// Adds the validation corpus behind the training documents, or holds some of them out.
fn with_validation(
    mut gathered: Gathered,
    request: &TrainRequest,
    progress: &Progress<'_>,
) -> Result<Documents, TrainError> {
    let training = gathered.labels.len();
    let mut held_out = vec![false; training];
    match &request.valid {
        None => held_out = gathered.held_out(&request.config),
        Some(valid) => {
            let (mut unlabelled, mut unknown) = (0, 0);
            let mut reader = valid.open()?;
            for document in &mut reader {
                let document = document?;
                let mut labels: Vec<u32> = (document.labels.iter())
                    .filter_map(|name| gathered.label_names.binary_search(name).ok())
                    .map(|label| label as u32)
                    .collect();
                unknown += document.labels.len() - labels.len();
                // Who labelled nothing did not say that everything is wrong.
                if labels.is_empty() {
                    unlabelled += 1;
                    continue;
                }
                labels.sort_unstable();
                labels.dedup();
                gathered.labels.push(labels);
                gathered.words.push(gathered.tfidf.transform(&document.text));
                gathered.draws.push(0);
                held_out.push(true);
            }
            progress.tell_left_out(&reader);
            if unlabelled + unknown > 0 {
                progress.warn(format!(
                    "validation: {unknown} labels that training does not know were passed over, and {unlabelled} documents that have no other"
                ));
            }
        }
    }
    Ok(Documents {
        gathered,
        training,
        held_out,
    })
}

fn tell_counts(documents: &Documents, progress: &Progress<'_>) {
    let gathered = &documents.gathered;
    let held = documents.held_out.iter().filter(|&&held| held).count();
    progress.info(format!(
        "{} documents, {} labels, {} terms; texts are read as language {}; the score is fitted on {held} documents",
        documents.training,
        gathered.label_names.len(),
        gathered.tfidf.len(),
        gathered.tfidf.language(),
    ));
    if gathered.without_labels > 0 {
        progress.warn(format!(
            "{} documents without a label were left out",
            gathered.without_labels
        ));
    }
    if gathered.tfidf.is_empty() {
        progress.warn(
            "no word stands in enough documents (`[words] min_df`, `max_features`): tags will not depend on the text"
                .to_owned(),
        );
    }
}

fn cluster(
    documents: &Documents,
    encoded: &Encoded,
    config: &TrainConfig,
    progress: &Progress<'_>,
) -> Result<LabelClusters, TrainError> {
    progress.check()?;
    let gathered = &documents.gathered;
    let training = documents.training;
    let incidence = DocumentLabels::collect(&gathered.labels[..training], gathered.label_names.len())?;
    let vectors = label_vectors_sparse(
        &gathered.words[..training],
        gathered.tfidf.len(),
        &incidence,
        None,
    )?;
    let options = crate::labels::ClusterOptions {
        seed: config.seed,
        ..config.clusters.clone()
    };
    let features = match config.label_features {
        LabelFeatures::Words => LabelVectors::Sparse(vectors.clone()),
        LabelFeatures::Vectors => {
            let learned = &encoded.embeddings[..training * encoded.dims];
            LabelVectors::Dense(label_vectors_dense(learned, encoded.dims, &incidence, None)?)
        }
    };
    let clusters = cluster_labels(&incidence, features, &options)?;
    let vocabulary: Vec<String> = gathered
        .tfidf
        .terms()
        .map(|term| words_of_term(term).to_owned())
        .collect();
    Ok(clusters.name(
        &gathered.label_names,
        Some(LabelTerms {
            rows: &vectors,
            vocabulary: &vocabulary,
        }),
    )?)
}

fn frequencies(documents: &Documents) -> LabelFrequencies {
    let mut counts = vec![0u32; documents.gathered.label_names.len()];
    for &label in documents.gathered.labels[..documents.training].iter().flatten() {
        counts[label as usize] += 1;
    }
    LabelFrequencies::new(counts, documents.training as u64, Propensity::default())
}

/// Scores the held-out documents with rankers that never saw them, fits the mixture, and measures it.
fn calibrate(
    documents: &Documents,
    encoded: &Encoded,
    matched: &Matched,
    ranked: &Ranked,
    frequencies: &Arc<LabelFrequencies>,
    config: &TrainConfig,
) -> (Score, BTreeMap<String, f64>) {
    let near = remember(documents, frequencies, config, |document| {
        !documents.held_out[document]
    });
    let gathered = &documents.gathered;
    let names = (config.score.names)
        .then(|| LabelNames::new(gathered.label_names.iter().map(String::as_str), &gathered.tfidf));
    let held: Vec<HeldOut> = (matched.held_log_odds.par_iter())
        .map(|(document, log_odds)| {
            let document = *document as usize;
            let truth = &documents.gathered.labels[document];
            let words = &documents.gathered.words[document];
            let embedding = encoded.embedding(document);
            let votes = (near.as_ref()).map_or_else(Vec::new, |near| near.votes(words));
            let said = names.as_ref().map(|names| (names, names.mentions(words)));
            let mut outcomes = Vec::new();
            for cluster in strongest(log_odds, config.score.clusters) {
                let rankers = &ranked.first[cluster as usize];
                let log_cluster = log_sigmoid(log_odds[cluster as usize]);
                for (&label, margin) in rankers.labels().iter().zip(rankers.margins(words, embedding)) {
                    let truth = truth.binary_search(&label).is_ok();
                    outcomes.push(Scored {
                        label,
                        log_cluster,
                        margin,
                        neighbours: neighbours::lift(neighbours::vote_of(&votes, label)),
                        name: said.as_ref().map_or(0.0, |(names, said)| names.sign(said, label)),
                        truth,
                    });
                }
            }
            HeldOut {
                outcomes,
                truth: truth.clone(),
            }
        })
        .collect();
    if held.is_empty() {
        return (fit::plain(config.ranker.loss, &config.score), BTreeMap::new());
    }
    let score = fit::fit(&held, frequencies, &config.score);
    let options = EvaluationOptions {
        threshold: score.cutoff,
        ..EvaluationOptions::default()
    };
    let mut evaluation = Evaluation::new(Arc::clone(frequencies), options);
    for document in &held {
        let mut scored: Vec<(f32, u32)> = document
            .asked(score.cluster_floor)
            .map(|o| {
                let prior = frequencies.inverse_propensity(o.label).ln() as f32;
                (score.log_score(o.signs(prior)), o.label)
            })
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scored.truncate(crate::evaluate::DEPTH);
        let ranking: Vec<(u32, f32)> = scored
            .into_iter()
            .map(|(s, label)| (label, score.calibration.probability(s)))
            .collect();
        evaluation.add(&ranking, &document.truth);
    }
    (score, evaluation.finish().values)
}

/// The documents of a run that a text may be compared with.
fn remember(
    documents: &Documents,
    frequencies: &LabelFrequencies,
    config: &TrainConfig,
    keep: impl Fn(usize) -> bool,
) -> Option<Neighbours> {
    let words = config.score.remembered_words;
    if words == 0 {
        return None;
    }
    let gathered = &documents.gathered;
    // Documents of the same labels beside one another: they share words, and a page fetches gaps between the documents of a word.
    let mut order: Vec<usize> = (0..documents.training)
        .filter(|&document| keep(document))
        .collect();
    let frequency = |label: &u32| std::cmp::Reverse(frequencies.count(*label));
    order.sort_by_cached_key(|&document| {
        let mut labels = gathered.labels[document].clone();
        labels.sort_by_key(|label| (frequency(label), *label));
        labels
    });
    let remembered: Vec<Remembered> = order
        .into_iter()
        .map(|document| Remembered::new(&gathered.words[document], &gathered.labels[document], words))
        .collect();
    Some(Neighbours::new(&remembered, gathered.tfidf.len()))
}

#[allow(clippy::too_many_arguments)]
fn assemble(
    documents: Documents,
    encoded: Encoded,
    clusters: LabelClusters,
    matched: Matched,
    ranked: Ranked,
    score: Score,
    frequencies: &LabelFrequencies,
    config: &TrainConfig,
    corpus: CorpusFacts,
) -> Model {
    let neighbours = remember(&documents, frequencies, config, |_| true);
    let gathered = documents.gathered;
    let labels: Vec<TagLabel> = (gathered.label_names.into_iter().enumerate())
        .map(|(label, name)| TagLabel {
            name,
            count: frequencies.count(label as u32),
            log_inverse_propensity: frequencies.inverse_propensity(label as u32).ln() as f32,
        })
        .collect();
    let mut manifest = Model::manifest(config.clone(), corpus, labels.len(), clusters.len());
    manifest.encoder_voice = encoded.voice;
    let cluster_names = (0..clusters.len() as u32)
        .map(|c| clusters.cluster(c).name.clone())
        .collect();
    let encoder = (encoded.lsa.as_ref())
        .map(|lsa| Box::new(LsaSentences::new(Arc::clone(&gathered.tfidf), lsa.clone())) as Box<_>);
    let names = LabelNames::for_score(&score, &labels, &gathered.tfidf);
    let tagger = Tagger {
        tfidf: gathered.tfidf,
        lexicon: gathered.lexicon,
        keygraph: config.keygraph.clone(),
        encoder,
        dims: encoded.dims,
        encoded_sentences: config.encoded_sentences(),
        rank_embedding: config.ranker.embedding,
        embedding_weight: config.ranker.embedding_weight,
        matcher: matched.last,
        neighbours,
        names,
        labels,
        clusters: cluster_names,
        score,
        reach: Reach::default(),
    };
    Model {
        manifest,
        tagger,
        rankers: ranked.last,
        clusters,
        examples: gathered.examples,
        lsa: encoded.lsa,
        outside: None,
    }
}
