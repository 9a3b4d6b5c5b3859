//! Following a run's event file: whole lines only, from where the database left off.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use gnnxml_shared::api::{LogLevel, Stage, TrainEvent};

/// The most that is read at once, and the longest line there may be.
const PIECE: usize = 1 << 20;

/// What one look at the file found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) events: Vec<TrainEvent>,
    /// Where the next look starts.
    pub(super) offset: u64,
    /// Whether there is more to read at once.
    pub(super) more: bool,
}

/// Reads the lines after `offset`. A line still being written is left for the next look,
/// unless `complete`: then the writer is gone and the rest counts as a line.
pub(super) fn read_events(path: &Path, offset: u64, complete: bool) -> io::Result<Found> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Found {
                offset,
                ..Found::default()
            });
        }
        opened => opened?,
    };
    file.seek(SeekFrom::Start(offset))?;
    let mut piece = Vec::new();
    file.take(PIECE as u64).read_to_end(&mut piece)?;
    let full = piece.len() == PIECE;
    let usable = match piece.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => last + 1,
        // A line longer than a piece is cut there; waiting for its end could take for ever.
        None if full || complete => piece.len(),
        None => 0,
    };
    let usable = if complete && !full { piece.len() } else { usable };
    let mut events = Vec::new();
    for line in piece[..usable].split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if !line.is_empty() {
            push(&mut events, event_of(line));
        }
    }
    Ok(Found {
        events,
        offset: offset + usable as u64,
        more: full && usable > 0,
    })
}

/// Ends a line that a killed child left open, so that the next attempt's first line stands alone.
pub(super) fn close_last_line(path: &Path) -> io::Result<()> {
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)?;
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// The last `lines` lines of a text file, each cut at 500 characters, reading at most its last 64 KiB.
pub(super) fn last_lines(path: &Path, lines: usize) -> Vec<String> {
    const TAIL: u64 = 64 << 10;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = read()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..]
        .iter()
        .map(|line| line.chars().take(500).collect())
        .collect()
}

/// A line that is not an event is kept as a log line: a child may be older or newer than this server.
fn event_of(line: &[u8]) -> TrainEvent {
    serde_json::from_slice(line).unwrap_or_else(|_| TrainEvent::Log {
        level: LogLevel::Info,
        message: String::from_utf8_lossy(line).chars().take(2000).collect(),
    })
}

/// Of several reports of progress in one look only the newest is kept: what is stored does not
/// depend on how talkative a stage is.
fn push(events: &mut Vec<TrainEvent>, event: TrainEvent) {
    let stage_of = |event: &TrainEvent| -> Option<Stage> {
        match event {
            TrainEvent::Progress { stage, .. } => Some(*stage),
            _ => None,
        }
    };
    if let (Some(last), Some(stage)) = (events.last_mut(), stage_of(&event))
        && stage_of(last) == Some(stage)
    {
        *last = event;
        return;
    }
    events.push(event);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(stage: Stage) -> TrainEvent {
        TrainEvent::StageStarted { stage }
    }

    #[test]
    fn a_line_still_being_written_waits_for_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "{\"type\":\"stage_started\",\"stage\":\"read\"}\n{\"type\":\"stage_",
        )
        .unwrap();
        let first = read_events(file.path(), 0, false).unwrap();
        assert_eq!(first.events, [started(Stage::Read)]);
        let mut whole = std::fs::read_to_string(file.path()).unwrap();
        whole.push_str("started\",\"stage\":\"rank\"}\n");
        std::fs::write(file.path(), whole).unwrap();
        let second = read_events(file.path(), first.offset, false).unwrap();
        assert_eq!(second.events, [started(Stage::Rank)]);
    }

    #[test]
    fn a_line_cut_by_a_kill_does_not_spoil_the_next_attempts_first_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{\"type\":\"sta").unwrap();
        close_last_line(file.path()).unwrap();
        let mut whole = std::fs::read_to_string(file.path()).unwrap();
        whole.push_str("{\"type\":\"stage_started\",\"stage\":\"read\"}\n");
        std::fs::write(file.path(), whole).unwrap();
        let found = read_events(file.path(), 0, true).unwrap();
        assert_eq!(found.events.last(), Some(&started(Stage::Read)));
    }

    #[test]
    fn what_is_not_an_event_becomes_a_log_line_and_a_flood_of_progress_one_event() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut text = "plain words\n".to_owned();
        for done in 0..1000 {
            text += &serde_json::to_string(&TrainEvent::Progress {
                stage: Stage::Encode,
                done,
                total: 1000,
                per_second: 1.0,
                seconds_left: None,
            })
            .unwrap();
            text.push('\n');
        }
        std::fs::write(file.path(), text).unwrap();
        let found = read_events(file.path(), 0, false).unwrap();
        assert_eq!(found.events.len(), 2);
        assert!(matches!(&found.events[0], TrainEvent::Log { message, .. } if message == "plain words"));
        assert!(matches!(found.events[1], TrainEvent::Progress { done: 999, .. }));
    }

    #[test]
    fn an_endless_line_is_cut_and_reading_goes_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'x'; PIECE + 10]).unwrap();
        let first = read_events(file.path(), 0, false).unwrap();
        assert!(first.more);
        assert_eq!(first.offset, PIECE as u64);
        assert!(read_events(file.path(), first.offset, true).unwrap().offset > first.offset);
    }
}
