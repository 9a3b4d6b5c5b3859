//! Corpora: drop one, see its figures and what is wrong with it at once.

use gloo::net::http::Method;
use gnnxml_page_logic::figures;
use gnnxml_page_logic::long_tail::TailPoint;
use gnnxml_shared::api::CorpusEntry;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::closure::Closure;
use web_sys::{DragEvent, Event, File, ProgressEvent, XmlHttpRequest};

use super::TrainState;
use crate::long_tail::LongTailPlot;
use crate::notice::TroubleNotice;
use crate::server::{self, Trouble};

/// An upload under way.
#[derive(Clone, Debug, PartialEq)]
struct Upload {
    name: String,
    sent: f64,
    total: f64,
}

#[component]
pub(super) fn CorporaPanel() -> impl IntoView {
    let state = expect_context::<TrainState>();
    let upload = RwSignal::new(None::<Upload>);
    let trouble = RwSignal::new(None::<Trouble>);
    let dropping = RwSignal::new(false);
    let take = move |file: File| {
        trouble.set(None);
        spawn_local(async move {
            let answer = send_file(file, upload).await;
            upload.try_set(None);
            match answer {
                Ok(corpus) => {
                    state.chosen_corpus.try_set(Some(corpus.id));
                    state.opened_corpus.try_set(Some(corpus.id));
                    state.refresh_corpora();
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let on_drop = move |event: DragEvent| {
        event.prevent_default();
        dropping.set(false);
        if let Some(file) = event
            .data_transfer()
            .and_then(|data| data.files())
            .and_then(|files| files.get(0))
        {
            take(file);
        }
    };
    let remove = move |id: u64| {
        spawn_local(async move {
            trouble.try_set(
                server::command(Method::DELETE, &format!("/api/v1/corpora/{id}"))
                    .await
                    .err(),
            );
            state.refresh_corpora();
        });
    };
    let list = move || {
        state.corpora.with(|list| {
            let list = list.as_ref()?.as_ref().ok()?;
            Some(
                list.corpora
                    .iter()
                    .map(|corpus| entry(state, corpus, remove))
                    .collect_view(),
            )
        })
    };
    let progress = move || {
        upload.get().map(|upload| {
            let share = if upload.total > 0.0 {
                upload.sent / upload.total
            } else {
                0.0
            };
            let text = if share >= 1.0 {
                format!("{}: the server reads it…", upload.name)
            } else {
                format!(
                    "{}: {} of {}",
                    upload.name,
                    figures::bytes(upload.sent as u64),
                    figures::bytes(upload.total as u64)
                )
            };
            view! {
                <p class="small" role="status">{text}</p>
                <progress max="1" prop:value=share aria-label="Upload"></progress>
            }
        })
    };
    view! {
        <section class="sheet stack" aria-labelledby="corpora-title">
            <h2 id="corpora-title">"Corpora"</h2>
            <div class="drop" class:dropping=move || dropping.get()
                on:dragover=move |event: DragEvent| { event.prevent_default(); dropping.set(true) }
                on:dragleave=move |_| dropping.set(false) on:drop=on_drop>
                <label class="button">
                    <input id="corpus-file" class="visually-hidden" type="file"
                        on:change:target=move |event| {
                            if let Some(file) = event.target().files().and_then(|files| files.get(0)) { take(file) }
                            event.target().set_value("");
                        }/>
                    "Upload a corpus"
                </label>
                <p class="small soft">"or drop it here: JSONL with " <code>"text"</code> " and " <code>"labels"</code> ", CSV, TSV, Annif or repository files; gzip and zstd too."</p>
                {progress}
            </div>
            {move || trouble.get().map(|trouble| view! { <TroubleNotice trouble/> })}
            <div class="corpora">{list}</div>
        </section>
    }
}

fn entry<R: Fn(u64) + Copy + Send + 'static>(
    state: TrainState,
    corpus: &CorpusEntry,
    remove: R,
) -> impl IntoView + use<R> {
    let id = corpus.id;
    let stats = &corpus.stats;
    let line = format!(
        "{} documents, {} labels",
        figures::count(stats.documents),
        figures::count(stats.labels)
    );
    let complaints = stats
        .complaints
        .iter()
        .take(20)
        .map(|complaint| view! { <li>{complaint.to_string()}</li> })
        .collect_view();
    let left_out = stats.skipped;
    let facts = [
        (
            "Labels a document",
            format!("{:.1}", stats.labels_per_document.mean),
        ),
        (
            "Words a document",
            figures::count(stats.words_per_document.median),
        ),
        (
            "Documents a label",
            figures::count(stats.documents_per_label.median),
        ),
        ("Duplicates", figures::count(stats.duplicates)),
        ("Without a label", figures::count(stats.unlabelled)),
        ("Without a text", figures::count(stats.empty_texts)),
    ];
    let facts = facts
        .into_iter()
        .map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> })
        .collect_view();
    let curve: Vec<TailPoint> = stats
        .curve
        .iter()
        .map(|point| TailPoint {
            rank: point.rank as u32,
            count: point.documents as u32,
        })
        .collect();
    let frequent: Vec<String> = stats
        .most_frequent
        .iter()
        .map(|label| label.name.clone())
        .collect();
    view! {
        <details class="corpus" open=move || state.opened_corpus.get() == Some(id)>
            <summary><strong>{corpus.name.clone()}</strong><span class="small soft">{line}</span></summary>
            <div class="stack">
                <dl class="facts">{facts}</dl>
                <LongTailPlot points=curve/>
                <p class="small soft">"Most frequent: " {frequent.join(", ")}</p>
                {(left_out > 0 || !stats.complaints.is_empty()).then(|| view! {
                    <div class="stack">
                        <p class="small"><strong>{format!("{} records were left out", figures::count(left_out))}</strong></p>
                        <ul class="complaints small">{complaints}</ul>
                    </div>
                })}
                <div class="row">
                    <button class="small" on:click=move |_| state.chosen_corpus.set(Some(id))>"Train on it"</button>
                    <button class="small quiet danger" on:click=move |_| remove(id)>"Delete"</button>
                </div>
            </div>
        </details>
    }
}

/// Uploads with progress, which `fetch` cannot report.
async fn send_file(file: File, upload: RwSignal<Option<Upload>>) -> Result<CorpusEntry, Trouble> {
    let name = file.name();
    let failed = |what: &str| Trouble::new(format!("“{name}” could not be sent: {what}"));
    let request = XmlHttpRequest::new().map_err(|_| failed("the browser refused the request"))?;
    let address = format!("/api/v1/corpora?name={}", js_sys::encode_uri_component(&name));
    request
        .open("POST", &address)
        .map_err(|_| failed("the address was refused"))?;
    request
        .set_request_header("content-type", "application/octet-stream")
        .map_err(|_| failed("a header was refused"))?;
    upload.set(Some(Upload {
        name: name.clone(),
        sent: 0.0,
        total: file.size(),
    }));
    let on_progress = Closure::<dyn FnMut(ProgressEvent)>::new(move |event: ProgressEvent| {
        upload.try_update(|upload| {
            if let Some(upload) = upload {
                upload.sent = event.loaded();
                upload.total = event.total();
            }
        });
    });
    if let Ok(channel) = request.upload() {
        channel.set_onprogress(Some(on_progress.as_ref().unchecked_ref()));
    }
    let (done, finished) = futures::channel::oneshot::channel::<()>();
    let mut done = Some(done);
    let on_end = Closure::<dyn FnMut(Event)>::new(move |_: Event| {
        if let Some(done) = done.take() {
            let _ = done.send(());
        }
    });
    request.set_onloadend(Some(on_end.as_ref().unchecked_ref()));
    request
        .send_with_opt_blob(Some(&file))
        .map_err(|_| failed("the browser refused to send it"))?;
    let _ = finished.await;
    let status = request.status().unwrap_or(0);
    let body = request.response_text().ok().flatten().unwrap_or_default();
    match status {
        0 => Err(failed(
            "the server does not answer, or closed the line. Try again.",
        )),
        200..300 => serde_json::from_str(&body).map_err(|error| {
            failed(&format!(
                "the server's answer is not what this page expects ({error})"
            ))
        }),
        _ => Err(Trouble::of_body(status, &body)),
    }
}
