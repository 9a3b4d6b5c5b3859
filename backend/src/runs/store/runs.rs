//! Runs and where they stand.

use gnnxml_shared::api::{Run, RunStatus, StartRun};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{Result, Store, StoreError, from_json, to_json, unsigned};
use crate::runs::{ChildIdentity, now};

/// A run about to be queued.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub name: String,
    pub settings: StartRun,
    /// SHA-256 of the training corpus.
    pub fingerprint: String,
}

/// A run with what only the queue needs to know.
#[derive(Clone, Debug)]
pub struct RunRow {
    pub run: Run,
    /// The child, while there is one.
    pub child: Option<ChildIdentity>,
    /// How far its event file has been read.
    pub event_offset: u64,
    /// The last event of the attempts before this one.
    pub attempt_after: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    pub status: RunStatus,
    pub error: Option<String>,
    /// Last lines of its error stream.
    pub log: Vec<String>,
}

const SELECT: &str = "SELECT runs.id, runs.name, status, settings, fingerprint, runs.created, started, finished, attempts, \
     stage, stage_progress, runs.metrics, error, log, pid, start_ticks, event_offset, attempt_after, \
     (SELECT models.id FROM models WHERE models.run = runs.id ORDER BY models.created DESC LIMIT 1) FROM runs";

/// The columns as SQLite holds them; JSON is read outside, where its errors can be told.
struct Raw {
    id: i64,
    name: String,
    status: String,
    settings: String,
    fingerprint: String,
    created: i64,
    started: Option<i64>,
    finished: Option<i64>,
    attempts: u32,
    stage: Option<String>,
    stage_progress: Option<f64>,
    metrics: String,
    error: Option<String>,
    log: String,
    pid: Option<u32>,
    start_ticks: Option<i64>,
    event_offset: i64,
    attempt_after: i64,
    model: Option<String>,
}

impl Raw {
    fn new(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            name: row.get(1)?,
            status: row.get(2)?,
            settings: row.get(3)?,
            fingerprint: row.get(4)?,
            created: row.get(5)?,
            started: row.get(6)?,
            finished: row.get(7)?,
            attempts: row.get(8)?,
            stage: row.get(9)?,
            stage_progress: row.get(10)?,
            metrics: row.get(11)?,
            error: row.get(12)?,
            log: row.get(13)?,
            pid: row.get(14)?,
            start_ticks: row.get(15)?,
            event_offset: row.get(16)?,
            attempt_after: row.get(17)?,
            model: row.get(18)?,
        })
    }

    fn read(self) -> Result<RunRow> {
        let status: RunStatus = from_json("run status", &self.status)?;
        Ok(RunRow {
            run: Run {
                id: unsigned(self.id),
                name: self.name,
                status,
                settings: from_json("run settings", &self.settings)?,
                corpus_fingerprint: self.fingerprint,
                created: unsigned(self.created),
                started: self.started.map(unsigned),
                finished: self.finished.map(unsigned),
                attempts: self.attempts,
                stage: match &self.stage {
                    Some(stage) => Some(from_json("stage", stage)?),
                    None => None,
                },
                stage_progress: self.stage_progress,
                metrics: from_json("metrics", &self.metrics)?,
                error: self.error,
                log: from_json("log", &self.log)?,
                resumable: status.is_resumable(),
                model: self.model,
            },
            child: match (self.pid, self.start_ticks) {
                (Some(pid), Some(ticks)) => Some(ChildIdentity {
                    pid,
                    start_ticks: unsigned(ticks),
                }),
                _ => None,
            },
            event_offset: unsigned(self.event_offset),
            attempt_after: unsigned(self.attempt_after),
        })
    }
}

fn one(db: &Connection, id: u64) -> Result<RunRow> {
    db.prepare_cached(&format!("{SELECT} WHERE runs.id = ?1"))?
        .query_row([id as i64], Raw::new)
        .optional()?
        .ok_or_else(|| StoreError::Missing {
            what: "run",
            id: id.to_string(),
        })?
        .read()
}

fn status_names(statuses: &[RunStatus]) -> String {
    let names: Vec<String> = statuses
        .iter()
        .map(|status| format!("'{}'", to_json(status)))
        .collect();
    names.join(", ")
}

