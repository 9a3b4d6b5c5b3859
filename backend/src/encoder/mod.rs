//! Sentence encoders: one trait, from no weights at all to any transformer.
//!
//! It never decides which sentences to encode, and downloads nothing that was not asked for by name.
//! Start reading at [`Encoder`] and [`open`], then [`cache`], through which every corpus is encoded.

pub mod bert;
pub mod cache;
pub mod check_tokenizer;
pub mod checkpoint;
pub mod distil;
mod error;
pub mod fetch;
pub mod lsa;
pub mod native;
mod options;
pub mod svd;
#[cfg(test)]
mod tests;
pub mod transformers;

use std::io::Read;
use std::path::{Path, PathBuf};

pub use error::EncoderError;
use gnnxml_shared::bundle::PageEncoder;
pub use options::{NumberType, Options, Precision};

/// Turns sentences into vectors.
pub trait Encoder: Send + Sync {
    /// The name in the configuration: `lsa`, `static`, `bert`, …
    fn name(&self) -> &str;

    /// Width of a sentence vector.
    fn dims(&self) -> usize;

    /// Changes whenever the vectors would: the embedding cache's key.
    fn fingerprint(&self) -> String;

    /// Row-major `sentences.len() × dims()`, each row L2-normalised (all zero for a sentence without a token).
    fn encode(&self, sentences: &[&str]) -> anyhow::Result<Vec<f32>>;

    /// Whether encoding a sentence costs so much more than looking its vector up that vectors are worth keeping.
    fn worth_remembering(&self) -> bool {
        true
    }

    /// The same encoder as a web page runs it, giving the same vectors; `None` for one that only runs here.
    fn for_page(&self) -> Option<PageEncoder<'_>> {
        None
    }
}

/// What every encoder is asked to say once, so that it can be told from another later.
const PROBE: &str = "In 1998 the council agreed on quotas for cod, and on the labelling of olive oil.";

/// Two precisions of the same weights are closer than this, other weights or another vocabulary are not.
const SAME_VOICE: f32 = 0.98;

/// An encoder's vector of one fixed sentence: a model remembers whose vectors it learned from, on whatever device they were made.
pub fn voice(encoder: &dyn Encoder) -> anyhow::Result<Vec<f32>> {
    encoder.encode(&[PROBE])
}

/// Whether an encoder speaks as the one that once gave `voice`.
pub fn has_voice(encoder: &dyn Encoder, voice: &[f32]) -> anyhow::Result<bool> {
    let found = self::voice(encoder)?;
    let product: f32 = found.iter().zip(voice).map(|(a, b)| a * b).sum();
    let silent = |vector: &[f32]| vector.iter().all(|&value| value == 0.0);
    Ok(found.len() == voice.len() && (product >= SAME_VOICE || (silent(&found) && silent(voice))))
}

/// Opens an encoder that needs no corpus: a name (`static`, `minilm`), a directory, or a hub id.
///
/// `lsa` is fitted, not opened: see [`lsa::fit`].
pub fn open(spec: &str, options: impl Into<Options>) -> Result<Box<dyn Encoder>, EncoderError> {
    let directory = match spec {
        "lsa" => return Err(EncoderError::NeedsCorpus("lsa")),
        "static" | "minilm" => fetched(spec)?,
        _ if Path::new(spec).is_dir() => PathBuf::from(spec),
        // Owner and name, and nothing that looks like a path someone mistyped.
        _ if spec.split('/').count() == 2 && !spec.starts_with(['.', '/', '~']) && !spec.contains('\\') => {
            fetch::hub(spec)?
        }
        _ => return Err(EncoderError::Unknown(spec.into())),
    };
    open_directory(&directory, options)
}

/// Opens what lies in a directory: a distilled table, or a transformer by the architecture its config.json names.
pub fn open_directory(
    directory: &Path,
    options: impl Into<Options>,
) -> Result<Box<dyn Encoder>, EncoderError> {
    let options = options.into();
    if directory.join(distil::DESCRIPTION).is_file() {
        let table = distil::open(directory)?;
        return Ok(Box::new(match options.table_dims {
            Some(dims) => distil::narrowed(table, dims)?,
            None => table,
        }));
    }
    let own = options.own_code() && bert::Family::of(directory)?.is_some();
    if own && bert::has_word_pieces(directory) {
        return Ok(Box::new(bert::NativeBert::open(
            directory,
            options.own_precision(),
        )?));
    }
    Ok(Box::new(transformers::Transformer::open(directory, options)?))
}

/// Where fetched and distilled encoders live: `GNNXML_CACHE`, or the user's cache directory.
pub fn home() -> PathBuf {
    std::env::var_os("GNNXML_CACHE")
        .map(PathBuf::from)
        .or_else(|| dirs::cache_dir().map(|cache| cache.join("gnnxml")))
        .unwrap_or_else(|| PathBuf::from(".gnnxml-cache"))
}

/// The cache of an encoder's vectors in its usual place.
pub fn vectors_of(encoder: &dyn Encoder) -> Result<cache::EmbeddingCache, cache::CacheError> {
    cache::EmbeddingCache::open(&home().join("vectors"), &encoder.fingerprint(), encoder.dims())
}

/// The directory of a named encoder.
pub fn place_of(name: &str) -> PathBuf {
    home().join("encoders").join(name)
}

/// The directory of a named encoder whose weights are here.
pub fn fetched(name: &str) -> Result<PathBuf, EncoderError> {
    let directory = place_of(name);
    if directory.is_dir() {
        Ok(directory)
    } else {
        Err(EncoderError::NotFetched {
            name: name.into(),
            directory,
        })
    }
}

/// Largest text file of a model that we read (vocabularies are a few megabytes).
const LARGEST_TEXT: u64 = 128 << 20;

fn read_text(path: &Path) -> Result<String, EncoderError> {
    let io = |source| EncoderError::Io {
        path: path.to_path_buf(),
        source,
    };
    let file = std::fs::File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    if size > LARGEST_TEXT {
        let fault = format!("{size} bytes, more than the {LARGEST_TEXT} we read");
        return Err(EncoderError::Config {
            file: path.to_path_buf(),
            fault,
        });
    }
    let mut text = String::new();
    file.take(LARGEST_TEXT).read_to_string(&mut text).map_err(io)?;
    Ok(text)
}

fn read_json(path: &Path) -> Result<serde_json::Value, EncoderError> {
    serde_json::from_str(&read_text(path)?).map_err(|error| EncoderError::Config {
        file: path.to_path_buf(),
        fault: format!("not JSON: {error}"),
    })
}
