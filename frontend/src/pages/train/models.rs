//! Published models: which one tags, and the way back.

use gloo::net::http::Method;
use gnnxml_page_logic::figures;
use gnnxml_shared::api::ModelSummary;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::notice::TroubleNotice;
use crate::server::{self, Trouble};
use crate::shell::Models;

#[component]
pub(super) fn ModelsPanel() -> impl IntoView {
    let models = expect_context::<Models>();
    let trouble = RwSignal::new(None::<Trouble>);
    let act = move |method: Method, address: String| {
        spawn_local(async move {
            trouble.try_set(server::command(method, &address).await.err());
            models.refresh();
        });
    };
    let can_roll_back = move || {
        models
            .get()
            .is_some_and(|list| list.is_ok_and(|list| list.previous.is_some()))
    };
    let rows = move || {
        let list = models.get()?.ok()?;
        if list.models.is_empty() {
            return Some(view! { <tr><td colspan="5" class="soft">"Nothing is published. Publish a finished run."</td></tr> }.into_any());
        }
        let rows = list
            .models
            .into_iter()
            .map(|model| row(model, act))
            .collect_view();
        Some(rows.into_any())
    };
    view! {
        <section class="sheet stack" aria-labelledby="models-title">
            <div class="row spread">
                <h2 id="models-title">"Models"</h2>
                <button class="small" disabled=move || !can_roll_back()
                    on:click=move |_| act(Method::POST, "/api/v1/models/rollback".to_owned())>"Roll back"</button>
            </div>
            {move || trouble.get().map(|trouble| view! { <TroubleNotice trouble/> })}
            <div class="scroll-x">
                <table class="models">
                    <thead><tr><th scope="col">"Model"</th><th scope="col" class="number">"Labels"</th><th scope="col" class="number">{super::runs::figure_name("P@1")}</th><th scope="col" class="number">"Size"</th><th scope="col"><span class="visually-hidden">"Actions"</span></th></tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </section>
    }
}

fn row(model: ModelSummary, act: impl Fn(Method, String) + Copy + Send + Sync + 'static) -> impl IntoView {
    let precision = model
        .metrics
        .get("P@1")
        .map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
    let address = StoredValue::new(format!("/api/v1/models/{}", model.id));
    let action = if model.active {
        view! { <span class="status done">"tags now"</span> }.into_any()
    } else {
        view! {
            <button class="small" on:click=move |_| act(Method::POST, format!("{}/activate", address.get_value()))>"Use"</button>
            <button class="small quiet danger" on:click=move |_| act(Method::DELETE, address.get_value())>"Delete"</button>
        }
        .into_any()
    };
    let encoder = match model.encoder.as_str() {
        "none" => "words alone".to_owned(),
        encoder => encoder.to_owned(),
    };
    view! {
        <tr>
            <th scope="row">{model.name.clone()}<span class="small soft block">{encoder} ", " <code>{model.id[..model.id.len().min(8)].to_owned()}</code></span></th>
            <td class="number">{figures::count(model.labels)}</td>
            <td class="number">{precision}</td>
            <td class="number">{figures::bytes(model.bytes)}</td>
            <td class="actions">{action}</td>
        </tr>
    }
}
