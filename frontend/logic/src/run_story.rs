//! A training run as its events tell it: which stage, how far, which losses, which figures.
//!
//! Events may come twice when a stream reconnects; each is taken once.

use std::collections::BTreeMap;

use gnnxml_shared::api::{LogLevel, Stage, TrainEvent};

/// How a stage stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum StageState {
    #[default]
    Waiting,
    Running {
        /// 0 to 1, when the stage counts.
        share: Option<f64>,
        seconds_left: Option<f64>,
    },
    /// Its result was there from an earlier attempt.
    Reused,
    Done {
        seconds: f64,
    },
}

/// One epoch of the matcher, as the charts show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochPoint {
    pub epoch: u32,
    pub epochs: u32,
    pub loss_conventional: f64,
    pub loss_rebalance: f64,
    pub alpha: f64,
    pub validation_loss: Option<f64>,
    /// 0 to 1.
    pub cluster_recall: Option<f64>,
    pub seconds_left: Option<f64>,
    pub best: bool,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Number of its event: stable, so that a list can be keyed by it.
    pub event: u64,
    pub level: LogLevel,
    pub message: String,
}

/// At most so many log lines are kept; the oldest go first.
const MOST_LINES: usize = 500;

/// Everything the events said so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStory {
    last_event: u64,
    stages: BTreeMap<Stage, StageState>,
    pub epochs: Vec<EpochPoint>,
    pub metrics: BTreeMap<String, f64>,
    pub log: Vec<LogLine>,
    /// Set when the run said how it ended.
    pub ending: Option<Ending>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    Done { seconds: f64 },
    Interrupted { resumable: bool },
    Failed { message: String },
}

impl RunStory {
    /// Number of the last event taken: where a stream goes on.
    pub fn last_event(&self) -> u64 {
        self.last_event
    }

    pub fn stage(&self, stage: Stage) -> StageState {
        self.stages.get(&stage).copied().unwrap_or_default()
    }

    /// Takes an event; false when it was known already.
    pub fn take(&mut self, id: u64, event: &TrainEvent) -> bool {
        if id <= self.last_event {
            return false;
        }
        self.last_event = id;
        match event {
            TrainEvent::StageStarted { stage } => {
                // Another attempt starts over: what comes after the first stage is unsaid again.
                self.ending = None;
                self.stages.retain(|known, _| known < stage);
                if *stage <= Stage::Match {
                    self.epochs.clear();
                }
                self.stages.insert(
                    *stage,
                    StageState::Running {
                        share: None,
                        seconds_left: None,
                    },
                );
            }
            TrainEvent::StageReused { stage } => {
                self.ending = None;
                self.stages.insert(*stage, StageState::Reused);
            }
            TrainEvent::Progress {
                stage,
                done,
                total,
                seconds_left,
                ..
            } => {
                let share = (*total > 0).then(|| (*done as f64 / *total as f64).clamp(0.0, 1.0));
                self.stages.insert(
                    *stage,
                    StageState::Running {
                        share,
                        seconds_left: *seconds_left,
                    },
                );
            }
            TrainEvent::StageDone { stage, seconds, .. } => {
                self.stages.insert(*stage, StageState::Done { seconds: *seconds });
            }
            TrainEvent::Epoch {
                epoch,
                epochs,
                loss_conventional,
                loss_rebalance,
                alpha,
                validation_loss,
                cluster_recall,
                seconds_left,
                best,
                ..
            } => {
                // After a resume the epochs go on where the checkpoint was.
                self.epochs.retain(|point| point.epoch < *epoch);
                self.epochs.push(EpochPoint {
                    epoch: *epoch,
                    epochs: *epochs,
                    loss_conventional: *loss_conventional,
                    loss_rebalance: *loss_rebalance,
                    alpha: *alpha,
                    validation_loss: *validation_loss,
                    cluster_recall: *cluster_recall,
                    seconds_left: *seconds_left,
                    best: *best,
                });
            }
            TrainEvent::Metrics { values } => {
                self.metrics
                    .extend(values.iter().map(|(name, value)| (name.clone(), *value)));
            }
            TrainEvent::Log { level, message } => {
                self.log.push(LogLine {
                    event: id,
                    level: *level,
                    message: message.clone(),
                });
                if self.log.len() > MOST_LINES {
                    self.log.remove(0);
                }
            }
            TrainEvent::Interrupted { resumable } => {
                self.ending = Some(Ending::Interrupted {
                    resumable: *resumable,
                });
            }
            TrainEvent::Done { seconds } => self.ending = Some(Ending::Done { seconds: *seconds }),
            TrainEvent::Failed { message } => {
                self.ending = Some(Ending::Failed {
                    message: message.clone(),
                });
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(epoch: u32, loss: f64) -> TrainEvent {
        TrainEvent::Epoch {
            epoch,
            epochs: 10,
            loss_conventional: loss,
            loss_rebalance: loss * 2.0,
            alpha: 0.9,
            validation_loss: None,
            cluster_recall: Some(0.8),
            examples_per_second: 1.0,
            seconds_left: None,
            best: true,
        }
    }

    #[test]
    fn an_event_that_comes_twice_is_taken_once() {
        let mut story = RunStory::default();
        assert!(story.take(1, &epoch(1, 0.5)));
        assert!(!story.take(1, &epoch(1, 0.5)));
        assert_eq!(story.epochs.len(), 1);
        assert_eq!(story.last_event(), 1);
    }

    #[test]
    fn a_stage_runs_from_waiting_over_progress_to_done() {
        let mut story = RunStory::default();
        assert_eq!(story.stage(Stage::Rank), StageState::Waiting);
        story.take(1, &TrainEvent::StageStarted { stage: Stage::Rank });
        story.take(
            2,
            &TrainEvent::Progress {
                stage: Stage::Rank,
                done: 30,
                total: 40,
                per_second: 3.0,
                seconds_left: Some(3.0),
            },
        );
        assert_eq!(
            story.stage(Stage::Rank),
            StageState::Running {
                share: Some(0.75),
                seconds_left: Some(3.0)
            }
        );
        story.take(
            3,
            &TrainEvent::StageDone {
                stage: Stage::Rank,
                seconds: 12.0,
                cpu_seconds: 23.0,
            },
        );
        assert_eq!(story.stage(Stage::Rank), StageState::Done { seconds: 12.0 });
    }

    #[test]
    fn a_resumed_run_replaces_the_epochs_it_repeats() {
        let mut story = RunStory::default();
        for (id, number) in (1..=4).enumerate() {
            story.take(id as u64 + 1, &epoch(number, 0.5));
        }
        story.take(5, &TrainEvent::Interrupted { resumable: true });
        story.take(6, &TrainEvent::StageReused { stage: Stage::Read });
        assert_eq!(story.ending, None);
        story.take(7, &epoch(3, 0.1));
        let losses: Vec<f64> = story.epochs.iter().map(|point| point.loss_conventional).collect();
        assert_eq!(losses, [0.5, 0.5, 0.1]);
    }

    #[test]
    fn the_log_keeps_its_newest_lines() {
        let mut story = RunStory::default();
        for id in 1..=600 {
            story.take(
                id,
                &TrainEvent::Log {
                    level: LogLevel::Info,
                    message: id.to_string(),
                },
            );
        }
        assert_eq!(story.log.len(), MOST_LINES);
        assert_eq!(story.log.last().unwrap().message, "600");
    }
}
