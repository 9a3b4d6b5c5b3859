//! What the end-to-end tests share: the built program and a server of it in a directory of its own.
//!
//! Nothing here is part of the product. Start reading at [`Server`].

mod browser;
mod corpus;
mod eavesdropper;
mod graph_model;
mod package;
mod page;
mod picture;
mod program;
mod server;

pub use browser::{Browser, BrowserOptions, Tab};
pub use corpus::{small_corpus, wide_corpus, wide_text};
pub use eavesdropper::Eavesdropper;
pub use graph_model::{Agreement, GraphModel, Scored, compare, open_bundle, scored};
pub use package::{copy_folder, install_package, npm_file};
pub use page::{Page, SECRET, TEXT, browser_with_gpu_map, page_server, serve_page};
pub use picture::with_palette;
pub use program::{foreign_python, program};
pub use server::{Server, ServerOptions};
