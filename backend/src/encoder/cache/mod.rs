//! The embedding cache: a sentence is encoded once a machine, not once a run.
//!
//! Two files an encoder, named by the hash of its fingerprint:
//! - `NAME.rows`: the vectors in f16, one after another, memory-mapped;
//! - `NAME.keys`: a 64-byte head, then 24 bytes a vector: the text's hash (128 bit), a checksum (64 bit).
//!
//! Vectors are written before their keys, keys only ever appended: a process killed anywhere leaves a cache that
//! is whole up to its last key. Writers hold the key file's lock while they append and first take in what others
//! appended, so any number of processes may share a cache. A vector whose checksum fails is encoded again.
//!
//! What grows with the corpus is 20 bytes of index a distinct sentence; texts and vectors do not stay in memory.

mod encode;
mod mapping;
mod remember;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use half::f16;
use sha2::{Digest, Sha256};

pub use encode::{CachedEncoder, EncodeReport};
use mapping::Mapping;
pub use remember::Remembering;

const MAGIC: &[u8; 8] = b"GNXMLEC1";
const HEAD: usize = 64;
const RECORD: usize = 24;

/// Why a cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("embedding cache {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "embedding cache {path}: {fault}; it belongs to another encoder or was damaged: delete it and its .rows twin, \
         the sentences will be encoded again"
    )]
    Head { path: PathBuf, fault: &'static str },
    #[error("embedding cache {path}: {found} vectors, more than a 32-bit row number can tell apart")]
    Full { path: PathBuf, found: u64 },
}

/// The hash of a text: which sentence a vector belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextKey([u8; 16]);

impl TextKey {
    /// The key of a sentence.
    pub fn of(text: &str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        Self(digest[..16].try_into().expect("a SHA-256 has 32 bytes"))
    }
}

/// Vectors on disk by text hash, for one encoder.
#[derive(Debug)]
pub struct EmbeddingCache {
    dims: usize,
    keys_path: PathBuf,
    rows_path: PathBuf,
    keys: File,
    rows: File,
    /// Where each text's vector is; the latest wins.
    index: HashMap<TextKey, u32>,
    /// Checksums by row.
    sums: Vec<u64>,
    mapping: Mapping,
    /// Keeps the folder of a cache that lives as long as the process.
    _temporary: Option<tempfile::TempDir>,
}

