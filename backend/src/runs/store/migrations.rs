//! The schema, one step a version. A step that has been released is never changed.

use rusqlite::{Connection, TransactionBehavior};

use super::{Result, StoreError};

const STEPS: &[&str] = &[
    // 1: runs, events, corpora, models, feedback
    "
    CREATE TABLE corpora (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        name       TEXT NOT NULL,
        file       TEXT NOT NULL,
        format     TEXT NOT NULL,
        bytes      INTEGER NOT NULL,
        sha256     TEXT NOT NULL,
        created    INTEGER NOT NULL,
        report     TEXT NOT NULL
    ) STRICT;

    CREATE TABLE runs (
        id             INTEGER PRIMARY KEY AUTOINCREMENT,
        name           TEXT NOT NULL,
        status         TEXT NOT NULL,
        settings       TEXT NOT NULL,
        corpus         INTEGER NOT NULL REFERENCES corpora(id) ON DELETE RESTRICT,
        valid          INTEGER REFERENCES corpora(id) ON DELETE RESTRICT,
        fingerprint    TEXT NOT NULL,
        created        INTEGER NOT NULL,
        started        INTEGER,
        finished       INTEGER,
        attempts       INTEGER NOT NULL DEFAULT 0,
        stage          TEXT,
        stage_progress REAL,
        metrics        TEXT NOT NULL DEFAULT '{}',
        error          TEXT,
        log            TEXT NOT NULL DEFAULT '[]',
        pid            INTEGER,
        start_ticks    INTEGER,
        event_offset   INTEGER NOT NULL DEFAULT 0,
        attempt_after  INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX runs_by_status ON runs(status);

    CREATE TABLE events (
        run   INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        id    INTEGER NOT NULL,
        at    INTEGER NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (run, id)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE models (
        id       TEXT PRIMARY KEY,
        name     TEXT NOT NULL,
        created  INTEGER NOT NULL,
        run      INTEGER REFERENCES runs(id) ON DELETE SET NULL,
        encoder  TEXT NOT NULL,
        labels   INTEGER NOT NULL,
        clusters INTEGER NOT NULL,
        bytes    INTEGER NOT NULL,
        metrics  TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE active (
        only     INTEGER PRIMARY KEY CHECK (only = 1),
        current  TEXT REFERENCES models(id) ON DELETE RESTRICT,
        previous TEXT REFERENCES models(id) ON DELETE SET NULL
    ) STRICT;
    INSERT INTO active (only) VALUES (1);

    CREATE TABLE feedback (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        created  INTEGER NOT NULL,
        model    TEXT,
        text     TEXT,
        accepted TEXT NOT NULL,
        rejected TEXT NOT NULL
    ) STRICT;
    ",
    // 2: the language of a model's texts, unknown of those recorded before
    "ALTER TABLE models ADD COLUMN language TEXT NOT NULL DEFAULT 'und';",
];

/// Brings the schema to the newest version, one transaction a step.
pub(super) fn migrate(connection: &mut Connection) -> Result<()> {
    let known = STEPS.len() as i64;
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found > known {
            return Err(StoreError::Newer { found, known });
        }
        let Some(step) = usize::try_from(found).ok().and_then(|at| STEPS.get(at)) else {
            return Ok(());
        };
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", found + 1)?;
        transaction.commit()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_recorded_before_languages_were_is_of_an_undetermined_one() {
        let mut database = Connection::open_in_memory().unwrap();
        database.execute_batch(STEPS[0]).unwrap();
        database.pragma_update(None, "user_version", 1).unwrap();
        let model = "INSERT INTO models (id, name, created, encoder, labels, clusters, bytes, metrics) \
                     VALUES ('a', 'old', 1, 'none', 3, 1, 5, '{}')";
        database.execute(model, []).unwrap();
        migrate(&mut database).unwrap();
        let language: String =
            (database.query_row("SELECT language FROM models", [], |row| row.get(0))).unwrap();
        assert_eq!(language, "und");
    }
}
