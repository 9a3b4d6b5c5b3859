//! Tag a whole file: drop it, watch it, take the result away.

use gloo::file::{Blob, futures::read_as_bytes};
use gnnxml_page_logic::batch::{self, BatchFile, Form, LARGEST_FILE, refusal};
use gnnxml_page_logic::figures;
use gnnxml_shared::api::TagResponse;
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::DragEvent;

use super::state::{EngineState, TagState};
use crate::download;

/// At most so many complaints are listed; the rest is counted.
const COMPLAINTS: usize = 5;

#[derive(Clone, Debug, Default)]
struct Progress {
    name: String,
    done: usize,
    total: usize,
    stopped: bool,
    complaints: Vec<(usize, String)>,
    failed: usize,
}

/// The section at the foot of the page.
#[component]
pub(super) fn BatchPanel() -> impl IntoView {
    let state = expect_context::<TagState>();
    let progress = RwSignal::new(None::<Progress>);
    let results = StoredValue::new(Vec::<(String, TagResponse)>::new());
    let trouble = RwSignal::new(None::<String>);
    let stop = RwSignal::new(false);

    let take = move |file: web_sys::File| {
        trouble.set(None);
        spawn_local(async move {
            match read_batch(file).await {
                Ok((name, file)) => run(state, name, file, progress, results, stop).await,
                Err(message) => {
                    trouble.try_set(Some(message));
                }
            }
        });
    };
    let running = move || progress.with(|p| p.as_ref().is_some_and(|p| p.done < p.total && !p.stopped));
    let ready = move || {
        state
            .engine
            .with(|engine| matches!(engine, EngineState::Ready { .. }))
    };
    let on_drop = move |event: DragEvent| {
        event.prevent_default();
        if !ready() || running() {
            return;
        }
        if let Some(file) = event
            .data_transfer()
            .and_then(|data| data.files())
            .and_then(|files| files.get(0))
        {
            take(file);
        }
    };
    let save = move |write: fn(&[(String, TagResponse)], f32) -> String, suffix: &str, media: &str| {
        let threshold = state.threshold.get_untracked();
        let content = results.with_value(|results| write(results, threshold));
        if download::save(&format!("tags.{suffix}"), media, &content).is_err() {
            trouble.set(Some("The browser does not allow saving here.".to_owned()));
        }
    };
    let report = move || {
        progress.get().map(|progress| {
            let share = progress.done as f64 / progress.total.max(1) as f64;
            let text = format!(
                "{}: {} of {} documents tagged{}",
                progress.name,
                figures::count(progress.done as u64),
                figures::count(progress.total as u64),
                if progress.failed > 0 { format!(", {} failed", progress.failed) } else { String::new() },
            );
            let more = progress.complaints.len().saturating_sub(COMPLAINTS);
            let complaints = progress
                .complaints
                .iter()
                .take(COMPLAINTS)
                .map(|(line, what)| view! { <li>"Line " {*line} ": " {what.clone()}</li> })
                .collect_view();
            view! {
                <p id="batch-progress" role="status">{text}</p>
                <progress max="1" prop:value=share aria-label="Documents tagged"></progress>
                <ul class="complaints small">
                    {complaints}
                    {(more > 0).then(|| view! { <li>{format!("and {more} more lines that could not be read")}</li> })}
                </ul>
            }
        })
    };
    view! {
        <section class="sheet batch" aria-labelledby="batch-title"
            on:dragover=move |event: DragEvent| event.prevent_default() on:drop=on_drop>
            <div class="row spread">
                <h2 id="batch-title">"Tag a file"</h2>
                <span class="small soft">"JSONL, CSV, TSV, or TXT with one document a line; up to " {figures::bytes(LARGEST_FILE)}</span>
            </div>
            <div class="row">
                <label class="button" class:disabled=move || !ready()>
                    <input id="batch-file" class="visually-hidden" type="file" accept=".jsonl,.ndjson,.csv,.tsv,.txt"
                        disabled=move || !ready() || running()
                        on:change:target=move |event| {
                            if let Some(file) = event.target().files().and_then(|files| files.get(0)) { take(file) }
                            event.target().set_value("");
                        }/>
                    "Choose a file"
                </label>
                <button disabled=move || !running() on:click=move |_| stop.set(true)>"Stop"</button>
                <button disabled=move || progress.with(|p| p.as_ref().is_none_or(|p| p.done == 0))
                    on:click=move |_| save(batch::to_csv, "csv", "text/csv")>"Save CSV"</button>
                <button disabled=move || progress.with(|p| p.as_ref().is_none_or(|p| p.done == 0))
                    on:click=move |_| save(batch::to_jsonl, "jsonl", "application/x-ndjson")>"Save JSONL"</button>
            </div>
            {report}
            {move || trouble.get().map(|message| view! { <div class="notice" role="alert"><p>{message}</p></div> })}
        </section>
    }
}

async fn read_batch(file: web_sys::File) -> Result<(String, BatchFile), String> {
    let name = file.name();
    let Some(form) = Form::of_name(&name) else {
        return Err(format!(
            "“{name}” has an ending this page does not know. Expected .jsonl, .csv, .tsv or .txt."
        ));
    };
    if file.size() > LARGEST_FILE as f64 {
        return Err(format!(
            "“{name}” has {}; at most {} are tagged in the browser. Use `gnnxml predict` for larger files.",
            figures::bytes(file.size() as u64),
            figures::bytes(LARGEST_FILE)
        ));
    }
    let bytes = read_as_bytes(&Blob::from(web_sys::Blob::from(file)))
        .await
        .map_err(|error| format!("“{name}” cannot be read: {error}"))?;
    if let Some(reason) = refusal(&name, &bytes) {
        return Err(reason);
    }
    let content = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    let read = batch::read(form, &content);
    if read.documents.is_empty() {
        let first = read.complaints.first();
        let why = first.map_or_else(String::new, |(line, what)| format!(" Line {line}: {what}."));
        return Err(format!("“{name}” holds no document.{why}"));
    }
    Ok((name, read))
}

async fn run(
    state: TagState,
    name: String,
    file: BatchFile,
    progress: RwSignal<Option<Progress>>,
    results: StoredValue<Vec<(String, TagResponse)>>,
    stop: RwSignal<bool>,
) {
    let Some(Some(client)) = state.client.try_get_value() else {
        return;
    };
    results.set_value(Vec::new());
    stop.set(false);
    let BatchFile {
        documents,
        complaints,
    } = file;
    progress.set(Some(Progress {
        name,
        total: documents.len(),
        complaints,
        ..Progress::default()
    }));
    let options = format!("{{\"top\":{},\"explain\":false}}", super::engine::TOP);
    for document in documents {
        let answer = client.tag(&document.text, &options).await;
        if stop.try_get_untracked() != Some(false) {
            progress.try_update(|progress| {
                if let Some(progress) = progress {
                    progress.stopped = true;
                }
            });
            return;
        }
        let failed = answer.is_err();
        if let Ok(tagged) = answer {
            results.try_update_value(|results| results.push((document.id, tagged.response)));
        }
        progress.try_update(|progress| {
            if let Some(progress) = progress {
                progress.done += 1;
                progress.failed += usize::from(failed);
            }
        });
    }
}
