//! The one reference forward pass: what the server trains, the browser runs and the kernels are held against.
//!
//! Plain Rust, SIMD where it pays; it never loads, trains or draws anything.
//! Start at [`encoder`], where a text becomes numbers, then [`matcher`]: from a text's KeyGraph to label clusters.

pub mod encoder;
pub mod matcher;
pub mod ops;
//! The one reference forward pass: encoders, matcher, ranker, scores, explanation.
//!
//! Plain Rust, SIMD where it pays; it never loads, trains or draws anything.

pub mod ranker;
pub mod score;
