//! Views whose code is fetched when they are first opened: most visits tag a text and leave.
//!
//! Each becomes a wasm module of its own (`cargo xtask web` splits them off); a build that is not split holds them all.

use std::future::Future;

use gloo::timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};

use super::labels::LabelsPage;
use super::train::TrainPage;
use crate::notice::TroubleNotice;
use crate::server::Trouble;

/// Makes a view. It lives in the module that was fetched.
type Maker = fn() -> AnyView;

#[wasm_split(labels, wasm_split_path = ::leptos::wasm_split, fallible)]
fn labels() -> Result<Maker, SplitLoaderError> {
    Ok(|| LabelsPage().into_any())
}

#[wasm_split(train, wasm_split_path = ::leptos::wasm_split, fallible)]
fn train() -> Result<Maker, SplitLoaderError> {
    Ok(|| TrainPage().into_any())
}

/// The labels, behind their door.
#[component]
pub(crate) fn DeferredLabels() -> impl IntoView {
    deferred(labels)
}

/// Training, behind its door.
#[component]
pub(crate) fn DeferredTrain() -> impl IntoView {
    deferred(train)
}

/// Milliseconds until a view that could not be fetched is asked for again.
const PATIENCE: u32 = 2_000;

fn deferred<F>(fetch: fn() -> F) -> impl IntoView
where
    F: Future<Output = Result<Maker, SplitLoaderError>> + 'static,
{
    let maker = RwSignal::new(None::<Result<Maker, Trouble>>);
    spawn_local(async move {
        loop {
            let fetched = fetch().await.map_err(|_| {
                Trouble::new(
                    "This view could not be fetched: the server does not answer, or has a newer version of this page. It is asked again by itself; if it answers elsewhere, reload the page.",
                )
            });
            let is_over = fetched.is_ok();
            // `try_set` hands the value back when the person has left.
            if maker.try_set(Some(fetched)).is_some() || is_over {
                return;
            }
            TimeoutFuture::new(PATIENCE).await;
        }
    });
    move || match maker.get() {
        None => view! { <p class="empty" role="status">"Fetching this view…"</p> }.into_any(),
        Some(Ok(make)) => untrack(make),
        Some(Err(trouble)) => view! { <TroubleNotice trouble/> }.into_any(),
    }
}
