//! Lines of a text file with their numbers: bounded in length, valid UTF-8, without BOM or carriage return.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::compressed::unpack;
use super::error::CorpusError;
use super::reader::ReadOptions;
use super::source::open_text;

/// Reads one line after the other into a buffer that is used again.
pub(crate) struct Lines {
    file: PathBuf,
    input: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    number: u64,
    longest: usize,
}

impl Lines {
    /// The lines of a file, packed or not; `-` is standard input.
    pub(crate) fn open(file: &Path) -> Result<Self, CorpusError> {
        let longest = ReadOptions::default().longest_record;
        if file != Path::new("-") {
            return Ok(Self::new(file, open_text(file)?, longest));
        }
        let name = Path::new("standard input");
        let input = unpack(io::stdin()).map_err(|error| broken_input(name, 1, error))?;
        Ok(Self::new(name, input, longest))
    }

    /// `longest`: bytes beyond which a line is refused instead of being gathered in memory.
    pub(super) fn new(file: &Path, input: Box<dyn BufRead + Send>, longest: usize) -> Self {
        Self {
            file: file.to_owned(),
            input,
            buffer: Vec::new(),
            number: 0,
            longest,
        }
    }

    /// Number of the line read last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What complaints call the file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The next line without its end, `None` after the last.
    pub(crate) fn next_line(&mut self) -> Option<Result<&str, CorpusError>> {
        self.buffer.clear();
        let length = match self.gather() {
            Ok(0) => return None,
            Ok(length) => length,
            Err(error) => return Some(Err(self.broken(error))),
        };
        self.number += 1;
        if length > self.longest {
            return Some(Err(CorpusError::record(
                &self.file,
                self.number,
                format!("a line of {length} bytes"),
                format!("at most {} bytes a line", self.longest),
            )));
        }
        let mut line = self.buffer.as_slice();
        if self.number == 1 {
            if line.starts_with(&[0xff, 0xfe]) || line.starts_with(&[0xfe, 0xff]) {
                return Some(Err(CorpusError::file(&self.file, 1, "UTF-16 text", "UTF-8 text")));
            }
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        line = line.strip_suffix(b"\n").unwrap_or(line);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        Some(std::str::from_utf8(line).map_err(|error| {
            CorpusError::record(
                &self.file,
                self.number,
                format!(
                    "byte 0x{:02x} at column {}",
                    line[error.valid_up_to()],
                    error.valid_up_to() + 1
                ),
                "UTF-8 text",
            )
        }))
    }

    /// Moves a line with its end into the buffer; returns its length, which may be more than was kept.
    fn gather(&mut self) -> io::Result<usize> {
        let mut length = 0;
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                return Ok(length);
            }
            let (taken, ended) = match available.iter().position(|&byte| byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (available.len(), false),
            };
            length += taken;
            if length <= self.longest {
                self.buffer.extend_from_slice(&available[..taken]);
            }
            self.input.consume(taken);
            if ended {
                return Ok(length);
            }
        }
    }

    fn broken(&self, error: io::Error) -> CorpusError {
        broken_input(&self.file, self.number + 1, error)
    }
}

/// What an error below the text means: damaged compression is the file's fault, anything else the machine's.
pub(super) fn broken_input(file: &Path, line: u64, error: io::Error) -> CorpusError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CorpusError::file(
            file,
            line,
            "the end of a truncated compressed file",
            "the rest of the file",
        ),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => CorpusError::file(
            file,
            line,
            format!("damaged compressed data ({error})"),
            "intact gzip or zstd",
        ),
        _ => CorpusError::read(file, error),
    }
}
