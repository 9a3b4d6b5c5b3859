//! Starting a run: corpus, preset, and what few people change.

use gloo::net::http::Method;
use gnnxml_shared::api::{Preset, Run, StartRun};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_navigate;
use web_sys::SubmitEvent;

use super::TrainState;
use crate::notice::TroubleNotice;
use crate::server::{self, Trouble};

/// A preset with what it means.
const PRESETS: [(Preset, &str, &str); 3] = [
    (
        Preset::Fast,
        "Fast",
        "Goes by the words alone: nothing to fetch. Seconds to a minute.",
    ),
    (
        Preset::Balanced,
        "Balanced",
        "Uses word vectors distilled from a transformer. Needs them on the server.",
    ),
    (
        Preset::Best,
        "Best",
        "Reads first sentences with a transformer, too. Needs its weights, takes longest.",
    ),
];

#[component]
pub(super) fn StartForm() -> impl IntoView {
    let state = expect_context::<TrainState>();
    let preset = RwSignal::new(Preset::Fast);
    let name = RwSignal::new(String::new());
    let seed = RwSignal::new(String::new());
    let config = RwSignal::new(String::new());
    let valid = RwSignal::new(None::<u64>);
    let trouble = RwSignal::new(None::<Trouble>);
    let sending = RwSignal::new(false);
    let navigate = use_navigate();

    // The newest corpus is the likely one.
    Effect::new(move |_| {
        let newest = state.corpora.with(|list| {
            let list = list.as_ref()?.as_ref().ok()?;
            list.corpora.first().map(|corpus| corpus.id)
        });
        if state.chosen_corpus.get_untracked().is_none() {
            state.chosen_corpus.set(newest);
        }
    });
    let options = move |chosen: Option<u64>| {
        state.corpora.with(|list| {
            let known = list.as_ref().and_then(|list| list.as_ref().ok());
            known.map(|list| {
                list.corpora
                    .iter()
                    .map(|corpus| {
                        let id = corpus.id;
                        view! { <option value=id.to_string() selected=chosen == Some(id)>{corpus.name.clone()}</option> }
                    })
                    .collect_view()
            })
        })
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let Some(corpus) = state.chosen_corpus.get_untracked() else {
            return;
        };
        let written = |signal: RwSignal<String>| {
            let text = signal.get_untracked();
            (!text.trim().is_empty()).then(|| text.trim().to_owned())
        };
        let seed = match written(seed).map(|text| text.parse::<u64>()) {
            None => None,
            Some(Ok(seed)) => Some(seed),
            Some(Err(_)) => {
                trouble.set(Some(Trouble::new(
                    "The seed must be a whole number, 0 or larger.",
                )));
                return;
            }
        };
        let request = StartRun {
            corpus,
            valid: valid.get_untracked(),
            name: written(name),
            preset: preset.get_untracked(),
            config: written(config),
            seed,
            threads: None,
        };
        sending.set(true);
        let navigate = navigate.clone();
        spawn_local(async move {
            let answer: Result<Run, Trouble> = server::send(Method::POST, "/api/v1/runs", &request).await;
            sending.try_set(false);
            match answer {
                Ok(run) => navigate(
                    &format!("/train/run/{}", run.id),
                    leptos_router::NavigateOptions::default(),
                ),
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let presets = PRESETS.map(|(value, title, explained)| {
        view! {
            <label class="preset" class:chosen=move || preset.get() == value>
                <input type="radio" name="preset" prop:checked=move || preset.get() == value on:change=move |_| preset.set(value)/>
                <span><strong>{title}</strong><span class="small soft block">{explained}</span></span>
            </label>
        }
    });
    view! {
        <form class="sheet stack" aria-labelledby="start-title" on:submit=submit>
            <h2 id="start-title">"Start a run"</h2>
            <label class="field"><span>"Corpus"</span>
                <select id="run-corpus" on:change:target=move |event| state.chosen_corpus.set(event.target().value().parse().ok())>
                    {move || options(state.chosen_corpus.get())}
                </select>
            </label>
            <fieldset class="presets"><legend>"Preset"</legend>{presets}</fieldset>
            <details>
                <summary>"More settings"</summary>
                <div class="stack more">
                    <label class="field"><span>"Name"</span>
                        <input type="text" maxlength="80" prop:value=move || name.get() on:input:target=move |event| name.set(event.target().value())/>
                    </label>
                    <label class="field"><span>"Validate on"</span>
                        <select on:change:target=move |event| valid.set(event.target().value().parse().ok())>
                            <option value="">"documents held out of the corpus"</option>
                            {move || options(None)}
                        </select>
                    </label>
                    <label class="field"><span>"Seed"</span>
                        <input type="text" inputmode="numeric" prop:value=move || seed.get() on:input:target=move |event| seed.set(event.target().value())/>
                    </label>
                    <label class="field"><span>"Settings (TOML) that override the preset"</span>
                        <textarea class="mono" rows="4" spellcheck="false" prop:value=move || config.get() on:input:target=move |event| config.set(event.target().value())></textarea>
                    </label>
                </div>
            </details>
            {move || trouble.get().map(|trouble| view! { <TroubleNotice trouble/> })}
            <div><button class="primary" type="submit" disabled=move || state.chosen_corpus.get().is_none() || sending.get()>"Start training"</button></div>
        </form>
    }
}
