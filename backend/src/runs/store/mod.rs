//! The database: the only place that speaks SQL.
//!
//! SQLite with a write-ahead log, foreign keys on, every commit flushed (`synchronous = FULL`): what was answered
//! is still there after a power cut. One writer and one reader connection, each behind a lock; callers on the
//! async side come through [`Store::call`].

mod corpora;
mod events;
mod feedback;
mod migrations;
mod models;
mod runs;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use corpora::{CorpusRow, NewCorpus};
pub use models::{ModelRow, NewModel};
pub use runs::{NewRun, RunOutcome, RunRow};

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the disk is full: {0}")]
    DiskFull(rusqlite::Error),
    /// Something else still refers to the row.
    #[error("still in use")]
    InUse,
    #[error("{what} {id} does not exist")]
    Missing { what: &'static str, id: String },
    #[error("{0}")]
    State(String),
    /// A file that belongs to the row.
    #[error("{0}")]
    Io(std::io::Error),
    #[error("database: {0}")]
    Sqlite(rusqlite::Error),
    #[error("database holds an unreadable {what}: {source}")]
    Content {
        what: &'static str,
        source: serde_json::Error,
    },
    #[error(
        "the database was written by a newer version (schema {found}, this program knows {known}): use that version, or another data directory"
    )]
    Newer { found: i64, known: i64 },
    #[error("a database task was cut short")]
    Cut,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{ConstraintViolation, DiskFull};
        match error.sqlite_error_code() {
            Some(DiskFull) => Self::DiskFull(error),
            // `ON DELETE RESTRICT` is told as a trigger's refusal; there are no other triggers.
            Some(ConstraintViolation)
                if error.sqlite_error().is_some_and(|e| {
                    matches!(
                        e.extended_code,
                        rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY
                            | rusqlite::ffi::SQLITE_CONSTRAINT_TRIGGER
                    )
                }) =>
            {
                Self::InUse
            }
            _ => Self::Sqlite(error),
        }
    }
}

/// Shorthand of this room.
pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// The open database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    connections: Arc<Connections>,
}

#[derive(Debug)]
struct Connections {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

impl Store {
    /// Opens or makes the database and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Self> {
        let mut writer = connect(path)?;
        migrations::migrate(&mut writer)?;
        let reader = connect(path)?;
        reader.pragma_update(None, "query_only", true)?;
        Ok(Self {
            connections: Arc::new(Connections {
                writer: Mutex::new(writer),
                reader: Mutex::new(reader),
            }),
        })
    }

    /// Runs blocking database work away from the async threads.
    pub async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = self.clone();
        tokio::task::spawn_blocking(move || work(&store))
            .await
            .unwrap_or(Err(StoreError::Cut))
    }

    /// Everything in `work` is committed, or nothing is.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut connection = lock(&self.connections.writer);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        work(&lock(&self.connections.reader))
    }

    /// Asks SQLite whether the file is sound; `Ok` holds its complaints, none when all is well.
    pub fn check(&self) -> Result<Vec<String>> {
        self.read(|db| {
            let mut complaints = Vec::new();
            for pragma in ["PRAGMA integrity_check", "PRAGMA foreign_key_check"] {
                let mut statement = db.prepare(pragma)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    let text: String = row.get(0)?;
                    if text != "ok" {
                        complaints.push(text);
                    }
                }
            }
            Ok(complaints)
        })
    }
}

/// A panic while the lock was held rolled its transaction back: the connection is still good.
fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("wire types have string keys and always serialise")
}

fn from_json<T: serde::de::DeserializeOwned>(what: &'static str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|source| StoreError::Content { what, source })
}

/// SQLite's integers are signed; ours come from it and are never negative.
fn unsigned(value: i64) -> u64 {
    value.max(0) as u64
}
