//! Tables: CSV and TSV, one document a row, columns chosen by name or number.
//!
//! CSV is quoted as RFC 4180 says. TSV is not quoted at all, because texts often begin with a quotation mark.
//! Without a header two columns are text and labels, three are id, text and labels.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use csv::ByteRecord;

use super::document::{Document, without_repeats};
use super::error::{CorpusError, quote};
use super::lines::broken_input;
use super::reader::{Columns, ReadOptions, Record, Records};
use super::source::open_text;

const ID_NAMES: [&str; 5] = ["id", "uid", "doc_id", "document_id", "identifier"];
const TEXT_NAMES: [&str; 8] = [
    "text",
    "title",
    "body",
    "abstract",
    "content",
    "description",
    "document",
    "sentence",
];
const LABEL_NAMES: [&str; 10] = [
    "labels",
    "label",
    "tags",
    "subjects",
    "subject_uris",
    "categories",
    "category",
    "topics",
    "keywords",
    "classes",
];

/// Whether a row names columns rather than being a document.
pub(super) fn is_header<'c>(cells: impl Iterator<Item = &'c str>) -> bool {
    cells.into_iter().any(|cell| {
        let cell = cell.trim().to_ascii_lowercase();
        TEXT_NAMES.contains(&cell.as_str()) || LABEL_NAMES.contains(&cell.as_str())
    })
}

/// Which cells of a row hold what.
#[derive(Debug)]
struct Layout {
    id: Option<usize>,
    text: Vec<usize>,
    labels: Option<usize>,
    columns: usize,
}

pub(super) struct Delimited {
    file: PathBuf,
    rows: csv::Reader<Limited>,
    row: ByteRecord,
    layout: Layout,
    separator: Option<char>,
    /// Whether `row` holds a first row that turned out to be a document.
    first_is_document: bool,
    allowance: Arc<AtomicUsize>,
    longest: usize,
}

/// Stops a reader that gathers one record without end, as after a quotation mark that is never closed.
struct Limited {
    input: Box<dyn BufRead + Send>,
    allowance: Arc<AtomicUsize>,
}

impl Read for Limited {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        let left = self.allowance.load(Ordering::Relaxed);
        if read > left {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "a record without end",
            ));
        }
        self.allowance.store(left - read, Ordering::Relaxed);
        Ok(read)
    }
}

impl Delimited {
    pub(super) fn open(path: &Path, delimiter: u8, options: &ReadOptions) -> Result<Self, CorpusError> {
        let mut input = open_text(path)?;
        let start = input.fill_buf().map_err(|error| broken_input(path, 1, error))?;
        if start.starts_with(b"\xef\xbb\xbf") {
            input.consume(3);
        }
        let allowance = Arc::new(AtomicUsize::new(options.longest_record));
        let rows = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(delimiter != b'\t')
            .has_headers(false)
            .flexible(true)
            .from_reader(Limited {
                input,
                allowance: Arc::clone(&allowance),
            });
        let mut table = Self {
            file: path.to_owned(),
            rows,
            row: ByteRecord::new(),
            layout: Layout {
                id: None,
                text: vec![0],
                labels: None,
                columns: 0,
            },
            separator: options.columns.label_separator,
            first_is_document: false,
            allowance,
            longest: options.longest_record,
        };
        if let Some(first) = table.read_row() {
            first?;
            table.lay_out(&options.columns)?;
        }
        Ok(table)
    }

