//! The tagger as an ES module: in the page's Web Worker, in a plain HTML page, in Node.
//!
//! It fetches the files of a bundle and nothing else; the text it is given stays where it is. All of the model is
//! `gnnxml-shared`; this crate only carries bytes. Start reading at [`Tagger::load`].
//!
//! ```js
//! import init, { Tagger } from "./gnnxml.js";
//! await init();
//! const tagger = await Tagger.load("https://example.org/bundle/");
//! const answer = JSON.parse(await tagger.tag("Cocoa prices rose in London.", '{"top":5}'));
//! for (const tag of answer.tags) console.log(tag.name, tag.score);
//! ```

mod fetch;
#[cfg(feature = "gpu")]
#[path = "processor/gpu.rs"]
mod processor;
#[cfg(not(feature = "gpu"))]
#[path = "processor/cpu.rs"]
mod processor;

use std::cell::{Cell, RefCell};

use gnnxml_shared::bundle::{Bundle, Opening};
use gnnxml_shared::keygraph::{EntityLexicon, KeyGraph, Options};
use gnnxml_shared::model::tagger::{FinishOptions, ReadOptions};
use gnnxml_shared::text::Language;
use serde::Deserialize;
use wasm_bindgen::prelude::*;

use fetch::Source;
use processor::Processor;

/// What a caller may ask of [`Tagger::tag`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TagOptions {
    /// Tags at most.
    top: usize,
    /// Evidence for each tag.
    explain: bool,
    /// The text's KeyGraph beside the tags.
    keygraph: bool,
}

impl Default for TagOptions {
    fn default() -> Self {
        Self {
            top: 10,
            explain: true,
            keygraph: true,
        }
    }
}

/// What computes, as a caller wants it.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Wish {
    /// Whichever a short probe finds quicker.
    #[default]
    Auto,
    Cpu,
    /// The GPU, or an error.
    Gpu,
}

/// What a caller may ask of [`Tagger::load`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LoadOptions {
    engine: Wish,
    /// What [`Tagger::choice`] gave the last time; anything else is as good as nothing.
    remembered: Option<serde_json::Value>,
}

/// A model that tags texts where it stands.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Tagger {
    bundle: RefCell<Bundle>,
    processor: Processor,
    source: Source,
    fetched: Cell<f64>,
}

#[wasm_bindgen]
impl Tagger {
    /// Fetches a bundle's core. `source` is the address of its folder, or a function that takes a file name and
    /// promises its bytes; `on_progress(bytes so far, bytes in all, file)` is called after every file. `options` is
    /// JSON: `{"engine": "auto" | "cpu" | "gpu", "remembered": …}`.
    pub async fn load(
        source: JsValue,
        on_progress: Option<js_sys::Function>,
        options: Option<String>,
    ) -> Result<Tagger, JsError> {
        console_error_panic_hook::set_once();
        let options: LoadOptions = match options.as_deref() {
            None | Some("") => LoadOptions::default(),
            Some(json) => serde_json::from_str(json)?,
        };
        let source = Source::new(source)?;
        let mut opening = source.manifest().taken(|bytes| Opening::new(&bytes)).await?;
        let total = opening.manifest().core_bytes() as f64;
        let mut fetched = 0.0;
        loop {
            let Some((role, part)) = opening
                .wanted()
                .next()
                .map(|(role, part)| (role.to_owned(), part.clone()))
            else {
                break;
            };
            let begun = source.part(&part);
            begun.taken(|bytes| opening.bring(&role, bytes)).await?;
            fetched += part.bytes as f64;
            if let Some(report) = &on_progress {
                // A caller's faulty callback must not cost the caller its model.
                let _ = report.call3(
                    &JsValue::NULL,
                    &fetched.into(),
                    &total.into(),
                    &part.file.as_str().into(),
                );
            }
        }
        let bundle = opening.finish()?;
        let processor = Processor::of(bundle.tagger(), options.engine, options.remembered).await?;
        Ok(Self {
            bundle: RefCell::new(bundle),
            processor,
            source,
            fetched: Cell::new(fetched),
        })
    }

    /// Tags a text: a `TagResponse` as JSON. Rankers of matched clusters are fetched when they are first needed;
    /// those that do not come are named in `missing_clusters`.
    pub async fn tag(&self, text: String, options: Option<String>) -> Result<String, JsError> {
        let options: TagOptions = match options.as_deref() {
            None | Some("") => TagOptions::default(),
            Some(json) => serde_json::from_str(json)?,
        };
        let read = ReadOptions {
            keygraph: options.keygraph || options.explain,
            spans: options.explain,
        };
        let prepared = self.processor.prepare(&self.bundle, &text, read).await?;
        let wanted = self.bundle.borrow().shards_for(&prepared.needed);
        // All at once: over a network most of a fetch is waiting.
        let begun: Vec<_> = (wanted.into_iter())
            .map(|shard| {
                let part = self.bundle.borrow().manifest().shards[shard].part.clone();
                (shard, self.source.part(&part), part.bytes)
            })
            .collect();
        for (shard, begun, length) in begun {
            let bring = |bytes: Vec<u8>| self.bundle.borrow_mut().bring_shard(shard, &bytes);
            // A shard that stays away is seen by its absence.
            if begun.taken(bring).await.is_ok() {
                self.fetched.set(self.fetched.get() + length as f64);
            }
        }
        let options = FinishOptions {
            top: options.top,
            explain: options.explain,
            keygraph: options.keygraph,
        };
        let answer = self.bundle.borrow().finish(&prepared, options);
        Ok(serde_json::to_string(&answer)?)
    }

    /// The vectors of sentences end to end, all of one width, as the model's encoder makes them on the processor; empty
    /// for a model without one.
    pub fn encode(&self, sentences: Vec<String>) -> Vec<f32> {
        let sentences: Vec<&str> = sentences.iter().map(String::as_str).collect();
        let bundle = self.bundle.borrow();
        let encoder = bundle.tagger().encoder.as_deref();
        encoder.map_or_else(Vec::new, |encoder| encoder.encode(&sentences))
    }

    /// What computes: `WebGPU` where it runs the networks, otherwise `WASM SIMD`, or `WASM` in the plain build.
    pub fn engine(&self) -> String {
        if self.processor.is_gpu() {
            "WebGPU".into()
        } else if cfg!(target_feature = "simd128") {
            "WASM SIMD".into()
        } else {
            "WASM".into()
        }
    }

    /// Which engine a short probe found quicker, as JSON to pass to [`Tagger::load`] the next time; nothing when there
    /// was nothing to choose.
    pub fn choice(&self) -> Option<String> {
        self.processor.choice()
    }

    /// Gives the GPU up; what follows is computed by the CPU.
    #[wasm_bindgen(js_name = loseGpu)]
    pub fn lose_gpu(&self) {
        self.processor.lose_gpu();
    }

    /// Bytes fetched so far.
    pub fn fetched(&self) -> f64 {
        self.fetched.get()
    }

    /// The bundle's manifest as JSON.
    pub fn manifest(&self) -> Result<String, JsError> {
        Ok(serde_json::to_string(self.bundle.borrow().manifest())?)
    }
}

/// The KeyGraph of a text as JSON, without a model; `language` is a BCP-47 tag.
#[wasm_bindgen]
pub fn keygraph(text: &str, language: &str) -> Result<String, JsError> {
    let language = Language::from_tag(language);
    let graph = KeyGraph::build(text, language, &EntityLexicon::default(), &Options::default());
    Ok(serde_json::to_string(&graph)?)
}
