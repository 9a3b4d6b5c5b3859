//! What may compute, what there is to compute, and the answer to remember.

use gnnxml_shared::model::encoder::bert::{Bert, BertEncoder};
use gnnxml_shared::model::matcher::Matcher;
use gnnxml_shared::model::tagger::Tagger;
use serde::{Deserialize, Serialize};

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Processor {
    Cpu,
    Gpu,
}

/// What the caller wants to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// Whichever a short probe finds quicker.
    #[default]
    Auto,
    Cpu,
    /// The GPU, or an error.
    Gpu,
}

/// The answer of a probe, for the caller to keep until the next time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    pub processor: Processor,
    /// The GPU that was timed.
    pub adapter: String,
    /// The network that was timed.
    pub shape: String,
    /// Milliseconds a document.
    pub cpu_milliseconds: f64,
    pub gpu_milliseconds: f64,
}

/// What a model gives a processor to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work<'m> {
    /// The graph network.
    pub matcher: Option<&'m Matcher>,
    /// The transformer that encodes sentences.
    pub encoder: Option<&'m Bert>,
}

impl<'m> Work<'m> {
    /// All that a tagger computes with networks.
    pub fn of(tagger: &'m Tagger) -> Self {
        let encoder = tagger
            .encoder
            .as_deref()
            .filter(|_| tagger.needs_vectors())
            .and_then(|encoder| encoder.transformer());
        Self {
            matcher: tagger.matcher.graph(),
            encoder: encoder.map(BertEncoder::model),
        }
    }

    /// What makes two models cost the same.
    pub(super) fn shape(self) -> String {
        let matcher = self.matcher.map(|matcher| {
            let config = matcher.config();
            format!(
                "graph {}+{}>{}x{} {:?} {} vertices {} clusters",
                config.width,
                config.embedding_width(),
                config.hidden,
                config.layers,
                config.variant,
                config.max_vertices,
                config.clusters
            )
        });
        let encoder = self.encoder.map(|encoder| {
            let shape = encoder.shape();
            format!(
                "transformer {}>{}x{} {} heads",
                shape.width, shape.inner, shape.layers, shape.heads
            )
        });
        let parts: Vec<String> = matcher.into_iter().chain(encoder).collect();
        parts.join("; ")
    }
}
