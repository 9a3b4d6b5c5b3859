//! The child process of a run: started in a process group of its own, niced, found again, stopped.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;

/// What is enough to find a process again after a restart: its id alone may have been given to another since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildIdentity {
    pub pid: u32,
    /// Clock ticks after boot at which it started (field 22 of `/proc/PID/stat`); 0 where there is no `/proc`.
    pub start_ticks: u64,
}

/// How hard to stop a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// Asks: the child saves what it has.
    Terminate,
    /// Does not ask.
    Kill,
}

impl ChildIdentity {
    /// The identity of a process that runs now.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            start_ticks: start_ticks(pid)?,
        })
    }

    /// The process that was given this very argument, if one runs: a child whose server died before it could note
    /// the number. Only where there is a `/proc`.
    pub fn with_argument(argument: &OsStr) -> Option<Self> {
        let wanted = argument.as_encoded_bytes();
        let mut found: Vec<u32> = std::fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| *pid != std::process::id())
            .filter(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|line| line.split(|byte| *byte == 0).any(|part| part == wanted))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().find_map(Self::of)
    }

    /// Whether that very process still runs (a zombie does not).
    pub fn is_alive(self) -> bool {
        self.start_ticks != 0 && start_ticks(self.pid) == Some(self.start_ticks)
    }

    /// Signals the child's whole process group, if it is still the same process.
    pub fn stop(self, signal: StopSignal) {
        if self.is_alive() {
            signals::signal_group(self.pid, signal);
        }
    }
}

/// Starts `program arguments…` with its output appended to two files.
///
/// Files and not pipes: the child outlives a server that is killed, and what it said meanwhile is not lost.
pub(super) fn spawn(
    program: &Path,
    arguments: &[OsString],
    directory: &Path,
    events: &Path,
    errors: &Path,
) -> io::Result<tokio::process::Child> {
    let append = |path: &Path| File::options().create(true).append(true).open(path);
    let child = tokio::process::Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env_remove("GNNXML_API_KEY")
        .env_remove("GNNXML_FAIL_POINT")
        .stdin(Stdio::null())
        .stdout(append(events)?)
        .stderr(append(errors)?)
        .process_group(0)
        .kill_on_drop(false)
        .spawn()?;
    if let Some(pid) = child.id() {
        signals::be_nice(pid);
    }
    Ok(child)
}

/// Field 22 of `/proc/PID/stat`, unless the process is gone or a zombie.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets and may hold anything, brackets included.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

mod signals {
    #![allow(unsafe_code)] // two system calls the standard library has no safe form of

    use super::StopSignal;

    /// How much a run steps back for the server that tags: 10 of 19.
    const NICENESS: libc::c_int = 10;

    pub(super) fn signal_group(leader: u32, signal: StopSignal) {
        let Ok(leader) = libc::pid_t::try_from(leader) else {
            return;
        };
        if leader <= 1 {
            return; // -1 would mean every process there is
        }
        let number = match signal {
            StopSignal::Terminate => libc::SIGTERM,
            StopSignal::Kill => libc::SIGKILL,
        };
        // SAFETY: kill reads two integers and touches no memory of ours.
        unsafe { libc::kill(-leader, number) };
    }

    pub(super) fn be_nice(pid: u32) {
        // SAFETY: setpriority reads three integers and touches no memory of ours. A failure leaves the child un-niced.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, NICENESS) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_time_and_not_only_by_its_number() {
        let me = ChildIdentity::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        let namesake = ChildIdentity {
            start_ticks: me.start_ticks + 1,
            ..me
        };
        assert!(!namesake.is_alive());
    }
}
