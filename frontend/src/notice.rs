//! How a page says that something went wrong.

use leptos::prelude::*;

use crate::server::Trouble;

/// A trouble with, when it makes sense, a button to try again.
#[component]
pub(crate) fn TroubleNotice(
    trouble: Trouble,
    #[prop(optional, into)] retry: Option<Callback<()>>,
) -> impl IntoView {
    let explained = trouble
        .link
        .map(|link| view! { <a class="small" href=link rel="external">"What is this?"</a> });
    let again = retry.map(|retry| view! { <button on:click=move |_| retry.run(())>"Try again"</button> });
    view! {
        <div class="notice" role="alert">
            <p>{trouble.message}</p>
            {explained}
            {again}
        </div>
    }
}
