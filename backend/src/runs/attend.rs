//! Attending one child: its events are stored and told, its end is noted, it is stopped when asked.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use gnnxml_shared::api::{RunStatus, TrainEvent};
use tokio::sync::watch;
use tokio::time::Instant;

use super::child::{ChildIdentity, StopSignal};
use super::fail_point::fail_point;
use super::follow;
use super::queue::{Inner, Stop, errors_file, events_file};
use super::store::{RunOutcome, StoreError};

/// How often the event file is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Lines of the error stream kept with a run that did not end well.
const LOG_LINES: usize = 20;

/// Among so many last events the run's own last word is looked for; little can follow it.
const LAST_EVENTS: usize = 50;

/// What to attend.
#[derive(Debug)]
pub(super) struct Attendance {
    pub(super) id: u64,
    /// Our own child; a child of an earlier server has none, and its exit status is not ours to know.
    pub(super) process: Option<tokio::process::Child>,
    /// The living child, if there is one.
    pub(super) child: Option<ChildIdentity>,
    pub(super) stop: watch::Receiver<Stop>,
}

/// Returns when the run is over and the database says so.
pub(super) async fn attend(inner: &Arc<Inner>, mut attendance: Attendance) {
    let id = attendance.id;
    let mut kill_at: Option<Instant> = None;
    let exit = loop {
        tokio::select! {
            exit = ended(&mut attendance) => break exit,
            () = tokio::time::sleep(LOOK) => {}
        }
        let asked = *attendance.stop.borrow() != Stop::No;
        if let (true, Some(child)) = (asked, attendance.child) {
            match kill_at {
                None => {
                    child.stop(StopSignal::Terminate);
                    kill_at = Some(Instant::now() + inner.settings.patience);
                }
                Some(when) if Instant::now() >= when => child.stop(StopSignal::Kill),
                Some(_) => {}
            }
        }
        take_events(inner, id, false).await;
    };
    take_events(inner, id, true).await;
    let stop = *attendance.stop.borrow();
    note_end(inner, id, stop, exit).await;
}

/// Waits for the child's end; `None` when its exit status is not ours to know.
async fn ended(attendance: &mut Attendance) -> Option<ExitStatus> {
    if let Some(process) = &mut attendance.process {
        return process.wait().await.ok();
    }
    while attendance.child.is_some_and(ChildIdentity::is_alive) {
        tokio::time::sleep(LOOK).await;
    }
    None
}

/// Moves what the child said into the database and tells the listeners.
/// What cannot be stored now (a full disk) stays in the file and is read again.
async fn take_events(inner: &Arc<Inner>, id: u64, complete: bool) {
    loop {
        let data = Arc::clone(&inner.data);
        let taken = inner
            .store
            .call(move |store| {
                let offset = store.run(id)?.event_offset;
                let found = follow::read_events(&events_file(&data.run(id)), offset, complete)
                    .map_err(|error| StoreError::State(format!("event file of run {id}: {error}")))?;
                if found.offset == offset {
                    return Ok((Vec::new(), false));
                }
                fail_point("event_read");
                let stored = store.append_events(id, found.offset, &found.events)?;
                fail_point("event_stored");
                Ok((stored, found.more))
            })
            .await;
        match taken {
            Ok((events, more)) => {
                if !events.is_empty() {
                    inner.tell(id, &events);
                }
                if !more {
                    return;
                }
            }
            Err(error) => {
                tracing::error!(run = id, %error, "events could not be stored; they stay in the event file");
                return;
            }
        }
    }
}

async fn note_end(inner: &Arc<Inner>, id: u64, stop: Stop, exit: Option<ExitStatus>) {
    for attempt in 0..20_u64 {
        let errors = errors_file(&inner.data.run(id));
        let noted = inner
            .store
            .call(move |store| {
                let row = store.run(id)?;
                let last_word = store
                    .latest_events(id, row.attempt_after, LAST_EVENTS)?
                    .into_iter()
                    .find(|event| {
                        matches!(
                            event,
                            TrainEvent::Done { .. }
                                | TrainEvent::Failed { .. }
                                | TrainEvent::Interrupted { .. }
                        )
                    });
                let mut outcome = outcome(stop, exit, last_word);
                if outcome.status != RunStatus::Done {
                    outcome.log = follow::last_lines(&errors, LOG_LINES);
                }
                store.run_ended(id, &outcome)
            })
            .await;
        match noted {
            Ok(run) => {
                tracing::info!(run = id, status = ?run.status, "run is over");
                return;
            }
            Err(error) => {
                // After the last attempt the run stays `running` in the database; the next start ends it.
                tracing::error!(run = id, %error, "the end of the run could not be stored");
                tokio::time::sleep(Duration::from_millis(100 * (attempt + 1))).await;
            }
        }
    }
}

/// How a run ended, from why it was stopped, how its process exited and its own last word.
fn outcome(stop: Stop, exit: Option<ExitStatus>, last_word: Option<TrainEvent>) -> RunOutcome {
    let plain = |status, error: Option<String>| RunOutcome {
        status,
        error,
        log: Vec::new(),
    };
    match (last_word, stop) {
        (Some(TrainEvent::Done { .. }), _) if exit.is_none_or(|exit| exit.success()) => {
            plain(RunStatus::Done, None)
        }
        (_, Stop::Cancel) => plain(RunStatus::Cancelled, None),
        (_, Stop::Shutdown) => plain(
            RunStatus::Interrupted,
            Some("the server was stopped while it ran".to_owned()),
        ),
        (Some(TrainEvent::Failed { message }), _) => plain(RunStatus::Failed, Some(message)),
        (Some(TrainEvent::Interrupted { .. }), _) => plain(
            RunStatus::Interrupted,
            Some("the training process was asked to stop".to_owned()),
        ),
        (_, Stop::No) => match exit {
            None => plain(
                RunStatus::Interrupted,
                Some("the training process went away while no server attended it".to_owned()),
            ),
            Some(exit) => plain(
                RunStatus::Failed,
                Some(format!("the training process ended before it was done ({exit})")),
            ),
        },
    }
}
