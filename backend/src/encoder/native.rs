//! The encoders that the page can run too, behind the server's trait: batches of sentences over all cores.

use gnnxml_shared::bundle::PageEncoder;
use gnnxml_shared::model::encoder::{SentenceEncoder, StaticEncoder};
use rayon::prelude::*;

use super::Encoder;

/// Sentences a core takes at a time.
const CHUNK: usize = 256;

/// A shared encoder with a name and a fingerprint.
#[derive(Debug)]
pub struct Native<E> {
    name: &'static str,
    fingerprint: String,
    encoder: E,
}

impl<E: SentenceEncoder + Send + Sync> Native<E> {
    /// Wraps an encoder. The fingerprint must change whenever its vectors would.
    pub fn new(name: &'static str, fingerprint: String, encoder: E) -> Self {
        Self {
            name,
            fingerprint,
            encoder,
        }
    }

    /// The encoder itself, as the page runs it.
    pub fn inner(&self) -> &E {
        &self.encoder
    }
}

impl Encoder for Native<StaticEncoder> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dims(&self) -> usize {
        self.encoder.dims()
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn worth_remembering(&self) -> bool {
        false
    }

    fn encode(&self, sentences: &[&str]) -> anyhow::Result<Vec<f32>> {
        let parts: Vec<Vec<f32>> = sentences
            .par_chunks(CHUNK)
            .map(|part| self.encoder.encode(part))
            .collect();
        Ok(parts.concat())
    }

    fn for_page(&self) -> Option<PageEncoder<'_>> {
        Some(PageEncoder::Static(&self.encoder))
    }
}
