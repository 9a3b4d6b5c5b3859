//! The program under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A Python with other people's clients (`pip install annif-client==0.5.0 schemathesis`), named by `GNNXML_TEST_PYTHON`;
/// `cargo xtask test` provides one. Without it a test says that it did not run.
pub fn foreign_python() -> Option<PathBuf> {
    let python = std::env::var_os("GNNXML_TEST_PYTHON").map(PathBuf::from);
    if python.is_none() {
        eprintln!("GNNXML_TEST_PYTHON is not set: not run");
    }
    python
}

/// Path of the built `gnnxml`: what `GNNXML_PROGRAM` names, or this workspace's own build, made up to date first.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(given) = std::env::var_os("GNNXML_PROGRAM") {
            return given.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // Tests run from target/PROFILE/deps.
        let test = std::env::current_exe().expect("a test knows its own path");
        let folder = test
            .parent()
            .and_then(Path::parent)
            .expect("tests are built into target/PROFILE/deps");
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "-p", "gnnxml-backend", "--bin", "gnnxml"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let built = build
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo can be started");
        assert!(built.success(), "the program does not build");
        folder.join("gnnxml")
    })
}
