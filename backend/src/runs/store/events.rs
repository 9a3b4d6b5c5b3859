//! What runs said, in order, each event once.

use gnnxml_shared::api::{Stage, StoredEvent, TrainEvent};
use rusqlite::{Connection, params};

use super::{Result, Store, StoreError, from_json, to_json, unsigned};
use crate::runs::now;

impl Store {
    /// Appends events read from the run's event file up to byte `offset`, in one transaction with that offset:
    /// after a crash the file is read again from exactly there, so no event is lost and none is stored twice.
    pub fn append_events(&self, run: u64, offset: u64, events: &[TrainEvent]) -> Result<Vec<StoredEvent>> {
        self.write(|db| {
            let updated = db
                .prepare_cached("UPDATE runs SET event_offset = ?2 WHERE id = ?1")?
                .execute(params![run as i64, offset as i64])?;
            if updated == 0 {
                return Err(StoreError::Missing {
                    what: "run",
                    id: run.to_string(),
                });
            }
            let last = newest(db, run)?;
            let at = now();
            let mut stored = Vec::with_capacity(events.len());
            for (place, event) in events.iter().enumerate() {
                let id = last + 1 + place as u64;
                db.prepare_cached("INSERT INTO events (run, id, at, event) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![run as i64, id as i64, at as i64, to_json(event)])?;
                if let Some((stage, progress)) = whereabouts(event) {
                    db.prepare_cached("UPDATE runs SET stage = ?2, stage_progress = ?3 WHERE id = ?1")?
                        .execute(params![run as i64, to_json(&stage), progress])?;
                }
                if let TrainEvent::Metrics { values } = event {
                    db.prepare_cached("UPDATE runs SET metrics = ?2 WHERE id = ?1")?
                        .execute(params![run as i64, to_json(values)])?;
                }
                stored.push(StoredEvent {
                    id,
                    at,
                    event: event.clone(),
                });
            }
            Ok(stored)
        })
    }

    /// At most `most` events of a run after event `after`, oldest first.
    pub fn events(&self, run: u64, after: u64, most: usize) -> Result<Vec<StoredEvent>> {
        self.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT id, at, event FROM events WHERE run = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            )?;
            let mut rows = statement.query(params![
                run as i64,
                i64::try_from(after).unwrap_or(i64::MAX),
                most as i64
            ])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let event: String = row.get(2)?;
                events.push(StoredEvent {
                    id: unsigned(row.get(0)?),
                    at: unsigned(row.get(1)?),
                    event: from_json("event", &event)?,
                });
            }
            Ok(events)
        })
    }

    /// The number of the newest event of a run, 0 when it has said nothing.
    pub fn newest_event(&self, run: u64) -> Result<u64> {
        self.read(|db| newest(db, run))
    }

    /// At most `most` of the newest events of a run after event `after`, newest first.
    pub fn latest_events(&self, run: u64, after: u64, most: usize) -> Result<Vec<TrainEvent>> {
        self.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT event FROM events WHERE run = ?1 AND id > ?2 ORDER BY id DESC LIMIT ?3",
            )?;
            let rows = statement.query_map(params![run as i64, after as i64, most as i64], |row| {
                row.get::<_, String>(0)
            })?;
            rows.map(|row| from_json("event", &row?)).collect()
        })
    }
}

fn newest(db: &Connection, run: u64) -> Result<u64> {
    let newest = db
        .prepare_cached("SELECT coalesce(max(id), 0) FROM events WHERE run = ?1")?
        .query_row([run as i64], |row| row.get(0))?;
    Ok(unsigned(newest))
}

/// The stage an event speaks of, and how far it is.
fn whereabouts(event: &TrainEvent) -> Option<(Stage, Option<f64>)> {
    match event {
        TrainEvent::StageStarted { stage } => Some((*stage, Some(0.0))),
        TrainEvent::StageReused { stage } | TrainEvent::StageDone { stage, .. } => Some((*stage, Some(1.0))),
        TrainEvent::Progress {
            stage, done, total, ..
        } => Some((
            *stage,
            (*total > 0).then(|| (*done as f64 / *total as f64).clamp(0.0, 1.0)),
        )),
        TrainEvent::Epoch { epoch, epochs, .. } => Some((
            Stage::Match,
            (*epochs > 0).then(|| (f64::from(*epoch) / f64::from(*epochs)).clamp(0.0, 1.0)),
        )),
        _ => None,
    }
}
