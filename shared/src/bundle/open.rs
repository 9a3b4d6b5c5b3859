//! From the files of a bundle to a tagger: the core at once, rankers as clusters ask for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::entropy::Tables;
use super::error::{QUOTED, cut};
use super::manifest::{Manifest, PartRef};
use super::rankers::{self, Hints};
use super::{BundleError, encoders, neighbours, parts};
use crate::api::TagResponse;
use crate::features::words_of_term;
use crate::keygraph;
use crate::model::encoder::SentenceEncoder;
use crate::model::matcher::MatcherError;
use crate::model::names::LabelNames;
use crate::model::neighbours::Neighbours;
use crate::model::ranker::ClusterRankers;
use crate::model::reach::Reach;
use crate::model::score::Score;
use crate::model::tagger::{
    ClusterMatcher, FinishOptions, LsaSentences, NETWORKS, Prepared, ReadOptions, Tagger,
};
use crate::text::Language;

/// The small facts of a tagger that travel as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaggerFacts {
    keygraph: keygraph::Options,
    dims: usize,
    /// Bundles from before it was there encode every sentence.
    #[serde(default = "every_sentence")]
    encoded_sentences: u32,
    rank_embedding: bool,
    embedding_weight: f32,
    graph_share: f32,
    clusters: Vec<String>,
    score: Score,
}

fn every_sentence() -> u32 {
    u32::MAX
}

impl TaggerFacts {
    pub(super) fn of(tagger: &Tagger) -> Self {
        Self {
            keygraph: tagger.keygraph.clone(),
            dims: tagger.dims,
            encoded_sentences: tagger.encoded_sentences,
            rank_embedding: tagger.rank_embedding,
            embedding_weight: tagger.embedding_weight,
            graph_share: tagger.matcher.graph_share(),
            clusters: tagger.clusters.clone(),
            score: tagger.score.clone(),
        }
    }

    /// Whether these are numbers that a tagger can count with.
    fn check(&self) -> Result<(), BundleError> {
        let wrong = |what, found: f32, expected| Err(BundleError::value("tagger", what, found, expected));
        if !(0.0..=1.0).contains(&self.graph_share) {
            return wrong("graph_share", self.graph_share, "a share from 0 to 1");
        }
        if !self.embedding_weight.is_finite() {
            return wrong("embedding_weight", self.embedding_weight, "a finite number");
        }
        (self.score.validate())
            .map_err(|fault| BundleError::value("tagger", fault.what, fault.found, fault.expected))
    }
}

/// A bundle whose core is being brought, part by part, in any order.
#[derive(Debug)]
pub struct Opening {
    manifest: Manifest,
    core: BTreeMap<String, Vec<u8>>,
}

/// Parts that encode sentences; a bundle has one of them or none.
const ENCODER_PARTS: [&str; 3] = ["lsa", "static", "bert"];
/// Parts that take a network or a table of vectors to run.
const NETWORK_PARTS: [&str; 4] = ["lsa", "static", "bert", "matcher"];

impl Opening {
    /// Starts with the bytes of `manifest.json`.
    pub fn new(manifest: &[u8]) -> Result<Self, BundleError> {
        let manifest = Manifest::parse(manifest)?;
        // Read without its stop words a text would get other tags than in training: better none.
        if !Language::from_tag(&manifest.language).is_built_in() {
            return Err(BundleError::Language {
                language: cut(&manifest.language, QUOTED),
            });
        }
        Ok(Self {
            manifest,
            core: BTreeMap::new(),
        })
    }

    /// What the manifest says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Core parts that are still to be brought, by role.
    pub fn wanted(&self) -> impl Iterator<Item = (&str, &PartRef)> {
        self.manifest
            .core
            .iter()
            .filter(|(role, _)| !self.core.contains_key(*role))
            .map(|(role, part)| (role.as_str(), part))
    }

    /// Takes the bytes of a core part, if they are the ones the manifest promises.
    pub fn bring(&mut self, role: &str, bytes: Vec<u8>) -> Result<(), BundleError> {
        self.manifest.core_part(role)?.check(&bytes)?;
        self.core.insert(role.to_owned(), bytes);
        Ok(())
    }

