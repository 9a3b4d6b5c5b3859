//! Light, dark, or whatever the system says.

use gloo::storage::{LocalStorage as Kept, Storage as _};
use leptos::prelude::*;

/// `theme.js` reads the same key before the first paint, as plain text.
const KEY: &str = "gnnxml.theme";

/// Whether the page is dark now; pictures that are painted, not styled, follow it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    dark: RwSignal<bool>,
}

impl Theme {
    pub(crate) fn current() -> Self {
        let chosen = document()
            .document_element()
            .and_then(|root| root.get_attribute("data-theme"));
        Self {
            dark: RwSignal::new(chosen.map_or_else(system_is_dark, |theme| theme == "dark")),
        }
    }

    /// Tells the caller's effect to run again when the theme changes.
    pub(crate) fn track(self) {
        self.dark.track();
    }

    fn switch(self) {
        let dark = !self.dark.get_untracked();
        let name = if dark { "dark" } else { "light" };
        if let Some(root) = document().document_element() {
            // Setting an attribute of our own name cannot fail.
            let _ = root.set_attribute("data-theme", name);
        }
        // Without storage the choice lasts until the page is closed; nothing else depends on it.
        let _ = Kept::raw().set_item(KEY, name);
        self.dark.set(dark);
    }
}

fn system_is_dark() -> bool {
    window()
        .match_media("(prefers-color-scheme: dark)")
        .ok()
        .flatten()
        .is_some_and(|query| query.matches())
}

/// Switches between light and dark and remembers the choice.
#[component]
pub(crate) fn ThemeButton() -> impl IntoView {
    let theme = expect_context::<Theme>();
    let label = move || {
        if theme.dark.get() {
            "Switch to the light theme"
        } else {
            "Switch to the dark theme"
        }
    };
    view! {
        <button class="theme-button quiet" on:click=move |_| theme.switch() aria-label=label title=label>
            <svg viewBox="0 0 20 20" aria-hidden="true">
                <circle cx="10" cy="10" r="7"/>
                <path d="M10 3a7 7 0 0 1 0 14z" fill="currentColor"/>
            </svg>
        </button>
    }
}

/// Whether the person asked for less motion.
pub(crate) fn reduced_motion() -> bool {
    window()
        .match_media("(prefers-reduced-motion: reduce)")
        .ok()
        .flatten()
        .is_some_and(|query| query.matches())
}
