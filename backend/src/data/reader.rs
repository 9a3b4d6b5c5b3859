//! The stream of documents, whatever format they come from: ids are unique, bad records are counted.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnnxml_shared::api::Complaint;
use sha2::{Digest, Sha256};

use super::document::{Document, without_repeats};
use super::error::{CorpusError, complaint, quote};
use super::lines::Lines;
use super::vocabulary::LabelVocabulary;

/// How many complaints a reader keeps; it goes on counting beyond.
pub const COMPLAINTS_KEPT: usize = 100;

/// A document and the line it began on.
pub(super) struct Record {
    pub(super) line: u64,
    pub(super) document: Document,
}

/// One format's way to the next record. After a [`CorpusError::Record`] it can go on; after any other error it ends.
pub(super) trait Records: Send {
    fn next_record(&mut self) -> Option<Result<Record, CorpusError>>;
}

/// The documents that are wanted out of a corpus, by id.
#[derive(Clone, Debug, Default)]
pub struct IdFilter {
    ids: Arc<HashSet<String>>,
}

impl IdFilter {
    /// One id a line, blank lines ignored.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, CorpusError> {
        let path = path.as_ref();
        let file = std::fs::File::open(path).map_err(|error| CorpusError::read(path, error))?;
        let input = super::compressed::unpack(file).map_err(|error| CorpusError::read(path, error))?;
        Self::from_lines(path, input)
    }

    fn from_lines(path: &Path, input: Box<dyn BufRead + Send>) -> Result<Self, CorpusError> {
        let mut lines = Lines::new(path, input, 1 << 16);
        let mut ids = HashSet::new();
        while let Some(line) = lines.next_line() {
            let id = line?.trim();
            if !id.is_empty() {
                ids.insert(id.to_owned());
            }
        }
        Ok(Self { ids: Arc::new(ids) })
    }

    pub fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// The ids in their order.
    pub(super) fn sorted(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.ids.iter().map(String::as_str).collect();
        ids.sort_unstable();
        ids
    }

    /// How many documents are wanted.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

impl FromIterator<String> for IdFilter {
    fn from_iter<I: IntoIterator<Item = String>>(ids: I) -> Self {
        Self {
            ids: Arc::new(ids.into_iter().collect()),
        }
    }
}

/// Which columns of a table hold what; by name, or by number from 1. What is not said is found by the usual names.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pub id: Option<String>,
    /// Several are joined, a line each.
    pub text: Vec<String>,
    pub labels: Option<String>,
    /// What stands between two labels.
    pub label_separator: Option<char>,
}

/// How a corpus is read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// How many bad records to leave out and count before giving up.
    pub skip_bad: usize,
    /// Keep a document whose id came before, and complain, instead of counting it as bad.
    pub keep_repeated_ids: bool,
    /// Only these documents.
    pub ids: Option<IdFilter>,
    /// Bytes beyond which a line (or a CSV record, or a document file) is refused.
    pub longest_record: usize,
    /// For tables.
    pub columns: Columns,
    /// For pairs of files: where the labels are, if their name does not follow from that of the texts.
    pub labels_file: Option<PathBuf>,
    /// Gives labels that are numbers, identifiers or URIs their names.
    pub vocabulary: Option<Arc<LabelVocabulary>>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            skip_bad: 0,
            keep_repeated_ids: false,
            ids: None,
            longest_record: 256 << 20,
            columns: Columns::default(),
            labels_file: None,
            vocabulary: None,
        }
    }
}

/// Documents one by one. Memory holds one document and eight bytes for each id seen.
///
/// Bad records within the budget of [`ReadOptions::skip_bad`] are left out, counted and kept as
/// [`complaints`](Self::complaints). The first one beyond the budget is yielded as an error and ends the stream.
pub struct CorpusReader {
    file: PathBuf,
    records: Box<dyn Records>,
    options: ReadOptions,
    seen: HashSet<u64, BuildHasherDefault<AlreadyHashed>>,
    complaints: Vec<Complaint>,
    /// The first complaint about a repeated id, and how many there were.
    repeated: Option<(Complaint, usize)>,
    skipped: usize,
    line: u64,
    over: bool,
}

