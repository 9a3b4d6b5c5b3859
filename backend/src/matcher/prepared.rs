//! Every document's graph and features in one file, memory-mapped: training memory is bounded by the batch, not by the corpus.
//!
//! ```text
//! magic "GNXGRAF1" · width u32 · documents u32 · index offset u64 · CRC-32 of header and index u32 · zero u32
//! records: vertices, neighbours, keywords, words (u32 each), then
//!          features f16 (padded to 4 bytes) · offsets · neighbours · shared f32 · keyword offsets · keywords · words · weights f32 · origin
//! index:   u64 a record, and one for the end
//! ```
//!
//! All little-endian. Sixteen bits keep three digits of a feature and halve the file.
#![allow(unsafe_code)] // Mapping a file; the file is ours, renamed into place once whole and never changed after.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Crc;
use gnnxml_shared::model::matcher::GraphInput;
use half::f16;
use half::slice::HalfFloatSliceExt;
use memmap2::Mmap;

use super::MatcherError;

const MAGIC: &[u8; 8] = b"GNXGRAF1";
const HEADER: usize = 32;

fn io(path: &Path) -> impl Fn(std::io::Error) -> MatcherError + '_ {
    move |source| MatcherError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Writes the file, one document after the other.
#[derive(Debug)]
pub struct PreparedWriter {
    path: PathBuf,
    temporary: PathBuf,
    out: BufWriter<File>,
    width: usize,
    index: Vec<u64>,
    at: u64,
    halves: Vec<f16>,
}

impl PreparedWriter {
    /// Starts `path` (written beside it until [`finish`](Self::finish)) for features of width `width`.
    pub fn create(path: &Path, width: usize) -> Result<Self, MatcherError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let temporary = PathBuf::from(name);
        let file = File::create(&temporary).map_err(io(&temporary))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&[0; HEADER]).map_err(io(&temporary))?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            out,
            width,
            index: Vec::new(),
            at: HEADER as u64,
            halves: Vec::new(),
        })
    }

    /// Adds the next document.
    pub fn push(&mut self, graph: &GraphInput<'_>) -> Result<(), MatcherError> {
        let expected = (graph.vertices + 1) * self.width;
        if graph.features.len() != expected {
            return Err(MatcherError::Data {
                what: "feature values of a document",
                found: graph.features.len() as u64,
                expected: expected as u64,
            });
        }
        self.index.push(self.at);
        self.halves.clear();
        self.halves.resize(expected + expected % 2, f16::ZERO);
        self.halves[..expected].convert_from_f32_slice(&graph.features);
        let counts = [
            graph.vertices,
            graph.neighbours.len(),
            graph.keywords.len(),
            graph.words.len(),
        ]
        .map(|n| n as u32);
        let parts: [&[u8]; 10] = [
            bytemuck::cast_slice(&counts),
            bytemuck::cast_slice(self.halves.reinterpret_cast()),
            bytemuck::cast_slice(&graph.offsets),
            bytemuck::cast_slice(&graph.neighbours),
            bytemuck::cast_slice(&graph.shared),
            bytemuck::cast_slice(&graph.keyword_offsets),
            bytemuck::cast_slice(&graph.keywords),
            bytemuck::cast_slice(&graph.words),
            bytemuck::cast_slice(&graph.word_weights),
            bytemuck::cast_slice(&graph.origin),
        ];
        for part in parts {
            self.out.write_all(part).map_err(io(&self.temporary))?;
            self.at += part.len() as u64;
        }
        Ok(())
    }

    /// Completes the file, puts it in its place and opens it.
    pub fn finish(mut self) -> Result<PreparedGraphs, MatcherError> {
        let documents = self.index.len() as u32;
        self.index.push(self.at);
        let padding = (8 - self.at % 8) % 8;
        let index_at = self.at + padding;
        let index: &[u8] = bytemuck::cast_slice(&self.index);
        let mut header = [0u8; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&(self.width as u32).to_le_bytes());
        header[12..16].copy_from_slice(&documents.to_le_bytes());
        header[16..24].copy_from_slice(&index_at.to_le_bytes());
        let sum = checksum(&header[..24], index);
        header[24..28].copy_from_slice(&sum.to_le_bytes());
        let temporary = &self.temporary;
        let write = |out: &mut BufWriter<File>| {
            out.write_all(&[0; 8][..padding as usize])?;
            out.write_all(index)?;
            out.seek(SeekFrom::Start(0))?;
            out.write_all(&header)?;
            out.flush()?;
            out.get_ref().sync_all()
        };
        write(&mut self.out).map_err(io(temporary))?;
        std::fs::rename(temporary, &self.path).map_err(io(&self.path))?;
        PreparedGraphs::open(&self.path)
    }
}

fn checksum(header: &[u8], index: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(header);
    crc.update(index);
    crc.sum()
}

/// Prepared documents, read where they lie.
#[derive(Debug)]
pub struct PreparedGraphs {
    path: PathBuf,
    map: Mmap,
    width: usize,
    documents: usize,
    index_at: usize,
}

