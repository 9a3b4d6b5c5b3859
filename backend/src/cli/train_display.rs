//! What `gnnxml train` shows: bars on a terminal, plain lines in a log, JSON lines for machines.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;

use gnnxml_shared::api::{LogLevel, Stage, TrainEvent};
use indicatif::{ProgressBar, ProgressStyle};

use crate::train::Outcome;

/// For whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A person: bars on a terminal, lines otherwise.
    Terminal,
    /// A program: one event a line on standard output.
    Json,
}

/// Shows events as they come.
pub(super) struct Display {
    style: Style,
    bar: Mutex<ProgressBar>,
}

impl Display {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            bar: Mutex::new(ProgressBar::hidden()),
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
        let mut bar = self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            TrainEvent::StageStarted { stage } => *bar = new_bar(*stage),
            TrainEvent::StageReused { stage } => tell!("{:<10} from an earlier run", name(*stage)),
            TrainEvent::Progress { done, total, .. } => {
                if *total > 0 {
                    bar.set_length(*total);
                }
                bar.set_position(*done);
            }
            TrainEvent::StageDone {
                stage,
                seconds,
                cpu_seconds,
            } => {
                bar.finish_and_clear();
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
                line(
                    &bar,
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
                line(&bar, &format!("  {mark}{message}"));
            }
            TrainEvent::Interrupted { .. } => {
                bar.finish_and_clear();
                tell!("stopped; --resume goes on from here");
            }
            TrainEvent::Failed { .. } => bar.finish_and_clear(),
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

fn line(bar: &ProgressBar, text: &str) {
    bar.suspend(|| tell!("{text}"));
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

fn new_bar(stage: Stage) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{prefix:<10} {bar:32} {pos}/{len} {per_sec} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    bar.set_prefix(name(stage));
    bar
}
