//! An encoder with the cache in front of it, for many threads at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gnnxml_shared::bundle::PageEncoder;

use super::{EmbeddingCache, TextKey};
use crate::encoder::Encoder;

/// Looks a sentence up before it encodes it, and keeps what it encoded. Vectors come back as the cache holds them, in f16, so a
/// second answer is the first one bit for bit.
///
/// Threads that meet the same new sentence at the same time encode it twice, to the same vector; nobody waits for another's encoding.
pub struct Remembering {
    encoder: Box<dyn Encoder>,
    cache: Mutex<EmbeddingCache>,
}

impl std::fmt::Debug for Remembering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remembering")
            .field("encoder", &self.encoder.name())
            .finish_non_exhaustive()
    }
}

impl Remembering {
    /// Puts a cache of this very encoder in front of it.
    pub fn new(encoder: Box<dyn Encoder>, cache: EmbeddingCache) -> Self {
        Self {
            encoder,
            cache: Mutex::new(cache),
        }
    }

    #[cfg(test)]
    pub(super) fn cache_len(&self) -> usize {
        self.cache().len()
    }

    fn cache(&self) -> MutexGuard<'_, EmbeddingCache> {
        // A thread that died while it appended left whole vectors or none.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Encoder for Remembering {
    fn name(&self) -> &str {
        self.encoder.name()
    }

    fn dims(&self) -> usize {
        self.encoder.dims()
    }

    fn fingerprint(&self) -> String {
        self.encoder.fingerprint()
    }

    fn encode(&self, sentences: &[&str]) -> anyhow::Result<Vec<f32>> {
        let keys: Vec<TextKey> = sentences.iter().map(|text| TextKey::of(text)).collect();
        let mut unknown: Vec<(TextKey, &str)> = {
            let cache = self.cache();
            let pairs = keys.iter().copied().zip(sentences.iter().copied());
            pairs.filter(|&(key, _)| cache.find(key).is_none()).collect()
        };
        unknown.sort_unstable();
        unknown.dedup_by_key(|(key, _)| *key);
        let (new, texts): (Vec<TextKey>, Vec<&str>) = unknown.into_iter().unzip();
        let encoded = if texts.is_empty() {
            Vec::new()
        } else {
            self.encoder.encode(&texts)?
        };
        let mut cache = self.cache();
        cache.append(&new, &encoded)?;
        let mut vectors = vec![0.0; sentences.len() * self.dims()];
        for (key, into) in keys.iter().zip(vectors.chunks_exact_mut(self.dims())) {
            let Some(row) = cache.find(*key) else {
                anyhow::bail!(
                    "a vector that was just appended to the embedding cache does not read back: is the disk sound?"
                );
            };
            cache.read(row, into);
        }
        Ok(vectors)
    }

    fn for_page(&self) -> Option<PageEncoder<'_>> {
        self.encoder.for_page()
    }
}
