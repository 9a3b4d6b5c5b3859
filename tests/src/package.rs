//! The tagger's package as `cargo xtask web` built it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Copies the package to `folder/gnnxml`, where the examples expect it.
pub fn install_package(folder: &Path) -> Result<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/package");
    ensure!(
        built.join("tagger_bg.wasm").exists(),
        "the tagger's package is not built: run `cargo xtask web` first"
    );
    let installed = folder.join("gnnxml");
    copy_folder(&built, &installed)?;
    Ok(installed)
}

/// A file of an npm package, fetched once and kept in `target/KEPT`.
pub fn npm_file(kept: &str, package: &str, file: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target").join(kept);
    let found = folder.join("node_modules").join(file);
    if !found.exists() {
        std::fs::create_dir_all(&folder)?;
        let quiet = [
            "--silent",
            "--no-save",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ];
        let fetched = Command::new("npm")
            .arg("install")
            .args(quiet)
            .arg("--prefix")
            .arg(&folder)
            .arg(package)
            .status()
            .context("npm cannot be started: `cargo xtask setup` installs it")?;
        ensure!(fetched.success(), "npm could not fetch {package}");
    }
    Ok(found)
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, copy) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &copy)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), copy)?;
        }
    }
    Ok(())
}
