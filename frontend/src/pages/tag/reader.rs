//! The text box, with marks behind the letters.
//!
//! The letters are the textarea's own; a copy of the text behind it carries only backgrounds and underlines. So typing
//! is never slower than in a plain box, whatever is marked.

use std::collections::BTreeSet;

use gloo::file::{Blob, futures::read_as_bytes};
use gloo::timers::callback::Timeout;
use gnnxml_page_logic::batch::{LONGEST_TEXT, refusal};
use gnnxml_page_logic::figures;
use gnnxml_page_logic::highlight::{Layer, Mark, Marks, html, pieces};
use gnnxml_shared::keygraph::VertexKind;
use leptos::html::Textarea;
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::{DragEvent, HtmlTextAreaElement};

use super::examples::EXAMPLES;
use super::state::{Lit, TagState};

/// So many bytes are marked while nothing is lit: laying out more marks would be felt while typing.
const MARKED: usize = 24_000;
/// So many are marked when the person lights something up, which may take a moment.
const MARKED_WHEN_LIT: usize = 100_000;

/// Above this many bytes the copy follows the text only when typing pauses.
const LONGEST_COPIED_AT_ONCE: usize = 12_000;
/// That pause, in milliseconds.
const PAUSE: u32 = 250;

/// The left column.
#[component]
pub(super) fn Reader() -> impl IntoView {
    let state = expect_context::<TagState>();
    let field = NodeRef::<Textarea>::new();
    let dropping = RwSignal::new(false);
    let length = move || {
        let bytes = state.text.with(String::len);
        let words = state.text.with(|text| {
            // Counting words of a very long text on every key would be felt.
            if text.len() <= MARKED_WHEN_LIT {
                Some(text.split_whitespace().count())
            } else {
                None
            }
        });
        match words {
            Some(words) => format!("{} words", figures::count(words as u64)),
            None => figures::bytes(bytes as u64),
        }
    };
    let take_file = move |file: web_sys::File| {
        spawn_local(async move {
            match read_text_file(file).await {
                Ok(text) => take_text(state, text),
                Err(message) => state.trouble.set(Some(message)),
            }
        });
    };
    let typed = move |field: HtmlTextAreaElement| {
        // Asked before the text is copied: a hundred megabytes would be felt.
        let units = field.text_length() as usize;
        if units <= LONGEST_TEXT {
            take_text(state, field.value());
        } else {
            refuse(state, units);
            field.set_value(&state.text.get_untracked());
        }
    };
    let drop_file = move |event: DragEvent| {
        event.prevent_default();
        dropping.set(false);
        let Some(data) = event.data_transfer() else { return };
        if let Some(file) = data.files().and_then(|files| files.get(0)) {
            take_file(file);
        } else if let Ok(text) = data.get_data("text/plain") {
            take_text(state, text);
        }
    };
    let examples = EXAMPLES.map(|(name, text)| {
        view! { <button class="try small" on:click=move |_| state.text.set(text.to_owned())>{name}</button> }
    });
    view! {
        <section class="stack reader-column" aria-labelledby="text-title">
            <div class="row spread">
                <h2 id="text-title">"Text"</h2>
                <span class="row">
                    <span class="small soft" id="text-length">{length}</span>
                    <button class="quiet small clear" class:unseen=move || state.text.with(String::is_empty)
                        on:click=move |_| { state.text.set(String::new()); if let Some(field) = field.get() { let _ = field.focus(); } }
                    >"Clear"</button>
                </span>
            </div>
            <div class="reader" class:dropping=move || dropping.get()
                on:dragover=move |event: DragEvent| { event.prevent_default(); dropping.set(true) }
                on:dragleave=move |_| dropping.set(false)
                on:drop=drop_file
            >
                <div class="reader-page">
                    <Backdrop/>
                    <textarea
                        id="text" node_ref=field class="reader-text" spellcheck="false" autocomplete="off"
                        aria-labelledby="text-title" aria-describedby="text-help"
                        placeholder="Paste a text, drop a file, or try one of those below. Nothing you put here leaves this device."
                        prop:value=move || state.text.get()
                        on:input:target=move |event| typed(event.target())
                    ></textarea>
                </div>
            </div>
            <div class="row tries">
                <span class="small soft" id="text-help">"Try"</span>
                {examples}
            </div>
            {move || state.trouble.get().map(|message| view! { <div class="notice" role="alert"><p>{message}</p></div> })}
        </section>
    }
}

/// Puts a text into the box, unless it is too long.
fn take_text(state: TagState, text: String) {
    if text.len() > LONGEST_TEXT {
        refuse(state, text.len());
    } else {
        state.text.set(text);
    }
}

/// Says that a text was too long; the box keeps what it held.
fn refuse(state: TagState, bytes: usize) {
    state.trouble.set(Some(format!(
        "That text has {} and was not taken: at most {} are tagged as one. Cut it, or give it to “Tag a file” below with one document a line.",
        figures::bytes(bytes as u64),
        figures::bytes(LONGEST_TEXT as u64)
    )));
}

async fn read_text_file(file: web_sys::File) -> Result<String, String> {
    let name = file.name();
    if file.size() > LONGEST_TEXT as f64 {
        return Err(format!(
            "“{name}” has {}; one text may have {}. To tag a file with many documents use “Tag a file” below.",
            figures::bytes(file.size() as u64),
            figures::bytes(LONGEST_TEXT as u64)
        ));
    }
    let bytes = read_as_bytes(&Blob::from(web_sys::Blob::from(file)))
        .await
        .map_err(|error| format!("“{name}” cannot be read: {error}"))?;
    match refusal(&name, &bytes) {
        Some(reason) => Err(reason),
        None => String::from_utf8(bytes).map_err(|error| error.to_string()),
    }
}

