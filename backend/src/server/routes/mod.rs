//! The handlers, one file a subject. Each checks its input, calls one room, answers with a type of `shared::api`.

pub(super) mod annif;
pub(super) mod clusters;
pub(super) mod corpora;
pub(super) mod feedback;
pub(super) mod health;
pub(super) mod models;
pub(super) mod runs;
pub(super) mod tag;
