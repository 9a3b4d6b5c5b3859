//! Label clusters on disk: magic, version, length, a JSON head, plain little-endian columns, SHA-256.
//!
//! Written to a temporary name, synced, renamed. Nothing is believed before the checksum holds, and nothing
//! is allocated beyond the file's own size.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::LabelError;
use super::clusters::{Cluster, ClusterParts, ClusterReport, LabelClusters};

const MAGIC: &[u8; 8] = b"GNXLABEL";
const VERSION: u32 = 1;
/// Magic, version, length of the body.
const PREFIX: usize = 8 + 4 + 8;
const CHECKSUM: usize = 32;

/// Everything that is not a long column.
#[derive(Serialize, Deserialize)]
struct Head {
    labels: usize,
    neighbours: usize,
    documents: u32,
    named: bool,
    report: ClusterReport,
    clusters: Vec<HeadCluster>,
}

#[derive(Serialize, Deserialize)]
struct HeadCluster {
    name: String,
    terms: Vec<String>,
    documents: u32,
    position: [f32; 2],
}

impl LabelClusters {
    /// The name of the file inside a model directory.
    pub const FILE_NAME: &'static str = "label-clusters.gnx";

    /// The file's bytes: the same clusters, the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts = self.parts();
        let head = Head {
            labels: self.labels(),
            neighbours: parts.neighbours.len(),
            documents: parts.documents,
            named: !parts.names.is_empty(),
            report: parts.report.clone(),
            clusters: parts
                .clusters
                .iter()
                .map(|cluster| HeadCluster {
                    name: cluster.name.clone(),
                    terms: cluster.terms.clone(),
                    documents: cluster.documents,
                    position: cluster.position,
                })
                .collect(),
        };
        let head = serde_json::to_vec(&head).unwrap_or_default();
        let mut bytes = Vec::new();
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&(head.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&head);
        put(&mut bytes, parts.assignment.iter().map(|v| v.to_le_bytes()));
        put(&mut bytes, parts.counts.iter().map(|v| v.to_le_bytes()));
        put(&mut bytes, parts.closeness.iter().map(|v| v.to_le_bytes()));
        put(
            &mut bytes,
            parts.positions.iter().flatten().map(|v| v.to_le_bytes()),
        );
        put(&mut bytes, parts.neighbour_starts.iter().map(|v| v.to_le_bytes()));
        put(&mut bytes, parts.neighbours.iter().map(|v| v.to_le_bytes()));
        put(&mut bytes, parts.probabilities.iter().map(|v| v.to_le_bytes()));
        for name in &parts.names {
            bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        let body = (bytes.len() - PREFIX) as u64;
        bytes[12..PREFIX].copy_from_slice(&body.to_le_bytes());
        let checksum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&checksum);
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote; says what is wrong with anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < PREFIX + CHECKSUM {
            return Err(format!("{} bytes are too few even for an empty one", bytes.len()));
        }
        if &bytes[..8] != MAGIC {
            return Err("it does not begin with GNXLABEL: another kind of file".into());
        }
        let mut prefix = Reader {
            bytes: &bytes[8..PREFIX],
        };
        let version = prefix.u32()?;
        if version != VERSION {
            return Err(format!(
                "format version {version}, this program reads version {VERSION}: cluster again or use a matching program"
            ));
        }
        let body = prefix.u64()?;
        if body != (bytes.len() - PREFIX - CHECKSUM) as u64 {
            return Err(format!(
                "{} bytes, expected {}: it was cut short or added to",
                bytes.len(),
                body.saturating_add((PREFIX + CHECKSUM) as u64)
            ));
        }
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if Sha256::digest(content).as_slice() != checksum {
            return Err("the checksum does not match: it was damaged".into());
        }
        let mut reader = Reader {
            bytes: &content[PREFIX..],
        };
        let head_length = reader.u64()?;
        let head: Head = serde_json::from_slice(reader.take(head_length as usize)?)
            .map_err(|error| format!("its head is not readable: {error}"))?;
        let labels = head.labels;
        let assignment = reader.u32s(labels)?;
        let counts = reader.u32s(labels)?;
        let closeness = reader.f32s(labels)?;
        let positions = reader.f32s(labels.checked_mul(2).ok_or("too many labels")?)?;
        let neighbour_starts = reader.u64s(labels.checked_add(1).ok_or("too many labels")?)?;
        let neighbours = reader.u32s(head.neighbours)?;
        let probabilities = reader.f32s(head.neighbours)?;
        let mut names = Vec::new();
        if head.named {
            for _ in 0..labels {
                let length = reader.u32()? as usize;
                let name = std::str::from_utf8(reader.take(length)?)
                    .map_err(|error| format!("a label name is not UTF-8: {error}"))?;
                names.push(name.to_owned());
            }
        }
        if !reader.bytes.is_empty() {
            return Err(format!("{} bytes are left over", reader.bytes.len()));
        }
        Self::new(ClusterParts {
            assignment,
            counts,
            closeness,
            names,
            positions: positions.chunks_exact(2).map(|xy| [xy[0], xy[1]]).collect(),
            clusters: head
                .clusters
                .into_iter()
                .map(|cluster| Cluster {
                    name: cluster.name,
                    terms: cluster.terms,
                    documents: cluster.documents,
                    position: cluster.position,
                })
                .collect(),
            neighbour_starts,
            neighbours,
            probabilities,
            documents: head.documents,
            report: head.report,
        })
        .map_err(|error| error.to_string())
    }

    /// Writes the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), LabelError> {
        crate::data::write_atomic(path, &self.to_bytes()).map_err(|source| LabelError::Io {
            operation: "write",
            path: path.to_owned(),
            source,
        })
    }

    /// Reads the file.
    pub fn load(path: &Path) -> Result<Self, LabelError> {
        let bytes = std::fs::read(path).map_err(|source| LabelError::Io {
            operation: "read",
            path: path.to_owned(),
            source,
        })?;
        Self::from_bytes(&bytes).map_err(|reason| LabelError::Corrupt {
            path: path.to_owned(),
            reason,
        })
    }
}

fn put<const N: usize>(bytes: &mut Vec<u8>, values: impl Iterator<Item = [u8; N]>) {
    for value in values {
        bytes.extend_from_slice(&value);
    }
}

/// What has not been read yet.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        match self.bytes.split_at_checked(count) {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(taken)
            }
            None => Err(format!("{count} bytes expected, {} are left", self.bytes.len())),
        }
    }

    fn column<const N: usize, T>(
        &mut self,
        count: usize,
        read: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, String> {
        let bytes = self.take(count.checked_mul(N).ok_or("a column is too long")?)?;
        let (values, _) = bytes.as_chunks::<N>();
        Ok(values.iter().map(|&value| read(value)).collect())
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(self.u32s(1)?[0])
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(self.u64s(1)?[0])
    }

    fn u32s(&mut self, count: usize) -> Result<Vec<u32>, String> {
        self.column(count, u32::from_le_bytes)
    }

    fn u64s(&mut self, count: usize) -> Result<Vec<u64>, String> {
        self.column(count, u64::from_le_bytes)
    }

    fn f32s(&mut self, count: usize) -> Result<Vec<f32>, String> {
        self.column(count, f32::from_le_bytes)
    }
}
