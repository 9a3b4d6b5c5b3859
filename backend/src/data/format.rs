//! Which formats there are, and how one is told from its first lines.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use super::error::{CorpusError, quote};
use super::lines::broken_input;
use super::pairs;
use super::source::open_text;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CorpusFormat {
    /// One JSON object a line: `{"id", "text", "labels"}`.
    Jsonl,
    /// Comma-separated with a header, quoted as RFC 4180 says.
    Csv,
    /// Tab-separated with a header, nothing quoted.
    Tsv,
    /// Annif's short documents: text, tab, subject URIs.
    AnnifTsv,
    /// A directory with Annif's documents: `x.txt` with `x.tsv` or `x.key`.
    AnnifFolder,
    /// PECOS text2text: comma-separated label numbers, tab, text.
    Pecos,
    /// Two files line by line: texts and labels (AttentionXML, LightXML).
    Pairs,
    /// The Extreme Classification Repository's bag of words: `N D L`, then `l1,l2 f:v f:v`.
    Repository,
}

impl CorpusFormat {
    pub const ALL: [Self; 8] = [
        Self::Jsonl,
        Self::Csv,
        Self::Tsv,
        Self::AnnifTsv,
        Self::AnnifFolder,
        Self::Pecos,
        Self::Pairs,
        Self::Repository,
    ];

    /// The name used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::AnnifTsv => "annif-tsv",
            Self::AnnifFolder => "annif-folder",
            Self::Pecos => "pecos",
            Self::Pairs => "pairs",
            Self::Repository => "repository",
        }
    }

    /// Tells the format by the path and the first bytes of the content.
    pub fn detect(path: &Path) -> Result<Self, CorpusError> {
        let metadata = fs::metadata(path).map_err(|error| CorpusError::read(path, error))?;
        if metadata.is_dir() {
            return Ok(if pairs::texts_file_in(path)?.is_some() {
                Self::Pairs
            } else {
                Self::AnnifFolder
            });
        }
        if is_texts_of_a_pair(path) {
            return Ok(Self::Pairs);
        }
        let start = first_kilobytes(path)?;
        let start = String::from_utf8_lossy(&start);
        let first = start
            .trim_start_matches('\u{feff}')
            .lines()
            .find(|line| !line.trim().is_empty());
        // An empty file is an empty corpus.
        let Some(first) = first else {
            return Ok(Self::Jsonl);
        };
        by_first_line(first)
            .or_else(|| {
                pairs::labels_file_of(path)
                    .filter(|labels| labels.exists())
                    .map(|_| Self::Pairs)
            })
            .or_else(|| by_name(path))
            .or_else(|| first.contains(',').then_some(Self::Csv))
            .ok_or_else(|| {
                CorpusError::file(
                    path,
                    1,
                    quote(first),
                    format!(
                        "a corpus in one of the formats {}; name it if you know it",
                        names()
                    ),
                )
            })
    }
}

/// All names, for a message.
fn names() -> String {
    CorpusFormat::ALL.map(CorpusFormat::name).join(", ")
}

fn first_kilobytes(path: &Path) -> Result<Vec<u8>, CorpusError> {
    let mut start = Vec::new();
    open_text(path)?
        .take(1 << 16)
        .read_to_end(&mut start)
        .map_err(|error| broken_input(path, 1, error))?;
    Ok(start)
}

/// What the first line that is not blank gives away.
fn by_first_line(line: &str) -> Option<CorpusFormat> {
    let trimmed = line.trim();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if trimmed.starts_with('{') {
        return Some(CorpusFormat::Jsonl);
    }
    let words: Vec<&str> = trimmed.split(' ').collect();
    if words.len() == 3 && words.iter().all(|word| is_number(word)) {
        return Some(CorpusFormat::Repository);
    }
    if let Some((left, right)) = line.split_once('\t') {
        if super::delimited::is_header(line.split('\t')) {
            return Some(CorpusFormat::Tsv);
        }
        let numbers = left.split(',').all(|label| is_number(label.trim()));
        if numbers && !right.trim().is_empty() && !right.contains('\t') {
            return Some(CorpusFormat::Pecos);
        }
        if right.starts_with('<') || right.starts_with("http") {
            return Some(CorpusFormat::AnnifTsv);
        }
        return Some(CorpusFormat::Tsv);
    }
    super::delimited::is_header(line.split(',').map(|cell| cell.trim_matches('"')))
        .then_some(CorpusFormat::Csv)
}

/// A text file whose labels file stands beside it. Looked at before the content, which may be anything.
fn is_texts_of_a_pair(path: &Path) -> bool {
    let is_text = path
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.contains(".txt"));
    is_text && pairs::labels_file_of(path).is_some_and(|labels| labels.is_file())
}

fn by_name(path: &Path) -> Option<CorpusFormat> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    match name.rsplit_once('.')?.1 {
        "jsonl" | "ndjson" | "json" => Some(CorpusFormat::Jsonl),
        "csv" => Some(CorpusFormat::Csv),
        "tsv" => Some(CorpusFormat::Tsv),
        _ => None,
    }
}

impl fmt::Display for CorpusFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CorpusFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| format!("found {name:?}, expected one of {}", names()))
    }
}