impl EmbeddingCache {
    /// Opens or creates the cache of one encoder in a folder.
    pub fn open(folder: &Path, fingerprint: &str, dims: usize) -> Result<Self, CacheError> {
        let identity: [u8; 32] = Sha256::digest(fingerprint.as_bytes()).into();
        let name: String = identity[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let keys_path = folder.join(format!("{name}.keys"));
        let rows_path = folder.join(format!("{name}.rows"));
        let open = |path: &Path| {
            std::fs::create_dir_all(folder)
                .and_then(|()| {
                    OpenOptions::new()
                        .read(true)
                        .write(true)
                        .create(true)
                        .truncate(false)
                        .open(path)
                })
                .map_err(io(path))
        };
        let mut cache = Self {
            dims,
            keys: open(&keys_path)?,
            rows: open(&rows_path)?,
            keys_path,
            rows_path,
            index: HashMap::new(),
            sums: Vec::new(),
            mapping: Mapping::default(),
            _temporary: None,
        };
        cache.keys.lock().map_err(io(&cache.keys_path))?;
        let done = cache.check_head(&identity).and_then(|()| cache.catch_up());
        cache.keys.unlock().map_err(io(&cache.keys_path))?;
        done.map(|()| cache)
    }

    /// A cache in a temporary folder, gone with the process: for encoders so quick that keeping is not worth the disk.
    pub fn temporary(fingerprint: &str, dims: usize) -> Result<Self, CacheError> {
        let folder = tempfile::tempdir().map_err(io(&std::env::temp_dir()))?;
        let mut cache = Self::open(folder.path(), fingerprint, dims)?;
        cache._temporary = Some(folder);
        Ok(cache)
    }

    /// Width of a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Whether it holds nothing yet.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// The row of a text, if its vector is here and whole.
    pub fn find(&self, key: TextKey) -> Option<u32> {
        let row = *self.index.get(&key)?;
        (checksum(key, self.bytes(row)?) == self.sums[row as usize]).then_some(row)
    }

    /// Copies a vector out. Panics for a row this cache never gave.
    pub fn read(&self, row: u32, into: &mut [f32]) {
        let bytes = self.bytes(row).expect("a row that this cache gave out");
        for (x, pair) in into.iter_mut().zip(bytes.chunks_exact(2)) {
            *x = f16::from_le_bytes([pair[0], pair[1]]).to_f32();
        }
    }

    /// Adds `sum += vector` without a copy between: a vertex is the sum of its sentences.
    pub fn add(&self, row: u32, sum: &mut [f32]) {
        let bytes = self.bytes(row).expect("a row that this cache gave out");
        for (x, pair) in sum.iter_mut().zip(bytes.chunks_exact(2)) {
            *x += f16::from_le_bytes([pair[0], pair[1]]).to_f32();
        }
    }

    /// Appends vectors (row-major, `dims` each) and makes them findable. Another process' vector of the same text,
    /// appended meanwhile, does no harm: the later one wins.
    pub fn append(&mut self, keys: &[TextKey], vectors: &[f32]) -> Result<(), CacheError> {
        assert_eq!(keys.len() * self.dims, vectors.len(), "one vector a key");
        if keys.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(vectors.len() * 2);
        for x in vectors {
            rows.extend_from_slice(&f16::from_f32(*x).to_le_bytes());
        }
        let mut records = Vec::with_capacity(keys.len() * RECORD);
        for (key, row) in keys.iter().zip(rows.chunks_exact(self.stride())) {
            records.extend_from_slice(&key.0);
            records.extend_from_slice(&checksum(*key, row).to_le_bytes());
        }
        self.keys.lock().map_err(io(&self.keys_path))?;
        let done = self.catch_up().and_then(|()| {
            self.rows.write_all(&rows).map_err(io(&self.rows_path))?;
            self.keys.write_all(&records).map_err(io(&self.keys_path))?;
            self.catch_up()
        });
        self.keys.unlock().map_err(io(&self.keys_path))?;
        done
    }

    /// Forces everything appended to the disk.
    pub fn sync(&self) -> Result<(), CacheError> {
        self.rows.sync_data().map_err(io(&self.rows_path))?;
        self.keys.sync_data().map_err(io(&self.keys_path))
    }

    fn stride(&self) -> usize {
        self.dims * 2
    }

    fn bytes(&self, row: u32) -> Option<&[u8]> {
        let start = row as usize * self.stride();
        self.mapping.bytes().get(start..start + self.stride())
    }

    /// Writes the head of a new cache, or checks the one that is there. Called with the lock held.
    fn check_head(&mut self, identity: &[u8; 32]) -> Result<(), CacheError> {
        let length = self.keys.metadata().map_err(io(&self.keys_path))?.len();
        let mut expected = [0_u8; HEAD];
        expected[..8].copy_from_slice(MAGIC);
        expected[8..12].copy_from_slice(&(self.dims as u32).to_le_bytes());
        expected[16..48].copy_from_slice(identity);
        let sum: [u8; 32] = Sha256::digest(&expected[..48]).into();
        expected[48..].copy_from_slice(&sum[..16]);
        if length < HEAD as u64 {
            // New, or killed while the head was written: there is no vector yet that could be lost.
            self.keys.set_len(0).map_err(io(&self.keys_path))?;
            self.keys.rewind().map_err(io(&self.keys_path))?;
            return self.keys.write_all(&expected).map_err(io(&self.keys_path));
        }
        let mut found = [0_u8; HEAD];
        self.keys
            .rewind()
            .and_then(|()| self.keys.read_exact(&mut found))
            .map_err(io(&self.keys_path))?;
        let fault = if found[..8] != expected[..8] {
            "it does not begin with the mark of an embedding cache"
        } else if found[8..12] != expected[8..12] {
            "its vectors have another width"
        } else if found != expected {
            "its head does not match this encoder"
        } else {
            return Ok(());
        };
        Err(CacheError::Head {
            path: self.keys_path.clone(),
            fault,
        })
    }

    /// Takes in what was appended since the last look, cuts off what a dead writer left unfinished, and leaves both
    /// files at their end. Called with the lock held.
    fn catch_up(&mut self) -> Result<(), CacheError> {
        let keys_length = self.keys.metadata().map_err(io(&self.keys_path))?.len();
        let rows_length = self.rows.metadata().map_err(io(&self.rows_path))?.len();
        let stride = self.stride() as u64;
        let whole = (keys_length.saturating_sub(HEAD as u64) / RECORD as u64).min(rows_length / stride);
        if whole > u64::from(u32::MAX) {
            return Err(CacheError::Full {
                path: self.keys_path.clone(),
                found: whole,
            });
        }
        let (keys_end, rows_end) = (HEAD as u64 + whole * RECORD as u64, whole * stride);
        if keys_length != keys_end {
            self.keys.set_len(keys_end).map_err(io(&self.keys_path))?;
        }
        if rows_length != rows_end {
            self.rows.set_len(rows_end).map_err(io(&self.rows_path))?;
        }
        let known = self.sums.len() as u64;
        self.keys
            .seek(SeekFrom::Start(HEAD as u64 + known * RECORD as u64))
            .map_err(io(&self.keys_path))?;
        let mut fresh = Vec::new();
        (&self.keys)
            .take(whole.saturating_sub(known) * RECORD as u64)
            .read_to_end(&mut fresh)
            .map_err(io(&self.keys_path))?;
        for record in fresh.chunks_exact(RECORD) {
            let key = TextKey(record[..16].try_into().expect("16 bytes"));
            self.index.insert(key, self.sums.len() as u32);
            self.sums
                .push(u64::from_le_bytes(record[16..].try_into().expect("8 bytes")));
        }
        self.rows
            .seek(SeekFrom::Start(rows_end))
            .map_err(io(&self.rows_path))?;
        self.mapping
            .cover(&self.rows, rows_end as usize)
            .map_err(io(&self.rows_path))
    }
}

/// First 64 bits of the SHA-256 of key and vector.
fn checksum(key: TextKey, vector: &[u8]) -> u64 {
    let digest = Sha256::new().chain_update(key.0).chain_update(vector).finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("a SHA-256 has 32 bytes"))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> CacheError + '_ {
    move |source| CacheError::Io {
        path: path.to_path_buf(),
        source,
    }
}
