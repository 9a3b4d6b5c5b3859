//! An address that leads nowhere.

use leptos::prelude::*;

#[component]
pub(crate) fn MissingPage() -> impl IntoView {
    view! {
        <div class="page-head"><h1>"There is no such page"</h1></div>
        <p class="empty">"Go to " <a href="/">"Tag"</a> ", " <a href="/labels">"Labels"</a> " or " <a href="/train">"Train"</a> "."</p>
    }
}
