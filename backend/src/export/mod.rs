//! Publishing: a trained model becomes a bundle that a web page runs.
//!
//! What the files hold is decided in `gnnxml_shared::bundle`; this room only brings them to where they shall live.
//! Parts go first and the manifest last, so that a manifest never names a part that is not there. Start reading at
//! [`export`].

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use gnnxml_shared::bundle::{
    Bits, Manifest, ModelFacts, PageEncoder, PartRef, PublishError, publish, sha256_hex,
};

use crate::data::write_atomic;
use crate::encoder::place_of;
use crate::train::Model;

/// The extra part that holds the label clusters, their map and the label graph.
pub const CLUSTERS: &str = "clusters";
/// The extra part that holds documents which show what a label means.
pub const EXAMPLES: &str = "examples";

/// Where bundles live: a folder now, an object store behind the same two verbs later.
pub trait BundleStore {
    /// Whether a file of this name and content is there already.
    fn holds(&self, part: &PartRef) -> bool;

    /// Puts a file, whole or not at all.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ExportError>;
}

/// Why a bundle was not published.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error(
        "the model's encoder `{encoder}` is a {architecture}, which does not run in a web page; make a table of word vectors \
         from it with `gnnxml encoder distil --from {encoder} --corpus TEXTS --out DIR` and train with `--encoder DIR`"
    )]
    Encoder { encoder: String, architecture: String },
    #[error(transparent)]
    Layout(#[from] PublishError),
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct FolderStore {
    folder: PathBuf,
}

impl FolderStore {
    /// Creates the folder if it is not there.
    pub fn create(folder: &Path) -> Result<Self, ExportError> {
        std::fs::create_dir_all(folder).map_err(|error| ExportError::Io {
            path: folder.to_owned(),
            error,
        })?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }
}

impl BundleStore for FolderStore {
    fn holds(&self, part: &PartRef) -> bool {
        std::fs::read(self.folder.join(&part.file)).is_ok_and(|bytes| part.check(&bytes).is_ok())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let path = self.folder.join(name);
        write_atomic(&path, bytes).map_err(|error| ExportError::Io { path, error })
    }
}

/// A part as it goes over the network, where that is worth unpacking it.
fn packed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    packer.write_all(bytes).ok()?;
    let packed = packer.finish().ok()?;
    (packed.len() < bytes.len() / 20 * 19).then_some(packed)
}

/// How a model is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// Bits of a weight in networks and tables.
    pub bits: Bits,
    /// Bytes of rankers that one text may ask a page to fetch.
    pub text_bytes: Option<u64>,
    /// What else must be said about the data and weights behind the model.
    pub licence_notes: Vec<String>,
}

/// Whose weights a bundle carries that were not trained here.
///
/// `spec` is the encoder's name in the configuration; of a directory only the last part is told, the rest is its owner's.
fn encoder_note(spec: &str) -> String {
    let directory = match Path::new(spec) {
        given if given.is_dir() => given.to_owned(),
        _ => place_of(spec),
    };
    let name = match Path::new(spec).file_name() {
        Some(last) if Path::new(spec).is_dir() => last.to_string_lossy(),
        _ => spec.into(),
    };
    let card = std::fs::read_to_string(directory.join("README.md")).unwrap_or_default();
    match card_licence(&card) {
        Some(licence) => format!("The sentence encoder's weights come from {name}, licensed as {licence}."),
        None => format!("The sentence encoder's weights come from {name}, whose licence holds for them."),
    }
}

/// The licence that a model card names at its head, between two lines of dashes.
fn card_licence(card: &str) -> Option<&str> {
    let mut lines = card.lines();
    lines.next().filter(|line| line.trim_end() == "---")?;
    let mut head = lines.take_while(|line| line.trim_end() != "---");
    let licence = head.find_map(|line| line.strip_prefix("license:"))?;
    let licence = licence.trim().trim_matches(['"', '\'']);
    (!licence.is_empty()).then_some(licence)
}

/// Publishes a model and returns the manifest it wrote.
pub fn export(
    model: &Model,
    name: &str,
    options: ExportOptions,
    store: &dyn BundleStore,
) -> Result<Manifest, ExportError> {
    let encoder = match (&model.outside, &model.lsa) {
        (Some(outside), _) => Some(outside.for_page().ok_or_else(|| ExportError::Encoder {
            encoder: model.manifest.config.encoder.name.clone(),
            architecture: outside.name().to_owned(),
        })?),
        (None, lsa) => lsa.as_ref().map(PageEncoder::Lsa),
    };
    let mut extra = BTreeMap::from([(CLUSTERS.to_owned(), model.clusters.to_bytes())]);
    if !model.examples.is_empty() {
        let examples = serde_json::to_vec(&model.examples).expect("examples are plain data");
        extra.insert(EXAMPLES.to_owned(), examples);
    }
    let weights = model
        .outside
        .is_some()
        .then(|| encoder_note(&model.manifest.config.encoder.name));
    let facts = ModelFacts {
        name: name.to_owned(),
        documents: model.manifest.corpus.documents as u64,
        metrics: model.manifest.metrics.clone(),
        licence_notes: weights.into_iter().chain(options.licence_notes).collect(),
        extra,
        text_bytes: options.text_bytes,
    };
    let published = publish(&model.tagger, encoder, &model.rankers, options.bits, facts)?;
    for (part, bytes) in &published.parts {
        debug_assert_eq!(part.sha256, sha256_hex(bytes));
        if !store.holds(part) {
            if let Some(packed) = packed(bytes) {
                store.put(&format!("{}.gz", part.file), &packed)?;
            }
            store.put(&part.file, bytes)?;
        }
    }
    let manifest = serde_json::to_vec_pretty(&published.manifest).expect("a manifest is plain data");
    store.put("manifest.json", &manifest)?;
    Ok(published.manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_the_encoder_and_the_licence_its_card_states() {
        let folder = tempfile::tempdir().unwrap();
        let encoder = folder.path().join("small-bert");
        std::fs::create_dir(&encoder).unwrap();
        let spec = encoder.to_str().unwrap();
        let note = encoder_note(spec);
        assert_eq!(
            note,
            "The sentence encoder's weights come from small-bert, whose licence holds for them."
        );
        std::fs::write(
            encoder.join("README.md"),
            "---\nlanguage: en\nlicense: apache-2.0\n---\n# Small\n",
        )
        .unwrap();
        let note = encoder_note(spec);
        assert_eq!(
            note,
            "The sentence encoder's weights come from small-bert, licensed as apache-2.0."
        );
        assert!(encoder_note("someone/some-model").contains("come from someone/some-model,"));
    }

    #[test]
    fn only_the_head_of_a_card_names_a_licence() {
        assert_eq!(card_licence("---\nlicense: \"mit\"\n---\n"), Some("mit"));
        for card in [
            "",
            "license: mit",
            "---\nlicense:\n---\n",
            "---\ntags: x\n---\nlicense: mit\n",
        ] {
            assert_eq!(card_licence(card), None, "{card:?}");
        }
    }
}