    /// Puts the core together.
    pub fn finish(self) -> Result<Bundle, BundleError> {
        let part = |role: &str| {
            self.core
                .get(role)
                .map(Vec::as_slice)
                .ok_or_else(|| BundleError::MissingPart { part: role.into() })
        };
        let optional = |role: &str| {
            if self.manifest.core.contains_key(role) {
                part(role).map(Some)
            } else {
                Ok(None)
            }
        };
        let json = |role: &'static str| move |fault: serde_json::Error| BundleError::json(role, fault);
        let labels = parts::read_labels("labels", part("labels")?)?;
        let tfidf = Arc::new(parts::read_vocabulary("vocabulary", part("vocabulary")?)?);
        let facts: TaggerFacts = serde_json::from_slice(part("tagger")?).map_err(json("tagger"))?;
        facts.check()?;
        let lexicon = serde_json::from_slice(part("lexicon")?).map_err(json("lexicon"))?;
        let clusters = facts.clusters.len();
        let unfit =
            |what: &str, found: usize, expected: usize| BundleError::value(what, "rows", found, expected);
        if labels.len() as u64 != self.manifest.labels {
            return Err(unfit("labels", labels.len(), self.manifest.labels as usize));
        }
        if clusters as u64 != self.manifest.clusters {
            return Err(unfit("tagger", clusters, self.manifest.clusters as usize));
        }
        let tokenizer = || encoders::read_tokenizer("tokenizer", part("tokenizer")?);
        if !NETWORKS
            && let Some(part) = NETWORK_PARTS
                .into_iter()
                .find(|role| self.manifest.core.contains_key(*role))
        {
            return Err(BundleError::Networks { part: part.into() });
        }
        // What the manifest tells people must be what the parts do.
        let language = tfidf.language();
        if Language::from_tag(&self.manifest.language) != language {
            let found = &self.manifest.language;
            return Err(BundleError::value("manifest", "language", found, language.tag()));
        }
        let mut encoders = Vec::from(ENCODER_PARTS);
        encoders.retain(|role| self.manifest.core.contains_key(*role));
        let encoders = encoders.join(" and ");
        let expected = if encoders.is_empty() { "none" } else { &encoders };
        let found = &self.manifest.encoder;
        if found != expected {
            return Err(BundleError::value("manifest", "encoder", found, expected));
        }
        let encoder: Option<Box<dyn SentenceEncoder + Send + Sync>> = if !NETWORKS {
            None
        } else if let Some(bytes) = optional("lsa")? {
            let lsa = parts::read_lsa("lsa", bytes)?;
            if lsa.projection().rows() != tfidf.len() {
                return Err(unfit("lsa", lsa.projection().rows(), tfidf.len()));
            }
            Some(Box::new(LsaSentences::new(Arc::clone(&tfidf), lsa)))
        } else if let Some(bytes) = optional("static")? {
            Some(Box::new(encoders::read_static("static", bytes, tokenizer()?)?))
        } else if let Some(bytes) = optional("bert")? {
            Some(Box::new(encoders::read_bert("bert", bytes, tokenizer()?)?))
        } else {
            None
        };
        if facts.rank_embedding && encoder.is_none() {
            return Err(BundleError::MissingPart {
                part: "lsa, static or bert".into(),
            });
        }
        let dims = encoder.as_ref().map_or(0, |encoder| encoder.dims());
        if dims != facts.dims {
            return Err(unfit("encoder", dims, facts.dims));
        }
        let linear = match optional("linear")? {
            Some(bytes) => {
                let tables = rankers::read_tables("linear-codes", part("linear-codes")?)?;
                let hints = Hints::new(&tfidf, &[], clusters);
                rankers::read_rankers("linear", bytes, &hints, &tables, clusters, |_| true)?.pop()
            }
            None => None,
        };
        if let Some(linear) = &linear
            && !linear.labels().iter().copied().eq(0..clusters as u32)
        {
            return Err(unfit("linear", linear.labels().len(), clusters));
        }
        let graph = match optional("matcher")? {
            Some(bytes) if NETWORKS => Some(Box::new(parts::read_matcher("matcher", bytes)?)),
            _ => None,
        };
        if let Some(graph) = &graph {
            if graph.config().clusters != clusters {
                return Err(unfit("matcher", graph.config().clusters, clusters));
            }
            if encoder.is_none() || graph.config().width != facts.dims {
                return Err(unfit("matcher", graph.config().width, facts.dims));
            }
        }
        let matcher = match (linear, graph) {
            (Some(linear), Some(graph)) => ClusterMatcher::Both {
                linear,
                graph,
                share: facts.graph_share,
            },
            (Some(linear), None) => ClusterMatcher::Linear(linear),
            (None, Some(graph)) => ClusterMatcher::Graph(graph),
            (None, None) => {
                return Err(BundleError::MissingPart {
                    part: "matcher".into(),
                });
            }
        };
        let documents = optional("neighbours")?
            .map(|bytes| neighbours::read_neighbours("neighbours", bytes, tfidf.len(), labels.len()))
            .transpose()?;
        let names = LabelNames::for_score(&facts.score, &labels, &tfidf);
        let neighbours = (documents.as_ref()).map(|documents| Neighbours::new(documents, tfidf.len()));
        let tables = rankers::read_tables("ranker-codes", part("ranker-codes")?)?;
        let hints = Hints::new(&tfidf, documents.as_deref().unwrap_or_default(), labels.len());
        let shards = (self.manifest.shards.iter()).map(|shard| (&shard.clusters[..], shard.part.bytes));
        let reach = Reach::new(clusters, shards, self.manifest.text_bytes);
        let tagger = Tagger {
            tfidf,
            lexicon,
            keygraph: facts.keygraph,
            encoder,
            dims: facts.dims,
            encoded_sentences: facts.encoded_sentences,
            rank_embedding: facts.rank_embedding,
            embedding_weight: facts.embedding_weight,
            matcher,
            neighbours,
            names,
            labels,
            clusters: facts.clusters,
            score: facts.score,
            reach,
        };
        Ok(Bundle {
            manifest: self.manifest,
            rankers: vec![None; clusters],
            homes: vec![None; tagger.labels.len()],
            tagger,
            hints,
            tables,
        })
    }
}

