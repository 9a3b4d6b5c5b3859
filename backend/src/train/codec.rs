//! The binary form of a model's and a run's parts: magic, version, body, SHA-256.
//!
//! Little-endian numbers and length-prefixed lists. A reader checks the checksum before it looks at the body and every
//! length before it allocates, so a damaged or foreign file is a typed error, never a panic.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::data::write_atomic;

const MAGIC: &[u8; 8] = b"GNNXMLpt";
/// The version of every part's layout.
pub(super) const VERSION: u32 = 1;
const CHECKSUM: usize = 32;
const HEADER: usize = MAGIC.len() + 4;

/// What is wrong with a part.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error("{}: not a part of a GNN-XML model (found {found:?} at its start)", path.display())]
    Foreign { path: PathBuf, found: String },
    #[error("{}: written by layout version {found}, this program reads version {VERSION}; train the model again", path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("{}: damaged: its checksum does not match; copy the file again or train again", path.display())]
    Damaged { path: PathBuf },
    #[error("{}: {what}: found {found}, expected {expected}", path.display())]
    Body {
        path: PathBuf,
        what: &'static str,
        found: String,
        expected: String,
    },
}

/// Gathers the body of a part.
#[derive(Debug, Default)]
pub struct PartWriter {
    body: Vec<u8>,
}

impl PartWriter {
    pub fn u32(&mut self, value: u32) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    pub fn f32(&mut self, value: f32) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    fn len(&mut self, len: usize) {
        self.body.extend_from_slice(&(len as u64).to_le_bytes());
    }

    pub fn u32s(&mut self, values: &[u32]) {
        self.len(values.len());
        self.body.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }

    pub fn f32s(&mut self, values: &[f32]) {
        self.len(values.len());
        self.body.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }

    pub fn text(&mut self, text: &str) {
        self.len(text.len());
        self.body.extend_from_slice(text.as_bytes());
    }

    /// Seven bits a byte, lowest first: small numbers are one byte.
    pub fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.body.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.body.push(value as u8);
    }

    /// The whole file.
    pub fn finish(self) -> Vec<u8> {
        let mut file = Vec::with_capacity(HEADER + self.body.len() + CHECKSUM);
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&VERSION.to_le_bytes());
        file.extend_from_slice(&self.body);
        let checksum = Sha256::digest(&file);
        file.extend_from_slice(&checksum);
        file
    }

    /// Writes the file atomically.
    pub fn save(self, path: &Path) -> Result<(), PartError> {
        write_atomic(path, &self.finish()).map_err(|error| PartError::Io {
            path: path.to_owned(),
            error: std::io::Error::other(error),
        })
    }
}

/// Reads the body of a part, front to back.
#[derive(Debug)]
pub struct PartReader {
    path: PathBuf,
    file: Vec<u8>,
    at: usize,
    end: usize,
}

impl PartReader {
    /// Reads a file and checks magic, version and checksum.
    pub fn open(path: &Path) -> Result<Self, PartError> {
        let file = std::fs::read(path).map_err(|error| PartError::Io {
            path: path.to_owned(),
            error,
        })?;
        Self::from_bytes(path, file)
    }

    /// The same for bytes in memory; `path` is what errors call them.
    pub fn from_bytes(path: &Path, file: Vec<u8>) -> Result<Self, PartError> {
        let path = path.to_owned();
        if file.len() < HEADER + CHECKSUM || &file[..MAGIC.len()] != MAGIC {
            let found = String::from_utf8_lossy(&file[..file.len().min(MAGIC.len())]).into_owned();
            return Err(PartError::Foreign { path, found });
        }
        let version = u32::from_le_bytes(four(&file[MAGIC.len()..HEADER]));
        if version != VERSION {
            return Err(PartError::Version { path, found: version });
        }
        let end = file.len() - CHECKSUM;
        if Sha256::digest(&file[..end]).as_slice() != &file[end..] {
            return Err(PartError::Damaged { path });
        }
        Ok(Self {
            path,
            file,
            at: HEADER,
            end,
        })
    }

