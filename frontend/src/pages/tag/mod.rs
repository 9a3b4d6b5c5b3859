//! Tag: a text, its KeyGraph, its tags and why each was given.
//!
//! The engine runs in a worker; this page never sends the text over the network.

mod batch;
mod engine;
mod evidence;
mod examples;
mod graph;
mod reader;
mod state;
mod tags;

use leptos::prelude::*;

use batch::BatchPanel;
use engine::EngineStrip;
use evidence::EvidencePanel;
use graph::GraphPanel;
use reader::Reader;
pub(crate) use state::TagState;
use tags::TagList;

/// The page at `/`.
#[component]
pub(crate) fn TagPage() -> impl IntoView {
    let state = expect_context::<TagState>();
    engine::follow_active_model(state);
    engine::follow_text(state);
    view! {
        <div class="page-head">
            <h1>"Tag a text"</h1>
            <p>"The model runs here, in your browser: the text is not sent anywhere."</p>
        </div>
        <EngineStrip/>
        <div class="tag-columns">
            <Reader/>
            <section class="stack tags-column" aria-labelledby="tags-title">
                <TagList/>
                <EvidencePanel/>
            </section>
            <GraphPanel/>
        </div>
        <BatchPanel/>
    }
}
