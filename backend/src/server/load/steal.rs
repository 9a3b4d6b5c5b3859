//! The CPU time that a virtual machine's host gives to others while something is measured: a slow answer may be its doing.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Notes every second how much was stolen in it.
#[derive(Debug)]
pub(super) struct StealWatch {
    over: Sender<()>,
    noting: JoinHandle<Vec<f64>>,
}

impl StealWatch {
    pub(super) fn start() -> Self {
        let (over, stopped) = channel();
        let noting = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut noted = Vec::new();
            let mut before = stolen_seconds();
            loop {
                let next = begun + Duration::from_secs(noted.len() as u64 + 1);
                let ended = stopped.recv_timeout(next.saturating_duration_since(Instant::now()));
                let now = stolen_seconds();
                noted.push(now - before);
                before = now;
                if ended != Err(RecvTimeoutError::Timeout) {
                    return noted;
                }
            }
        });
        Self { over, noting }
    }

    /// CPU seconds stolen from all processors in each second since the start.
    pub(super) fn stop(self) -> Vec<f64> {
        drop(self.over);
        self.noting.join().unwrap_or_default()
    }
}

/// Steal time of all processors since they started; a tick is a hundredth of a second on Linux. Nought where it is not told.
fn stolen_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat
        .lines()
        .next()
        .and_then(|all| all.split_ascii_whitespace().nth(8));
    ticks.and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0) / 100.0
}
