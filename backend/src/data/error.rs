//! What can go wrong while reading or writing a corpus.

use std::io;
use std::path::{Path, PathBuf};

use gnnxml_shared::api::Complaint;

/// A corpus that could not be read (or written) as it is.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// One record is wrong; the next one may be right.
    #[error("{0}")]
    Record(Complaint),
    /// The rest of the file cannot be trusted: broken compression, a file that ends in the middle,
    /// a wrong header, an unknown format.
    #[error("{0}")]
    File(Complaint),
    /// More records were wrong than the caller allowed.
    #[error("{last} (after {skipped} bad records, as many as were allowed)")]
    TooManyBad { skipped: usize, last: Complaint },
    #[error("cannot read {}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
}

impl CorpusError {
    /// One wrong record at `line` (from 1).
    pub fn record(file: &Path, line: u64, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Record(complaint(file, line, found, expected))
    }

    /// A file that is wrong as a whole, or from `line` on (0: everywhere).
    pub fn file(file: &Path, line: u64, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::File(complaint(file, line, found, expected))
    }

    pub(super) fn read(file: &Path, source: io::Error) -> Self {
        Self::Read {
            file: file.to_owned(),
            source,
        }
    }

    pub(super) fn write(file: &Path, source: io::Error) -> Self {
        Self::Write {
            file: file.to_owned(),
            source,
        }
    }

    /// The located complaint inside, if the content was at fault.
    pub fn complaint(&self) -> Option<&Complaint> {
        match self {
            Self::Record(complaint) | Self::File(complaint) | Self::TooManyBad { last: complaint, .. } => {
                Some(complaint)
            }
            Self::Read { .. } | Self::Write { .. } => None,
        }
    }

    /// Whether the caller gave something wrong (a bad file, a missing path) rather than the machine failing.
    pub fn is_the_callers(&self) -> bool {
        use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied};
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => {
                matches!(
                    source.kind(),
                    NotFound | PermissionDenied | IsADirectory | NotADirectory | InvalidInput
                )
            }
            Self::Record(_) | Self::File(_) | Self::TooManyBad { .. } => true,
        }
    }
}

pub(super) fn complaint(
    file: &Path,
    line: u64,
    found: impl Into<String>,
    expected: impl Into<String>,
) -> Complaint {
    Complaint {
        file: file.display().to_string(),
        line,
        found: found.into(),
        expected: expected.into(),
    }
}

/// A short, printable, quoted piece of what was found.
pub(super) fn quote(found: &str) -> String {
    const SHOWN: usize = 60;
    let mut quoted = String::from("\"");
    for (count, character) in found.chars().enumerate() {
        if count == SHOWN {
            quoted.push('…');
            break;
        }
        quoted.extend(character.escape_debug());
    }
    quoted.push('"');
    quoted
}