    /// Moves the next row into `self.row`.
    fn read_row(&mut self) -> Option<Result<(), CorpusError>> {
        self.allowance.store(self.longest, Ordering::Relaxed);
        let line = self.rows.position().line();
        match self.rows.read_byte_record(&mut self.row) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(match error.into_kind() {
                csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    CorpusError::file(
                        &self.file,
                        line,
                        format!("a record of more than {} bytes", self.longest),
                        "a closing quotation mark",
                    )
                }
                csv::ErrorKind::Io(error) => broken_input(&self.file, line, error),
                other => CorpusError::file(&self.file, line, format!("{other:?}"), "a table"),
            })),
        }
    }

    /// Finds the columns in the first row.
    fn lay_out(&mut self, wanted: &Columns) -> Result<(), CorpusError> {
        let cells: Vec<String> = self
            .row
            .iter()
            .map(|cell| String::from_utf8_lossy(cell).trim().to_owned())
            .collect();
        let named = |name: &str| cells.iter().position(|cell| cell.eq_ignore_ascii_case(name));
        let asked = [&wanted.id, &wanted.labels]
            .into_iter()
            .flatten()
            .chain(&wanted.text);
        let header =
            is_header(cells.iter().map(String::as_str)) || asked.clone().any(|name| named(name).is_some());
        let find = |name: &str| -> Result<usize, CorpusError> {
            let by_number = name
                .parse::<usize>()
                .ok()
                .filter(|number| (1..=cells.len()).contains(number));
            named(name)
                .filter(|_| header)
                .or(by_number.map(|number| number - 1))
                .ok_or_else(|| {
                    CorpusError::file(
                        &self.file,
                        1,
                        format!("the columns {}", quote(&cells.join(", "))),
                        format!("a column {}", quote(name)),
                    )
                })
        };
        let known = |names: &[&str]| names.iter().find_map(|name| named(name)).filter(|_| header);
        let without_header = |two: Option<usize>, three: Option<usize>| match cells.len() {
            _ if header => None,
            2 => two,
            3 => three,
            _ => None,
        };
        let id = match &wanted.id {
            Some(name) => Some(find(name)?),
            None => known(&ID_NAMES).or(without_header(None, Some(0))),
        };
        let labels = match &wanted.labels {
            Some(name) => Some(find(name)?),
            None => known(&LABEL_NAMES).or(without_header(Some(1), Some(2))),
        };
        let mut text = wanted
            .text
            .iter()
            .map(|name| find(name))
            .collect::<Result<Vec<_>, _>>()?;
        if text.is_empty() {
            // A title goes before whatever the text itself is called.
            let title = named("title").filter(|_| header);
            let body = TEXT_NAMES
                .iter()
                .filter(|&&name| name != "title")
                .find_map(|name| named(name));
            text.extend(title);
            text.extend(body.filter(|_| header).or(without_header(Some(0), Some(1))));
        }
        if text.is_empty() {
            return Err(CorpusError::file(
                &self.file,
                1,
                format!("the columns {}", quote(&cells.join(", "))),
                "a header with a column \"text\", or the text's column to be named",
            ));
        }
        self.layout = Layout {
            id,
            text,
            labels,
            columns: cells.len(),
        };
        self.first_is_document = !header;
        Ok(())
    }

    fn document(&self, line: u64) -> Result<Document, CorpusError> {
        if self.row.len() != self.layout.columns {
            return Err(CorpusError::record(
                &self.file,
                line,
                format!("{} cells", self.row.len()),
                format!("{} cells as in the first row", self.layout.columns),
            ));
        }
        let cell = |column: usize| {
            std::str::from_utf8(&self.row[column]).map_err(|error| {
                CorpusError::record(
                    &self.file,
                    line,
                    format!(
                        "byte 0x{:02x} in cell {}",
                        self.row[column][error.valid_up_to()],
                        column + 1
                    ),
                    "UTF-8 text",
                )
            })
        };
        let id = match self.layout.id {
            Some(column) => cell(column)?.trim().to_owned(),
            None => format!("line:{line}"),
        };
        let texts = self
            .layout
            .text
            .iter()
            .map(|&column| cell(column))
            .collect::<Result<Vec<_>, _>>()?;
        let labels = match self.layout.labels {
            Some(column) => split_labels(cell(column)?, self.separator),
            None => Vec::new(),
        };
        Ok(Document {
            id,
            text: texts.join("\n"),
            labels: without_repeats(labels),
        })
    }
}

impl Records for Delimited {
    fn next_record(&mut self) -> Option<Result<Record, CorpusError>> {
        loop {
            if self.first_is_document {
                self.first_is_document = false;
            } else if let Err(error) = self.read_row()? {
                return Some(Err(error));
            }
            // A blank line between rows is nothing.
            if self.row.len() == 1
                && self.row[0].iter().all(u8::is_ascii_whitespace)
                && self.layout.columns > 1
            {
                continue;
            }
            let line = self.row.position().map_or(0, csv::Position::line);
            return Some(self.document(line).map(|document| Record { line, document }));
        }
    }
}

/// A cell of labels: a JSON list, or names separated by the given character, or by `|` or `;`.
fn split_labels(cell: &str, separator: Option<char>) -> Vec<String> {
    if cell.starts_with('[')
        && let Ok(labels) = serde_json::from_str::<Vec<String>>(cell)
    {
        return labels
            .into_iter()
            .filter(|label| !label.trim().is_empty())
            .collect();
    }
    cell.split(|character| match separator {
        Some(separator) => character == separator,
        None => character == '|' || character == ';',
    })
    .map(str::trim)
    .filter(|label| !label.is_empty())
    .map(str::to_owned)
    .collect()
}
