//! What the page computes without a browser: label map, graph layout, charts, highlights, batch files.
//!
//! It never touches the DOM, the network or a clock, so every part of it is tested natively and quickly.
//! Start reading at [`map`], the most demanding picture.

pub mod batch;
pub mod chart;
pub mod figures;
pub mod forces;
pub mod highlight;
pub mod long_tail;
pub mod map;
pub mod missing;
pub mod names;
pub mod run_story;
