//! The engine that tags: a published bundle in memory, answering exactly as the page does.
//!
//! [`TaggingEngine::load`] reads and checks every part of a bundle. The tagger that answers from those parts is the one
//! of `gnnxml_shared::model`, for page and server alike; while that crate has none, no engine can exist: the type
//! says so, `load` answers with [`EngineError::NoTagger`], and every route that tags answers with an error of its own.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use gnnxml_shared::api::{ClusterDetail, ClusterList, LabelDetail, LabelMap, LabelSearch, TagResponse};
use gnnxml_shared::bundle::{BundleError, Manifest};
use gnnxml_shared::keygraph::{EntityLexicon, KeyGraph, Options};
use gnnxml_shared::text::Language;

/// Why a bundle does not answer.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the bundle cannot be read: {0}")]
    Bundle(#[from] BundleError),
    #[error("the bundle's file {} cannot be read: {source}", file.file_name().unwrap_or_default().display())]
    Read { file: PathBuf, source: std::io::Error },
    #[error("the bundle of {labels} labels is sound, but this build has no tagger to answer from it")]
    NoTagger { labels: u64 },
}

/// A model that answers.
#[derive(Debug)]
pub struct TaggingEngine {
    manifest: Manifest,
    tagger: Infallible,
}

impl TaggingEngine {
    /// Reads and checks every part of a bundle.
    pub fn load(bundle: &Path) -> Result<Self, EngineError> {
        let read = |name: &str| {
            let file = bundle.join(name);
            std::fs::read(&file).map_err(|source| EngineError::Read { file, source })
        };
        let manifest = Manifest::parse(&read("manifest.json")?)?;
        for part in manifest.parts() {
            part.check(&read(&part.file)?)?;
        }
        Err(EngineError::NoTagger {
            labels: manifest.labels,
        })
    }

    /// What the bundle says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Figures on validation documents, in percent.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        self.manifest.metrics.clone()
    }

    /// The `top` best tags of a text, with their evidence and the KeyGraph when asked to explain.
    pub fn tag(&self, _text: &str, _top: usize, _explain: bool) -> Result<TagResponse, EngineError> {
        match self.tagger {}
    }

    /// All clusters.
    pub fn clusters(&self) -> ClusterList {
        match self.tagger {}
    }

    /// One cluster with its labels.
    pub fn cluster(&self, _id: u32) -> Option<ClusterDetail> {
        match self.tagger {}
    }

    /// One label with its neighbours.
    pub fn label(&self, _id: u32) -> Option<LabelDetail> {
        match self.tagger {}
    }

    /// Labels whose names hold every word, most frequent first.
    pub fn search(&self, _words: &str, _most: usize) -> LabelSearch {
        match self.tagger {}
    }

    /// Every label's place on the map.
    pub fn map(&self, _names: bool) -> LabelMap {
        match self.tagger {}
    }

    /// A text's KeyGraph, with the language and the lexicon the model was trained with.
    pub fn keygraph(&self, _text: &str) -> KeyGraph {
        match self.tagger {}
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
