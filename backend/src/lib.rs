//! Training, evaluation, export and serving: everything that needs files, threads or a network.
//!
//! It never defines what browser and server must agree on: that is `gnnxml-shared`.
//! Start reading at [`cli`], which calls every other room.

pub mod cli;
pub mod collective;
pub mod cpu_time;
pub mod data;
pub mod encoder;
pub mod evaluate;
pub mod export;
pub mod labels;
pub mod matcher;
pub mod ranker;
pub mod runs;
pub mod server;
pub mod train;
