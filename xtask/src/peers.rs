//! `cargo xtask bench peers`: ours beside omikuji and PECOS, from the same raw text, on the same machine.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::steps;

/// PECOS is built against an older numpy than omikuji's scikit-learn wants: each gets a python of its own.
const PEERS: [(&str, &[&[&str]]); 2] = [
    ("omikuji", &[&["omikuji", "scikit-learn"]]),
    (
        "pecos",
        &[
            &["numpy<1.24", "scipy<1.11", "scikit-learn<1.3"],
            &["--no-deps", "libpecos"],
        ],
    ),
];

/// Passes `args` (`--train`, `--test`, `--ids`, `--presets`) on to `tests/peers/compare.py`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    steps::cargo(&["build", "--release", "-p", "gnnxml-backend", "--bin", "gnnxml"])?;
    let mut command = Command::new("python3");
    command.arg(steps::root().join("tests/peers/compare.py"));
    command
        .arg("--gnnxml")
        .arg(steps::target_dir().join("release/gnnxml"));
    for (name, installs) in PEERS {
        match python_with(name, installs) {
            Ok(python) => {
                command.arg(format!("--{name}")).arg(python);
            }
            Err(error) => println!("  without {name}: {error:#}"),
        }
    }
    steps::run(command.args(args))
}

/// A python in `target/peers/NAME` with these packages.
fn python_with(name: &str, installs: &[&[&str]]) -> Result<PathBuf> {
    let folder = steps::target_dir().join("peers").join(name);
    let python = folder.join("bin/python");
    let ready = folder.join("ready");
    if !ready.exists() {
        println!(
            "installing {name} from PyPI into {}: the peer to compare with",
            folder.display()
        );
        steps::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        for packages in installs {
            let mut pip = Command::new(&python);
            steps::run(pip.args(["-m", "pip", "install", "--quiet"]).args(*packages))?;
        }
        std::fs::write(&ready, "")?;
    }
    Ok(python)
}
