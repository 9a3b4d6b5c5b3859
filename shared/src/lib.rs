//! What browser and server must agree on, once: text, KeyGraph, features, model, bundle, API, metrics.
//!
//! This crate never touches files, threads, clocks or the network, and compiles to wasm32 as it is.
//! Start reading at [`text`], then [`keygraph`], then [`model`].

pub mod api;
pub mod bundle;
pub mod features;
pub mod keygraph;
pub mod metrics;
pub mod model;
pub mod text;
