//! Corpora on their way to disk: whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use super::atomic::AtomicFile;
use super::document::Document;
use super::error::{CorpusError, quote};

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFormat {
    Jsonl,
    Csv,
    /// With a header; tabs and line ends in texts become blanks.
    Tsv,
    /// Texts under the given name, labels beside it; blanks in a label become `_`.
    Pairs,
}

impl WriteFormat {
    pub const ALL: [Self; 4] = [Self::Jsonl, Self::Csv, Self::Tsv, Self::Pairs];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Pairs => "pairs",
        }
    }

    /// By a file's name; JSONL unless it says otherwise.
    pub fn by_name(path: &Path) -> Self {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("")
            .to_ascii_lowercase();
        let name = name.trim_end_matches(".gz");
        if name.ends_with(".csv") {
            Self::Csv
        } else if name.ends_with(".tsv") {
            Self::Tsv
        } else if name.ends_with("texts.txt") || name.ends_with("x.txt") {
            Self::Pairs
        } else {
            Self::Jsonl
        }
    }
}

impl std::str::FromStr for WriteFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| {
                format!(
                    "found {name:?}, expected one of {}",
                    Self::ALL.map(Self::name).join(", ")
                )
            })
    }
}

/// Writes documents one by one; nothing has the final name before [`finish`](Self::finish).
#[derive(Debug)]
pub struct CorpusWriter {
    format: WriteFormat,
    path: PathBuf,
    documents: Packed,
    /// The labels file of pairs.
    labels: Option<Packed>,
    written: u64,
    line: Vec<u8>,
}

/// An atomic file, gzipped when its name ends so.
#[derive(Debug)]
enum Packed {
    Plain(AtomicFile),
    Gzip(GzEncoder<AtomicFile>),
}

impl Packed {
    fn create(path: &Path) -> io::Result<Self> {
        let file = AtomicFile::create(path)?;
        Ok(if path.extension().is_some_and(|extension| extension == "gz") {
            Self::Gzip(GzEncoder::new(file, flate2::Compression::default()))
        } else {
            Self::Plain(file)
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.commit(),
            Self::Gzip(encoder) => encoder.finish()?.commit(),
        }
    }
}

impl CorpusWriter {
    /// Begins a corpus at `path`; gzipped if the name ends in `.gz`.
    pub fn create(path: impl AsRef<Path>, format: WriteFormat) -> Result<Self, CorpusError> {
        let path = path.as_ref().to_owned();
        let wrap = |error| CorpusError::write(&path, error);
        let mut documents = Packed::create(&path).map_err(wrap)?;
        let labels = if format == WriteFormat::Pairs {
            let name = super::pairs::labels_file_of(&path).ok_or_else(|| {
                CorpusError::file(
                    &path,
                    0,
                    "a name that does not say which file is which",
                    "a name such as train_texts.txt",
                )
            })?;
            Some(Packed::create(&name).map_err(wrap)?)
        } else {
            None
        };
        match format {
            WriteFormat::Csv => documents.write_all(b"id,text,labels\n").map_err(wrap)?,
            WriteFormat::Tsv => documents.write_all(b"id\ttext\tlabels\n").map_err(wrap)?,
            WriteFormat::Jsonl | WriteFormat::Pairs => {}
        }
        Ok(Self {
            format,
            path,
            documents,
            labels,
            written: 0,
            line: Vec::new(),
        })
    }

    /// Adds one document.
    pub fn write(&mut self, document: &Document) -> Result<(), CorpusError> {
        self.line.clear();
        match self.format {
            WriteFormat::Jsonl => {
                serde_json::to_writer(&mut self.line, document)
                    .map_err(|error| CorpusError::write(&self.path, error.into()))?;
            }
            WriteFormat::Csv => {
                for (column, cell) in [&document.id, &document.text, &self.joined(document)?]
                    .into_iter()
                    .enumerate()
                {
                    if column > 0 {
                        self.line.push(b',');
                    }
                    self.line.push(b'"');
                    self.line.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
                    self.line.push(b'"');
                }
            }
            WriteFormat::Tsv => {
                let cells = [
                    one_line(&document.id),
                    one_line(&document.text),
                    one_line(&self.joined(document)?),
                ];
                self.line.extend_from_slice(cells.join("\t").as_bytes());
            }
            WriteFormat::Pairs => {
                self.line.extend_from_slice(one_line(&document.text).as_bytes());
                let labels: Vec<String> = document
                    .labels
                    .iter()
                    .map(|label| label.split_whitespace().collect::<Vec<_>>().join("_"))
                    .collect();
                if let Some(file) = &mut self.labels {
                    file.write_all((labels.join(" ") + "\n").as_bytes())
                        .map_err(|error| CorpusError::write(&self.path, error))?;
                }
            }
        }
        self.line.push(b'\n');
        self.documents
            .write_all(&self.line)
            .map_err(|error| CorpusError::write(&self.path, error))?;
        self.written += 1;
        Ok(())
    }

    /// Labels in one cell. A label with the separator in it would come back as two.
    fn joined(&self, document: &Document) -> Result<String, CorpusError> {
        if let Some(wrong) = document.labels.iter().find(|label| label.contains(['|', ';'])) {
            return Err(CorpusError::file(
                &self.path,
                self.written + 2,
                format!("the label {}", quote(wrong)),
                "a label without | and ; (JSONL holds any)",
            ));
        }
        Ok(document.labels.join("|"))
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    /// Makes the corpus durable under its name.
    pub fn finish(self) -> Result<u64, CorpusError> {
        let path = self.path;
        if let Some(labels) = self.labels {
            labels
                .finish()
                .map_err(|error| CorpusError::write(&path, error))?;
        }
        self.documents
            .finish()
            .map_err(|error| CorpusError::write(&path, error))?;
        Ok(self.written)
    }
}

/// Control characters become blanks, so that a line stays a line and a cell a cell.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect()
}
