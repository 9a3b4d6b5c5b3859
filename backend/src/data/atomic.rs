//! Files that are either whole or not there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that appears under its name only when it is complete.
///
/// Bytes go to a temporary name in the same directory; [`commit`](Self::commit) flushes, fsyncs, renames and fsyncs
/// the directory. Dropped without a commit, nothing is left behind and an older file of that name stays as it was.
///
/// ```
/// use std::io::Write;
/// use gnnxml_backend::data::AtomicFile;
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("model.bin");
/// let mut file = AtomicFile::create(&path).unwrap();
/// file.write_all(b"weights").unwrap();
/// assert!(!path.exists());
/// file.commit().unwrap();
/// assert_eq!(std::fs::read(&path).unwrap(), b"weights");
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    temporary: BufWriter<NamedTempFile>,
    target: PathBuf,
    directory: PathBuf,
}

impl AtomicFile {
    /// Begins a file that will be called `target`. Its directory is made if it is missing.
    pub fn create(target: impl AsRef<Path>) -> io::Result<Self> {
        let target = target.as_ref().to_owned();
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a file name is missing"))?;
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        fs::create_dir_all(&directory)?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".tmp");
        // A temporary file is private by default; this one becomes an ordinary file, subject to the umask.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(&directory)?;
        Ok(Self {
            temporary: BufWriter::with_capacity(1 << 16, temporary),
            target,
            directory,
        })
    }

    /// The name the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Makes the file durable and gives it its name.
    pub fn commit(self) -> io::Result<()> {
        let Self {
            temporary,
            target,
            directory,
        } = self;
        let temporary = temporary.into_inner().map_err(io::IntoInnerError::into_error)?;
        temporary.as_file().sync_all()?;
        temporary.persist(&target).map_err(|refused| refused.error)?;
        sync_directory(&directory)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.temporary.seek(position)
    }
}

/// Writes a whole file atomically.
pub fn write_atomic(target: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(bytes)?;
    file.commit()
}

/// Makes a rename in `directory` survive a power cut, where the system offers it.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_file_leaves_the_old_one_and_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept.txt");
        write_atomic(&path, b"old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half of the new").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_directory_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.bin");
        write_atomic(&path, &[1, 2, 3]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_path_without_a_file_name_is_refused() {
        assert_eq!(
            AtomicFile::create("/").unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_the_file_as_far_as_the_umask_allows() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
        write_atomic(&ours, b"").unwrap();
        fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
