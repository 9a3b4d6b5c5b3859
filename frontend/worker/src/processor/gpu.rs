//! The networks on WebGPU where it is quicker, on the processor otherwise.

use std::cell::RefCell;

use gnnxml_kernels::{Choice, Engine, GpuError, Preference, Work};
use gnnxml_shared::bundle::Bundle;
use gnnxml_shared::model::encoder::bert::BertEncoder;
use gnnxml_shared::model::matcher::{GraphInput, MatcherError};
use gnnxml_shared::model::tagger::{Prepared, ReadOptions, Tagger, first_sentences};
use wasm_bindgen::{JsCast as _, JsValue};

use crate::Wish;

/// What runs a model's networks.
#[derive(Debug)]
pub(crate) struct Processor(Engine);

impl Processor {
    /// Takes the processor that is wished, or times both; `remembered` is the answer of an earlier probe.
    pub(crate) async fn of(
        tagger: &Tagger,
        wish: Wish,
        remembered: Option<serde_json::Value>,
    ) -> Result<Self, GpuError> {
        let remembered: Option<Choice> = remembered.and_then(|value| serde_json::from_value(value).ok());
        let preference = match wish {
            Wish::Auto => Preference::Auto,
            Wish::Cpu => Preference::Cpu,
            Wish::Gpu => Preference::Gpu,
        };
        Ok(Self(
            Engine::new(Work::of(tagger), preference, remembered, now).await?,
        ))
    }

    /// The first half of tagging. Nothing of the bundle is held while the GPU computes: other texts may be on their way.
    pub(crate) async fn prepare(
        &self,
        bundle: &RefCell<Bundle>,
        text: &str,
        read: ReadOptions,
    ) -> Result<Prepared, MatcherError> {
        let (reading, tokens) = {
            let bundle = bundle.borrow();
            let tagger = bundle.tagger();
            let reading = tagger.read(text, read);
            let tokens = self.transformer(tagger).and_then(|transformer| {
                let graph = reading.keygraph.as_ref()?;
                Some(transformer.tokenise(&first_sentences(text, graph, tagger.encoded_sentences)))
            });
            (reading, tokens)
        };
        let windows = match &tokens {
            Some(tokens) => self.0.encode(tokens).await,
            None => None,
        };
        let (vectors, graph) = {
            let bundle = bundle.borrow();
            let tagger = bundle.tagger();
            let encoder = tagger
                .encoder
                .as_deref()
                .and_then(|encoder| encoder.transformer());
            let vectors = match (encoder, &tokens, windows) {
                (Some(encoder), Some(tokens), Some(windows)) => {
                    let mut vectors = encoder.gather(tokens, &windows.batches, &windows.sums);
                    let sentences = (reading.keygraph.as_ref()).map_or(0, |graph| graph.sentences().len());
                    vectors.resize(sentences * tagger.dims, 0.0);
                    vectors
                }
                _ => tagger.sentence_vectors(text, &reading),
            };
            let graph = tagger.graph_input(&reading, &vectors)?;
            (vectors, graph)
        };
        let logits = match &graph {
            None => None,
            Some(graph) => {
                let ran = self.0.logits(graph, |graph| cpu_logits(bundle, graph)).await?;
                Some(ran.logits)
            }
        };
        let bundle = bundle.borrow();
        Ok(bundle.tagger().prepare_from(reading, &vectors, graph, logits))
    }

    pub(crate) fn is_gpu(&self) -> bool {
        self.0.processor() == gnnxml_kernels::Processor::Gpu
    }

    /// What the probe found, as JSON.
    pub(crate) fn choice(&self) -> Option<String> {
        serde_json::to_string(self.0.choice()?).ok()
    }

    pub(crate) fn lose_gpu(&self) {
        self.0.lose_gpu();
    }

    /// The encoder, while a GPU computes it.
    fn transformer<'t>(&self, tagger: &'t Tagger) -> Option<&'t BertEncoder> {
        let on_gpu = tagger.needs_vectors() && self.is_gpu();
        let encoder = tagger.encoder.as_deref().filter(|_| on_gpu)?;
        encoder.transformer()
    }
}

fn cpu_logits(bundle: &RefCell<Bundle>, graph: &GraphInput<'_>) -> Result<Vec<f32>, MatcherError> {
    match bundle.borrow().tagger().matcher.graph() {
        Some(matcher) => matcher.forward(graph),
        None => Ok(Vec::new()),
    }
}

/// Milliseconds by the clock of whatever global scope this is.
fn now() -> f64 {
    let tell = || -> Result<f64, JsValue> {
        let performance = js_sys::Reflect::get(&js_sys::global(), &"performance".into())?;
        let now: js_sys::Function = js_sys::Reflect::get(&performance, &"now".into())?.dyn_into()?;
        Ok(now.call0(&performance)?.as_f64().unwrap_or_default())
    };
    tell().unwrap_or_else(|_| js_sys::Date::now())
}
