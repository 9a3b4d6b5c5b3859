//! Keeps the engine loaded with the active model and the tags in step with the text.

use std::rc::Rc;

use gloo::events::EventListener;
use gloo::timers::future::TimeoutFuture;
use gnnxml_page_logic::{figures, missing};
use gnnxml_shared::api::TagResponse;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast as _;
use web_sys::MessageEvent;

use super::state::{EngineState, TagState};
use crate::offline;
use crate::shell::Models;
use crate::worker_client::{LoadProgress, TaggerClient};

/// A pause in typing after which the text is tagged.
const PAUSE: u32 = 350;
/// Tags asked for: more than fit the list, so that the threshold has something to move over.
pub(super) const TOP: u32 = 30;

/// Loads the active model now and whenever another one becomes active.
pub(super) fn follow_active_model(state: TagState) {
    let models = expect_context::<Models>();
    let active = Memo::new(move |_| models.get().map(|list| list.map(|list| list.active)));
    Effect::new(move |_| {
        state.attempt.track();
        match active.get() {
            None => {}
            // A model that is loaded goes on tagging without the server.
            Some(Err(_)) if state.loaded.with_value(Option::is_some) => {}
            Some(Err(trouble)) => state.engine.set(EngineState::Failed(trouble.message)),
            Some(Ok(None)) => {
                let withdrawn = state.loaded.with_value(Option::is_some);
                state.loaded.set_value(None);
                state.engine.set(EngineState::NoModel { withdrawn });
            }
            Some(Ok(Some(id))) => spawn_local(load(state, id)),
        }
    });
    retry_by_itself(state, models);
    warn_of_full_storage(state);
}

/// The first pause before a failed load is tried again; each further pause is twice as long, up to the last.
const FIRST_PAUSE: u32 = 2_000;
const LAST_PAUSE: u32 = 30_000;

/// What failed because the server was away is tried again until it is back.
fn retry_by_itself(state: TagState, models: Models) {
    let pause = StoredValue::new(FIRST_PAUSE);
    Effect::new(move |_| match state.engine.get() {
        EngineState::Failed(_) => {
            let wait = pause.get_value();
            pause.set_value((wait * 2).min(LAST_PAUSE));
            spawn_local(async move {
                TimeoutFuture::new(wait).await;
                if matches!(state.engine.try_get_untracked(), Some(EngineState::Failed(_))) {
                    try_again(state, models);
                }
            });
        }
        EngineState::Ready { .. } => pause.set_value(FIRST_PAUSE),
        _ => {}
    });
}

fn try_again(state: TagState, models: Models) {
    models.refresh();
    state.attempt.try_update(|attempt| *attempt += 1);
}

/// The service worker says when the disk took no more; tagging goes on, offline use does not.
fn warn_of_full_storage(state: TagState) {
    let container = window().navigator().service_worker();
    let listener = EventListener::new(&container, "message", move |event| {
        let data = event.unchecked_ref::<MessageEvent>().data();
        let kind = js_sys::Reflect::get(&data, &"kind".into()).ok();
        if kind.and_then(|kind| kind.as_string()).as_deref() == Some("storage_full") {
            state.storage_warning.try_set(Some(
                "This device has no room left for the model, so tagging without the server will not work. Clear old models at the foot of the page, or free some disk space."
                    .to_owned(),
            ));
        }
    });
    let listener = StoredValue::new_local(Some(listener));
    on_cleanup(move || {
        listener.try_set_value(None);
    });
}

/// The tagger's thread, started when it is first needed.
fn client(state: TagState) -> Result<Rc<TaggerClient>, String> {
    if let Some(client) = state.client.get_value() {
        return Ok(client);
    }
    let client = Rc::new(TaggerClient::start()?);
    state.client.set_value(Some(client.clone()));
    Ok(client)
}

async fn load(state: TagState, model: String) {
    if state.loaded.with_value(|loaded| loaded.as_ref() == Some(&model)) {
        return;
    }
    state.engine.set(EngineState::Loading(LoadProgress::default()));
    let client = match client(state) {
        Ok(client) => client,
        Err(message) => {
            state.engine.set(EngineState::Failed(message));
            return;
        }
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
    let models = expect_context::<Models>();
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
            state.warning.set(None);
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
                tag(state, models, text).await;
            }
        });
    });
}

/// Texts up to this length get a graph while no model is there.
const LONGEST_SKETCH: usize = 60_000;

/// Draws the KeyGraph while no model is there; it needs none.
fn sketch(state: TagState, text: String, generation: StoredValue<u64>, mine: u64) {
    if text.len() > LONGEST_SKETCH {
        return;
    }
    spawn_local(async move {
        TimeoutFuture::new(PAUSE).await;
        if generation.try_get_value() != Some(mine) {
            return;
        }
        // While a model is on its way the worker answers after it; then the tags bring their own graph.
        let Ok(client) = client(state) else { return };
        if let Ok(graph) = client.sketch(&text).await
            && generation.try_get_value() == Some(mine)
        {
            state.sketch.set(Some((text, graph)));
        }
    });
}

async fn tag(state: TagState, models: Models, text: String) {
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
                state.threshold.set(first_threshold(&tagged.response));
            }
            state.trouble.set(None);
            let missing = missing::clusters(&tagged.response);
            if missing.is_some() {
                // The model may have been deleted on the server, and another one have taken its place.
                models.refresh();
            }
            state.warning.set(missing);
            state.verdicts.update(std::collections::BTreeMap::clear);
            state.tagged_text.set(text);
            state.tagged.set(Some(tagged));
        }
        Err(message) => state
            .trouble
            .set(Some(format!("The text could not be tagged: {message}"))),
    }
}

/// The model's own cut-off; where no tag reaches it, low enough for the best few, whose bars say how unsure they are.
fn first_threshold(response: &TagResponse) -> f32 {
    let reached = response.tags.iter().any(|tag| tag.score >= response.cutoff);
    let best_few = response.tags.iter().map(|tag| tag.score).take(3).next_back();
    match best_few {
        Some(score) if !reached => (score * 100.0).floor() / 100.0,
        _ => response.cutoff,
    }
}

/// Which engine runs, what was fetched, how long things took.
#[component]
pub(super) fn EngineStrip() -> impl IntoView {
    let state = expect_context::<TagState>();
    let models = expect_context::<Models>();
    let retry = move |_| try_again(state, models);
    let line = move || {
        match state.engine.get() {
        EngineState::Asking => view! { <p>"Asking which model tags…"</p> }.into_any(),
        EngineState::NoModel { withdrawn } => view! {
            <p>{withdrawn.then_some("The model that tagged here was deleted on the server. ")} "No model is published yet. " <a href="/train">"Train one"</a> " and publish it; then it tags here."</p>
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
