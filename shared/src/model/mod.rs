//! The one reference forward pass: what the server trains, the browser runs and the kernels are held against.
//!
//! Start at [`matcher`]: from a text's KeyGraph to label clusters.

pub mod matcher;
