//! Stage `encode`: KeyGraphs, sentence vectors and what the graph network sees, laid out on disk.
//!
//! Skipped when neither matcher nor rankers look at vectors.

use std::sync::Arc;

use gnnxml_shared::keygraph::KeyGraph;
use gnnxml_shared::model::encoder::{Lsa, SentenceEncoder};
use gnnxml_shared::model::matcher::{GraphInput, MatcherConfig};
use gnnxml_shared::model::tagger::{LsaSentences, document_vector, first_sentences, keyword_graph};
use rayon::prelude::*;

use super::codec::{PartError, PartReader, PartWriter};
use super::parts::{put_lsa, take_lsa};
use super::pipeline::{Documents, TrainRequest};
use super::work::Work;
use super::{Progress, TrainConfig, TrainError};
use crate::data::Document;
use crate::encoder::cache::{CachedEncoder, EmbeddingCache};
use crate::encoder::{self, Encoder};
use crate::matcher::{DeviceChoice, PreparedGraphs, PreparedWriter};

/// Documents whose sentences are encoded together.
const CHUNK: usize = 256;

/// What the stage leaves behind.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    /// Width of a sentence vector; 0 when nothing looks at one.
    pub dims: usize,
    pub lsa: Option<Lsa>,
    /// [`encoder::voice`] of an encoder that was opened; empty otherwise.
    pub voice: Vec<f32>,
    /// documents × dims, row-major; empty unless the rankers look at it.
    pub embeddings: Vec<f32>,
    pub learned_graphs: Option<PreparedGraphs>,
    pub held_graphs: Option<PreparedGraphs>,
}

impl Encoded {
    /// A document's vector as the rankers see it; empty when they do not.
    pub(super) fn embedding(&self, document: usize) -> &[f32] {
        if self.embeddings.is_empty() {
            return &[];
        }
        &self.embeddings[document * self.dims..(document + 1) * self.dims]
    }

    pub(super) fn save(&self, part: &mut PartWriter) {
        part.u32(self.dims as u32);
        part.f32s(&self.voice);
        part.f32s(&self.embeddings);
        part.u32(u32::from(self.lsa.is_some()));
        if let Some(lsa) = &self.lsa {
            put_lsa(part, lsa);
        }
        part.u32(u32::from(self.learned_graphs.is_some()));
    }

    pub(super) fn load(part: &mut PartReader, work: &Work) -> Result<Self, PartError> {
        let dims = part.u32()? as usize;
        let voice = part.f32s()?;
        let embeddings = part.f32s()?;
        let lsa = if part.u32()? == 1 {
            Some(take_lsa(part)?)
        } else {
            None
        };
        let mut encoded = Self {
            dims,
            lsa,
            voice,
            embeddings,
            learned_graphs: None,
            held_graphs: None,
        };
        if part.u32()? == 1 {
            let open = |name: &str| PreparedGraphs::open(&work.path(name));
            let both = open(LEARNED).and_then(|learned| Ok((learned, open(HELD)?)));
            let (learned, held) = both.map_err(|e| part.wrong("graphs", e, "graphs of this run"))?;
            (encoded.learned_graphs, encoded.held_graphs) = (Some(learned), Some(held));
        }
        Ok(encoded)
    }
}

const LEARNED: &str = "learned.graphs";
const HELD: &str = "held.graphs";

/// The shape of the graph network under these settings.
pub(super) fn graph_config(
    config: &TrainConfig,
    dims: usize,
    vocabulary: usize,
    clusters: usize,
) -> MatcherConfig {
    let settings = &config.matcher;
    MatcherConfig {
        hidden: settings.hidden,
        layers: settings.layers,
        max_vertices: settings.max_vertices,
        embedding: settings.embedding,
        variant: settings.variant,
        ..MatcherConfig::fast(dims, clusters, vocabulary)
    }
}

