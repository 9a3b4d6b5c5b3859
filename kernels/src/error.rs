//! What can go wrong on a GPU. Whoever gets one of these computes on the CPU instead.

/// Why a GPU did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    #[error("no GPU can be used here: {reason}")]
    NoAdapter { reason: String },
    #[error("the GPU lacks {what}, which the kernels need")]
    Lacks { what: &'static str },
    #[error("{what} takes {bytes} bytes; a GPU binding holds at most {limit}")]
    TooLarge {
        what: &'static str,
        bytes: u64,
        limit: u64,
    },
    #[error("{what} is {found}; the kernel takes at most {limit}")]
    TooMany {
        what: &'static str,
        found: usize,
        limit: usize,
    },
    #[error("the GPU ran out of memory")]
    OutOfMemory,
    #[error("the GPU was lost: {reason}")]
    Lost { reason: String },
    #[error("the GPU refused the work: {reason}")]
    Refused { reason: String },
    #[error("the GPU's answer could not be read back")]
    ReadBack,
    #[error("the GPU answered {found} where the CPU answers {expected}")]
    Disagrees { found: String, expected: String },
    #[error("the model cannot run on the GPU: {0}")]
    Model(#[from] gnnxml_shared::model::matcher::MatcherError),
}