/// A tagger with the rankers that have been brought so far.
#[derive(Debug)]
pub struct Bundle {
    manifest: Manifest,
    tagger: Tagger,
    rankers: Vec<Option<ClusterRankers>>,
    /// The shard that brought each label's ranker.
    homes: Vec<Option<u32>>,
    hints: Hints,
    tables: Tables,
}

impl Bundle {
    /// What the manifest says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The model without its rankers.
    pub fn tagger(&self) -> &Tagger {
        &self.tagger
    }

    /// First half of tagging: everything up to the choice of clusters.
    pub fn prepare(&self, text: &str, options: ReadOptions) -> Result<Prepared, MatcherError> {
        self.tagger.prepare(text, options)
    }

    /// The words that speak most for a label, with their weights; empty while its rankers have not come.
    pub fn telling_words(&self, label: u32, cluster: u32, most: usize) -> Vec<(String, f32)> {
        let rankers = self.rankers.get(cluster as usize).and_then(Option::as_ref);
        let ranker = rankers.and_then(|all| all.to_labels().into_iter().find(|ranker| ranker.label == label));
        let mut words = ranker.map(|ranker| ranker.words).unwrap_or_default();
        words.retain(|&(_, weight)| weight > 0.0);
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut telling: Vec<(String, f32)> = Vec::new();
        for (term, weight) in words {
            let word = words_of_term(self.tagger.tfidf.term(term));
            if telling.len() < most && telling.iter().all(|(known, _)| known != word) {
                telling.push((word.to_owned(), weight));
            }
        }
        telling
    }

    /// Shards that hold rankers of these clusters and were not brought yet, by number.
    pub fn shards_for(&self, clusters: &[u32]) -> Vec<usize> {
        let mut wanted: Vec<usize> = clusters
            .iter()
            .filter(|&&cluster| self.rankers.get(cluster as usize).is_some_and(Option::is_none))
            .filter_map(|&cluster| self.tagger.reach.shard_of(cluster))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Bytes of the shards that hold rankers of these clusters: what a page fetches for a text that asks for them.
    pub fn shard_bytes(&self, clusters: impl IntoIterator<Item = u32>) -> u64 {
        self.tagger.reach.bytes_of(clusters)
    }

    /// Takes the bytes of a shard, if they are the ones the manifest promises.
    pub fn bring_shard(&mut self, shard: usize, bytes: &[u8]) -> Result<(), BundleError> {
        let known = self.manifest.shards.get(shard);
        let known = known.ok_or_else(|| BundleError::MissingPart {
            part: format!("shard {shard}"),
        })?;
        known.part.check(bytes)?;
        let read = rankers::read_rankers(
            &known.part.file,
            bytes,
            &self.hints,
            &self.tables,
            self.tagger.labels.len(),
            |label| self.homes[label as usize].is_none_or(|home| home as usize == shard),
        )?;
        let file = &known.part.file;
        if read.len() != known.clusters.len() {
            let (found, expected) = (read.len(), known.clusters.len());
            return Err(BundleError::value(file, "clusters", found, expected));
        }
        let expected = if self.tagger.rank_embedding {
            self.tagger.dims
        } else {
            0
        };
        if let Some(other) = read
            .iter()
            .find(|rankers| rankers.dims() != expected && !rankers.labels().is_empty())
        {
            return Err(BundleError::value(
                file,
                "embedding width",
                other.dims(),
                expected,
            ));
        }
        for (&cluster, rankers) in known.clusters.iter().zip(read) {
            for &label in rankers.labels() {
                self.homes[label as usize] = Some(shard as u32);
            }
            self.rankers[cluster as usize] = Some(rankers);
        }
        Ok(())
    }

    /// Second half of tagging. Clusters whose rankers are missing are named in the answer.
    pub fn finish(&self, prepared: &Prepared, options: FinishOptions) -> TagResponse {
        let rankers = |cluster: u32| self.rankers.get(cluster as usize).and_then(Option::as_ref);
        self.tagger.finish(prepared, rankers, options)
    }
}
