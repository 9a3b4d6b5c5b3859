//! WGSL compute shaders and their wgpu host code: the operations of `gnnxml_shared::model`, on a GPU.
//!
//! Nothing here decides what to compute: each kernel computes an operation that `gnnxml_shared::model` defines, and a
//! test holds the two together. A document is one upload, one submission and one read-back; pipelines are built
//! once, buffers come from a pool, no binding is larger than 128 MiB, and waiting is asynchronous so that browsers can
//! do it too. Start reading at [`Engine`], then
//! [`GpuMatcher::forward`] and [`GpuBert::forward`].

// One code for both worlds: natively a GPU is shared by threads, in the browser its handles belong to the only one there is.
#![cfg_attr(target_arch = "wasm32", allow(clippy::arc_with_non_send_sync))]

mod bert;
mod buffers;
mod device;
mod engine;
mod error;
mod matcher;
mod narrow;
mod operations;
mod pipelines;
mod recording;
mod signal;
#[cfg(test)]
mod tests;
mod weights;

pub use bert::{Encoded, GpuBert};
pub use device::{Gpu, LARGEST_BINDING};
pub use engine::{Choice, Engine, Preference, Processor, Ran, WindowSums, Work};
pub use error::GpuError;
pub use matcher::{GpuMatcher, Matched};
pub use recording::Report;
