//! Tells the program which revision it is built from, so that a model can say what trained it.
//!
//! Only for release builds: a build for tests need not be made again after every commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GNNXML_REVISION");
    if std::env::var_os("GNNXML_REVISION").is_some() || std::env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    // Outside of a repository the revision stays unknown.
    if let Some(revision) = git(&["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]) {
        println!("cargo::rustc-env=GNNXML_REVISION={revision}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}
