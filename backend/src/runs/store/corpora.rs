//! Uploaded corpora.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Result, Store, StoreError, unsigned};
use crate::runs::now;

/// A corpus about to be recorded.
#[derive(Clone, Debug)]
pub struct NewCorpus {
    /// The name people gave it: shown, never used as a path.
    pub name: String,
    /// The file's name inside the corpus' folder; ours, not the caller's.
    pub file: String,
    pub format: String,
    pub bytes: u64,
    pub sha256: String,
    /// Statistics and complaints, as JSON.
    pub report: String,
}

/// A recorded corpus.
#[derive(Clone, Debug)]
pub struct CorpusRow {
    pub id: u64,
    pub created: u64,
    pub corpus: NewCorpus,
}

const COLUMNS: &str = "id, name, file, format, bytes, sha256, created, report";

fn corpus(row: &Row<'_>) -> rusqlite::Result<CorpusRow> {
    Ok(CorpusRow {
        id: unsigned(row.get(0)?),
        created: unsigned(row.get(6)?),
        corpus: NewCorpus {
            name: row.get(1)?,
            file: row.get(2)?,
            format: row.get(3)?,
            bytes: unsigned(row.get(4)?),
            sha256: row.get(5)?,
            report: row.get(7)?,
        },
    })
}

impl Store {
    /// Records a corpus once `place` has moved its files under the id it is given.
    /// When `place` fails nothing is recorded.
    pub fn add_corpus(
        &self,
        new: &NewCorpus,
        place: impl FnOnce(u64) -> std::io::Result<()>,
    ) -> Result<CorpusRow> {
        self.write(|db| {
            let created = now();
            db.execute(
                "INSERT INTO corpora (name, file, format, bytes, sha256, created, report) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![new.name, new.file, new.format, new.bytes as i64, new.sha256, created as i64, new.report],
            )?;
            let id = unsigned(db.last_insert_rowid());
            place(id).map_err(StoreError::Io)?;
            Ok(CorpusRow { id, created, corpus: new.clone() })
        })
    }

    /// Newest first.
    pub fn corpora(&self) -> Result<Vec<CorpusRow>> {
        self.read(|db| {
            let mut statement =
                db.prepare_cached(&format!("SELECT {COLUMNS} FROM corpora ORDER BY id DESC"))?;
            let rows = statement.query_map([], corpus)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn corpus(&self, id: u64) -> Result<CorpusRow> {
        self.read(|db| {
            db.prepare_cached(&format!("SELECT {COLUMNS} FROM corpora WHERE id = ?1"))?
                .query_row([id as i64], corpus)
                .optional()?
                .ok_or_else(|| StoreError::Missing {
                    what: "corpus",
                    id: id.to_string(),
                })
        })
    }

    /// Forgets a corpus; refused with [`StoreError::InUse`] while a run refers to it.
    pub fn delete_corpus(&self, id: u64) -> Result<()> {
        self.write(
            |db| match db.execute("DELETE FROM corpora WHERE id = ?1", [id as i64])? {
                0 => Err(StoreError::Missing {
                    what: "corpus",
                    id: id.to_string(),
                }),
                _ => Ok(()),
            },
        )
    }
}
