//! The one reference forward pass: what the server trains, the browser runs and the kernels are held against.
//!
//! Plain Rust, SIMD where it pays; it never loads, trains or draws anything.
//! Start at [`tagger`], which calls the rest in order: [`encoder`], where a text becomes numbers, [`matcher`], from a
//! text's KeyGraph to label clusters, [`ranker`], from a cluster to its labels, [`neighbours`], what similar
//! documents carry, [`names`], what the text calls by name, and [`score`], which mixes them. [`reach`] says how many of the
//! rankers a page fetches for one text.

pub mod encoder;
pub mod explain;
pub mod matcher;
pub mod names;
pub mod neighbours;
pub mod ops;
pub mod ranker;
pub mod reach;
pub mod score;
pub mod tagger;
