//! Search with instant results: everything is in memory.

use std::sync::Arc;

use gnnxml_page_logic::figures;
use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use web_sys::KeyboardEvent;

use super::Focus;
use super::vocabulary::{Found, Vocabulary};

const SHOWN: usize = 12;

/// The search field with its results.
#[component]
pub(super) fn SearchBox(vocabulary: Arc<Vocabulary>) -> impl IntoView {
    let query = RwSignal::new(String::new());
    let navigate = use_navigate();
    let best = {
        let vocabulary = vocabulary.clone();
        move || vocabulary.search(&query.get_untracked(), 1).0.first().copied()
    };
    let on_key = move |event: KeyboardEvent| match event.key().as_str() {
        "Escape" => query.set(String::new()),
        "Enter" => {
            if let Some(found) = best() {
                navigate(&address(found), leptos_router::NavigateOptions::default());
                query.set(String::new());
            }
        }
        _ => {}
    };
    let results = move || {
        let text = query.get();
        if text.trim().is_empty() {
            return None;
        }
        let (found, total) = vocabulary.search(&text, SHOWN);
        let rows = found
            .iter()
            .map(|&found| {
                let (name, note) = match found {
                    Found::Cluster(id) => {
                        let cluster = vocabulary.cluster(id);
                        let labels = cluster.map_or(0, |cluster| cluster.labels);
                        (
                            cluster.map(|cluster| cluster.name.clone()).unwrap_or_default(),
                            format!("cluster of {}", figures::count(labels.into())),
                        )
                    }
                    Found::Label(id) => (
                        vocabulary.name(id).to_owned(),
                        figures::count(vocabulary.count(id).into()),
                    ),
                };
                view! {
                    <li><a href=address(found) on:click=move |_| query.set(String::new())>
                        <span>{name}</span><span class="soft small">{note}</span>
                    </a></li>
                }
            })
            .collect_view();
        let note = match total {
            0 => "Nothing of that name.".to_owned(),
            total if total > SHOWN => format!("{SHOWN} of {}", figures::count(total as u64)),
            total => format!("{total} found"),
        };
        Some(view! {
            <div class="results">
                <ul>{rows}</ul>
                <p class="small soft" role="status">{note}</p>
            </div>
        })
    };
    view! {
        <div class="search">
            <label class="visually-hidden" for="label-search">"Search labels and clusters"</label>
            <input id="label-search" type="search" placeholder="Search labels and clusters" autocomplete="off"
                prop:value=move || query.get()
                on:input:target=move |event| query.set(event.target().value()) on:keydown=on_key/>
            {results}
        </div>
    }
}

fn address(found: Found) -> String {
    match found {
        Found::Cluster(id) => Focus::Cluster(id).address(),
        Found::Label(id) => Focus::Label(id).address(),
    }
}
