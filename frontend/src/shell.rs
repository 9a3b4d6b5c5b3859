//! Masthead, navigation and the three pages below them.

use gloo::events::EventListener;
use gloo::timers::callback::Interval;
use gnnxml_shared::api::{Health, ModelList, ModelSummary};
use leptos::prelude::*;
use leptos_router::components::{FlatRoutes, Route, Router};
use leptos_router::hooks::use_location;
use leptos_router::path;

use crate::offline::StorageLine;
use crate::pages::{
    deferred::{DeferredLabels, DeferredTrain},
    missing::MissingPage,
    tag::{TagPage, TagState},
};
use crate::server::{self, Trouble};
use crate::theme::{Theme, ThemeButton};

/// Milliseconds between two questions to a server that does not answer.
const PATIENCE: u32 = 4_000;

/// The published models as the server last told them; shared by all pages.
#[derive(Clone, Copy)]
pub(crate) struct Models {
    list: RwSignal<Option<Result<ModelList, Trouble>>>,
    /// Whether the server did not answer the last time; what it told before still stands.
    away: RwSignal<bool>,
}

impl Models {
    fn new() -> Self {
        Self {
            list: RwSignal::new(None),
            away: RwSignal::new(false),
        }
    }

    /// Asks the server again.
    pub(crate) fn refresh(self) {
        leptos::task::spawn_local(async move {
            let list = server::get::<ModelList>("/api/v1/models").await;
            self.away.try_set(list.is_err());
            let known = self.list.with_untracked(|list| matches!(list, Some(Ok(_))));
            if list.is_ok() || !known {
                self.list.try_set(Some(list));
            }
        });
    }

    /// Asks again whenever the page comes to the front (another tab may have changed things), when the network is back,
    /// and every few seconds while the server does not answer.
    fn follow(self) {
        let ask = move || {
            if !document().hidden() {
                self.refresh();
            }
        };
        EventListener::new(&document(), "visibilitychange", move |_| ask()).forget();
        EventListener::new(&window(), "online", move |_| ask()).forget();
        Interval::new(PATIENCE, move || {
            if self.away.get_untracked() {
                ask();
            }
        })
        .forget();
    }

    /// `None` while the first answer is awaited.
    pub(crate) fn get(self) -> Option<Result<ModelList, Trouble>> {
        self.list.get()
    }

    /// The model that tags.
    pub(crate) fn active(self) -> Option<ModelSummary> {
        self.list.with(|list| {
            let list = list.as_ref()?.as_ref().ok()?;
            list.models
                .iter()
                .find(|model| Some(&model.id) == list.active.as_ref())
                .cloned()
        })
    }

    /// Why there is no list, when there is none.
    pub(crate) fn trouble(self) -> Option<Trouble> {
        self.list.with(|list| list.as_ref()?.as_ref().err().cloned())
    }
}

/// The whole app.
#[component]
pub(crate) fn App() -> impl IntoView {
    let models = Models::new();
    models.refresh();
    models.follow();
    provide_context(models);
    provide_context(Theme::current());
    provide_context(TagState::new());
    view! {
        <Router>
            <a class="skip" href="#main">"Skip to the content"</a>
            <Masthead/>
            <main id="main" tabindex="-1">
                <FlatRoutes fallback=MissingPage>
                    <Route path=path!("/") view=TagPage/>
                    <Route path=path!("/labels/:kind?/:id?") view=DeferredLabels/>
                    <Route path=path!("/train/:kind?/:id?") view=DeferredTrain/>
                </FlatRoutes>
            </main>
            <Footer/>
        </Router>
    }
}

#[component]
fn Masthead() -> impl IntoView {
    let models = expect_context::<Models>();
    let location = use_location();
    let current = move |root: &'static str| {
        let path = location.pathname;
        move || {
            let here = path.get();
            let inside = if root == "/" {
                here == "/"
            } else {
                here.starts_with(root)
            };
            inside.then_some("page")
        }
    };
    let model_name = move || models.active().map(|model| model.name);
    view! {
        <header class="masthead">
            <a class="wordmark" href="/" aria-label="GNN-XML, home">
                <svg viewBox="0 0 32 32" aria-hidden="true">
                    <path class="edge" d="M8 23 16 8l8 15M8 23h16" fill="none" stroke-width="2"/>
                    <circle class="node" cx="8" cy="23" r="4"/>
                    <circle class="node" cx="24" cy="23" r="4"/>
                    <circle class="node-on" cx="16" cy="8" r="5"/>
                </svg>
                "GNN-XML"
            </a>
            <nav class="nav" aria-label="Pages">
                <a href="/" aria-current=current("/")>"Tag"</a>
                <a href="/labels" aria-current=current("/labels")>"Labels"</a>
                <a href="/train" aria-current=current("/train")>"Train"</a>
            </nav>
            <div class="masthead-end">
                {move || models.away.get().then(|| view! { <span class="away small" role="status">"server away"</span> })}
                <span class="active-model" title="The model that tags">{model_name}</span>
                <ThemeButton/>
            </div>
        </header>
    }
}

#[component]
fn Footer() -> impl IntoView {
    let health = RwSignal::new(None::<Health>);
    leptos::task::spawn_local(async move {
        if let Ok(answer) = server::get::<Health>("/api/v1/health").await {
            health.try_set(Some(answer));
        }
    });
    let version = move || health.get().map(|health| format!("GNN-XML {}", health.version));
    view! {
        <footer class="footer">
            <span>"Text you tag stays on this device."</span>
            <StorageLine/>
            <span>{version}</span>
        </footer>
    }
}
