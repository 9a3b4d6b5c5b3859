//! The queue of runs: one child at a time by default, each attended until it is over.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gnnxml_shared::api::{Run, RunStatus, StartRun, StoredEvent};
use tokio::sync::{Notify, broadcast, watch};

use super::attend::{Attendance, attend};
use super::child::{self, ChildIdentity};
use super::data_dir::DataDir;
use super::durable::{create_private_dir, remove_dir_durably};
use super::fail_point::fail_point;
use super::follow;
use super::store::{NewRun, RunOutcome, Store, StoreError};

/// How runs are run.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// The program that trains: this one, unless a test says otherwise.
    pub program: PathBuf,
    /// Children at once.
    pub parallel: usize,
    /// Runs that may wait.
    pub waiting: usize,
    /// How long a child may take to save after it was asked to stop.
    pub patience: Duration,
}

impl QueueSettings {
    /// One child of this very program at a time.
    pub fn of_this_program() -> io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            parallel: 1,
            waiting: 100,
            patience: Duration::from_millis(1500),
        })
    }
}

/// Why the queue refuses.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("{0} runs are waiting already")]
    Full(usize),
    #[error("the server is stopping")]
    Stopping,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What listeners of a run hear, serialised once for all of them.
#[derive(Clone, Debug)]
pub enum LiveEvent {
    /// A [`StoredEvent`] as JSON.
    Stored { id: u64, json: Arc<str> },
    /// The run is over: its newest event, and the run as JSON.
    Over { newest: u64, json: Arc<str> },
}

/// Why a child is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    No,
    Cancel,
    Shutdown,
}

/// The queue. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunQueue {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) store: Store,
    pub(super) data: Arc<DataDir>,
    pub(super) settings: QueueSettings,
    wake: Notify,
    stopping: watch::Sender<bool>,
    /// Held from claiming a run until its child is attended: a run between the two is nobody's to stop.
    starting: tokio::sync::Mutex<()>,
    /// Children being attended, and how to stop them.
    attended: Mutex<HashMap<u64, watch::Sender<Stop>>>,
    listeners: Mutex<HashMap<u64, broadcast::Sender<LiveEvent>>>,
    idle: Notify,
}

/// Events a slow listener may fall behind before it reads from the database instead.
const LISTENER_BACKLOG: usize = 256;

impl RunQueue {
    /// Takes up where an earlier server left off, then starts what is queued.
    pub async fn start(
        store: Store,
        data: Arc<DataDir>,
        settings: QueueSettings,
    ) -> Result<Self, StoreError> {
        let queue = Self {
            inner: Arc::new(Inner {
                store,
                data,
                settings,
                wake: Notify::new(),
                stopping: watch::Sender::new(false),
                starting: tokio::sync::Mutex::new(()),
                attended: Mutex::default(),
                listeners: Mutex::default(),
                idle: Notify::new(),
            }),
        };
        queue.find_children_again().await?;
        tokio::spawn(queue.clone().schedule());
        Ok(queue)
    }

    /// Queues a new run.
    pub async fn submit(&self, name: Option<String>, settings: StartRun) -> Result<Run, QueueError> {
        self.refuse_when_full().await?;
        let run = self
            .inner
            .store
            .call(move |store| {
                let corpus = store.corpus(settings.corpus)?;
                if let Some(valid) = settings.valid {
                    store.corpus(valid)?;
                }
                store.add_run(&NewRun {
                    name: name.unwrap_or_else(|| corpus.corpus.name.clone()),
                    settings,
                    fingerprint: corpus.corpus.sha256,
                })
            })
            .await?;
        self.inner.wake.notify_one();
        Ok(run)
    }

    /// Queues a run that did not end well once more; it goes on from its checkpoints.
    pub async fn resume(&self, id: u64) -> Result<Run, QueueError> {
        self.refuse_when_full().await?;
        let from = [RunStatus::Cancelled, RunStatus::Interrupted, RunStatus::Failed];
        let run = self
            .inner
            .store
            .call(move |store| store.move_run(id, &from, RunStatus::Queued))
            .await?;
        self.inner.wake.notify_one();
        Ok(run)
    }

    /// Takes a queued run off the queue, or stops a running one within two seconds.
    pub async fn cancel(&self, id: u64) -> Result<Run, StoreError> {
        let run = self
            .inner
            .store
            .call(move |store| {
                store
                    .move_run(id, &[RunStatus::Queued], RunStatus::Cancelled)
                    .or_else(|_| {
                        let running = [RunStatus::Running, RunStatus::Cancelling];
                        store.move_run(id, &running, RunStatus::Cancelling)
                    })
            })
            .await?;
        if run.status == RunStatus::Cancelled {
            self.inner.tell_over(id).await;
        } else {
            // The run may be claimed and its child not attended yet; then there is nobody to tell so far.
            let _none_starts = self.inner.starting.lock().await;
            if let Some(stop) = self.inner.attended().get(&id) {
                stop.send_replace(Stop::Cancel);
            }
        }
        Ok(run)
    }

