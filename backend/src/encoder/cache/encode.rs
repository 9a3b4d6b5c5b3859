//! Encoding a stream of sentences through the cache.

use std::collections::{HashMap, HashSet};

use super::{EmbeddingCache, TextKey};
use crate::encoder::Encoder;

/// Sentences gathered before they are encoded: enough to sort by length and to keep every core busy.
const GATHER: usize = 4096;
/// Bytes of text gathered at most.
const GATHER_BYTES: usize = 4 << 20;

/// What became of the sentences of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeReport {
    /// Sentences seen.
    pub sentences: u64,
    /// Of these, seen before in the same run.
    pub duplicates: u64,
    /// Of these, found from an earlier run.
    pub found: u64,
    /// Of these, encoded now.
    pub encoded: u64,
}

/// An encoder that remembers.
pub struct CachedEncoder<'a> {
    encoder: &'a dyn Encoder,
    cache: EmbeddingCache,
    report: EncodeReport,
    /// What this run has already met: tells a duplicate from a find.
    met: HashSet<u32>,
}

impl std::fmt::Debug for CachedEncoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedEncoder")
            .field("encoder", &self.encoder.name())
            .field("report", &self.report)
            .finish()
    }
}

impl<'a> CachedEncoder<'a> {
    /// Puts a cache in front of an encoder.
    pub fn new(encoder: &'a dyn Encoder, cache: EmbeddingCache) -> Self {
        Self {
            encoder,
            cache,
            report: EncodeReport::default(),
            met: HashSet::new(),
        }
    }

    /// What became of all sentences so far.
    pub fn report(&self) -> EncodeReport {
        self.report
    }

    /// The vectors: `vectors().read(row, …)` with a row from [`Self::encode_all`].
    pub fn vectors(&self) -> &EmbeddingCache {
        &self.cache
    }

    /// Gives up the encoder, keeps the vectors.
    pub fn into_vectors(self) -> EmbeddingCache {
        self.cache
    }

    /// Encodes what the cache does not have, each text once, and returns one row number a sentence, in order.
    /// What was encoded stays on disk even if a later sentence fails or the process is killed.
    pub fn encode_all<S: AsRef<str>>(
        &mut self,
        sentences: impl IntoIterator<Item = S>,
    ) -> anyhow::Result<Vec<u32>> {
        let mut rows = Vec::new();
        let mut pending = Pending::default();
        for sentence in sentences {
            let text = sentence.as_ref();
            let key = TextKey::of(text);
            self.report.sentences += 1;
            if let Some(&slot) = pending.slots.get(&key) {
                self.report.duplicates += 1;
                pending.waiting.push((rows.len(), slot));
                rows.push(u32::MAX);
            } else if let Some(row) = self.cache.find(key) {
                if !self.met.insert(row) {
                    self.report.duplicates += 1;
                } else {
                    self.report.found += 1;
                }
                rows.push(row);
            } else {
                self.report.encoded += 1;
                let slot = pending.texts.len();
                pending.slots.insert(key, slot);
                pending.keys.push(key);
                pending.bytes += text.len();
                pending.texts.push(text.to_owned());
                pending.waiting.push((rows.len(), slot));
                rows.push(u32::MAX);
                if slot + 1 >= GATHER || pending.bytes >= GATHER_BYTES {
                    self.flush(&mut pending, &mut rows)?;
                }
            }
        }
        self.flush(&mut pending, &mut rows)?;
        Ok(rows)
    }

    /// Encodes what waits and fills in the rows.
    fn flush(&mut self, pending: &mut Pending, rows: &mut [u32]) -> anyhow::Result<()> {
        if pending.texts.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = pending.texts.iter().map(String::as_str).collect();
        let vectors = self.encoder.encode(&texts)?;
        self.cache.append(&pending.keys, &vectors)?;
        let places: Vec<u32> = pending
            .keys
            .iter()
            .map(|key| self.cache.index.get(key).copied().expect("just appended"))
            .collect();
        self.met.extend(places.iter().copied());
        for &(position, slot) in &pending.waiting {
            rows[position] = places[slot];
        }
        *pending = Pending::default();
        Ok(())
    }
}

/// Sentences gathered and not yet encoded.
#[derive(Default)]
struct Pending {
    slots: HashMap<TextKey, usize>,
    keys: Vec<TextKey>,
    texts: Vec<String>,
    bytes: usize,
    /// (position in the answer, slot here).
    waiting: Vec<(usize, usize)>,
}
