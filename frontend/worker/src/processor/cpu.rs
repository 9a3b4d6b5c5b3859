//! The networks on the processor alone.

use std::cell::RefCell;
use std::fmt;

use gnnxml_shared::bundle::Bundle;
use gnnxml_shared::model::matcher::MatcherError;
use gnnxml_shared::model::tagger::{Prepared, ReadOptions, Tagger};

use crate::Wish;

/// What runs a model's networks.
#[derive(Debug)]
pub(crate) struct Processor;

impl Processor {
    /// Nothing is to be chosen here: a GPU, when one is wished, is refused.
    #[allow(clippy::unused_async, reason = "with a GPU this waits for its adapter")]
    pub(crate) async fn of(
        _tagger: &Tagger,
        wish: Wish,
        _remembered: Option<serde_json::Value>,
    ) -> Result<Self, NoGpuHere> {
        if wish == Wish::Gpu {
            Err(NoGpuHere)
        } else {
            Ok(Self)
        }
    }

    /// The first half of tagging.
    #[allow(clippy::unused_async, reason = "with a GPU this waits for its answer")]
    pub(crate) async fn prepare(
        &self,
        bundle: &RefCell<Bundle>,
        text: &str,
        read: ReadOptions,
    ) -> Result<Prepared, MatcherError> {
        bundle.borrow().prepare(text, read)
    }

    pub(crate) fn is_gpu(&self) -> bool {
        false
    }

    pub(crate) fn choice(&self) -> Option<String> {
        None
    }

    pub(crate) fn lose_gpu(&self) {}
}

/// A GPU was demanded of a module that holds no code for one.
#[derive(Debug)]
pub(crate) struct NoGpuHere;

impl fmt::Display for NoGpuHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this module was built without its GPU engine; ask for \"auto\" or \"cpu\", or build it with the feature \"gpu\"")
    }
}

impl std::error::Error for NoGpuHere {}
