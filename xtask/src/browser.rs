//! `cargo xtask bench browser`: page and program brought up to date, then `tests/bench/browser.rs` with them.

use std::process::Command;

use anyhow::Result;

use crate::{setup, steps, web};

/// Passes `args` on to the program that drives the browser.
pub(crate) fn run(args: &[String]) -> Result<()> {
    setup::everything()?;
    web::build(true)?;
    steps::cargo(&["build", "--release", "-p", "gnnxml-backend", "--bin", "gnnxml"])?;
    let mut bench = Command::new(steps::cargo_path());
    bench
        .args(["run", "--release", "--quiet", "-p", "gnnxml-tests"])
        .args(["--bin", "bench-browser", "--"])
        .args(args)
        .env(
            "GNNXML_PROGRAM",
            steps::target_dir().join("release").join("gnnxml"),
        );
    steps::run(&mut bench)
}
