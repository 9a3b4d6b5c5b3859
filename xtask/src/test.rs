//! Every test, in the order in which a failure is cheapest to learn of.

use std::process::Command;

use anyhow::Result;

use crate::{licences, setup, steps};

/// Crates that only make sense in a browser; checked for wasm32, not for the machine.
const WASM_ONLY: [&str; 2] = ["gnnxml-frontend", "gnnxml-worker"];

pub(crate) fn run() -> Result<()> {
    setup::everything()?;
    lint()?;
    let mut native = vec!["test", "--workspace"];
    for name in WASM_ONLY {
        native.extend(["--exclude", name]);
    }
    steps::cargo(&native)
}

/// Formatting, clippy for both targets, and licences where cargo-deny is installed.
pub(crate) fn lint() -> Result<()> {
    steps::cargo(&["fmt", "--all", "--check"])?;
    let mut native = vec!["clippy", "--workspace", "--all-targets"];
    for name in WASM_ONLY {
        native.extend(["--exclude", name]);
    }
    native.extend(["--", "-D", "warnings"]);
    steps::cargo(&native)?;
    let mut wasm = vec!["clippy", "--target", "wasm32-unknown-unknown"];
    for name in WASM_ONLY {
        wasm.extend(["-p", name]);
    }
    wasm.extend(["--", "-D", "warnings"]);
    steps::cargo(&wasm)?;
    if steps::found("cargo-deny") {
        steps::run(Command::new("cargo-deny").args(["--offline", "check", "licenses", "bans", "sources"]))
    } else {
        licences::check()
    }
}
