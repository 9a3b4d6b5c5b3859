//! What this device keeps for use without the server: shown, and cleared on demand.

use gnnxml_page_logic::figures;
use leptos::prelude::*;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Cache, StorageEstimate};

/// The cache that holds model files; `sw.js` uses the same name.
const MODELS: &str = "models";

async fn used_bytes() -> Result<u64, JsValue> {
    let estimate: StorageEstimate = JsFuture::from(window().navigator().storage().estimate()?)
        .await?
        .unchecked_into();
    Ok(estimate.get_usage().unwrap_or(0.0) as u64)
}

/// Forgets every model this device keeps.
async fn clear_models() -> Result<(), JsValue> {
    JsFuture::from(window().caches()?.delete(MODELS))
        .await
        .map(|_| ())
}

/// Keeps only the files below `base`: called once that model is loaded whole, so an old model goes only when the new one
/// is here.
pub(crate) async fn keep_only(base: &str) -> Result<(), JsValue> {
    let cache: Cache = JsFuture::from(window().caches()?.open(MODELS))
        .await?
        .unchecked_into();
    let requests: js_sys::Array = JsFuture::from(cache.keys()).await?.unchecked_into();
    for request in requests.iter() {
        let url = js_sys::Reflect::get(&request, &"url".into())?
            .as_string()
            .unwrap_or_default();
        if url.contains("/bundle/") && !url.contains(base) {
            JsFuture::from(cache.delete_with_str(&url)).await?;
        }
    }
    Ok(())
}

/// “4.1 MB kept on this device”, and a way to be rid of it.
#[component]
pub(crate) fn StorageLine() -> impl IntoView {
    let used = RwSignal::new(None::<u64>);
    let refresh = move || {
        leptos::task::spawn_local(async move {
            // Without the storage interface (a private window) there is nothing to show.
            if let Ok(bytes) = used_bytes().await {
                used.try_set(Some(bytes));
            }
        });
    };
    refresh();
    let timer = gloo::timers::callback::Interval::new(10_000, refresh);
    let timer = StoredValue::new_local(Some(timer));
    on_cleanup(move || {
        timer.try_set_value(None);
    });
    let clear = move |_| {
        leptos::task::spawn_local(async move {
            let _ = clear_models().await;
            refresh();
        });
    };
    view! {
        {move || used.get().map(|bytes| view! {
            <span class="storage-line">
                <span id="storage-used">{figures::bytes(bytes)}</span> " kept on this device for offline use "
                <button class="quiet small" on:click=clear>"Clear models"</button>
            </span>
        })}
    }
}
