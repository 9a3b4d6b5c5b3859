//! The one directory the server writes to, and the lock that makes it one server's.
//!
//! ```text
//! gnnxml.sqlite   runs, events, corpora, models, feedback
//! lock            held while a server runs; holds its process id
//! corpora/ID/     the uploaded file under a name of ours, with the extension of its format
//! runs/ID/        settings.toml, events.ndjson, stderr.log, model/
//! models/ID/      bundle/
//! incoming/       uploads and exports under way; emptied at start
//! ```

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use super::durable::create_private_dir;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error(
        "another server (process {holder}) already uses the data directory {}: stop it, or give this one its own with --data DIR", path.display()
    )]
    InUse { path: PathBuf, holder: String },
    #[error("cannot use {} as data directory: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A locked data directory. The lock goes with the value.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    /// Held, never read: the operating system lets go of it when the process ends, however it ends.
    _lock: File,
}

impl DataDir {
    /// Opens or makes the directory, takes its lock, clears what an earlier server left half done.
    pub fn open(root: &Path) -> Result<Self, DataDirError> {
        let fault = |source| DataDirError::Io {
            path: root.to_owned(),
            source,
        };
        create_private_dir(root).map_err(fault)?;
        let root = root.canonicalize().map_err(fault)?;
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(root.join("lock"))
            .map_err(fault)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = (&lock).take(32).read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => "unknown".to_owned(),
                    pid => pid.to_owned(),
                };
                return Err(DataDirError::InUse { path: root, holder });
            }
            Err(fs::TryLockError::Error(source)) => return Err(fault(source)),
        }
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(fault)?;
        for room in ["corpora", "runs", "models"] {
            create_private_dir(&root.join(room)).map_err(fault)?;
        }
        let incoming = root.join("incoming");
        match fs::remove_dir_all(&incoming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault(error)),
            _ => create_private_dir(&incoming).map_err(fault)?,
        }
        Ok(Self { root, _lock: lock })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("gnnxml.sqlite")
    }

    pub fn corpora(&self) -> PathBuf {
        self.root.join("corpora")
    }

    pub fn corpus(&self, id: u64) -> PathBuf {
        self.corpora().join(id.to_string())
    }

    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    pub fn run(&self, id: u64) -> PathBuf {
        self.runs().join(id.to_string())
    }

    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    pub fn bundle(&self, model: &str) -> PathBuf {
        self.models().join(model).join("bundle")
    }

    /// A fresh directory for something under way, removed when dropped unless it was renamed away.
    pub fn incoming(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix("in-")
            .tempdir_in(self.root.join("incoming"))
    }

    /// Removes folders of corpora, runs and models that the database does not know:
    /// what a crash between the rename and the commit left behind.
    pub fn remove_strays(&self, corpora: &[u64], runs: &[u64], models: &[String]) -> io::Result<usize> {
        let corpora: Vec<String> = corpora.iter().map(u64::to_string).collect();
        let runs: Vec<String> = runs.iter().map(u64::to_string).collect();
        let mut removed = 0;
        for (folder, known) in [
            (self.corpora(), corpora.as_slice()),
            (self.runs(), runs.as_slice()),
            (self.models(), models),
        ] {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let stray = entry
                    .file_name()
                    .to_str()
                    .is_none_or(|name| !known.iter().any(|id| id == name));
                if stray && entry.file_type()?.is_dir() {
                    fs::remove_dir_all(entry.path())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_server_on_the_same_directory_is_told_which_process_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDir::open(folder.path()).unwrap();
        let error = DataDir::open(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        drop(first);
        DataDir::open(folder.path()).unwrap();
    }

    #[test]
    fn folders_the_database_does_not_know_are_removed_and_the_known_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        for path in [data.corpus(1), data.corpus(2), data.run(7), data.bundle("abc")] {
            fs::create_dir_all(path).unwrap();
        }
        assert_eq!(data.remove_strays(&[1], &[7], &[]).unwrap(), 2);
        assert!(data.corpus(1).exists() && data.run(7).exists());
        assert!(!data.corpus(2).exists() && !data.models().join("abc").exists());
    }
}
