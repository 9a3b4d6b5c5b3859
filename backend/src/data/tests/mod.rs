//! Corpora as people have them: right, wrong and broken.

mod bad_input;
mod formats;
mod passes;

use std::io::Write;
use std::path::{Path, PathBuf};

use super::*;

/// A file in a directory of its own.
pub(super) struct Sample {
    directory: tempfile::TempDir,
    name: &'static str,
}

impl Sample {
    pub(super) fn new(name: &'static str, bytes: impl AsRef<[u8]>) -> Self {
        let sample = Self {
            directory: tempfile::tempdir().unwrap(),
            name,
        };
        sample.beside(name, bytes);
        sample
    }

    /// Another file in the same directory.
    pub(super) fn beside(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join(self.name)
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn source(&self) -> CorpusSource {
        CorpusSource::detect(self.path()).unwrap()
    }

    /// All documents, if nothing is wrong.
    pub(super) fn documents(&self) -> Vec<Document> {
        self.source().open().unwrap().map(Result::unwrap).collect()
    }

    /// The first thing that is wrong.
    pub(super) fn error(&self) -> CorpusError {
        match CorpusSource::detect(self.path()).and_then(|source| source.open()) {
            Ok(mut reader) => reader.find_map(Result::err).unwrap(),
            Err(error) => error,
        }
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn document(id: &str, text: &str, labels: &[&str]) -> Document {
    Document {
        id: id.to_owned(),
        text: text.to_owned(),
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
    }
}
