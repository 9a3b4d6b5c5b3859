//! Training runs, and everything the server must not forget: corpora, models, feedback, in one data directory.
//!
//! It never trains: a run is a child process of its own (`gnnxml train --json-progress`) whose event file is
//! followed, so a run that dies takes nobody with it and a server that dies leaves the run alone.
//! Start reading at [`RunQueue`], then [`Store`], which is the only place that speaks SQL.

mod attend;
mod child;
mod data_dir;
mod durable;
mod fail_point;
mod follow;
mod queue;
mod store;

pub use child::{ChildIdentity, StopSignal};
pub use data_dir::{DataDir, DataDirError};
pub use durable::{create_private_dir, remove_dir_durably, rename_durably, sync_tree};
pub use fail_point::{FAIL_POINTS, fail_point};
pub use queue::model_dir;
pub use queue::{LiveEvent, QueueError, QueueSettings, RunQueue};
pub use store::{CorpusRow, ModelRow, NewCorpus, NewModel, NewRun, RunOutcome, RunRow, Store, StoreError};

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as u64)
}
