//! Keeps the engine loaded with the active model and the tags in step with the text.

use std::rc::Rc;

use gloo::timers::future::TimeoutFuture;
use gnnxml_page_logic::{batch::LONGEST_TEXT, figures};
use gnnxml_shared::keygraph::{EntityLexicon, KeyGraph, Options};
use gnnxml_shared::text::Language;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::state::{EngineState, TagState};
use crate::offline;
use crate::shell::Models;
use crate::worker_client::TaggerClient;

/// A pause in typing after which the text is tagged.
const PAUSE: u32 = 350;
/// Tags asked for: more than fit the list, so that the threshold has something to move over.
pub(super) const TOP: u32 = 30;

/// Loads the active model now and whenever another one becomes active.
pub(super) fn follow_active_model(state: TagState) {
    let models = expect_context::<Models>();
    let active = Memo::new(move |_| models.get().map(|list| list.map(|list| list.active)));
    Effect::new(move |_| match active.get() {
        None => {}
        // A model that is loaded goes on tagging without the server.
        Some(Err(_)) if state.loaded.with_value(Option::is_some) => {}
        Some(Err(trouble)) => state.engine.set(EngineState::Failed(trouble.message)),
        Some(Ok(None)) => state.engine.set(EngineState::NoModel),
        Some(Ok(Some(id))) => spawn_local(load(state, id)),
    });
}

async fn load(state: TagState, model: String) {
    if state.loaded.with_value(|loaded| loaded.as_ref() == Some(&model)) {
        return;
    }
    state.engine.set(EngineState::Loading(Default::default()));
    let client = match state.client.get_value() {
        Some(client) => client,
        None => match TaggerClient::start() {
            Ok(client) => {
                let client = Rc::new(client);
                state.client.set_value(Some(client.clone()));
                client
            }
            Err(message) => {
                state.engine.set(EngineState::Failed(message));
                return;
            }
        },
    };
    let base = format!("/api/v1/models/{model}/bundle/");
    let loaded = client
        .load(&base, move |progress| {
            state.engine.try_set(EngineState::Loading(progress));
        })
        .await;
    match loaded {
        Ok(loaded) => {
            let bytes = match state.engine.try_get_untracked() {
                Some(EngineState::Loading(progress)) => progress.done,
                Some(_) => 0.0,
                // The person left the page meanwhile.
                None => return,
            };
            state.loaded.set_value(Some(model));
            // The text in the box is tagged anew by the new model.
            state.tagged_text.set(String::new());
            state.engine.set(EngineState::Ready {
                engine: loaded.engine,
                milliseconds: loaded.milliseconds,
                bytes,
            });
            // Failing to forget an old model costs room, nothing else.
            let _ = offline::keep_only(&base).await;
        }
        Err(message) => {
            state.engine.try_set(EngineState::Failed(format!(
                "The model could not be loaded: {message}"
            )));
        }
    }
}

/// Tags the text when typing pauses. One request is on its way at a time; the newest text wins.
pub(super) fn follow_text(state: TagState) {
    let generation = StoredValue::new(0u64);
    Effect::new(move |_| {
        let text = state.text.get();
        let ready = state
            .engine
            .with(|engine| matches!(engine, EngineState::Ready { .. }));
        generation.update_value(|count| *count += 1);
        let mine = generation.get_value();
        if text.trim().is_empty() {
            state.tagged.set(None);
            state.tagged_text.set(String::new());
            state.trouble.set(None);
            return;
        }
        if text.len() > LONGEST_TEXT {
            state.trouble.set(Some(format!(
                "This text has {}; at most {} are tagged as one. Cut it, or drop it as a file with one document a line.",
                figures::bytes(text.len() as u64),
                figures::bytes(LONGEST_TEXT as u64)
            )));
            return;
        }
        if !ready {
            sketch(state, text, generation, mine);
            return;
        }
        if state.is_fresh_untracked() {
            return;
        }
        spawn_local(async move {
            TimeoutFuture::new(PAUSE).await;
            while state.busy.try_get_untracked() == Some(true) {
                TimeoutFuture::new(20).await;
                if generation.try_get_value() != Some(mine) {
                    return;
                }
            }
            if generation.try_get_value() == Some(mine) {
                tag(state, text).await;
            }
        });
    });
}

