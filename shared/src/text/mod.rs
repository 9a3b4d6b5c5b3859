//! Placeholder.
pub mod wordpiece;
