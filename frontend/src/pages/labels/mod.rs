//! Labels: the map of the vocabulary, its clusters and its long tail.

mod canvas;
mod colour;
mod gpu;
mod list;
mod map;
mod panel;
mod search;
mod vocabulary;

use std::sync::Arc;

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use crate::notice::TroubleNotice;
use crate::server::Trouble;
use crate::shell::Models;
use list::ClusterTable;
use map::MapView;
use panel::Panel;
use search::SearchBox;
use vocabulary::Vocabulary;

/// What the address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Focus {
    All,
    Cluster(u32),
    Label(u32),
}

impl Focus {
    pub(crate) fn address(self) -> String {
        match self {
            Self::All => "/labels".to_owned(),
            Self::Cluster(id) => format!("/labels/cluster/{id}"),
            Self::Label(id) => format!("/labels/label/{id}"),
        }
    }
}

type VocabularySignal = RwSignal<Option<Result<Arc<Vocabulary>, Trouble>>>;

/// Signals of the Labels page.
#[derive(Clone, Copy)]
pub(crate) struct LabelsState {
    focus: Memo<Focus>,
    /// Labels to join with the focused one on the map.
    neighbours: RwSignal<Vec<u32>>,
    as_list: RwSignal<bool>,
}

/// The page at `/labels`, `/labels/cluster/ID` and `/labels/label/ID`.
#[component]
pub(crate) fn LabelsPage() -> impl IntoView {
    let models = expect_context::<Models>();
    let params = use_params_map();
    let focus = Memo::new(move |_| {
        params.with(|params| {
            let id = params.get("id").and_then(|id| id.parse().ok());
            match (params.get("kind").as_deref(), id) {
                (Some("cluster"), Some(id)) => Focus::Cluster(id),
                (Some("label"), Some(id)) => Focus::Label(id),
                _ => Focus::All,
            }
        })
    });
    let vocabulary: VocabularySignal = RwSignal::new(None);
    let loaded_model = StoredValue::new(None::<String>);
    let state = LabelsState {
        focus,
        neighbours: RwSignal::new(Vec::new()),
        as_list: RwSignal::new(false),
    };
    provide_context(state);

    let load = move || {
        leptos::task::spawn_local(async move {
            let answer = Vocabulary::load().await.map(Arc::new);
            vocabulary.try_set(Some(answer));
        });
    };
    let active = Memo::new(move |_| models.active().map(|model| model.id));
    // A first answer that failed is asked for again when the server is back: then the list is told anew.
    Effect::new(move |_| {
        let failed = vocabulary.with_untracked(|known| known.as_ref().is_some_and(Result::is_err));
        let back = models.get().is_some_and(|list| list.is_ok());
        let model = active.get();
        let changed = loaded_model.get_value() != model;
        if back && model.is_some() && (changed || failed) {
            loaded_model.set_value(model);
            load();
        }
    });
    let retry = Callback::new(move |()| {
        vocabulary.set(None);
        models.refresh();
        load();
    });

    let body = move || {
        let no_model = models
            .get()
            .is_some_and(|list| list.is_ok_and(|list| list.active.is_none()));
        if no_model {
            return view! {
                <p class="empty">"No model is published yet, so there are no labels to show. " <a href="/train">"Train one"</a> " and publish it."</p>
            }
            .into_any();
        }
        // What was fetched stays on the page while the server is away.
        if vocabulary.with(Option::is_none)
            && let Some(trouble) = models.trouble()
        {
            return view! { <TroubleNotice trouble retry/> }.into_any();
        }
        match vocabulary.get() {
            None => view! { <p class="empty" role="status">"Fetching the labels…"</p> }.into_any(),
            Some(Err(trouble)) => view! { <TroubleNotice trouble retry/> }.into_any(),
            Some(Ok(vocabulary)) => browse(state, vocabulary).into_any(),
        }
    };
    view! {
        <div class="page-head">
            <h1>"Labels"</h1>
            <p>"Labels that occur together lie together. Zoom in and more names appear."</p>
        </div>
        {body}
    }
}

fn browse(state: LabelsState, vocabulary: Arc<Vocabulary>) -> impl IntoView {
    let as_list = state.as_list;
    let for_search = vocabulary.clone();
    let for_main = vocabulary.clone();
    view! {
        <div class="labels-tools row">
            <SearchBox vocabulary=for_search/>
            <div class="switch" role="group" aria-label="Show as">
                <button aria-pressed=move || (!as_list.get()).to_string() on:click=move |_| as_list.set(false)>"Map"</button>
                <button aria-pressed=move || as_list.get().to_string() on:click=move |_| as_list.set(true)>"List"</button>
            </div>
        </div>
        <div class="labels-columns">
            {move || {
                let vocabulary = for_main.clone();
                if as_list.get() {
                    view! { <ClusterTable vocabulary/> }.into_any()
                } else {
                    view! { <MapView vocabulary/> }.into_any()
                }
            }}
            <Panel vocabulary/>
        </div>
    }
}
