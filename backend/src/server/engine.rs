//! The engine that tags: a published bundle in memory, answering exactly as the page does.
//!
//! [`TaggingEngine::load`] reads and checks every part of a bundle, rankers and label clusters included. What answers
//! is `gnnxml_shared::bundle::Bundle`, the same code that the page runs; its graph network runs on the CPU or on a GPU.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gnnxml_kernels::{Engine, GpuError, Preference, Work};
use gnnxml_shared::api::{
    ClusterDetail, ClusterList, LabelDetail, LabelMap, LabelSearch, TagResponse, TermWeight,
};
use gnnxml_shared::bundle::{Bundle, BundleError, Manifest, Opening, PartRef};
use gnnxml_shared::keygraph::{EntityLexicon, KeyGraph, Options};
use gnnxml_shared::model::matcher::{Matcher, MatcherError};
use gnnxml_shared::model::tagger::{FinishOptions, ReadOptions, Tagger};
use gnnxml_shared::text::Language;

use crate::export::{CLUSTERS, EXAMPLES};
use crate::labels::LabelClusters;
use crate::train::Examples;

/// Words shown for a label.
const TELLING_WORDS: usize = 12;

/// Bytes of a manifest: a hundred for each of a hundred thousand shards, and room to spare.
const LARGEST_MANIFEST: u64 = 64 << 20;

/// Why a bundle does not answer. Each says what it stems from in its own sentence, so none has a source to be told again.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the bundle cannot be read: {fault}")]
    Bundle { fault: BundleError },
    #[error("the bundle's file {} cannot be read: {error}", file.file_name().unwrap_or_default().display())]
    Read { file: PathBuf, error: std::io::Error },
    #[error("the bundle's label clusters cannot be read: {reason}")]
    Clusters { reason: String },
    #[error("the bundle's example documents cannot be read: {reason}")]
    Examples { reason: String },
    #[error("the text cannot be matched: {fault}")]
    Matcher { fault: MatcherError },
}

impl From<BundleError> for EngineError {
    fn from(fault: BundleError) -> Self {
        Self::Bundle { fault }
    }
}

impl From<MatcherError> for EngineError {
    fn from(fault: MatcherError) -> Self {
        Self::Matcher { fault }
    }
}

/// The processor of a graph network, tried and timed as `preference` wants. Blocking.
pub fn open_network(matcher: Option<&Matcher>, preference: Preference) -> Result<Engine, GpuError> {
    let begun = Instant::now();
    let clock = || begun.elapsed().as_secs_f64() * 1e3;
    // Sentences are encoded on the CPU, those of many texts at a time.
    let work = Work {
        matcher,
        encoder: None,
    };
    pollster::block_on(Engine::new(work, preference, None, clock))
}

/// The file of a part. Of one that is longer than promised no more is read than it takes to notice.
fn read(folder: &Path, name: &str, promised: u64) -> Result<Vec<u8>, EngineError> {
    let file = folder.join(name);
    let mut bytes = Vec::new();
    match std::fs::File::open(&file).and_then(|open| open.take(promised + 1).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(EngineError::Read { file, error }),
    }
}

/// A part that tagging does without, checked.
fn read_extra(folder: &Path, part: &PartRef) -> Result<Vec<u8>, EngineError> {
    let bytes = read(folder, &part.file, part.bytes)?;
    part.check(&bytes)?;
    Ok(bytes)
}

/// A model that answers.
#[derive(Debug)]
pub struct TaggingEngine {
    bundle: Bundle,
    clusters: LabelClusters,
    examples: Examples,
    /// What runs the graph network.
    network: Engine,
}

impl TaggingEngine {
    /// Reads and checks every part of a bundle. Its graph network runs on the CPU.
    pub fn load(folder: &Path) -> Result<Self, EngineError> {
        let mut opening = Opening::new(&read(folder, "manifest.json", LARGEST_MANIFEST)?)?;
        let core = opening.manifest().core.clone();
        for (role, part) in core {
            opening.bring(&role, read(folder, &part.file, part.bytes)?)?;
        }
        let mut bundle = opening.finish()?;
        for shard in 0..bundle.manifest().shards.len() {
            let part = &bundle.manifest().shards[shard].part;
            let bytes = read(folder, &part.file, part.bytes)?;
            bundle.bring_shard(shard, &bytes)?;
        }
        let part = bundle.manifest().extra.get(CLUSTERS);
        let part = part.ok_or_else(|| BundleError::MissingPart {
            part: CLUSTERS.into(),
        })?;
        let bytes = read_extra(folder, part)?;
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
                serde_json::from_slice(&read_extra(folder, part)?).map_err(|error| EngineError::Examples {
                    reason: error.to_string(),
                })?
            }
            None => Examples::default(),
        };
        Ok(Self {
            bundle,
            clusters,
            examples,
            network: Engine::cpu(),
        })
    }

    /// [`Self::load`] with the graph network where `preference` wants it. A GPU that cannot run it costs speed, never the model:
    /// the CPU answers then, as it does for a device that is lost later.
    pub fn load_on(folder: &Path, preference: Preference) -> Result<Self, EngineError> {
        let mut engine = Self::load(folder)?;
        if let Some(matcher) = engine.tagger().matcher.graph() {
            match open_network(Some(matcher), preference) {
                Ok(network) => engine.network = network,
                Err(error) => tracing::warn!(%error, "the CPU runs a graph network that a GPU was to run"),
            }
        }
        Ok(engine)
    }

    /// What runs the graph network.
    pub fn network(&self) -> &Engine {
        &self.network
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
        let tagger = self.tagger();
        let reading = tagger.read(text, read);
        let vectors = tagger.sentence_vectors(text, &reading);
        let prepared = tagger.prepare_with_network(reading, &vectors, |matcher, graph| {
            let ran = pollster::block_on(self.network.logits(graph, |graph| matcher.forward(graph)))?;
            Ok(ran.logits)
        })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a manifest whose only part lies in `file`.
    fn folder(file: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let part = PartRef {
            file: file.into(),
            ..PartRef::of("labels", b"abc")
        };
        let manifest = serde_json::json!({
            "format": gnnxml_shared::bundle::FORMAT, "version": gnnxml_shared::bundle::VERSION,
            "name": "small", "language": "en", "encoder": "none", "quantisation": "int8",
            "labels": 1, "clusters": 1, "documents": 1, "core": {"labels": part}, "shards": [],
        });
        std::fs::write(folder.path().join("manifest.json"), manifest.to_string()).unwrap();
        folder
    }

    #[test]
    fn no_more_is_read_of_a_part_than_the_manifest_promises() {
        let folder = folder("labels.bin");
        std::fs::write(folder.path().join("labels.bin"), vec![0; 1 << 20]).unwrap();
        let refused = TaggingEngine::load(folder.path()).unwrap_err();
        let EngineError::Bundle {
            fault: BundleError::Length { found, expected, .. },
        } = refused
        else {
            panic!("{refused}")
        };
        assert_eq!((found, expected), (4, 3));
    }

    #[test]
    fn what_is_wrong_with_a_bundle_is_said_once() {
        for file in ["labels.bin", "../labels.bin"] {
            let refused = TaggingEngine::load(folder(file).path()).unwrap_err();
            let own = refused.to_string();
            assert!(own.contains(file), "{own}");
            assert_eq!(format!("{:#}", anyhow::Error::new(refused)), own);
        }
    }
}
