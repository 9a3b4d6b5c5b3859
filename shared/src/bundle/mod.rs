//! The published model: a manifest and content-named parts that a web page fetches as it needs them.
//!
//! This room turns bytes into checked values and back. It never fetches or writes anything: the caller brings the
//! bytes of a part and is told whether they are the ones the manifest promised. Every length is checked against
//! what is left before anything is allocated; a bad byte is a [`BundleError`], never a panic.
//! Start reading at [`Manifest`], then [`Opening`] and [`publish()`].

mod encoders;
mod entropy;
mod error;
mod manifest;
mod matrix;
mod neighbours;
mod open;
mod parts;
mod publish;
mod rankers;
#[cfg(test)]
mod tests;
pub mod wire;

pub use encoders::{PageEncoder, PublishError};
pub use error::BundleError;
pub use manifest::{FORMAT, Manifest, PartRef, ShardRef, VERSION, part_name, sha256_hex};
pub use matrix::Bits;
pub use open::{Bundle, Opening};
pub use publish::{ModelFacts, Published, publish};