impl PreparedGraphs {
    /// Opens a file that [`PreparedWriter`] made.
    pub fn open(path: &Path) -> Result<Self, MatcherError> {
        let file = File::open(path).map_err(io(path))?;
        // SAFETY: the file was renamed into place when whole; this program never writes to it again.
        let map = unsafe { Mmap::map(&file) }.map_err(io(path))?;
        let bad = |what, found: String, expected: String| MatcherError::File {
            path: path.to_owned(),
            what,
            found,
            expected,
        };
        if map.len() < HEADER || &map[..8] != MAGIC {
            let found = String::from_utf8_lossy(&map[..map.len().min(8)]).into_owned();
            return Err(bad(
                "not a file of prepared graphs of this version",
                found,
                "GNXGRAF1".to_owned(),
            ));
        }
        let word = |at: usize| u32::from_le_bytes(map[at..at + 4].try_into().expect("four bytes"));
        let (width, documents) = (word(8) as usize, word(12) as usize);
        let index_at = u64::from_le_bytes(map[16..24].try_into().expect("eight bytes"));
        let end = index_at.checked_add((documents as u64 + 1) * 8);
        if end != Some(map.len() as u64) || index_at % 8 != 0 {
            return Err(bad(
                "length in bytes, is it truncated?",
                map.len().to_string(),
                format!("{end:?}"),
            ));
        }
        let index_at = index_at as usize;
        let (found, expected) = (checksum(&map[..24], &map[index_at..]), word(24));
        if found != expected {
            return Err(bad(
                "checksum of header and index",
                format!("{found:08x}"),
                format!("{expected:08x}"),
            ));
        }
        let graphs = Self {
            path: path.to_owned(),
            map,
            width,
            documents,
            index_at,
        };
        for document in 0..documents {
            let (start, end) = (graph_at(&graphs, document), graph_at(&graphs, document + 1));
            if start % 4 != 0 || start < HEADER || end < start + 16 || end > index_at {
                return Err(bad(
                    "record bounds",
                    format!("{start}..{end}"),
                    format!("inside {HEADER}..{index_at}"),
                ));
            }
            let expected = record_len(&graphs.map[start..start + 16], width);
            if expected != Some(end - start) {
                return Err(bad(
                    "bytes of a record",
                    (end - start).to_string(),
                    format!("{expected:?}"),
                ));
            }
        }
        Ok(graphs)
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.documents
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// d.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One document; everything but its features is borrowed from the file.
    pub fn get(&self, document: usize) -> GraphInput<'_> {
        let bytes = &self.map[graph_at(self, document)..graph_at(self, document + 1)];
        let (head, mut rest) = bytes.split_at(16);
        let counts: [usize; 4] = std::array::from_fn(|i| read_u32(head, i * 4) as usize);
        let [n, neighbours, keywords, words] = counts;
        let mut take = |count: usize, size: usize| {
            let (part, after) = rest.split_at(count * size);
            rest = after;
            part
        };
        let values = (n + 1) * self.width;
        let halves: &[u16] = bytemuck::cast_slice(&take(values + values % 2, 2)[..values * 2]);
        let mut features = vec![0.0f32; values];
        let halves: &[f16] = half::slice::HalfBitsSliceExt::reinterpret_cast(halves);
        halves.convert_to_f32_slice(&mut features);
        GraphInput {
            vertices: n,
            features: features.into(),
            offsets: Cow::Borrowed(bytemuck::cast_slice(take(n + 1, 4))),
            neighbours: Cow::Borrowed(bytemuck::cast_slice(take(neighbours, 4))),
            shared: Cow::Borrowed(bytemuck::cast_slice(take(neighbours, 4))),
            keyword_offsets: Cow::Borrowed(bytemuck::cast_slice(take(n + 1, 4))),
            keywords: Cow::Borrowed(bytemuck::cast_slice(take(keywords, 4))),
            words: Cow::Borrowed(bytemuck::cast_slice(take(words, 4))),
            word_weights: Cow::Borrowed(bytemuck::cast_slice(take(words, 4))),
            origin: Cow::Borrowed(bytemuck::cast_slice(take(n, 4))),
        }
    }
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn graph_at(graphs: &PreparedGraphs, document: usize) -> usize {
    let at = graphs.index_at + document * 8;
    u64::from_le_bytes(graphs.map[at..at + 8].try_into().expect("eight bytes")) as usize
}

fn record_len(head: &[u8], width: usize) -> Option<usize> {
    let [n, neighbours, keywords, words]: [usize; 4] =
        std::array::from_fn(|i| read_u32(head, i * 4) as usize);
    let values = n.checked_add(1)?.checked_mul(width)?;
    let fours = [n + 1, neighbours, neighbours, n + 1, keywords, words, words, n];
    let fours = fours.into_iter().try_fold(0usize, usize::checked_add)?;
    16usize
        .checked_add((values + values % 2).checked_mul(2)?)?
        .checked_add(fours.checked_mul(4)?)
}
