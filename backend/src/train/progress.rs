//! What a stage says while it works, and whether it should go on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gnnxml_shared::api::{LogLevel, Stage, TrainEvent};

use super::TrainError;
use crate::cpu_time::cpu_seconds;
use crate::data::CorpusReader;

/// Progress lines at most this often.
const EVERY: Duration = Duration::from_millis(200);

/// What a stage takes, from when it was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    started: Instant,
    cpu_before: f64,
}

impl Spent {
    pub(super) fn now() -> Self {
        Self {
            started: Instant::now(),
            cpu_before: cpu_seconds(),
        }
    }

    /// The event that ends the stage.
    pub(super) fn done(self, stage: Stage) -> TrainEvent {
        TrainEvent::StageDone {
            stage,
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - self.cpu_before,
        }
    }
}

/// A stage's voice.
pub struct Progress<'a> {
    stage: Stage,
    emit: &'a (dyn Fn(TrainEvent) + Sync),
    stop: &'a AtomicBool,
    started: Instant,
    last: Mutex<Instant>,
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl<'a> Progress<'a> {
    /// A stage that begins now.
    pub fn new(stage: Stage, emit: &'a (dyn Fn(TrainEvent) + Sync), stop: &'a AtomicBool) -> Self {
        let now = Instant::now();
        Self {
            stage,
            emit,
            stop,
            started: now,
            last: Mutex::new(now),
        }
    }

    /// Says how far it is; most calls say nothing.
    pub fn done(&self, done: u64, total: Option<u64>) {
        let Ok(mut last) = self.last.try_lock() else {
            return;
        };
        if last.elapsed() < EVERY && total != Some(done) {
            return;
        }
        *last = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
        let per_second = done as f64 / seconds;
        let left = total.map(|total| total.saturating_sub(done) as f64 / per_second.max(1e-9));
        (self.emit)(TrainEvent::Progress {
            stage: self.stage,
            done,
            total: total.unwrap_or(0),
            per_second,
            seconds_left: left.filter(|_| done > 0),
        });
    }

    /// Whether the run was asked to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// An error once the run was asked to stop.
    pub fn check(&self) -> Result<(), TrainError> {
        if self.stopped() {
            Err(TrainError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Passes another room's event on.
    pub fn emit(&self, event: TrainEvent) {
        (self.emit)(event);
    }

    /// Says which records of a corpus that was read to its end were left out or repeat an id.
    pub fn tell_left_out(&self, reader: &CorpusReader) {
        if let Some((first, count)) = reader.repeated() {
            self.warn(format!(
                "{count} documents repeat the id of another and were kept: {first}"
            ));
        }
        for complaint in reader.complaints() {
            self.warn(format!("left out: {complaint}"));
        }
    }

    pub fn info(&self, message: String) {
        (self.emit)(TrainEvent::Log {
            level: LogLevel::Info,
            message,
        });
    }

    pub fn warn(&self, message: String) {
        (self.emit)(TrainEvent::Log {
            level: LogLevel::Warning,
            message,
        });
    }
}
