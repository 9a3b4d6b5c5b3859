//! The page: tag a text, browse the labels, train a model.
//!
//! It draws and asks; it never decides what a tag is (that is `gnnxml_shared::model`, run by the worker) and never
//! sends a tagged text anywhere. What needs no browser is in `gnnxml-page-logic`, where it is tested.
//! Start reading at [`shell::App`], then one folder of [`pages`].

// Components are expanded into `pub` items whatever visibility they are written with.
#![allow(unreachable_pub)]

mod download;
mod long_tail;
mod notice;
mod offline;
mod pages;
mod server;
mod shell;
mod theme;
mod worker_client;

fn main() {
    console_error_panic_hook::set_once();
    if let Some(boot) = leptos::prelude::document().get_element_by_id("boot") {
        boot.remove();
    }
    leptos::mount::mount_to_body(shell::App);
    // From here on letters are taken; the figures of the page are measured to this mark.
    if let Some(clock) = leptos::prelude::window().performance() {
        let _ = clock.mark("gnnxml:interactive");
    }
}
