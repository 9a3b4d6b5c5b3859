//! The Extreme Classification Repository's bag-of-words text.
//!
//! A header `N D L` (documents, features, labels), then a line a document: `l1,l2 f:v f:v …`, labels and features by
//! number. There is no text in it. A document becomes a text of pseudo-words, `f12` for feature 12, each repeated by
//! its weight rounded to a whole number (at least once, at most [`MOST_REPEATS`] times): counts are kept as they are,
//! and real-valued weights below 1.5 at least keep which features are there. Labels are called by their numbers
//! unless a vocabulary names them.

use std::fmt::Write;

use super::document::{Document, without_repeats};
use super::error::{CorpusError, quote};
use super::lines::Lines;
use super::reader::{Record, Records};

/// A weight repeats its pseudo-word at most that often.
const MOST_REPEATS: f64 = 100.0;

pub(super) struct Repository {
    lines: Lines,
    documents: u64,
    features: u64,
    labels: u64,
    read: u64,
}

impl Repository {
    /// Reads the header.
    pub(super) fn open(mut lines: Lines) -> Result<Self, CorpusError> {
        const EXPECTED: &str = "a header of three numbers: documents features labels";
        let header = match lines.next_line() {
            Some(line) => line?.to_owned(),
            None => return Err(CorpusError::file(lines.file(), 1, "an empty file", EXPECTED)),
        };
        let numbers: Vec<u64> = header
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .unwrap_or_default();
        let &[documents, features, labels] = numbers.as_slice() else {
            return Err(CorpusError::file(lines.file(), 1, quote(&header), EXPECTED));
        };
        Ok(Self {
            lines,
            documents,
            features,
            labels,
            read: 0,
        })
    }
}

impl Records for Repository {
    fn next_record(&mut self) -> Option<Result<Record, CorpusError>> {
        let parsed = match self.lines.next_line() {
            Some(Ok(line)) if self.read >= self.documents && line.trim().is_empty() => return None,
            Some(Ok(line)) => parse(line, self.features, self.labels),
            Some(Err(error)) => return Some(Err(error)),
            None if self.read < self.documents => {
                let found = format!("the end after {} documents", self.read);
                let error = CorpusError::file(
                    self.lines.file(),
                    self.lines.number(),
                    found,
                    format!("{} documents as the header says", self.documents),
                );
                self.read = self.documents;
                return Some(Err(error));
            }
            None => return None,
        };
        self.read += 1;
        let line = self.lines.number();
        if self.read > self.documents {
            return Some(Err(CorpusError::file(
                self.lines.file(),
                line,
                "one more document",
                format!("{} documents as the header says", self.documents),
            )));
        }
        Some(match parsed {
            Ok((text, labels)) => Ok(Record {
                line,
                document: Document {
                    id: self.read.to_string(),
                    text,
                    labels,
                },
            }),
            Err((found, expected)) => Err(CorpusError::record(self.lines.file(), line, found, expected)),
        })
    }
}

/// A line's pseudo-words and labels, or what was found and what was expected.
fn parse(line: &str, features: u64, labels: u64) -> Result<(String, Vec<String>), (String, String)> {
    // A document without labels begins with the blank, or with its first feature.
    let (head, tail) = match line.split_once(' ') {
        Some((head, _)) if head.contains(':') => ("", line),
        Some((head, tail)) => (head, tail),
        None if line.contains(':') => ("", line),
        None => (line, ""),
    };
    let mut names = Vec::new();
    for label in head.split(',').filter(|label| !label.is_empty()) {
        match label.trim().parse::<u64>() {
            Ok(number) if number < labels => names.push(number.to_string()),
            _ => {
                return Err((
                    format!("{} as label", quote(label)),
                    format!("a number below {labels}"),
                ));
            }
        }
    }
    let mut text = String::new();
    for entry in tail.split_ascii_whitespace() {
        let weight = entry.split_once(':').and_then(|(feature, weight)| {
            let feature: u64 = feature.parse().ok().filter(|&feature| feature < features)?;
            let weight: f64 = weight.parse().ok().filter(|weight: &f64| weight.is_finite())?;
            Some((feature, weight))
        });
        let Some((feature, weight)) = weight else {
            return Err((
                format!("{} as feature", quote(entry)),
                format!("number:weight with a number below {features}"),
            ));
        };
        for _ in 0..weight.round().clamp(1.0, MOST_REPEATS) as usize {
            if !text.is_empty() {
                text.push(' ');
            }
            let _ = write!(text, "f{feature}");
        }
    }
    Ok((text, without_repeats(names)))
}
