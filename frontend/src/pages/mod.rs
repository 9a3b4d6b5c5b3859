//! One folder a page.

pub(crate) mod deferred;
pub(crate) mod labels;
pub(crate) mod missing;
pub(crate) mod tag;
pub(crate) mod train;
