//! Where a corpus comes from: a path, its format, and how to read it. Opens as often as one likes.

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::annif::{AnnifFolder, AnnifTsv};
use super::compressed::unpack;
use super::delimited::Delimited;
use super::error::CorpusError;
use super::format::CorpusFormat;
use super::jsonl::Jsonl;
use super::lines::{Lines, broken_input};
use super::pairs::{Pairs, Pecos};
use super::reader::{CorpusReader, IdFilter, ReadOptions, Records};
use super::repository::Repository;

/// A corpus on disk that can be read any number of times.
///
/// ```
/// use gnnxml_backend::data::CorpusSource;
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("corpus.jsonl");
/// std::fs::write(&path, r#"{"id": "a", "text": "Cocoa rose.", "labels": ["topic:cocoa"]}"#).unwrap();
/// let source = CorpusSource::detect(&path).unwrap();
/// for _pass in 0..2 {
///     for document in source.open().unwrap() {
///         assert_eq!(document.unwrap().labels, ["topic:cocoa"]);
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct CorpusSource {
    path: PathBuf,
    format: CorpusFormat,
    options: ReadOptions,
}

/// Opens a corpus of any format with the default options.
pub fn open(path: impl AsRef<Path>) -> Result<CorpusReader, CorpusError> {
    CorpusSource::detect(path)?.open()
}

impl CorpusSource {
    /// Looks at the path and its first line to tell the format.
    pub fn detect(path: impl AsRef<Path>) -> Result<Self, CorpusError> {
        let path = path.as_ref();
        Ok(Self::of_format(path, CorpusFormat::detect(path)?))
    }

    /// A corpus whose format is known.
    pub fn of_format(path: impl AsRef<Path>, format: CorpusFormat) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            format,
            options: ReadOptions::default(),
        }
    }

    /// Leaves out and counts up to `skip_bad` bad records.
    pub fn skip_bad(mut self, skip_bad: usize) -> Self {
        self.options.skip_bad = skip_bad;
        self
    }

    /// Keeps documents whose ids repeat: an id says where a document is, not what can be learned from it.
    pub fn keep_repeated_ids(mut self) -> Self {
        self.options.keep_repeated_ids = true;
        self
    }

    /// Only these documents.
    pub fn only(mut self, ids: IdFilter) -> Self {
        self.options.ids = Some(ids);
        self
    }

    /// Replaces all options.
    pub fn with(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn format(&self) -> CorpusFormat {
        self.format
    }

    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// Begins a pass over the documents.
    pub fn open(&self) -> Result<CorpusReader, CorpusError> {
        let (path, options) = (&self.path, &self.options);
        let lines = || open_lines(path, options);
        let records: Box<dyn Records> = match self.format {
            CorpusFormat::Jsonl => Box::new(Jsonl::new(lines()?)),
            CorpusFormat::Csv => Box::new(Delimited::open(path, b',', options)?),
            CorpusFormat::Tsv => Box::new(Delimited::open(path, b'\t', options)?),
            CorpusFormat::AnnifTsv => Box::new(AnnifTsv::new(lines()?)),
            CorpusFormat::AnnifFolder => Box::new(AnnifFolder::open(path, options)?),
            CorpusFormat::Pecos => Box::new(Pecos::new(lines()?)),
            CorpusFormat::Pairs => Box::new(Pairs::open(path, options)?),
            CorpusFormat::Repository => Box::new(Repository::open(lines()?)?),
        };
        Ok(CorpusReader::new(path, records, options.clone()))
    }
}

impl CorpusReader {
    /// Reads JSONL, packed or not, from anything: standard input, an upload. `name` is what complaints call it.
    pub fn from_read(
        name: &str,
        input: impl Read + Send + 'static,
        options: ReadOptions,
    ) -> Result<Self, CorpusError> {
        let name = Path::new(name);
        let input = unpack(input).map_err(|error| broken_input(name, 1, error))?;
        let lines = Lines::new(name, input, options.longest_record);
        Ok(Self::new(name, Box::new(Jsonl::new(lines)), options))
    }
}

/// A file's text, unpacked.
pub(super) fn open_text(path: &Path) -> Result<Box<dyn BufRead + Send>, CorpusError> {
    let file = File::open(path).map_err(|error| CorpusError::read(path, error))?;
    unpack(file).map_err(|error| broken_input(path, 1, error))
}

pub(super) fn open_lines(path: &Path, options: &ReadOptions) -> Result<Lines, CorpusError> {
    Ok(Lines::new(path, open_text(path)?, options.longest_record))
}
