//! Annif's two ways to hold a corpus: one line a document, or one file a document.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::document::{Document, without_repeats};
use super::error::{CorpusError, quote};
use super::lines::{Lines, broken_input};
use super::reader::{ReadOptions, Record, Records};
use super::source::{open_lines, open_text};

/// Text, a tab, subject URIs in angle brackets. The URIs are the labels; a vocabulary gives them names.
pub(super) struct AnnifTsv {
    lines: Lines,
}

impl AnnifTsv {
    pub(super) fn new(lines: Lines) -> Self {
        Self { lines }
    }
}

impl Records for AnnifTsv {
    fn next_record(&mut self) -> Option<Result<Record, CorpusError>> {
        loop {
            let found = match self.lines.next_line()? {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => match line.split_once('\t') {
                    Some((text, subjects)) => Ok((
                        text.to_owned(),
                        subjects
                            .split_whitespace()
                            .map(|subject| bare(subject).to_owned())
                            .collect(),
                    )),
                    None => Err(quote(line)),
                },
                Err(error) => return Some(Err(error)),
            };
            let line = self.lines.number();
            return Some(match found {
                Ok((text, labels)) => {
                    let document = Document {
                        id: format!("line:{line}"),
                        text,
                        labels: without_repeats(labels),
                    };
                    Ok(Record { line, document })
                }
                Err(found) => Err(CorpusError::record(
                    self.lines.file(),
                    line,
                    found,
                    "a text, a tab, subject URIs",
                )),
            });
        }
    }
}

/// A URI without its angle brackets.
pub(super) fn bare(uri: &str) -> &str {
    let uri = uri.trim();
    uri.strip_prefix('<')
        .and_then(|uri| uri.strip_suffix('>'))
        .unwrap_or(uri)
}

/// A directory of texts `x.txt`, each with `x.tsv` (URI, tab, name) or `x.key` (a name a line) beside it.
///
/// The id is `x`. A label is called by its name where there is one, otherwise by its URI.
pub(super) struct AnnifFolder {
    texts: std::vec::IntoIter<PathBuf>,
    options: ReadOptions,
}

impl AnnifFolder {
    pub(super) fn open(directory: &Path, options: &ReadOptions) -> Result<Self, CorpusError> {
        let entries = fs::read_dir(directory).map_err(|error| CorpusError::read(directory, error))?;
        let mut texts = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| CorpusError::read(directory, error))?.path();
            if path.extension().is_some_and(|extension| extension == "txt") {
                texts.push(path);
            }
        }
        if texts.is_empty() {
            return Err(CorpusError::file(
                directory,
                0,
                "a directory without texts",
                "documents x.txt with their labels in x.tsv or x.key",
            ));
        }
        texts.sort();
        Ok(Self {
            texts: texts.into_iter(),
            options: options.clone(),
        })
    }

    fn document(&self, path: &Path) -> Result<Document, CorpusError> {
        let id = path.file_stem().and_then(|stem| stem.to_str()).ok_or_else(|| {
            CorpusError::record(
                path,
                0,
                "a file name that is not UTF-8",
                "a name that can be an id",
            )
        })?;
        let text = read_text(path, self.options.longest_record)?;
        let (tsv, key) = (path.with_extension("tsv"), path.with_extension("key"));
        let mut labels = Vec::new();
        if tsv.is_file() {
            let mut lines = open_lines(&tsv, &self.options)?;
            while let Some(line) = lines.next_line() {
                let line = line?.trim();
                if line.is_empty() {
                    continue;
                }
                let (uri, name) = line.split_once('\t').unwrap_or((line, ""));
                let name = name.split('\t').next().unwrap_or("").trim();
                labels.push(if name.is_empty() {
                    bare(uri).to_owned()
                } else {
                    name.to_owned()
                });
            }
        } else if key.is_file() {
            let mut lines = open_lines(&key, &self.options)?;
            while let Some(line) = lines.next_line() {
                let line = line?.trim();
                if !line.is_empty() {
                    labels.push(line.to_owned());
                }
            }
        }
        Ok(Document {
            id: id.to_owned(),
            text,
            labels: without_repeats(labels),
        })
    }
}

impl Records for AnnifFolder {
    fn next_record(&mut self) -> Option<Result<Record, CorpusError>> {
        let path = self.texts.next()?;
        Some(
            self.document(&path)
                .map(|document| Record { line: 0, document })
                .map_err(|error| match error {
                    // A damaged file spoils its own document, not the ones beside it.
                    CorpusError::File(complaint) => CorpusError::Record(complaint),
                    other => other,
                }),
        )
    }
}

/// A whole text file, up to a limit.
fn read_text(path: &Path, longest: usize) -> Result<String, CorpusError> {
    let mut bytes = Vec::new();
    open_text(path)?
        .take(longest as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| broken_input(path, 0, error))?;
    if bytes.len() > longest {
        let found = format!("a text of more than {longest} bytes");
        return Err(CorpusError::record(
            path,
            0,
            found,
            format!("at most {longest} bytes"),
        ));
    }
    let bytes = bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .map(<[u8]>::to_vec)
        .unwrap_or(bytes);
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count() as u64;
        CorpusError::record(
            path,
            line,
            format!("byte 0x{:02x}", error.as_bytes()[at]),
            "UTF-8 text",
        )
    })
}
