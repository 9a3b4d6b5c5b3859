//! Every test, in the order in which a failure is cheapest to learn of.

use std::process::Command;

use anyhow::Result;

use crate::{licences, setup, steps, web};

/// Crates that only make sense in a browser; checked for wasm32, not for the machine.
const WASM_ONLY: [&str; 2] = ["gnnxml-frontend", "gnnxml-worker"];

/// Set-up, the page, then every test of the workspace in one build. What reads instead of running is [`lint`].
pub(crate) fn run() -> Result<()> {
    setup::everything()?;
    steps::cargo(&["fmt", "--all", "--check"])?;
    licences::check()?;
    web::build(true)?;
    steps::cargo(&native("test", &["--no-run"]))?;
    let program = steps::target_dir().join("debug").join("gnnxml");
    let mut tests = Command::new(steps::cargo_path());
    // Browsers and servers share two cores badly: one test at a time.
    tests
        .args(native("test", &[]))
        .env("GNNXML_PROGRAM", &program)
        // Set-up installs a software GPU where it can; a machine without any says so instead of passing in silence.
        .env("GNNXML_REQUIRE_GPU", "1")
        .env("RUST_TEST_THREADS", "1");
    match setup::python_clients() {
        Some(python) => {
            tests.env("GNNXML_TEST_PYTHON", python);
        }
        None => {
            println!("Without Python's annif-client and schemathesis their two tests do nothing in this run.")
        }
    }
    // The encoder's golden test needs the real weights; where they cannot be had it says so.
    if let Err(error) = steps::run(Command::new(&program).args(["encoder", "fetch", "minilm"])) {
        println!("{error:#}: the golden test of MiniLM does nothing in this run.");
    }
    steps::run(&mut tests)
}

/// A cargo command over every crate that runs on this machine: always the same selection, so that features and
/// therefore builds are shared.
fn native<'a>(command: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec![command, "--workspace"];
    for name in WASM_ONLY {
        words.extend(["--exclude", name]);
    }
    words.extend(rest);
    words
}

/// Formatting, clippy for both targets, and licences where cargo-deny is installed.
pub(crate) fn lint() -> Result<()> {
    steps::cargo(&["fmt", "--all", "--check"])?;
    steps::cargo(&native("clippy", &["--all-targets", "--", "-D", "warnings"]))?;
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