/// The copy behind the letters.
#[component]
fn Backdrop() -> impl IntoView {
    let state = expect_context::<TagState>();
    // A long text is copied when typing pauses; until then the copy stays what it was, and unseen.
    let paused_at = RwSignal::new(String::new());
    let waiting = StoredValue::new_local(None::<Timeout>);
    Effect::new(move |_| {
        let long = state.text.with(String::len) > LONGEST_COPIED_AT_ONCE;
        let pause = move || Timeout::new(PAUSE, move || paused_at.set(state.text.get_untracked()));
        waiting.set_value(long.then(pause));
    });
    let is_behind = Memo::new(move |_| {
        state
            .text
            .with(|text| text.len() > LONGEST_COPIED_AT_ONCE && paused_at.with(|paused| paused != text))
    });
    let last = StoredValue::new(String::new());
    let content = move || {
        if is_behind.get() {
            return last.get_value();
        }
        // Without marks the copy still gives the box its height.
        let mut layers = if state.has_fresh_graph() {
            layers(state)
        } else {
            Vec::new()
        };
        let marked = if state.lit().is_some() {
            MARKED_WHEN_LIT
        } else {
            MARKED
        };
        layers.retain(|layer| layer.end <= marked);
        let entities = state
            .with_graph(|graph| {
                let vertices = graph.vertices().iter();
                vertices
                    .filter(|vertex| vertex.kind == VertexKind::Entity)
                    .map(|vertex| vertex.id)
                    .collect::<BTreeSet<_>>()
            })
            .unwrap_or_default();
        let mut shown = state
            .text
            .with(|text| html(text, &pieces(text, &layers), |marks| class(marks, &entities)));
        // A last empty line counts in the box, and here only when something stands on it.
        shown.push_str("\n ");
        last.set_value(shown.clone());
        shown
    };
    view! { <div class="reader-back" class:behind=move || is_behind.get() aria-hidden="true" inner_html=content></div> }
}

/// Everything to mark now: sentences and vertices always, evidence for what is lit.
fn layers(state: TagState) -> Vec<Layer> {
    let lit = state.lit();
    let evidence = match lit {
        Some(Lit::Tag(label)) => state.evidence_of(label),
        _ => None,
    };
    let graph_layers = state.with_graph(|graph| {
        let mut layers = Vec::new();
        let lit_vertex = match lit {
            Some(Lit::Vertex(id)) => graph.vertices().iter().find(|vertex| vertex.id == id),
            _ => None,
        };
        for (index, sentence) in graph.sentences().iter().enumerate() {
            layers.push(Layer {
                start: sentence.start,
                end: sentence.end,
                mark: Mark::Sentence(index),
            });
            let from_vertex = lit_vertex.is_some_and(|vertex| vertex.sentences.contains(&index));
            let from_tag = evidence.as_ref().and_then(|evidence| {
                let largest = evidence
                    .sentences
                    .iter()
                    .map(|other| other.weight)
                    .fold(0.0f32, f32::max)
                    .max(1e-6);
                let own = evidence.sentences.iter().find(|other| other.sentence == index)?;
                Some((own.weight / largest).clamp(0.0, 1.0))
            });
            let weight = if from_vertex { 1.0 } else { from_tag.unwrap_or(0.0) };
            if weight > 0.0 {
                layers.push(Layer {
                    start: sentence.start,
                    end: sentence.end,
                    mark: Mark::SentenceEvidence(weight),
                });
            }
        }
        for vertex in graph
            .vertices()
            .iter()
            .filter(|vertex| vertex.kind != VertexKind::Empty)
        {
            let own = lit_vertex.is_some_and(|lit| lit.id == vertex.id);
            for &[start, end] in &vertex.spans {
                layers.push(Layer {
                    start,
                    end,
                    mark: Mark::Vertex(vertex.id),
                });
                if own {
                    layers.push(Layer {
                        start,
                        end,
                        mark: Mark::Evidence(1.0),
                    });
                }
            }
        }
        layers
    });
    let mut layers = graph_layers.unwrap_or_default();
    if let Some(evidence) = evidence {
        let largest = evidence
            .words
            .iter()
            .map(|word| word.weight.abs())
            .fold(0.0f32, f32::max)
            .max(1e-6);
        for word in &evidence.words {
            for &[start, end] in &word.spans {
                layers.push(Layer {
                    start,
                    end,
                    mark: Mark::Evidence(word.weight / largest),
                });
            }
        }
    }
    layers
}

/// The classes of a piece; none for plain text.
fn class(marks: &Marks, entities: &BTreeSet<usize>) -> String {
    let evidence = match marks.evidence {
        weight if weight > 0.66 => " for-3",
        weight if weight > 0.33 => " for-2",
        weight if weight > 0.0 => " for-1",
        weight if weight < 0.0 => " against",
        _ => "",
    };
    let sentence = match marks.sentence_evidence {
        weight if weight > 0.6 => " sentence-2",
        weight if weight > 0.05 => " sentence-1",
        _ => "",
    };
    let kind = match marks.vertex {
        Some(id) if entities.contains(&id) => " entity",
        Some(_) => " keyword",
        None => "",
    };
    if kind.is_empty() && evidence.is_empty() && sentence.is_empty() {
        return String::new();
    }
    format!("piece{kind}{evidence}{sentence}")
}
