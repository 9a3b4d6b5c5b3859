//! The tags as bars: threshold, accept and reject, copy.

use gnnxml_page_logic::{batch, figures};
use gnnxml_shared::api::{NewFeedback, Tag, TagResponse};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::state::{EngineState, Lit, TagState};
use crate::download;
use crate::server;
use crate::shell::Models;
use crate::worker_client::Tagged;

/// Heading, slider, bars and what can be done with them.
#[component]
pub(super) fn TagList() -> impl IntoView {
    let state = expect_context::<TagState>();
    let shown = move || {
        let threshold = state.threshold.get();
        state.tagged.with(|tagged| {
            tagged.as_ref().map_or((0, 0), |tagged| {
                let tags = &tagged.response.tags;
                (
                    tags.iter().filter(|tag| tag.score >= threshold).count(),
                    tags.len(),
                )
            })
        })
    };
    let above = Memo::new(move |_| {
        let threshold = state.threshold.get();
        state.tagged.with(|tagged| {
            tagged.as_ref().map_or_else(Vec::new, |tagged| {
                tagged
                    .response
                    .tags
                    .iter()
                    .filter(|tag| tag.score >= threshold)
                    .cloned()
                    .collect::<Vec<Tag>>()
            })
        })
    });
    // Nothing reached the model's own cut-off, and the slider is where the page put it.
    let below_cutoff = move || {
        let unsure = |tagged: &Tagged| {
            let response = &tagged.response;
            response.tags.iter().all(|tag| tag.score < response.cutoff)
        };
        !state.threshold_chosen.get() && state.tagged.with(|tagged| tagged.as_ref().is_some_and(unsure))
    };
    let summary = move || match shown() {
        (_, 0) => String::new(),
        (kept, all) if below_cutoff() => format!("unsure: the best {kept} of {all}"),
        (kept, all) => format!("{kept} of {all} from {}", figures::percent(state.threshold.get())),
    };
    let nothing = move || {
        above.with(Vec::is_empty).then(|| {
            let message = match (state.text.with(String::is_empty), state.engine.get(), shown()) {
                (_, EngineState::NoModel { .. }, _) => "Tags appear here once a model is published.",
                (true, ..) => "Tags appear here as soon as there is a text.",
                (_, EngineState::Ready { .. }, (0, 0)) if state.is_fresh() => {
                    "No tag was found for this text."
                }
                (_, EngineState::Ready { .. }, (0, 0)) => "Tagging…",
                (_, EngineState::Ready { .. }, (0, _)) => {
                    "No tag is this probable. Move the threshold to the left."
                }
                _ => "Tags appear here once the model is loaded.",
            };
            view! { <p class="empty">{message}</p> }
        })
    };
    view! {
        <div class="row spread">
            <h2 id="tags-title">"Tags"</h2>
            <span class="small soft" id="tag-count" aria-live="polite">{summary}</span>
        </div>
        <label class="threshold">
            <span class="small soft">"Show from"</span>
            <input id="threshold" type="range" min="0" max="0.99" step="0.01"
                prop:value=move || state.threshold.get()
                aria-valuetext=move || figures::percent(state.threshold.get())
                on:input:target=move |event| {
                    if let Ok(value) = event.target().value().parse() {
                        state.threshold_chosen.set(true);
                        state.threshold.set(value);
                    }
                }/>
            <output class="small number">{move || figures::percent(state.threshold.get())}</output>
        </label>
        {move || state.warning.get().map(|message| view! {
            <div class="notice small" role="status">
                <p>{message}</p>
                <button class="small" on:click=move |_| state.tag_again()>"Try again"</button>
            </div>
        })}
        {move || state.storage_warning.get().map(|message| view! { <div class="notice small" role="status"><p>{message}</p></div> })}
        <ol class="tag-list" aria-busy=move || state.busy.get().to_string() class:stale=move || !state.is_fresh()>
            <For each=move || above.get() key=|tag| (tag.label, tag.score.to_bits()) let:tag>
                <TagBar tag/>
            </For>
        </ol>
        {nothing}
        <TagActions/>
    }
}

