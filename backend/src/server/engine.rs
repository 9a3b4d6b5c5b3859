//! The engine that tags: a published bundle in memory, answering exactly as the page does.
//!
//! [`TaggingEngine::load`] reads and checks every part of a bundle, rankers and label clusters included. What answers
//! is `gnnxml_shared::bundle::Bundle`, the same code that the page runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gnnxml_shared::api::{
    ClusterDetail, ClusterList, LabelDetail, LabelMap, LabelSearch, TagResponse, TermWeight,
};
use gnnxml_shared::bundle::{Bundle, BundleError, Manifest, Opening};
use gnnxml_shared::keygraph::{EntityLexicon, KeyGraph, Options};
use gnnxml_shared::model::matcher::MatcherError;
use gnnxml_shared::model::tagger::{FinishOptions, ReadOptions, Tagger};
use gnnxml_shared::text::Language;

use crate::export::{CLUSTERS, EXAMPLES};
use crate::labels::LabelClusters;
use crate::train::Examples;

/// Words shown for a label.
const TELLING_WORDS: usize = 12;

/// Why a bundle does not answer.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the bundle cannot be read: {0}")]
    Bundle(#[from] BundleError),
    #[error("the bundle's file {} cannot be read: {source}", file.file_name().unwrap_or_default().display())]
    Read { file: PathBuf, source: std::io::Error },
    #[error("the bundle's label clusters cannot be read: {reason}")]
    Clusters { reason: String },
    #[error("the bundle's example documents cannot be read: {reason}")]
    Examples { reason: String },
    #[error("the text cannot be matched: {0}")]
    Matcher(#[from] MatcherError),
}

/// A model that answers.
#[derive(Debug)]
pub struct TaggingEngine {
    bundle: Bundle,
    clusters: LabelClusters,
    examples: Examples,
}

impl TaggingEngine {
    /// Reads and checks every part of a bundle.
    pub fn load(folder: &Path) -> Result<Self, EngineError> {
        let read = |name: &str| {
            let file = folder.join(name);
            std::fs::read(&file).map_err(|source| EngineError::Read { file, source })
        };
        let mut opening = Opening::new(&read("manifest.json")?)?;
        let core = opening.manifest().core.clone();
        for (role, part) in core {
            opening.bring(&role, read(&part.file)?)?;
        }
        let mut bundle = opening.finish()?;
        for shard in 0..bundle.manifest().shards.len() {
            let bytes = read(&bundle.manifest().shards[shard].part.file)?;
            bundle.bring_shard(shard, &bytes)?;
        }
        let part = bundle.manifest().extra.get(CLUSTERS);
        let part = part.ok_or_else(|| BundleError::MissingPart {
            part: CLUSTERS.into(),
        })?;
        let bytes = read(&part.file)?;
        part.check(&bytes)?;
        let clusters =
            LabelClusters::from_bytes(&bytes).map_err(|reason| EngineError::Clusters { reason })?;
        let found = (clusters.labels() as u64, clusters.len() as u64);
        let expected = (bundle.manifest().labels, bundle.manifest().clusters);
        if found != expected {
            let reason = format!("found {found:?} labels and clusters, the manifest says {expected:?}");
            return Err(EngineError::Clusters { reason });
        }
        let examples = match bundle.manifest().extra.get(EXAMPLES) {
            Some(part) => {
                let bytes = read(&part.file)?;
                part.check(&bytes)?;
                serde_json::from_slice(&bytes).map_err(|error| EngineError::Examples {
                    reason: error.to_string(),
                })?
            }
            None => Examples::default(),
        };
        Ok(Self {
            bundle,
            clusters,
            examples,
        })
    }

    /// What the bundle says about itself.
    pub fn manifest(&self) -> &Manifest {
        self.bundle.manifest()
    }

    /// Everything but the rankers.
    pub fn tagger(&self) -> &Tagger {
        self.bundle.tagger()
    }

    /// Bytes of rankers a page had to fetch for this answer, had it fetched none before.
    pub fn shard_bytes(&self, answer: &TagResponse) -> u64 {
        self.bundle.shard_bytes(answer.clusters.iter().map(|c| c.cluster))
    }

    /// Figures on validation documents, in percent.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        self.manifest().metrics.clone()
    }

    /// The `top` best tags of a text, with their evidence and the KeyGraph when asked to explain.
    pub fn tag(&self, text: &str, top: usize, explain: bool) -> Result<TagResponse, EngineError> {
        let read = ReadOptions {
            keygraph: explain,
            spans: explain,
        };
        let prepared = self.bundle.prepare(text, read)?;
        Ok(self.bundle.finish(
            &prepared,
            FinishOptions {
                top,
                explain,
                keygraph: explain,
            },
        ))
    }

    /// All clusters.
    pub fn clusters(&self) -> ClusterList {
        self.clusters.list()
    }

    /// One cluster with its labels.
    pub fn cluster(&self, id: u32) -> Option<ClusterDetail> {
        self.clusters.detail(id)
    }

    /// One label with its neighbours and the words that speak for it.
    pub fn label(&self, id: u32) -> Option<LabelDetail> {
        let mut detail = self.clusters.label_detail(id)?;
        let words = self.bundle.telling_words(id, detail.label.cluster, TELLING_WORDS);
        detail.terms = words
            .into_iter()
            .map(|(term, weight)| TermWeight { term, weight })
            .collect();
        detail.examples = self.examples.of(id);
        Some(detail)
    }

    /// Labels whose names hold every word, most frequent first.
    pub fn search(&self, words: &str, most: usize) -> LabelSearch {
        self.clusters.search(words, most)
    }

    /// Every label's place on the map.
    pub fn map(&self, names: bool) -> LabelMap {
        self.clusters.map(names)
    }

    /// A text's KeyGraph, with the language and the lexicon the model was trained with.
    pub fn keygraph(&self, text: &str) -> KeyGraph {
        let tagger = self.bundle.tagger();
        KeyGraph::build(text, tagger.tfidf.language(), &tagger.lexicon, &tagger.keygraph)
    }
}

/// A text's KeyGraph as the model sees it, or with the rules alone when there is none.
pub(super) fn keygraph(engine: Option<&TaggingEngine>, text: &str) -> KeyGraph {
    match engine {
        Some(engine) => engine.keygraph(text),
        None => KeyGraph::build(
            text,
            Language::default(),
            &EntityLexicon::default(),
            &Options::default(),
        ),
    }
}