/// Texts up to this length get their graph drawn by the page itself: it takes a few milliseconds.
const LONGEST_SKETCH: usize = 20_000;

/// Draws the KeyGraph while no model is there; it needs none.
fn sketch(state: TagState, text: String, generation: StoredValue<u64>, mine: u64) {
    if text.len() > LONGEST_SKETCH {
        return;
    }
    spawn_local(async move {
        TimeoutFuture::new(PAUSE).await;
        if generation.try_get_value() == Some(mine) {
            let graph = KeyGraph::build(
                &text,
                Language::English,
                &EntityLexicon::default(),
                &Options::default(),
            );
            state.sketch.set(Some((text, graph)));
        }
    });
}

async fn tag(state: TagState, text: String) {
    let Some(Some(client)) = state.client.try_get_value() else {
        return;
    };
    state.busy.set(true);
    let options = format!("{{\"top\":{TOP},\"explain\":true}}");
    let answer = client.tag(&text, &options).await;
    if state.busy.try_set(false).is_some() {
        // `try_set` hands the value back when the page is gone.
        return;
    }
    match answer {
        Ok(tagged) => {
            state.pointed.set(None);
            state.pinned.set(None);
            if !state.threshold_chosen.get_untracked() {
                state.threshold.set(tagged.response.cutoff);
            }
            state.trouble.set(None);
            state.verdicts.update(std::collections::BTreeMap::clear);
            state.tagged_text.set(text);
            state.tagged.set(Some(tagged));
        }
        Err(message) => state
            .trouble
            .set(Some(format!("The text could not be tagged: {message}"))),
    }
}

/// Which engine runs, what was fetched, how long things took.
#[component]
pub(super) fn EngineStrip() -> impl IntoView {
    let state = expect_context::<TagState>();
    let models = expect_context::<Models>();
    let retry = move |_| models.refresh();
    let line = move || {
        match state.engine.get() {
        EngineState::Asking => view! { <p>"Asking which model tags…"</p> }.into_any(),
        EngineState::NoModel => view! {
            <p>"No model is published yet. " <a href="/train">"Train one"</a> " and publish it; then it tags here."</p>
        }
        .into_any(),
        EngineState::Loading(progress) => {
            let share = if progress.total > 0.0 { progress.done / progress.total } else { 0.0 };
            let text = if progress.total > 0.0 {
                format!(
                    "Fetching the model: {} of {}",
                    figures::bytes(progress.done as u64),
                    figures::bytes(progress.total as u64)
                )
            } else {
                "Fetching the tagger…".to_owned()
            };
            view! {
                <p>{text}</p>
                <progress max="1" prop:value=share aria-label="Loading the model"></progress>
            }
            .into_any()
        }
        EngineState::Failed(message) => view! {
            <div class="notice" role="alert">
                <p>{message}</p>
                <button on:click=retry>"Try again"</button>
            </div>
        }
        .into_any(),
        EngineState::Ready { engine, milliseconds, bytes } => {
            let model = models.active().map(|model| {
                let counts = format!(
                    "{} labels in {} clusters",
                    figures::count(model.labels),
                    figures::count(model.clusters)
                );
                view! { <p><strong>{model.name}</strong> " · " {counts}</p> }
            });
            let loaded = if bytes > 0.0 {
                format!("{} read in {}", figures::bytes(bytes as u64), figures::duration(milliseconds / 1000.0))
            } else {
                format!("ready in {}", figures::duration(milliseconds / 1000.0))
            };
            let last = move || {
                state.tagged.with(|tagged| {
                    tagged.as_ref().map(|tagged| {
                        format!("tagged in {}", figures::duration(tagged.milliseconds / 1000.0))
                    })
                })
            };
            view! {
                {model}
                <p><span class="engine-name" id="engine-name">{engine}</span></p>
                <p>{loaded}</p>
                <p id="tagging-time">{last}</p>
            }
            .into_any()
        }
    }
    };
    view! {
        <div class="engine-strip small" role="status">
            {line}
        </div>
    }
}
