//! Train: corpora, runs as they happen, comparison, and which model tags.

mod chart;
mod compare;
mod corpora;
mod events;
mod models;
mod run;
mod runs;
mod start;

use gnnxml_shared::api::{CorpusEntry, CorpusList, RunList};
use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use crate::notice::TroubleNotice;
use crate::server::{self, Trouble};
use crate::shell::Models;
use compare::Compare;
use corpora::CorporaPanel;
use models::ModelsPanel;
use run::RunPage;
use runs::RunTable;
use start::StartForm;

/// How often the list of runs is asked for while one is under way.
const REFRESH: u32 = 2500;

/// Signals of the Train page.
#[derive(Clone, Copy)]
pub(crate) struct TrainState {
    runs: RwSignal<Option<Result<RunList, Trouble>>>,
    corpora: RwSignal<Option<Result<CorpusList, Trouble>>>,
    /// Corpus the next run will train on.
    chosen_corpus: RwSignal<Option<u64>>,
    /// The corpus that was just uploaded: its figures are shown at once.
    opened_corpus: RwSignal<Option<u64>>,
    /// Runs to compare.
    compared: RwSignal<Vec<u64>>,
}

impl TrainState {
    fn refresh_runs(self) {
        leptos::task::spawn_local(async move {
            let list = server::get("/api/v1/runs").await;
            self.runs.try_set(Some(list));
        });
    }

    fn refresh_corpora(self) {
        leptos::task::spawn_local(async move {
            let list = server::get("/api/v1/corpora").await;
            self.corpora.try_set(Some(list));
        });
    }

    fn corpus_name(self, id: u64) -> String {
        self.corpora.with(|list| {
            let known = list.as_ref().and_then(|list| list.as_ref().ok());
            let corpus =
                known.and_then(|list| list.corpora.iter().find(|corpus: &&CorpusEntry| corpus.id == id));
            corpus.map_or_else(|| format!("corpus {id}"), |corpus| corpus.name.clone())
        })
    }

    /// Whether some run is not over yet.
    fn is_busy(self) -> bool {
        self.runs.with(|list| {
            list.as_ref()
                .and_then(|list| list.as_ref().ok())
                .is_some_and(|list| list.runs.iter().any(|run| !run.status.is_over()))
        })
    }
}

/// The page at `/train` and `/train/run/ID`.
#[component]
pub(crate) fn TrainPage() -> impl IntoView {
    let state = TrainState {
        runs: RwSignal::new(None),
        corpora: RwSignal::new(None),
        chosen_corpus: RwSignal::new(None),
        opened_corpus: RwSignal::new(None),
        compared: RwSignal::new(Vec::new()),
    };
    provide_context(state);
    state.refresh_runs();
    state.refresh_corpora();
    expect_context::<Models>().refresh();
    let timer = gloo::timers::callback::Interval::new(REFRESH, move || {
        let failed = |list: Option<bool>| list == Some(true);
        let runs_failed = failed(state.runs.try_with_untracked(|list| matches!(list, Some(Err(_)))));
        if failed(
            state
                .corpora
                .try_with_untracked(|list| matches!(list, Some(Err(_)))),
        ) {
            state.refresh_corpora();
        }
        // The server was away: it is asked until it is back.
        if runs_failed || state.runs.try_with_untracked(|_| ()).is_some() && untrack(|| state.is_busy()) {
            state.refresh_runs();
        }
    });
    let timer = StoredValue::new_local(Some(timer));
    on_cleanup(move || {
        timer.try_set_value(None);
    });

    let params = use_params_map();
    let open = Memo::new(move |_| {
        params.with(|params| match params.get("kind").as_deref() {
            Some("run") => params.get("id").and_then(|id| id.parse::<u64>().ok()),
            _ => None,
        })
    });
    let retry = Callback::new(move |()| {
        state.refresh_runs();
        state.refresh_corpora();
    });
    let trouble = move || {
        let runs = state
            .runs
            .with(|list| list.as_ref().and_then(|list| list.as_ref().err().cloned()));
        runs.map(|trouble| view! { <TroubleNotice trouble retry/> })
    };
    view! {
        {move || match open.get() {
            Some(id) => view! { <RunPage id/> }.into_any(),
            None => view! {
                <div class="page-head">
                    <h1>"Train"</h1>
                    <p>"Give it documents with their labels; it trains on the server and publishes a model that tags here."</p>
                </div>
                {trouble}
                <div class="train-columns">
                    <div class="stack">
                        <CorporaPanel/>
                        <StartForm/>
                    </div>
                    <div class="stack">
                        <RunTable/>
                        <Compare/>
                        <ModelsPanel/>
                    </div>
                </div>
            }.into_any(),
        }}
    }
}