    /// Forgets a run that is over, and its directory.
    pub async fn delete(&self, id: u64) -> Result<(), StoreError> {
        let folder = self.inner.data.run(id);
        self.inner
            .store
            .call(move |store| {
                store.delete_run(id)?;
                // The row is gone: what cannot be removed now is a stray at the next start.
                if let Err(error) = remove_dir_durably(&folder) {
                    tracing::warn!(run = id, %error, "the run's directory could not be removed");
                }
                Ok(())
            })
            .await
    }

    /// Hears what a run says from now on.
    pub fn listen(&self, id: u64) -> broadcast::Receiver<LiveEvent> {
        let mut listeners = self.inner.listeners();
        listeners.retain(|_, sender| sender.receiver_count() > 0);
        listeners
            .entry(id)
            .or_insert_with(|| broadcast::Sender::new(LISTENER_BACKLOG))
            .subscribe()
    }

    /// Hears when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.inner.stopping.subscribe()
    }

    /// Starts nothing more, asks every child to save and stop, and waits until they have.
    pub async fn stop(&self) {
        self.inner.stopping.send_replace(true);
        self.inner.wake.notify_one();
        // A run that is just being started is attended when this is ours, and hears of the end by itself.
        let _none_starts = self.inner.starting.lock().await;
        for stop in self.inner.attended().values() {
            stop.send_replace(Stop::Shutdown);
        }
        loop {
            let idle = self.inner.idle.notified();
            if self.inner.attended().is_empty() {
                return;
            }
            idle.await;
        }
    }

    async fn refuse_when_full(&self) -> Result<(), QueueError> {
        if *self.inner.stopping.borrow() {
            return Err(QueueError::Stopping);
        }
        let queued = self
            .inner
            .store
            .call(|store| store.runs_in(&[RunStatus::Queued]))
            .await?;
        if queued.len() >= self.inner.settings.waiting {
            return Err(QueueError::Full(queued.len()));
        }
        Ok(())
    }

    /// Runs that were running when the last server went away: attended again when their child still lives,
    /// otherwise ended by what their event file says.
    async fn find_children_again(&self) -> Result<(), StoreError> {
        let left = [RunStatus::Running, RunStatus::Cancelling];
        let rows = self.inner.store.call(move |store| store.runs_in(&left)).await?;
        for row in rows {
            let id = row.run.id;
            // A server that died between starting the child and noting it left no number.
            let child = row
                .child
                .or_else(|| ChildIdentity::with_argument(model_dir(&self.inner.data.run(id)).as_os_str()))
                .filter(|child| child.is_alive());
            tracing::info!(
                run = id,
                alive = child.is_some(),
                "found a run of an earlier server"
            );
            let stop = if row.run.status == RunStatus::Cancelling {
                Stop::Cancel
            } else {
                Stop::No
            };
            self.attend(id, None, child, stop);
        }
        Ok(())
    }

    async fn schedule(self) {
        let mut stopping = self.stopping();
        loop {
            if *stopping.borrow_and_update() {
                return;
            }
            if let Err(error) = self.start_queued().await {
                tracing::error!(%error, "the queue could not be read");
            }
            tokio::select! {
                () = self.inner.wake.notified() => {}
                _ = stopping.changed() => return,
                // Nothing depends on this; it heals a missed wake after a database error.
                () = tokio::time::sleep(Duration::from_secs(5)) => {}
            }
        }
    }

    async fn start_queued(&self) -> Result<(), StoreError> {
        let _starting = self.inner.starting.lock().await;
        while self.inner.attended().len() < self.inner.settings.parallel && !*self.inner.stopping.borrow() {
            let claimed = self
                .inner
                .store
                .call(|store| match store.runs_in(&[RunStatus::Queued])?.first() {
                    Some(next) => store.claim_run(next.run.id),
                    None => Ok(None),
                })
                .await?;
            let Some(row) = claimed else { return Ok(()) };
            let id = row.run.id;
            match self.spawn(&row.run).await {
                Ok((process, identity)) => {
                    fail_point("run_spawned");
                    let noted = self
                        .inner
                        .store
                        .call(move |store| store.run_has_child(id, identity))
                        .await;
                    if let Err(error) = noted {
                        // The child lives all the same; a server started anew finds it by its arguments.
                        tracing::warn!(run = id, %error, "the child's number could not be stored");
                    }
                    self.attend(id, Some(process), Some(identity), Stop::No);
                }
                Err(error) => {
                    let outcome = RunOutcome {
                        status: RunStatus::Failed,
                        error: Some(format!("the training process could not be started: {error}")),
                        log: Vec::new(),
                    };
                    self.inner
                        .store
                        .call(move |store| store.run_ended(id, &outcome))
                        .await?;
                    self.inner.tell_over(id).await;
                }
            }
        }
        Ok(())
    }

    async fn spawn(&self, run: &Run) -> io::Result<(tokio::process::Child, ChildIdentity)> {
        let folder = self.inner.data.run(run.id);
        create_private_dir(&folder)?;
        let arguments = self.arguments(run, &folder).await?;
        follow::close_last_line(&events_file(&folder))?;
        let process = child::spawn(
            &self.inner.settings.program,
            &arguments,
            &folder,
            &events_file(&folder),
            &errors_file(&folder),
        )?;
        let pid = process.id().unwrap_or_default();
        // Without /proc the child cannot be known again after a restart; 0 says so.
        let identity = ChildIdentity::of(pid).unwrap_or(ChildIdentity { pid, start_ticks: 0 });
        Ok((process, identity))
    }

    /// `train --corpus … --out … --json-progress`: every path is ours, nothing of it comes from a caller.
    async fn arguments(&self, run: &Run, folder: &Path) -> io::Result<Vec<OsString>> {
        let settings = run.settings.clone();
        let data = Arc::clone(&self.inner.data);
        let path_of = move |store: &Store, id: u64| -> Result<PathBuf, StoreError> {
            Ok(data.corpus(id).join(store.corpus(id)?.corpus.file))
        };
        let (corpus, valid) = self
            .inner
            .store
            .call({
                let settings = settings.clone();
                move |store| {
                    let valid = match settings.valid {
                        Some(id) => Some(path_of(store, id)?),
                        None => None,
                    };
                    Ok((path_of(store, settings.corpus)?, valid))
                }
            })
            .await
            .map_err(io::Error::other)?;
        let mut arguments: Vec<OsString> = vec!["train".into(), "--corpus".into(), corpus.into()];
        if let Some(valid) = valid {
            arguments.extend(["--valid".into(), valid.into()]);
        }
        arguments.extend(["--out".into(), model_dir(folder).into()]);
        arguments.extend(["--preset".into(), settings.preset.name().into()]);
        if let Some(config) = &settings.config {
            let file = folder.join("settings.toml");
            std::fs::write(&file, config)?;
            arguments.extend(["--config".into(), file.into()]);
        }
        if let Some(seed) = settings.seed {
            arguments.extend(["--seed".into(), seed.to_string().into()]);
        }
        if let Some(threads) = settings.threads {
            arguments.extend(["--threads".into(), threads.to_string().into()]);
        }
        if run.attempts > 1 {
            arguments.push("--resume".into());
        }
        arguments.push("--json-progress".into());
        Ok(arguments)
    }

    fn attend(
        &self,
        id: u64,
        process: Option<tokio::process::Child>,
        child: Option<ChildIdentity>,
        stop: Stop,
    ) {
        let stop = if *self.inner.stopping.borrow() {
            Stop::Shutdown
        } else {
            stop
        };
        let (sender, receiver) = watch::channel(stop);
        self.inner.attended().insert(id, sender);
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move {
            attend(
                &inner,
                Attendance {
                    id,
                    process,
                    child,
                    stop: receiver,
                },
            )
            .await;
            inner.attended().remove(&id);
            inner.tell_over(id).await;
            inner.idle.notify_waiters();
            inner.wake.notify_one();
        });
    }
}