impl Store {
    pub fn add_run(&self, new: &NewRun) -> Result<Run> {
        self.write(|db| {
            db.execute(
                "INSERT INTO runs (name, status, settings, corpus, valid, fingerprint, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    new.name,
                    to_json(&RunStatus::Queued),
                    to_json(&new.settings),
                    new.settings.corpus as i64,
                    new.settings.valid.map(|id| id as i64),
                    new.fingerprint,
                    now() as i64,
                ],
            )?;
            Ok(one(db, unsigned(db.last_insert_rowid()))?.run)
        })
    }

    /// Newest first.
    pub fn runs(&self) -> Result<Vec<Run>> {
        self.read(|db| {
            let mut statement = db.prepare_cached(&format!("{SELECT} ORDER BY runs.id DESC"))?;
            let rows = statement.query_map([], Raw::new)?;
            rows.map(|raw| Ok(raw?.read()?.run)).collect()
        })
    }

    /// Oldest first.
    pub fn runs_in(&self, statuses: &[RunStatus]) -> Result<Vec<RunRow>> {
        self.read(|db| {
            let mut statement = db.prepare(&format!(
                "{SELECT} WHERE status IN ({}) ORDER BY runs.id",
                status_names(statuses)
            ))?;
            let rows = statement.query_map([], Raw::new)?;
            rows.map(|raw| raw?.read()).collect()
        })
    }

    pub fn run(&self, id: u64) -> Result<RunRow> {
        self.read(|db| one(db, id))
    }

    /// Moves a run from one of `from` to `to`; refused when it is in none of them.
    pub fn move_run(&self, id: u64, from: &[RunStatus], to: RunStatus) -> Result<Run> {
        self.write(|db| {
            let found = one(db, id)?.run.status;
            if !from.contains(&found) {
                return Err(StoreError::State(format!(
                    "run {id} is {}",
                    to_json(&found).trim_matches('"')
                )));
            }
            let finished = to.is_over().then(|| now() as i64);
            db.execute(
                "UPDATE runs SET status = ?2, finished = ?3, error = NULL, log = '[]' WHERE id = ?1",
                params![id as i64, to_json(&to), finished],
            )?;
            Ok(one(db, id)?.run)
        })
    }

    /// Takes a queued run for a new attempt; its child is noted by [`Store::run_has_child`] once it lives.
    /// `None` when it is not queued any more.
    pub fn claim_run(&self, id: u64) -> Result<Option<RunRow>> {
        self.write(|db| {
            let claimed = db.execute(
                "UPDATE runs SET status = ?2, started = coalesce(started, ?3), finished = NULL, attempts = attempts + 1, \
                 pid = NULL, start_ticks = NULL, \
                 attempt_after = (SELECT coalesce(max(events.id), 0) FROM events WHERE events.run = runs.id) \
                 WHERE id = ?1 AND status = ?4",
                params![id as i64, to_json(&RunStatus::Running), now() as i64, to_json(&RunStatus::Queued)],
            )?;
            match claimed {
                0 => Ok(None),
                _ => one(db, id).map(Some),
            }
        })
    }

    /// Notes the child that works on a run.
    pub fn run_has_child(&self, id: u64, child: ChildIdentity) -> Result<()> {
        self.write(|db| {
            db.execute(
                "UPDATE runs SET pid = ?2, start_ticks = ?3 WHERE id = ?1",
                params![id as i64, child.pid, child.start_ticks as i64],
            )?;
            Ok(())
        })
    }

    /// Notes how a run ended.
    pub fn run_ended(&self, id: u64, outcome: &RunOutcome) -> Result<Run> {
        self.write(|db| {
            db.execute(
                "UPDATE runs SET status = ?2, finished = ?3, error = ?4, log = ?5, pid = NULL, start_ticks = NULL WHERE id = ?1",
                params![
                    id as i64,
                    to_json(&outcome.status),
                    now() as i64,
                    outcome.error,
                    to_json(&outcome.log),
                ],
            )?;
            Ok(one(db, id)?.run)
        })
    }

    /// Forgets a run that is over, with its events. A model published from it stays.
    pub fn delete_run(&self, id: u64) -> Result<()> {
        self.write(|db| {
            if !one(db, id)?.run.status.is_over() {
                return Err(StoreError::State(format!("run {id} is not over")));
            }
            db.execute("DELETE FROM runs WHERE id = ?1", [id as i64])?;
            Ok(())
        })
    }
}
