//! The tagger as a package for other people's pages and for Node: `target/package/`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// What wasm-bindgen made of the taggers that read every language and know WebGPU, and where in the package they lie.
const BOUND: [(&str, &str); 2] = [("tagger-whole", ""), ("tagger-plain", "plain")];

fn bound(root: &Path, name: &str) -> PathBuf {
    root.join("target").join("web").join(name)
}

/// Whether there is something to put into the package.
pub(crate) fn is_bound(root: &Path) -> bool {
    BOUND.iter().all(|(name, _)| bound(root, name).is_dir())
}

/// Puts what wasm-bindgen made of the taggers and the hand-written files of `frontend/worker/package` together.
pub(crate) fn write(root: &Path) -> Result<()> {
    let package = root.join("target").join("package");
    let written = root.join("frontend").join("worker").join("package");
    for name in ["index.js", "index.d.ts", "package.json"] {
        put(&written, name, &package)?;
    }
    for (name, place) in BOUND {
        for file in ["tagger.js", "tagger_bg.wasm"] {
            put(&bound(root, name), file, &package.join(place))?;
        }
    }
    Ok(())
}

/// Copies a file, under its name only when it is whole: a test may be reading the package meanwhile.
fn put(from: &Path, name: &str, folder: &Path) -> Result<()> {
    let from = from.join(name);
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let fresh = folder.join(format!("{name}.new"));
    fs::copy(&from, &fresh).with_context(|| format!("{} cannot be copied", from.display()))?;
    fs::rename(&fresh, folder.join(name))
        .with_context(|| format!("{} cannot be moved into place", fresh.display()))
}