impl Inner {
    fn attended(&self) -> std::sync::MutexGuard<'_, HashMap<u64, watch::Sender<Stop>>> {
        self.attended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, HashMap<u64, broadcast::Sender<LiveEvent>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, run: u64, events: &[StoredEvent]) {
        let mut listeners = self.listeners();
        listeners.retain(|_, sender| sender.receiver_count() > 0);
        let Some(sender) = listeners.get(&run) else { return };
        for event in events {
            let json = serde_json::to_string(event).expect("events serialise").into();
            let _ = sender.send(LiveEvent::Stored { id: event.id, json });
        }
    }

    /// Read once for all listeners; where that fails they find their channel closed and read for themselves.
    async fn tell_over(&self, run: u64) {
        let Some(sender) = self.listeners().remove(&run) else {
            return;
        };
        let read = self
            .store
            .call(move |store| Ok((store.newest_event(run)?, store.run(run)?.run)))
            .await;
        match read {
            Ok((newest, run)) => {
                let json = serde_json::to_string(&run).expect("runs serialise").into();
                let _ = sender.send(LiveEvent::Over { newest, json });
            }
            Err(error) => tracing::error!(run, %error, "the end of the run could not be read"),
        }
    }
}

pub(super) fn events_file(folder: &Path) -> PathBuf {
    folder.join("events.ndjson")
}

pub(super) fn errors_file(folder: &Path) -> PathBuf {
    folder.join("stderr.log")
}

/// Where the child writes its model.
pub fn model_dir(folder: &Path) -> PathBuf {
    folder.join("model")
}