#[component]
fn TagBar(tag: Tag) -> impl IntoView {
    let state = expect_context::<TagState>();
    let lit = Lit::Tag(tag.label);
    let is_lit = move || state.lit() == Some(lit);
    // A lit vertex lights the tags it speaks for.
    let from_vertex = {
        let vertices: Vec<usize> = tag
            .evidence
            .iter()
            .flat_map(|evidence| &evidence.vertices)
            .filter(|vertex| vertex.weight > 0.0)
            .map(|vertex| vertex.vertex)
            .collect();
        move || matches!(state.lit(), Some(Lit::Vertex(id)) if vertices.contains(&id))
    };
    let name = StoredValue::new(tag.name.clone());
    let verdict = move || {
        state
            .verdicts
            .with(|verdicts| name.with_value(|name| verdicts.get(name).copied()))
    };
    let judge = move |good: bool| {
        state.verdicts.update(|verdicts| {
            let name = name.get_value();
            if verdicts.get(&name) == Some(&good) {
                verdicts.remove(&name);
            } else {
                verdicts.insert(name, good);
            }
        });
    };
    let width = format!("{:.1}%", tag.score * 100.0);
    let accept_label = format!("Accept {}", tag.name);
    let reject_label = format!("Reject {}", tag.name);
    view! {
        <li class="tag" class:lit=is_lit class:touched=from_vertex
            class:accepted=move || verdict() == Some(true) class:rejected=move || verdict() == Some(false)
            on:pointerenter=move |_| state.pointed.set(Some(lit))
            on:pointerleave=move |_| state.pointed.set(None)
        >
            <button class="tag-name quiet" aria-pressed=move || (state.pinned.get() == Some(lit)).to_string()
                on:click=move |_| state.toggle_pin(lit)
                on:focus=move |_| state.pointed.set(Some(lit))
                on:blur=move |_| state.pointed.set(None)
            >
                <span class="tag-text">{tag.name.clone()}</span>
                <span class="tag-score">{figures::percent(tag.score)}</span>
                <span class="bar" aria-hidden="true"><span class="bar-fill" style:width=width></span></span>
            </button>
            <button class="verdict quiet" aria-label=accept_label title="Right"
                aria-pressed=move || (verdict() == Some(true)).to_string() on:click=move |_| judge(true)>"✓"</button>
            <button class="verdict quiet" aria-label=reject_label title="Wrong"
                aria-pressed=move || (verdict() == Some(false)).to_string() on:click=move |_| judge(false)>"✕"</button>
        </li>
    }
}

/// The tags a person would keep: accepted ones, and those above the threshold that were not rejected.
fn kept(state: TagState) -> Option<TagResponse> {
    state.tagged.with_untracked(|tagged| {
        let mut response = tagged.as_ref()?.response.clone();
        let threshold = state.threshold.get_untracked();
        state.verdicts.with_untracked(|verdicts| {
            response.tags.retain(|tag| match verdicts.get(&tag.name) {
                Some(&good) => good,
                None => tag.score >= threshold,
            });
        });
        Some(response)
    })
}

/// A training document from the text and the accepted tags: saved as a file, never sent.
fn training_line(state: TagState) -> Option<String> {
    let response = kept(state)?;
    let labels: Vec<&str> = response.tags.iter().map(|tag| tag.name.as_str()).collect();
    let text = state.tagged_text.get_untracked();
    let line = serde_json::json!({ "id": "corrected-1", "text": text, "labels": labels });
    Some(format!("{line}\n"))
}

#[component]
fn TagActions() -> impl IntoView {
    let state = expect_context::<TagState>();
    let models = expect_context::<Models>();
    let said = RwSignal::new(String::new());
    let copy = move |write: fn(&[(String, TagResponse)], f32) -> String, what: &'static str| {
        let Some(response) = kept(state) else { return };
        let content = write(&[("text".to_owned(), response)], 0.0);
        spawn_local(async move {
            let message = if download::copy(&content).await {
                format!("Copied as {what}.")
            } else {
                "The browser does not allow copying here.".to_owned()
            };
            said.try_set(message);
        });
    };
    let send = move |_| {
        let (accepted, rejected) = state.verdicts.with_untracked(|verdicts| {
            let names = |good: bool| {
                verdicts
                    .iter()
                    .filter(|(_, verdict)| **verdict == good)
                    .map(|(name, _)| name.clone())
                    .collect()
            };
            (names(true), names(false))
        });
        let model = models.active().map(|model| model.id);
        // The text itself stays here: only the names of the labels go.
        let feedback = NewFeedback {
            text: None,
            keep_text: false,
            accepted,
            rejected,
            model,
        };
        spawn_local(async move {
            let sent: Result<serde_json::Value, _> =
                server::send(gloo::net::http::Method::POST, "/api/v1/feedback", &feedback).await;
            said.try_set(match sent {
                Ok(_) => "Sent: the label names only, not the text.".to_owned(),
                Err(trouble) => trouble.message,
            });
        });
    };
    let save = move |_| {
        if let Some(line) = training_line(state) {
            let saved = download::save("corrected.jsonl", "application/x-ndjson", &line);
            said.set(match saved {
                Ok(()) => "Saved; drop the file on the Train page to learn from it.".to_owned(),
                Err(_) => "The browser does not allow saving here.".to_owned(),
            });
        }
    };
    let has_tags = move || state.tagged.with(|tagged| tagged.is_some());
    let has_verdicts = move || state.verdicts.with(|verdicts| !verdicts.is_empty());
    view! {
        <div class="row tag-actions" class:unseen=move || !has_tags()>
            <button class="small" disabled=move || !has_tags() on:click=move |_| copy(batch::to_jsonl, "JSON")>"Copy JSON"</button>
            <button class="small" disabled=move || !has_tags() on:click=move |_| copy(batch::to_csv, "CSV")>"CSV"</button>
            <button class="small" disabled=move || !has_tags() on:click=save title="Text and kept tags as one training document, as a file">"Save example"</button>
            <button class="small" disabled=move || !has_verdicts() on:click=send title="Tells the server which labels you accepted and rejected; the text stays here">"Send verdicts"</button>
        </div>
        <p class="small soft said" role="status">{move || said.get()}</p>
    }
}
