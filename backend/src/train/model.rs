//! A trained model on disk: one directory, `manifest.json` and the parts it names with their checksums.
//!
//! The directory appears under its name only when it is whole. A loader checks the version first, then every part's
//! checksum, and names what is wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnnxml_shared::api::TagResponse;
use gnnxml_shared::model::encoder::Lsa;
use gnnxml_shared::model::matcher::{GraphInput, Matcher, MatcherError};
use gnnxml_shared::model::names::LabelNames;
use gnnxml_shared::model::neighbours::Neighbours;
use gnnxml_shared::model::ranker::ClusterRankers;
use gnnxml_shared::model::reach::Reach;
use gnnxml_shared::model::score::Score;
use gnnxml_shared::model::tagger::{
    Candidate, ClusterMatcher, FinishOptions, LsaSentences, Prepared, ReadOptions, Tagger, first_sentences,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::codec::{PartError, PartReader, PartWriter};
use super::examples::Examples;
use super::parts::{
    put_cluster_matcher, put_lsa, put_neighbours, put_rankers, take_cluster_matcher, take_lsa,
    take_neighbours, take_rankers,
};
use super::place::Place;
use super::work::hex;
use super::{MatcherKind, TrainConfig};
use crate::data::write_atomic;
use crate::encoder::Encoder;
use crate::encoder::cache::{CacheError, Remembering};
use crate::labels::LabelClusters;

/// The version of the directory's layout.
pub const MODEL_VERSION: u32 = 3;
pub(super) const FORMAT: &str = "gnnxml-model";
pub(super) const MANIFEST: &str = "manifest.json";
const EXAMPLES: &str = "examples.json";

/// What `manifest.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `gnnxml-model`.
    pub format: String,
    pub version: u32,
    /// SHA-256 of this file with `unsealed` in its place.
    pub checksum: String,
    /// Version of the program that trained it.
    pub program: String,
    /// Git revision of that program, if it was known when it was built.
    pub revision: Option<String>,
    pub corpus: CorpusFacts,
    pub config: TrainConfig,
    pub labels: usize,
    pub clusters: usize,
    /// [`crate::encoder::voice`] of the encoder whose vectors the model learned from; empty if it has its own or none.
    #[serde(default)]
    pub encoder_voice: Vec<f32>,
    /// Figures on the documents the score was fitted on, in percent.
    pub metrics: BTreeMap<String, f64>,
    pub parts: BTreeMap<String, PartFacts>,
}

/// What the model was trained on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CorpusFacts {
    pub fingerprint: String,
    /// Documents with at least one label, those of `gnnxml learn` among them.
    pub documents: usize,
    /// Documents and labels of the full training.
    pub trained_documents: usize,
    pub trained_labels: usize,
    pub documents_without_labels: usize,
    /// Of these, kept aside while the score was fitted.
    pub held_out: usize,
}

/// A part's size and checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFacts {
    pub bytes: u64,
    pub sha256: String,
}

/// Why a directory is not a model we can use.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error("{}: not a model: {reason}; expected a directory written by `gnnxml train`", path.display())]
    NotAModel { path: PathBuf, reason: String },
    #[error("{}: a model of version {found}; this program reads version {MODEL_VERSION}: train it again, or use the program that wrote it", path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("{}: found {found}; expected a free name, an empty folder or a model to replace: choose another", path.display())]
    Occupied { path: PathBuf, found: &'static str },
    #[error("{}: the part is missing; copy the model again", path.display())]
    Missing { path: PathBuf },
    #[error("{}: damaged: found checksum {found}, the manifest says {expected}; copy the model again", path.display())]
    Damaged {
        path: PathBuf,
        found: String,
        expected: String,
    },
    #[error("{}: {reason}", path.display())]
    Content { path: PathBuf, reason: String },
    #[error(transparent)]
    Part(#[from] PartError),
    #[error("the model's encoder {name} cannot be opened: {reason}")]
    Encoder { name: String, reason: String },
}

impl ModelError {
    /// Whether the caller named something that is no model of ours, rather than the machine failing.
    pub fn is_the_callers(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }
}

/// A model in memory.
pub struct Model {
    pub manifest: Manifest,
    pub tagger: Tagger,
    /// By cluster.
    pub rankers: Vec<ClusterRankers>,
    pub clusters: LabelClusters,
    /// Documents that show what a label means.
    pub examples: Examples,
    /// The projection behind `lsa`, for publishing.
    pub lsa: Option<Lsa>,
    /// An encoder that only runs here; `None` when the tagger has its own or needs none.
    pub outside: Option<Box<dyn Encoder>>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("tagger", &self.tagger)
            .finish_non_exhaustive()
    }
}

impl Model {
    /// Width of the document vector that the rankers read; 0 when they read words alone.
    pub fn ranker_dims(&self) -> usize {
        if self.tagger.rank_embedding {
            self.tagger.dims
        } else {
            0
        }
    }

