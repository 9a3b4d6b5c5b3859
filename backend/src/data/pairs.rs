//! Texts and labels line by line: two files side by side (AttentionXML, LightXML) or one with a tab (PECOS).

use std::fs;
use std::path::{Path, PathBuf};

use super::document::{Document, without_repeats};
use super::error::{CorpusError, quote};
use super::lines::Lines;
use super::reader::{ReadOptions, Record, Records};
use super::source::open_lines;

/// `train_texts.txt` beside `train_labels.txt`: line i of one belongs to line i of the other.
pub(super) struct Pairs {
    texts: Lines,
    labels: Lines,
    separator: Option<char>,
}

/// How the name of a texts file turns into that of its labels file, the most particular first.
const NAMES: [(&str, &str); 6] = [
    ("raw_texts", "labels"),
    ("raw_text", "labels"),
    ("texts", "labels"),
    ("text", "labels"),
    ("X.", "Y."),
    ("documents", "labels"),
];

/// The labels file that belongs to a texts file by its name; it need not exist.
pub(super) fn labels_file_of(texts: &Path) -> Option<PathBuf> {
    let name = texts.file_name()?.to_str()?;
    NAMES
        .iter()
        .find(|(texts, _)| name.contains(texts))
        .map(|(from, to)| texts.with_file_name(name.replacen(from, to, 1)))
}

/// The one texts file in a directory whose labels file stands beside it; `train…` before others.
pub(super) fn texts_file_in(directory: &Path) -> Result<Option<PathBuf>, CorpusError> {
    let entries = fs::read_dir(directory).map_err(|error| CorpusError::read(directory, error))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| CorpusError::read(directory, error))?.path();
        if labels_file_of(&path).is_some_and(|labels| labels.is_file()) {
            found.push(path);
        }
    }
    found.sort();
    let train = found.iter().position(|path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("tr"))
    });
    Ok(match train {
        Some(position) => Some(found.swap_remove(position)),
        None => found.into_iter().next(),
    })
}

impl Pairs {
    pub(super) fn open(path: &Path, options: &ReadOptions) -> Result<Self, CorpusError> {
        let texts = if path.is_dir() {
            texts_file_in(path)?.ok_or_else(|| {
                CorpusError::file(
                    path,
                    0,
                    "no such pair",
                    "a file …texts.txt beside a file …labels.txt",
                )
            })?
        } else {
            path.to_owned()
        };
        let labels = options
            .labels_file
            .clone()
            .or_else(|| labels_file_of(&texts))
            .ok_or_else(|| {
                CorpusError::file(
                    &texts,
                    0,
                    "no labels file by that name",
                    "the labels file to be named",
                )
            })?;
        Ok(Self {
            texts: open_lines(&texts, options)?,
            labels: open_lines(&labels, options)?,
            separator: options.columns.label_separator,
        })
    }
}

impl Records for Pairs {
    fn next_record(&mut self) -> Option<Result<Record, CorpusError>> {
        // Both lines are taken before either is judged, so that the files stay in step after a bad one.
        let text = self.texts.next_line().map(|line| line.map(str::to_owned));
        let labels = self.labels.next_line().map(|line| line.map(str::to_owned));
        match (text, labels) {
            (None, None) => None,
            (Some(Ok(text)), Some(Ok(labels))) => {
                let line = self.texts.number();
                let separator = self.separator;
                let labels = labels
                    .split(|character: char| match separator {
                        Some(separator) => character == separator,
                        None => character.is_whitespace(),
                    })
                    .map(str::trim)
                    .filter(|label| !label.is_empty())
                    .map(str::to_owned)
                    .collect();
                let document = Document {
                    id: format!("line:{line}"),
                    text,
                    labels: without_repeats(labels),
                };
                Some(Ok(Record { line, document }))
            }
            (Some(Err(error)), _) | (_, Some(Err(error))) => Some(Err(error)),
            (None, Some(_)) => Some(Err(ended(&self.texts, &self.labels))),
            (Some(_), None) => Some(Err(ended(&self.labels, &self.texts))),
        }
    }
}

fn ended(short: &Lines, long: &Lines) -> CorpusError {
    CorpusError::file(
        short.file(),
        short.number(),
        format!("the end after {} lines", short.number()),
        format!("as many lines as {}", long.file().display()),
    )
}

/// PECOS text2text: comma-separated label numbers, a tab, the text.
pub(super) struct Pecos {
    lines: Lines,
}

impl Pecos {
    pub(super) fn new(lines: Lines) -> Self {
        Self { lines }
    }
}

impl Records for Pecos {
    fn next_record(&mut self) -> Option<Result<Record, CorpusError>> {
        let found = match self.lines.next_line()? {
            Ok(line) => match line.split_once('\t') {
                Some((labels, text)) => {
                    let labels = labels.split(',').map(str::trim).filter(|label| !label.is_empty());
                    Ok((labels.map(str::to_owned).collect(), text.to_owned()))
                }
                None => Err(quote(line)),
            },
            Err(error) => return Some(Err(error)),
        };
        let line = self.lines.number();
        Some(match found {
            Ok((labels, text)) => {
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
                "label numbers, a tab, the text",
            )),
        })
    }
}
