//! Accepted and rejected tags; the text only when the person agreed.

use gnnxml_shared::api::{Feedback, FeedbackList};
use rusqlite::{Row, params};

use super::{Result, Store, StoreError, from_json, to_json, unsigned};
use crate::runs::now;

const EXPORTABLE: &str = "text IS NOT NULL AND accepted <> '[]'";

type Raw = (i64, i64, Option<String>, Option<String>, String, String);

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok((
        row.get(0)?,
        row.get(1)?,
        row.get(2)?,
        row.get(3)?,
        row.get(4)?,
        row.get(5)?,
    ))
}

fn feedback((id, created, model, text, accepted, rejected): Raw) -> Result<Feedback> {
    Ok(Feedback {
        id: unsigned(id),
        created: unsigned(created),
        model,
        text,
        accepted: from_json("accepted labels", &accepted)?,
        rejected: from_json("rejected labels", &rejected)?,
    })
}

impl Store {
    /// Keeps several pieces of feedback, all or none; answers with their ids.
    pub fn add_feedback(&self, all: &[Feedback]) -> Result<Vec<u64>> {
        self.write(|db| {
            let mut statement = db.prepare_cached(
                "INSERT INTO feedback (created, model, text, accepted, rejected) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let mut ids = Vec::with_capacity(all.len());
            for one in all {
                statement.execute(params![
                    now() as i64,
                    one.model,
                    one.text,
                    to_json(&one.accepted),
                    to_json(&one.rejected)
                ])?;
                ids.push(unsigned(db.last_insert_rowid()));
            }
            Ok(ids)
        })
    }

    /// A page of feedback below id `before`, newest first.
    pub fn feedback(&self, before: u64, most: usize) -> Result<FeedbackList> {
        self.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT id, created, model, text, accepted, rejected FROM feedback WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
            )?;
            let rows =
                statement.query_map(params![i64::try_from(before).unwrap_or(i64::MAX), most as i64], raw)?;
            let list = rows.map(|row| feedback(row?)).collect::<Result<_>>()?;
            let (total, exportable) = db.query_row(
                &format!("SELECT count(*), count(*) FILTER (WHERE {EXPORTABLE}) FROM feedback"),
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            Ok(FeedbackList { feedback: list, total: unsigned(total), exportable: unsigned(exportable) })
        })
    }

    /// Forgets one piece of feedback, text and all.
    pub fn delete_feedback(&self, id: u64) -> Result<()> {
        self.write(
            |db| match db.execute("DELETE FROM feedback WHERE id = ?1", [id as i64])? {
                0 => Err(StoreError::Missing {
                    what: "feedback",
                    id: id.to_string(),
                }),
                _ => Ok(()),
            },
        )
    }

    /// A page of what can be trained on, above id `after`, oldest first.
    pub fn exportable_feedback(&self, after: u64, most: usize) -> Result<Vec<Feedback>> {
        self.read(|db| {
            let mut statement = db.prepare_cached(&format!(
                "SELECT id, created, model, text, accepted, rejected FROM feedback WHERE id > ?1 AND {EXPORTABLE} ORDER BY id LIMIT ?2"
            ))?;
            let rows =
                statement.query_map(params![i64::try_from(after).unwrap_or(i64::MAX), most as i64], raw)?;
            rows.map(|row| feedback(row?)).collect()
        })
    }
}