    /// Has a slow encoder look sentences up in the embedding cache before it encodes them: for whoever reads the same corpus
    /// again. Texts that people send to be tagged leave no trace on the disk. A model whose cache does not open goes on without.
    pub fn remember_vectors(&mut self) -> Result<(), CacheError> {
        let Some(encoder) = self.outside.take() else {
            return Ok(());
        };
        if !encoder.worth_remembering() {
            self.outside = Some(encoder);
            return Ok(());
        }
        let cache = crate::encoder::vectors_of(encoder.as_ref());
        let (encoder, opened): (Box<dyn Encoder>, _) = match cache {
            Ok(cache) => (Box::new(Remembering::new(encoder, cache)), Ok(())),
            Err(error) => (encoder, Err(error)),
        };
        self.outside = Some(encoder);
        opened
    }

    /// Reads a text up to the choice of clusters.
    pub fn prepare(&self, text: &str, options: ReadOptions) -> anyhow::Result<Prepared> {
        self.prepare_with(text, options, Matcher::forward)
    }

    /// [`Self::prepare`] with the graph network's logits computed by `network`, if there is one.
    pub fn prepare_with(
        &self,
        text: &str,
        options: ReadOptions,
        network: impl FnOnce(&Matcher, &GraphInput<'_>) -> Result<Vec<f32>, MatcherError>,
    ) -> anyhow::Result<Prepared> {
        let reading = self.tagger.read(text, options);
        let vectors = match (&self.outside, &reading.keygraph) {
            (Some(encoder), Some(graph)) if self.tagger.needs_vectors() => {
                let mut vectors =
                    encoder.encode(&first_sentences(text, graph, self.tagger.encoded_sentences))?;
                vectors.resize(graph.sentences().len() * self.tagger.dims, 0.0);
                vectors
            }
            _ => self.tagger.sentence_vectors(text, &reading),
        };
        Ok(self.tagger.prepare_with_network(reading, &vectors, network)?)
    }

    /// The labels of a text with their log-scores, best first.
    pub fn candidates(&self, text: &str, top: usize) -> anyhow::Result<Vec<Candidate>> {
        let prepared = self.prepare(text, ReadOptions::default())?;
        Ok(self
            .tagger
            .candidates(&prepared, |cluster| self.rankers.get(cluster as usize), top))
    }

    /// The tags of a text.
    pub fn tag(&self, text: &str, options: FinishOptions) -> anyhow::Result<TagResponse> {
        self.tag_with(text, options, Matcher::forward)
    }

    /// [`Self::tag`] with the graph network's logits computed by `network`, if there is one.
    pub fn tag_with(
        &self,
        text: &str,
        options: FinishOptions,
        network: impl FnOnce(&Matcher, &GraphInput<'_>) -> Result<Vec<f32>, MatcherError>,
    ) -> anyhow::Result<TagResponse> {
        let read = ReadOptions {
            keygraph: options.explain || options.keygraph,
            spans: options.explain,
        };
        let prepared = self.prepare_with(text, read, network)?;
        Ok(self
            .tagger
            .finish(&prepared, |cluster| self.rankers.get(cluster as usize), options))
    }

    /// Writes the directory: whole under its name, or not at all.
    pub fn save(&mut self, out: &Path) -> Result<(), ModelError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| ModelError::Io { path, error }
        };
        let place = Place::at(out)?;
        let building = place.building()?;
        self.manifest.parts.clear();
        for (name, bytes) in self.parts() {
            let path = building.join(&name);
            write_atomic(&path, &bytes).map_err(io(&path))?;
            let facts = PartFacts {
                bytes: bytes.len() as u64,
                sha256: hex(&Sha256::digest(&bytes)),
            };
            self.manifest.parts.insert(name, facts);
        }
        let path = building.join(MANIFEST);
        write_atomic(&path, self.manifest.sealed().as_bytes()).map_err(io(&path))?;
        place.take(&building)
    }

