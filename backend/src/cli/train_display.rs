//! What `gnnxml train` shows: bars on a terminal, plain lines in a log, JSON lines for machines.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gnnxml_shared::api::{LogLevel, Stage, TrainEvent};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::train::Outcome;

/// For whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A person: bars on a terminal, lines otherwise.
    Terminal,
    /// A program: one event a line on standard output.
    Json,
}

/// A log hears of a stage at most this often.
const EVERY: Duration = Duration::from_secs(15);

/// How far the present stage is, for a person.
enum Shown {
    Bar(ProgressBar),
    /// Where no terminal is: a line now and then, the last one then.
    Lines(Instant),
}

/// Shows events as they come.
pub(super) struct Display {
    style: Style,
    shown: Mutex<Shown>,
}

impl Display {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            shown: Mutex::new(Shown::Bar(ProgressBar::hidden())),
        }
    }

    pub(super) fn show(&self, event: &TrainEvent) {
        if self.style == Style::Json {
            if let Ok(line) = serde_json::to_string(event) {
                let mut out = std::io::stdout().lock();
                // A reader that went away is no reason to lose a training run.
                let _ = writeln!(out, "{line}").and_then(|()| out.flush());
            }
            return;
        }
        let mut shown = (self.shown.lock()).unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            TrainEvent::StageStarted { stage } => *shown = Shown::of(*stage),
            TrainEvent::StageReused { stage } => tell!("{:<10} from an earlier run", name(*stage)),
            TrainEvent::Progress {
                stage,
                done,
                total,
                seconds_left,
                ..
            } => shown.progress(*stage, *done, *total, *seconds_left),
            TrainEvent::StageDone {
                stage,
                seconds,
                cpu_seconds,
            } => {
                shown.end();
                tell!("{:<10} {seconds:.1} s, {cpu_seconds:.1} CPU s", name(*stage));
            }
            TrainEvent::Epoch {
                epoch,
                epochs,
                loss_conventional,
                loss_rebalance,
                alpha,
                validation_loss,
                best,
                ..
            } => {
                let validation =
                    validation_loss.map_or(String::new(), |loss| format!(", validation {loss:.4}"));
                let mark = if *best { " (best so far)" } else { "" };
                shown.line(
                    &format!(
                        "  epoch {epoch}/{epochs}: loss {loss_conventional:.4} / {loss_rebalance:.4}, α {alpha:.2}{validation}{mark}"
                    ),
                );
            }
            TrainEvent::Log { level, message } => {
                let mark = match level {
                    LogLevel::Info => "",
                    LogLevel::Warning => "warning: ",
                    LogLevel::Error => "error: ",
                };
                shown.line(&format!("  {mark}{message}"));
            }
            TrainEvent::Interrupted { .. } => {
                shown.end();
                tell!("stopped; --resume goes on from here");
            }
            TrainEvent::Failed { .. } => shown.end(),
            TrainEvent::Metrics { .. } | TrainEvent::Done { .. } => {}
        }
    }

    /// The final table.
    pub(super) fn finish(&self, outcome: &Outcome, out: &Path) {
        if self.style == Style::Json {
            return;
        }
        if !outcome.metrics.is_empty() {
            tell!("\non documents held out for fitting, in percent:");
            for row in [
                ["P@1", "P@3", "P@5"],
                ["nDCG@1", "nDCG@3", "nDCG@5"],
                ["PSP@1", "PSP@3", "PSP@5"],
            ] {
                let cells =
                    row.map(|name| format!("{name:<7}{:>6.2}", outcome.metrics.get(name).unwrap_or(&0.0)));
                tell!("  {}", cells.join("   "));
            }
        }
        tell!("\n{} in {:.1} s", out.display(), outcome.seconds);
    }
}

impl Shown {
    fn of(stage: Stage) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines(Instant::now());
        }
        let style = ProgressStyle::with_template("{prefix:<10} {bar:32} {pos}/{len} {per_sec} {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(0).with_style(style);
        bar.set_prefix(name(stage));
        Self::Bar(bar)
    }

    fn progress(&mut self, stage: Stage, done: u64, total: u64, seconds_left: Option<f64>) {
        match self {
            Self::Bar(bar) => {
                if total > 0 {
                    bar.set_length(total);
                }
                bar.set_position(done);
            }
            Self::Lines(last) if done > 0 && last.elapsed() >= EVERY => {
                *last = Instant::now();
                tell!("{:<10} {}", name(stage), how_far(done, total, seconds_left));
            }
            Self::Lines(_) => {}
        }
    }

    /// A line that a bar makes room for.
    fn line(&self, text: &str) {
        match self {
            Self::Bar(bar) => bar.suspend(|| tell!("{text}")),
            Self::Lines(_) => tell!("{text}"),
        }
    }

    fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// What a log says of an unfinished stage.
fn how_far(done: u64, total: u64, seconds_left: Option<f64>) -> String {
    if total == 0 {
        return done.to_string();
    }
    let share = 100 * done.min(total) / total;
    let left = (seconds_left.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
        .map_or(String::new(), |left| format!(", {} left", HumanDuration(left)));
    format!("{done} of {total} ({share} %){left}")
}

fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Read => "read",
        Stage::Encode => "encode",
        Stage::Cluster => "cluster",
        Stage::Match => "match",
        Stage::Rank => "rank",
        Stage::Calibrate => "calibrate",
        Stage::Save => "save",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_hears_how_far_a_stage_is_and_what_is_left() {
        assert_eq!(
            how_far(52_000, 165_000, Some(372.0)),
            "52000 of 165000 (31 %), 6 minutes left"
        );
        assert_eq!(how_far(3, 4, None), "3 of 4 (75 %)");
        assert_eq!(how_far(9_000, 0, None), "9000");
        assert_eq!(how_far(1, 3, Some(f64::INFINITY)), "1 of 3 (33 %)");
    }
}