impl fmt::Debug for CorpusReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorpusReader")
            .field("file", &self.file)
            .field("line", &self.line)
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}

impl CorpusReader {
    pub(super) fn new(file: &Path, records: Box<dyn Records>, options: ReadOptions) -> Self {
        Self {
            file: file.to_owned(),
            records,
            options,
            seen: HashSet::default(),
            complaints: Vec::new(),
            repeated: None,
            skipped: 0,
            line: 0,
            over: false,
        }
    }

    /// What is read.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The first [`COMPLAINTS_KEPT`] complaints so far.
    pub fn complaints(&self) -> &[Complaint] {
        &self.complaints
    }

    /// The first complaint about a repeated id whose document was kept all the same, and how many there were so far.
    pub fn repeated(&self) -> Option<(&Complaint, usize)> {
        self.repeated.as_ref().map(|(first, count)| (first, *count))
    }

    /// How many bad records were left out so far.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// The line the last document began on, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Calls the labels by their names.
    fn named(&self, mut document: Document) -> Document {
        if let Some(vocabulary) = &self.options.vocabulary {
            for label in &mut document.labels {
                if let Some(name) = vocabulary.name(label) {
                    name.clone_into(label);
                }
            }
            document.labels = without_repeats(document.labels);
        }
        document
    }

    /// What is wrong with an id, if anything is.
    fn wrong_id(&mut self, id: &str) -> Option<Complaint> {
        if id.is_empty() {
            return Some(complaint(&self.file, self.line, "an empty id", "an id"));
        }
        if self.seen.insert(content_hash(id.as_bytes())) {
            return None;
        }
        let found = complaint(
            &self.file,
            self.line,
            format!("the id {} a second time", quote(id)),
            "an id that no other document has",
        );
        if !self.options.keep_repeated_ids {
            return Some(found);
        }
        if self.wanted(id) {
            self.repeated.get_or_insert((found, 0)).1 += 1;
        }
        None
    }

    fn wanted(&self, id: &str) -> bool {
        self.options.ids.as_ref().is_none_or(|ids| ids.contains(id))
    }

    /// Leaves a bad record out if the budget allows, otherwise turns it into the error that ends the stream.
    fn bad(&mut self, complaint: Complaint) -> Option<CorpusError> {
        if self.skipped == self.options.skip_bad {
            self.over = true;
            return Some(match self.skipped {
                0 => CorpusError::Record(complaint),
                skipped => CorpusError::TooManyBad {
                    skipped,
                    last: complaint,
                },
            });
        }
        self.skipped += 1;
        if self.complaints.len() < COMPLAINTS_KEPT {
            self.complaints.push(complaint);
        }
        None
    }
}

impl Iterator for CorpusReader {
    type Item = Result<Document, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.over {
            let wrong = match self.records.next_record() {
                None => {
                    self.over = true;
                    return None;
                }
                Some(Ok(Record { line, document })) => {
                    self.line = line;
                    match self.wrong_id(&document.id) {
                        Some(wrong) => wrong,
                        None if self.wanted(&document.id) => return Some(Ok(self.named(document))),
                        None => continue,
                    }
                }
                Some(Err(CorpusError::Record(complaint))) => complaint,
                Some(Err(fatal)) => {
                    self.over = true;
                    return Some(Err(fatal));
                }
            };
            if let Some(error) = self.bad(wrong) {
                return Some(Err(error));
            }
        }
        None
    }
}

impl std::iter::FusedIterator for CorpusReader {}

/// 64 bits that stand for a piece of content: the same on every machine, collisions of two documents in a
/// million less likely than 1 in 10⁷.
pub(super) fn content_hash(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}

/// A hasher for keys that are hashes themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