    fn parts(&self) -> Vec<(String, Vec<u8>)> {
        let json = |value: serde_json::Result<Vec<u8>>| value.expect("plain data is always JSON");
        let tagger = &self.tagger;
        let mut parts = vec![
            (
                "words.json".to_owned(),
                json(serde_json::to_vec(&tagger.tfidf.to_parts())),
            ),
            (
                "lexicon.json".to_owned(),
                json(serde_json::to_vec(&tagger.lexicon)),
            ),
            ("labels.json".to_owned(), json(serde_json::to_vec(&tagger.labels))),
            (
                "score.json".to_owned(),
                json(serde_json::to_vec_pretty(&tagger.score)),
            ),
            (LabelClusters::FILE_NAME.to_owned(), self.clusters.to_bytes()),
        ];
        let mut part = PartWriter::default();
        put_rankers(&mut part, &self.rankers);
        parts.push(("rankers.bin".to_owned(), part.finish()));
        let mut part = PartWriter::default();
        put_cluster_matcher(&mut part, &tagger.matcher);
        parts.push(("matcher.bin".to_owned(), part.finish()));
        if let Some(neighbours) = &tagger.neighbours {
            let mut part = PartWriter::default();
            put_neighbours(&mut part, neighbours);
            parts.push(("neighbours.bin".to_owned(), part.finish()));
        }
        if !self.examples.is_empty() {
            parts.push((EXAMPLES.to_owned(), json(serde_json::to_vec(&self.examples))));
        }
        if let Some(lsa) = &self.lsa {
            let mut part = PartWriter::default();
            put_lsa(&mut part, lsa);
            parts.push(("lsa.bin".to_owned(), part.finish()));
        }
        parts
    }

    /// Reads a directory, checking everything.
    pub fn load(directory: &Path) -> Result<Self, ModelError> {
        let manifest = read_manifest(directory)?;
        let mut parts = Parts {
            directory,
            manifest: &manifest,
        };
        let tfidf = Arc::new(parts.json("words.json")?);
        let lexicon = parts.json("lexicon.json")?;
        let labels: Vec<_> = parts.json("labels.json")?;
        let score: Score = parts.json("score.json")?;
        score.validate().map_err(|fault| ModelError::Content {
            path: directory.join("score.json"),
            reason: fault.to_string(),
        })?;
        let examples = if manifest.parts.contains_key(EXAMPLES) {
            parts.json(EXAMPLES)?
        } else {
            Examples::default()
        };
        let path = directory.join(LabelClusters::FILE_NAME);
        let clusters =
            LabelClusters::from_bytes(&parts.bytes(LabelClusters::FILE_NAME)?).map_err(|reason| {
                ModelError::Content {
                    path,
                    reason: reason.clone(),
                }
            })?;
        let columns = gnnxml_shared::features::TfIdf::len(&tfidf);
        let mut part = parts.part("rankers.bin")?;
        let rankers = take_rankers(&mut part, columns, labels.len())?;
        part.finish()?;
        let matcher = parts.matcher(columns, clusters.len())?;
        let lsa = parts.lsa()?;
        let neighbours = parts.neighbours(columns, labels.len())?;
        let config = &manifest.config;
        let (mut encoder, mut outside, mut dims) = (None, None, 0);
        if config.needs_vectors() {
            if let Some(lsa) = &lsa {
                dims = lsa.dims();
                encoder = Some(Box::new(LsaSentences::new(Arc::clone(&tfidf), lsa.clone())) as Box<_>);
            } else {
                let name = &config.encoder.name;
                // A table may be wider than what the model learned from.
                let learned = (matcher.graph()).map(|graph| graph.config().width);
                let options = crate::encoder::Options {
                    table_dims: learned.or_else(|| rankers.first().map(ClusterRankers::dims)),
                    ..crate::encoder::Options::default()
                };
                let wrong = |reason: String| ModelError::Encoder {
                    name: name.clone(),
                    reason,
                };
                let opened = crate::encoder::open(name, options).map_err(|e| wrong(e.to_string()))?;
                let heard = &manifest.encoder_voice;
                let same = heard.is_empty()
                    || crate::encoder::has_voice(opened.as_ref(), heard)
                        .map_err(|e| wrong(format!("{e:#}")))?;
                if !same {
                    return Err(wrong(
                        "its vectors are not those the model learned from; expected the same weights and vocabulary: \
                         bring that encoder back, or train again"
                            .into(),
                    ));
                }
                dims = opened.dims();
                outside = Some(opened);
            }
        }
        let cluster_names = (0..clusters.len() as u32)
            .map(|c| clusters.cluster(c).name.clone())
            .collect();
        let names = LabelNames::for_score(&score, &labels, &tfidf);
        let tagger = Tagger {
            tfidf,
            lexicon,
            keygraph: config.keygraph.clone(),
            encoder,
            dims,
            encoded_sentences: config.encoded_sentences(),
            rank_embedding: config.ranker.embedding,
            embedding_weight: config.ranker.embedding_weight,
            matcher,
            neighbours,
            names,
            labels,
            clusters: cluster_names,
            score,
            reach: Reach::default(),
        };
        Ok(Self {
            manifest,
            tagger,
            rankers,
            clusters,
            examples,
            lsa,
            outside,
        })
    }

