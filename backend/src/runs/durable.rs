//! Directories that must survive: built under a temporary name, fsynced, renamed.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Makes a directory that only its owner can read, and its parents.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }
    #[cfg(not(unix))]
    {
        fs::create_dir_all(path)
    }
}

/// Flushes every file and directory below `root` to the disk.
pub fn sync_tree(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(root)?.sync_all()
}

/// Renames, then flushes the folder that holds the new name.
pub fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    match to.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Removes a directory tree; one that is not there is no error.
pub fn remove_dir_durably(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => match path.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        },
    }
}
