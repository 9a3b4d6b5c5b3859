//! Colours of the map: taken from the theme, one hue a cluster.

use leptos::prelude::*;

/// What the painter needs, read once a theme change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Palette {
    pub(crate) paper: String,
    pub(crate) ink: String,
    pub(crate) ink_soft: String,
    pub(crate) red: String,
    pub(crate) dark: bool,
}

impl Palette {
    pub(crate) fn current() -> Self {
        let root = document().document_element();
        let style = root.and_then(|root| window().get_computed_style(&root).ok().flatten());
        let read = |name: &str, otherwise: &str| {
            let value = style
                .as_ref()
                .and_then(|style| style.get_property_value(name).ok())
                .unwrap_or_default();
            if value.trim().is_empty() {
                otherwise.to_owned()
            } else {
                value.trim().to_owned()
            }
        };
        Self {
            paper: read("--sheet", "#ffffff"),
            ink: read("--ink", "#000000"),
            ink_soft: read("--ink-soft", "#444444"),
            red: read("--red", "#b03a14"),
            dark: read("color-scheme", "light").contains("dark"),
        }
    }

    /// Neighbouring numbers get far-apart hues: each is the golden angle from the last.
    pub(crate) fn cluster(&self, id: u32, faded: bool) -> String {
        let hue = (f64::from(id) * 137.508 + 18.0) % 360.0;
        let lightness = if self.dark { 66 } else { 44 };
        let alpha = if faded { 0.16 } else { 0.78 };
        format!("hsl({hue:.0} 42% {lightness}% / {alpha})")
    }
}