/// The encoder of a run, if it has one that is opened and not fitted.
pub(super) fn open_encoder(
    config: &TrainConfig,
    device: DeviceChoice,
) -> Result<Option<Box<dyn Encoder>>, TrainError> {
    let name = &config.encoder.name;
    if !config.needs_vectors() || name == "lsa" {
        return Ok(None);
    }
    let options = encoder::Options {
        device,
        table_dims: Some(config.encoder.dims),
        ..encoder::Options::default()
    };
    let opened = encoder::open(name, options).map_err(|error| TrainError::NoEncoder {
        name: name.clone(),
        error,
    })?;
    Ok(Some(opened))
}

pub(super) fn encode(
    documents: &Documents,
    encoder: Option<Box<dyn Encoder>>,
    request: &TrainRequest,
    work: &Work,
    progress: &Progress<'_>,
) -> Result<Encoded, TrainError> {
    let config = &request.config;
    if !config.needs_vectors() {
        return Ok(Encoded::default());
    }
    let mut voice = Voice::new(documents, encoder, config, progress)?;
    let dims = voice.dims();
    let mut run = Run {
        documents,
        config,
        encoded: Encoded {
            dims,
            lsa: voice.lsa(),
            voice: voice.sample()?,
            ..Encoded::default()
        },
        graph: graph_config(config, dims, documents.gathered.tfidf.len(), 1),
        learned: None,
        held: None,
        at: 0,
    };
    if config.has_graph() {
        run.learned = Some(PreparedWriter::create(&work.path(LEARNED), dims)?);
        run.held = Some(PreparedWriter::create(&work.path(HELD), dims)?);
    }
    let known = |name: &String| documents.gathered.label_names.binary_search(name).is_ok();
    for source in std::iter::once(&request.corpus).chain(&request.valid) {
        let mut chunk: Vec<Document> = Vec::with_capacity(CHUNK);
        for document in source.open()? {
            let document = document?;
            // The read stage left the same documents out; training knows all of its own labels.
            if !document.labels.iter().any(known) {
                continue;
            }
            chunk.push(document);
            if chunk.len() == CHUNK {
                progress.check()?;
                run.take(&chunk, &mut voice)?;
                chunk.clear();
                progress.done(run.at as u64, Some(documents.len() as u64));
            }
        }
        run.take(&chunk, &mut voice)?;
    }
    progress.done(run.at as u64, Some(documents.len() as u64));
    let mut encoded = run.encoded;
    if let (Some(learned), Some(held)) = (run.learned, run.held) {
        encoded.learned_graphs = Some(learned.finish()?);
        encoded.held_graphs = Some(held.finish()?);
    }
    Ok(encoded)
}

struct Run<'a> {
    documents: &'a Documents,
    config: &'a TrainConfig,
    encoded: Encoded,
    graph: MatcherConfig,
    learned: Option<PreparedWriter>,
    held: Option<PreparedWriter>,
    at: usize,
}

impl Run<'_> {
    fn take(&mut self, chunk: &[Document], voice: &mut Voice) -> Result<(), TrainError> {
        let gathered = &self.documents.gathered;
        let (language, options) = (gathered.tfidf.language(), &self.config.keygraph);
        let graphs: Vec<KeyGraph> = chunk
            .par_iter()
            .map(|document| KeyGraph::build(&document.text, language, &gathered.lexicon, options))
            .collect();
        let vectors = voice.encode(chunk, &graphs, self.config.encoded_sentences())?;
        let inputs: Vec<Option<GraphInput<'static>>> = (graphs.par_iter().zip(&vectors).enumerate())
            .map(|(nth, (graph, vectors))| {
                let words = &gathered.words[self.at + nth];
                (self.learned.is_some())
                    .then(|| keyword_graph(&gathered.tfidf, &self.graph, graph, vectors, words))
                    .transpose()
            })
            .collect::<Result<_, _>>()?;
        for (nth, (input, vectors)) in inputs.into_iter().zip(&vectors).enumerate() {
            let writer = if self.documents.held_out[self.at + nth] {
                &mut self.held
            } else {
                &mut self.learned
            };
            if let (Some(writer), Some(input)) = (writer, input) {
                writer.push(&input)?;
            }
            if self.config.ranker.embedding {
                let weight = self.config.ranker.embedding_weight;
                self.encoded
                    .embeddings
                    .extend(document_vector(vectors, self.encoded.dims, weight));
            }
        }
        self.at += chunk.len();
        Ok(())
    }
}