    /// An error about this part.
    pub fn wrong(&self, what: &'static str, found: impl ToString, expected: impl ToString) -> PartError {
        PartError::Body {
            path: self.path.clone(),
            what,
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8], PartError> {
        if bytes > self.end - self.at {
            return Err(self.wrong("bytes left", self.end - self.at, bytes));
        }
        self.at += bytes;
        Ok(&self.file[self.at - bytes..self.at])
    }

    pub fn u32(&mut self) -> Result<u32, PartError> {
        Ok(u32::from_le_bytes(four(self.take(4)?)))
    }

    pub fn f32(&mut self) -> Result<f32, PartError> {
        Ok(f32::from_le_bytes(four(self.take(4)?)))
    }

    fn len(&mut self, width: usize) -> Result<usize, PartError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        let len = u64::from_le_bytes(bytes);
        let left = (self.end - self.at) / width.max(1);
        match usize::try_from(len) {
            Ok(len) if len <= left => Ok(len * width),
            _ => Err(self.wrong("length of a list", len, format!("at most {left}"))),
        }
    }

    pub fn u32s(&mut self) -> Result<Vec<u32>, PartError> {
        let bytes = self.len(4)?;
        Ok(self
            .take(bytes)?
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes(four(b)))
            .collect())
    }

    pub fn f32s(&mut self) -> Result<Vec<f32>, PartError> {
        let bytes = self.len(4)?;
        Ok(self
            .take(bytes)?
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(four(b)))
            .collect())
    }

    pub fn text(&mut self) -> Result<String, PartError> {
        let bytes = self.len(1)?;
        let text = self.take(bytes)?.to_vec();
        String::from_utf8(text).map_err(|error| self.wrong("text", error, "UTF-8"))
    }

    pub fn varint(&mut self) -> Result<u32, PartError> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.wrong("variable-length number", "more than 32 bits", "at most 32 bits"))
    }

    /// How many more items of at least `width` bytes there can be.
    pub fn room_for(&self, width: usize) -> usize {
        (self.end - self.at) / width.max(1)
    }

    /// Nothing may be left over.
    pub fn finish(self) -> Result<(), PartError> {
        if self.at == self.end {
            Ok(())
        } else {
            Err(self.wrong("bytes after the end", self.end - self.at, 0))
        }
    }
}

fn four(bytes: &[u8]) -> [u8; 4] {
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut part = PartWriter::default();
        part.u32(7);
        part.f32s(&[1.5, -2.0]);
        part.text("größe");
        for value in [0, 127, 128, 300_000, u32::MAX] {
            part.varint(value);
        }
        part.finish()
    }

    fn path() -> &'static Path {
        Path::new("sample.part")
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut part = PartReader::from_bytes(path(), sample()).unwrap();
        assert_eq!(part.u32().unwrap(), 7);
        assert_eq!(part.f32s().unwrap(), [1.5, -2.0]);
        assert_eq!(part.text().unwrap(), "größe");
        for value in [0, 127, 128, 300_000, u32::MAX] {
            assert_eq!(part.varint().unwrap(), value);
        }
        part.finish().unwrap();
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let whole = sample();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(PartReader::from_bytes(path(), damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let whole = sample();
        for end in 0..whole.len() {
            assert!(
                PartReader::from_bytes(path(), whole[..end].to_vec()).is_err(),
                "{end} bytes"
            );
        }
    }

    #[test]
    fn a_list_longer_than_the_file_is_refused_before_it_is_allocated() {
        let mut part = PartWriter::default();
        part.body.extend_from_slice(&u64::MAX.to_le_bytes());
        let mut part = PartReader::from_bytes(path(), part.finish()).unwrap();
        assert!(part.f32s().unwrap_err().to_string().contains("length of a list"));
    }
}
