//! What the Tag page knows, in signals that its parts share.

use std::collections::BTreeMap;
use std::rc::Rc;

use gnnxml_shared::api::Evidence;
use gnnxml_shared::keygraph::KeyGraph;
use leptos::prelude::*;

use crate::worker_client::{LoadProgress, Tagged, TaggerClient};

/// How the engine stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EngineState {
    /// Nothing to load: no model is published (any more, when one was loaded).
    NoModel {
        withdrawn: bool,
    },
    /// Asking the server which model tags.
    Asking,
    Loading(LoadProgress),
    Ready {
        engine: String,
        milliseconds: f64,
        bytes: f64,
    },
    Failed(String),
}

/// What the person points at: it lights up in the text, the graph and the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lit {
    /// A label, by its number in the model.
    Tag(u32),
    /// A vertex of the KeyGraph.
    Vertex(usize),
}

/// Signals of the Tag page. They belong to the app: text and model survive a look at the other pages.
#[derive(Clone, Copy)]
pub(crate) struct TagState {
    pub(crate) text: RwSignal<String>,
    pub(crate) engine: RwSignal<EngineState>,
    pub(crate) tagged: RwSignal<Option<Tagged>>,
    /// The text the answer is about; marks are drawn only while it is still the text in the box.
    pub(crate) tagged_text: RwSignal<String>,
    /// The graph of the text in the box while no model is there to tag it.
    pub(crate) sketch: RwSignal<Option<(String, KeyGraph)>>,
    pub(crate) busy: RwSignal<bool>,
    pub(crate) trouble: RwSignal<Option<String>>,
    /// What the tags lack though they are there: clusters that could not be fetched.
    pub(crate) warning: RwSignal<Option<String>>,
    /// What cannot be kept on this device, and what that means; it stays whatever is tagged.
    pub(crate) storage_warning: RwSignal<Option<String>>,
    /// Counts attempts to load the model; another number, another attempt.
    pub(crate) attempt: RwSignal<u32>,
    pub(crate) threshold: RwSignal<f32>,
    /// Whether the person moved the slider; until then it follows the model's own cut-off.
    pub(crate) threshold_chosen: RwSignal<bool>,
    pub(crate) pointed: RwSignal<Option<Lit>>,
    pub(crate) pinned: RwSignal<Option<Lit>>,
    pub(crate) verdicts: RwSignal<BTreeMap<String, bool>>,
    pub(crate) client: StoredValue<Option<Rc<TaggerClient>>, LocalStorage>,
    /// The model the worker holds.
    pub(crate) loaded: StoredValue<Option<String>>,
}

impl TagState {
    pub(crate) fn new() -> Self {
        Self {
            text: RwSignal::new(String::new()),
            engine: RwSignal::new(EngineState::Asking),
            tagged: RwSignal::new(None),
            tagged_text: RwSignal::new(String::new()),
            sketch: RwSignal::new(None),
            busy: RwSignal::new(false),
            trouble: RwSignal::new(None),
            warning: RwSignal::new(None),
            storage_warning: RwSignal::new(None),
            attempt: RwSignal::new(0),
            threshold: RwSignal::new(0.5),
            threshold_chosen: RwSignal::new(false),
            pointed: RwSignal::new(None),
            pinned: RwSignal::new(None),
            verdicts: RwSignal::new(BTreeMap::new()),
            client: StoredValue::new_local(None),
            loaded: StoredValue::new(None),
        }
    }

    /// What is lit: pointing wins over pinning.
    pub(crate) fn lit(self) -> Option<Lit> {
        self.pointed.get().or_else(|| self.pinned.get())
    }

    /// Whether the answer is about the text in the box.
    pub(crate) fn is_fresh(self) -> bool {
        self.text
            .with(|text| self.tagged_text.with(|tagged| text == tagged))
    }

    pub(crate) fn is_fresh_untracked(self) -> bool {
        self.text
            .with_untracked(|text| self.tagged_text.with_untracked(|tagged| text == tagged))
    }

    /// Tags the text in the box once more.
    pub(crate) fn tag_again(self) {
        self.tagged_text.set(String::new());
        self.text.notify();
    }

    /// Whether the graph is about the text in the box.
    pub(crate) fn has_fresh_graph(self) -> bool {
        let sketched = || {
            self.sketch.with(|sketch| {
                sketch
                    .as_ref()
                    .is_some_and(|(text, _)| self.text.with(|now| now == text))
            })
        };
        self.is_fresh() || self.tagged.with(Option::is_none) && sketched()
    }

    /// The graph of the tagged text, or of the text in the box while nothing tags.
    pub(crate) fn with_graph<T>(self, read: impl FnOnce(&KeyGraph) -> T) -> Option<T> {
        self.tagged.with(|tagged| match tagged {
            Some(tagged) => tagged.response.keygraph.as_ref().map(read),
            None => self
                .sketch
                .with(|sketch| sketch.as_ref().map(|(_, graph)| read(graph))),
        })
    }

    /// The evidence of a tag, when the answer carries it.
    pub(crate) fn evidence_of(self, label: u32) -> Option<Evidence> {
        self.tagged
            .with(|tagged| evidence(tagged.as_ref(), label).cloned())
    }

    /// What is read from the evidence of a tag; the default where the answer carries none.
    pub(crate) fn with_evidence_of<T: Default>(self, label: u32, read: impl FnOnce(&Evidence) -> T) -> T {
        self.tagged
            .with(|tagged| evidence(tagged.as_ref(), label).map(read).unwrap_or_default())
    }

    /// Pins what is clicked, or lets go of it when it is clicked again.
    pub(crate) fn toggle_pin(self, lit: Lit) {
        self.pinned
            .update(|pinned| *pinned = if *pinned == Some(lit) { None } else { Some(lit) });
    }
}

fn evidence(tagged: Option<&Tagged>, label: u32) -> Option<&Evidence> {
    let tags = &tagged?.response.tags;
    tags.iter().find(|tag| tag.label == label)?.evidence.as_ref()
}