    /// A manifest for a model about to be saved.
    pub fn manifest(config: TrainConfig, corpus: CorpusFacts, labels: usize, clusters: usize) -> Manifest {
        Manifest {
            format: FORMAT.to_owned(),
            version: MODEL_VERSION,
            checksum: String::new(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            revision: option_env!("GNNXML_REVISION").map(str::to_owned),
            corpus,
            config,
            labels,
            clusters,
            encoder_voice: Vec::new(),
            metrics: BTreeMap::new(),
            parts: BTreeMap::new(),
        }
    }
}

/// Reads and checks `manifest.json` alone.
pub fn read_manifest(directory: &Path) -> Result<Manifest, ModelError> {
    let path = directory.join(MANIFEST);
    let not_a_model = |reason: String| ModelError::NotAModel {
        path: directory.to_owned(),
        reason,
    };
    let text = std::fs::read_to_string(&path).map_err(|error| not_a_model(format!("{MANIFEST}: {error}")))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| not_a_model(format!("{MANIFEST}: {error}")))?;
    if value["format"] != FORMAT {
        return Err(not_a_model(format!("{MANIFEST} says format {}", value["format"])));
    }
    let version = value["version"].as_u64().unwrap_or(0) as u32;
    if version != MODEL_VERSION {
        return Err(ModelError::Version {
            path: directory.to_owned(),
            found: version,
        });
    }
    let manifest: Manifest =
        serde_json::from_value(value).map_err(|error| not_a_model(format!("{MANIFEST}: {error}")))?;
    let found = checksum_of(&text, &manifest.checksum);
    if found != manifest.checksum {
        return Err(ModelError::Damaged {
            path,
            found,
            expected: manifest.checksum,
        });
    }
    Ok(manifest)
}

/// What stands in the place of a manifest's checksum while it is computed.
const UNSEALED: &str = "unsealed";

impl Manifest {
    /// The text of `manifest.json`, its checksum computed over all the rest of it.
    fn sealed(&mut self) -> String {
        UNSEALED.clone_into(&mut self.checksum);
        let text = serde_json::to_string_pretty(self).expect("a manifest is plain data");
        self.checksum = hex(&Sha256::digest(&text));
        text.replacen(&checksum_line(UNSEALED), &checksum_line(&self.checksum), 1)
    }
}

/// The checksum of a manifest that says `checksum`.
fn checksum_of(text: &str, checksum: &str) -> String {
    let unsealed = text.replacen(&checksum_line(checksum), &checksum_line(UNSEALED), 1);
    hex(&Sha256::digest(&unsealed))
}

fn checksum_line(checksum: &str) -> String {
    format!("\"checksum\": \"{checksum}\"")
}

struct Parts<'a> {
    directory: &'a Path,
    manifest: &'a Manifest,
}

impl Parts<'_> {
    /// A part's bytes, once their checksum agrees with the manifest.
    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, ModelError> {
        let path = self.directory.join(name);
        let facts = self
            .manifest
            .parts
            .get(name)
            .ok_or_else(|| ModelError::Missing { path: path.clone() })?;
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(ModelError::Missing { path });
            }
            read => read.map_err(|error| ModelError::Io {
                path: path.clone(),
                error,
            })?,
        };
        let found = hex(&Sha256::digest(&bytes));
        if found != facts.sha256 {
            return Err(ModelError::Damaged {
                path,
                found,
                expected: facts.sha256.clone(),
            });
        }
        Ok(bytes)
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self, name: &str) -> Result<T, ModelError> {
        let bytes = self.bytes(name)?;
        let content = |error: serde_json::Error| ModelError::Content {
            path: self.directory.join(name),
            reason: error.to_string(),
        };
        serde_json::from_slice(&bytes).map_err(content)
    }

    fn part(&mut self, name: &str) -> Result<PartReader, ModelError> {
        let bytes = self.bytes(name)?;
        Ok(PartReader::from_bytes(&self.directory.join(name), bytes)?)
    }

    fn matcher(&mut self, columns: usize, clusters: usize) -> Result<ClusterMatcher, ModelError> {
        let mut part = self.part("matcher.bin")?;
        let made = take_cluster_matcher(&mut part, columns, clusters)?;
        part.finish()?;
        Ok(made)
    }

    fn neighbours(&mut self, columns: usize, labels: usize) -> Result<Option<Neighbours>, ModelError> {
        if !self.manifest.parts.contains_key("neighbours.bin") {
            return Ok(None);
        }
        let mut part = self.part("neighbours.bin")?;
        let neighbours = take_neighbours(&mut part, columns, labels)?;
        part.finish()?;
        Ok(Some(neighbours))
    }

    fn lsa(&mut self) -> Result<Option<Lsa>, ModelError> {
        if !self.manifest.parts.contains_key("lsa.bin") {
            return Ok(None);
        }
        let mut part = self.part("lsa.bin")?;
        let lsa = take_lsa(&mut part)?;
        part.finish()?;
        Ok(Some(lsa))
    }
}

impl TrainConfig {
    /// Whether the graph network takes part.
    pub fn has_graph(&self) -> bool {
        self.matcher.kind != MatcherKind::Linear
    }
}
