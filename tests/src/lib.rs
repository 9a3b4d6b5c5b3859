//! What the end-to-end tests share: the built program and a server of it in a directory of its own.
//!
//! Nothing here is part of the product. Start reading at [`Server`].

mod corpus;
mod program;
mod server;

pub use corpus::small_corpus;
pub use program::program;
pub use server::{Server, ServerOptions};
