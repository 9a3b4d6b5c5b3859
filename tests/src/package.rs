//! The tagger's package as `cargo xtask web` built it.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

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
