//! The tagger as a package for other people's pages and for Node: `target/package/`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Puts what wasm-bindgen made of the tagger (`bound`) and the hand-written files of `frontend/worker/package` together.
pub(crate) fn write(root: &Path, bound: &Path) -> Result<PathBuf> {
    let package = root.join("target").join("package");
    fs::create_dir_all(&package).with_context(|| format!("{} cannot be made", package.display()))?;
    let written = root.join("frontend").join("worker").join("package");
    let files = [
        (bound, "tagger.js"),
        (bound, "tagger_bg.wasm"),
        (written.as_path(), "index.js"),
        (written.as_path(), "index.d.ts"),
        (written.as_path(), "package.json"),
    ];
    for (folder, name) in files {
        let from = folder.join(name);
        // Under its name only when it is whole: a test may be reading the package meanwhile.
        let fresh = package.join(format!("{name}.new"));
        fs::copy(&from, &fresh).with_context(|| format!("{} cannot be copied", from.display()))?;
        fs::rename(&fresh, package.join(name))
            .with_context(|| format!("{} cannot be moved into place", fresh.display()))?;
    }
    Ok(package)
}
