//! The program as a test starts it, and the small corpus that it is given.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn garden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpora/garden.jsonl")
}

/// The program, its cache in `home`.
pub(crate) fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gnnxml"));
    command.env("GNNXML_CACHE", home.join("cache"));
    command
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(crate) fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
}