/// The encoder of a run: fitted from its words, or opened and cached.
enum Voice {
    Lsa {
        sentences: LsaSentences,
        lsa: Lsa,
    },
    Outside {
        encoder: Box<dyn Encoder>,
        cache: Option<EmbeddingCache>,
    },
}

impl Voice {
    fn new(
        documents: &Documents,
        encoder: Option<Box<dyn Encoder>>,
        config: &TrainConfig,
        progress: &Progress<'_>,
    ) -> Result<Self, TrainError> {
        let gathered = &documents.gathered;
        let wrong = |reason: String| TrainError::Encoder {
            name: config.encoder.name.clone(),
            reason,
        };
        let Some(encoder) = encoder else {
            let words = &gathered.words[..documents.training];
            let lsa = encoder::lsa::fit(words, gathered.tfidf.len(), config.encoder.dims, config.seed)
                .map_err(|e| wrong(e.to_string()))?;
            let sentences = LsaSentences::new(Arc::clone(&gathered.tfidf), lsa.clone());
            return Ok(Self::Lsa { sentences, lsa });
        };
        let cache = encoder::vectors_of(encoder.as_ref()).or_else(|error| {
            progress.warn(format!("vectors are kept for this run only: {error}"));
            EmbeddingCache::temporary(&encoder.fingerprint(), encoder.dims())
        });
        Ok(Self::Outside {
            cache: Some(cache.map_err(|e| wrong(e.to_string()))?),
            encoder,
        })
    }

    fn dims(&self) -> usize {
        match self {
            Self::Lsa { lsa, .. } => lsa.dims(),
            Self::Outside { encoder, .. } => encoder.dims(),
        }
    }

    fn sample(&self) -> Result<Vec<f32>, TrainError> {
        match self {
            Self::Lsa { .. } => Ok(Vec::new()),
            Self::Outside { encoder, .. } => {
                encoder::voice(encoder.as_ref()).map_err(|e| TrainError::Encoder {
                    name: encoder.name().to_owned(),
                    reason: format!("{e:#}"),
                })
            }
        }
    }

    fn lsa(&self) -> Option<Lsa> {
        match self {
            Self::Lsa { lsa, .. } => Some(lsa.clone()),
            Self::Outside { .. } => None,
        }
    }

    /// Sentence vectors of each document.
    fn encode(
        &mut self,
        chunk: &[Document],
        graphs: &[KeyGraph],
        most: u32,
    ) -> Result<Vec<Vec<f32>>, TrainError> {
        match self {
            Self::Lsa { sentences: lsa, .. } => {
                let pairs = chunk.par_iter().zip(graphs);
                Ok(pairs
                    .map(|(document, graph)| {
                        let mut vectors = lsa.encode(&first_sentences(&document.text, graph, most));
                        vectors.resize(graph.sentences().len() * lsa.dims(), 0.0);
                        vectors
                    })
                    .collect())
            }
            Self::Outside { encoder, cache } => {
                let wrong = |e: anyhow::Error| TrainError::Encoder {
                    name: encoder.name().to_owned(),
                    reason: format!("{e:#}"),
                };
                let Some(taken) = cache.take() else {
                    return Err(wrong(anyhow::anyhow!("an earlier error lost its cache")));
                };
                let mut cached = CachedEncoder::new(encoder.as_ref(), taken);
                let all = chunk
                    .iter()
                    .zip(graphs)
                    .flat_map(|(d, g)| first_sentences(&d.text, g, most));
                let rows = cached.encode_all(all).map_err(wrong)?;
                let vectors = cached.into_vectors();
                let dims = encoder.dims();
                let mut rows = rows.into_iter();
                let found = graphs.iter().map(|graph| {
                    let mut of_document = vec![0.0; graph.sentences().len() * dims];
                    let read = of_document.chunks_exact_mut(dims).take(most as usize);
                    // The row comes second: zip must not take one it has no place for.
                    for (into, row) in read.zip(rows.by_ref()) {
                        vectors.read(row, into);
                    }
                    of_document
                });
                let found = found.collect();
                *cache = Some(vectors);
                Ok(found)
            }
        }
    }
}
