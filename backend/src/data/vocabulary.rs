//! Label vocabularies: what labels are called, what else they are called, what stands above them.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::annif::bare;
use super::error::{CorpusError, quote};
use super::lines::{Lines, broken_input};
use super::skos;
use super::source::open_text;

/// One label as a vocabulary describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VocabularyEntry {
    /// Number, notation or URI.
    pub id: String,
    pub name: String,
    pub alternatives: Vec<String>,
    /// Ids of broader labels.
    pub parents: Vec<String>,
}

/// A label vocabulary, by id and by name.
///
/// Read from SKOS (Turtle or RDF/XML), from a table (`id`, `name`, `alternatives`, `parents`, lists separated by `|`),
/// from Annif's table (`<uri>`, tab, name), or from plain lines, where line i names the label with number i, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelVocabulary {
    entries: Vec<VocabularyEntry>,
    by_id: HashMap<String, usize>,
    by_name: HashMap<String, usize>,
}

impl LabelVocabulary {
    /// Entries with distinct ids; `Err` with the first id that stands twice.
    pub fn new(entries: Vec<VocabularyEntry>) -> Result<Self, String> {
        let mut vocabulary = Self {
            entries,
            ..Self::default()
        };
        for (number, entry) in vocabulary.entries.iter().enumerate() {
            if vocabulary.by_id.insert(entry.id.clone(), number).is_some() {
                return Err(entry.id.clone());
            }
            // Of labels with one name the first keeps it.
            vocabulary.by_name.entry(entry.name.clone()).or_insert(number);
        }
        Ok(vocabulary)
    }

    /// Reads a vocabulary of any of the formats. Names in `language` (such as `en`) are preferred in SKOS.
    pub fn read(path: impl AsRef<Path>, language: &str) -> Result<Self, CorpusError> {
        let path = path.as_ref();
        let mut start = Vec::new();
        open_text(path)?
            .take(1 << 12)
            .read_to_end(&mut start)
            .map_err(|error| broken_input(path, 1, error))?;
        let start = String::from_utf8_lossy(&start)
            .trim_start_matches('\u{feff}')
            .trim_start()
            .to_owned();
        let input = open_text(path)?;
        if start.starts_with("<?xml") || start.starts_with("<rdf:RDF") || start.starts_with("<!DOCTYPE") {
            skos::read_rdf_xml(path, input, language)
        } else if is_turtle(&start) {
            skos::read_turtle(path, input, language)
        } else if start.lines().next().is_some_and(|line| line.contains('\t')) {
            Self::read_table(path, input)
        } else {
            Self::read_lines(path, input)
        }
    }

    fn read_table(path: &Path, input: Box<dyn BufRead + Send>) -> Result<Self, CorpusError> {
        let mut lines = Lines::new(path, input, 1 << 20);
        let mut rows: Vec<(u64, String)> = Vec::new();
        let mut width = 0;
        while let Some(line) = lines.next_line() {
            let line = line?.to_owned();
            if line.trim().is_empty() {
                continue;
            }
            let cells = line.split('\t').count();
            width = width.max(cells);
            match rows.last_mut() {
                // A cell with a line break in it cuts its row in two: the rest has no id and just fills up what lacks.
                Some((_, cut)) if line.starts_with('\t') && cut.split('\t').count() + cells - 1 == width => {
                    cut.push_str(&line);
                }
                _ => rows.push((lines.number(), line)),
            }
        }
        let mut columns = [Some(0), Some(1), Some(2), Some(3)];
        let mut entries = Vec::new();
        let mut seen = HashMap::new();
        for (position, (number, row)) in rows.iter().enumerate() {
            let cells: Vec<&str> = row.split('\t').map(str::trim).collect();
            if let (0, Some(header)) = (position, header_columns(&cells)) {
                columns = header;
                continue;
            }
            let entry = entry(&cells, columns);
            if entry.id.is_empty() || entry.name.is_empty() {
                let found = quote(row);
                return Err(CorpusError::file(path, *number, found, "an id, a tab, a name"));
            }
            if let Some(first) = seen.insert(entry.id.clone(), *number) {
                let found = format!(
                    "the id {} a second time (first on line {first})",
                    quote(&entry.id)
                );
                return Err(CorpusError::file(path, *number, found, "each id once"));
            }
            entries.push(entry);
        }
        Self::checked(path, entries)
    }

    fn read_lines(path: &Path, input: Box<dyn BufRead + Send>) -> Result<Self, CorpusError> {
        let mut lines = Lines::new(path, input, 1 << 20);
        let mut entries = Vec::new();
        while let Some(line) = lines.next_line() {
            let name = line?.trim().to_owned();
            // A blank line still counts: the number of a label is the number of its line.
            entries.push(VocabularyEntry {
                id: entries.len().to_string(),
                name,
                ..Default::default()
            });
        }
        entries.retain(|entry| !entry.name.is_empty());
        Self::checked(path, entries)
    }

    pub(super) fn checked(path: &Path, entries: Vec<VocabularyEntry>) -> Result<Self, CorpusError> {
        Self::new(entries).map_err(|id| {
            CorpusError::file(
                path,
                0,
                format!("the id {} a second time", quote(&id)),
                "each id once",
            )
        })
    }

    pub fn entries(&self) -> &[VocabularyEntry] {
        &self.entries
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with that id, with or without angle brackets.
    pub fn by_id(&self, id: &str) -> Option<&VocabularyEntry> {
        self.by_id.get(bare(id)).map(|&number| &self.entries[number])
    }

    /// The entry with that name.
    pub fn by_name(&self, name: &str) -> Option<&VocabularyEntry> {
        self.by_name.get(name).map(|&number| &self.entries[number])
    }

    /// What the label with that id is called.
    pub fn name(&self, id: &str) -> Option<&str> {
        self.by_id(id).map(|entry| entry.name.as_str())
    }

    /// Parents by the names of labels, for labels called by name: name → names of its parents.
    pub fn parents_by_name(&self) -> BTreeMap<&str, Vec<&str>> {
        self.entries
            .iter()
            .map(|entry| {
                (
                    entry.name.as_str(),
                    entry.parents.iter().filter_map(|id| self.name(id)).collect(),
                )
            })
            .collect()
    }
}

fn is_turtle(start: &str) -> bool {
    let first = start
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let lower = line.to_ascii_lowercase();
        lower.starts_with("@prefix")
            || lower.starts_with("@base")
            || lower.starts_with("prefix ")
            || lower.starts_with("base ")
            || (line.starts_with('<') && !line.contains('\t'))
    })
}

/// Positions of id, name, alternatives and parents, if the row is a header.
fn header_columns(cells: &[&str]) -> Option<[Option<usize>; 4]> {
    let find = |names: &[&str]| {
        cells
            .iter()
            .position(|cell| names.iter().any(|name| cell.eq_ignore_ascii_case(name)))
    };
    let id = find(&["id", "uri", "code", "notation"])?;
    let name = find(&["name", "label", "label_en", "preflabel", "title"])?;
    Some([
        Some(id),
        Some(name),
        find(&["alternatives", "altlabels", "synonyms", "alt"]),
        find(&["parents", "parent", "broader"]),
    ])
}

fn entry(cells: &[&str], columns: [Option<usize>; 4]) -> VocabularyEntry {
    let cell = |column: usize| {
        columns[column]
            .and_then(|at| cells.get(at))
            .copied()
            .unwrap_or("")
    };
    let list = |column: usize| {
        cell(column)
            .split('|')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    VocabularyEntry {
        id: bare(cell(0)).to_owned(),
        name: cell(1).to_owned(),
        alternatives: list(2),
        parents: list(3),
    }
}
