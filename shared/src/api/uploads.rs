//! Uploaded corpora as the server lists them.

use serde::{Deserialize, Serialize};

use super::CorpusStats;

/// One uploaded corpus. `POST /api/v1/corpora?name=NAME` takes the file itself as its body
/// (`Content-Type: application/octet-stream`), whatever its format, packed or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CorpusEntry {
    pub id: u64,
    /// The name it was given.
    pub name: String,
    /// The format that was found in it.
    pub format: String,
    /// Bytes of the documents as they are kept.
    pub bytes: u64,
    /// SHA-256 of the documents as they are kept, in hexadecimal: the corpus' fingerprint.
    pub sha256: String,
    /// Milliseconds since 1970.
    pub created: u64,
    /// Its figures, and what was wrong with it by line.
    pub stats: CorpusStats,
}

/// Answer of `GET /api/v1/corpora`, newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CorpusList {
    pub corpora: Vec<CorpusEntry>,
}
