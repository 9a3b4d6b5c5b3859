//! Where a run keeps the results of its stages until it is done: `OUT.work/KEY/`.
//!
//! KEY is a hash of the settings and the corpus, so a resumed run can only ever find its own.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gnnxml_shared::api::{LogLevel, Stage, TrainEvent};
use sha2::{Digest, Sha256};

use super::codec::{PartError, PartReader, PartWriter};
use super::{TrainConfig, TrainError};

/// The stage results of one run.
#[derive(Debug)]
pub(super) struct Work {
    root: PathBuf,
    directory: PathBuf,
    resume: bool,
}

impl Work {
    /// Opens (or, without `resume`, empties) the directory of the run with these settings and corpora.
    pub(super) fn open(
        out: &Path,
        config: &TrainConfig,
        fingerprints: &[&str],
        resume: bool,
    ) -> Result<Self, TrainError> {
        let mut hash = Sha256::new();
        hash.update(serde_json::to_vec(config).expect("settings are plain data"));
        for fingerprint in fingerprints {
            hash.update(b"\n");
            hash.update(fingerprint.as_bytes());
        }
        let key = hex(&hash.finalize()[..8]);
        let mut root = out.as_os_str().to_owned();
        root.push(".work");
        let root = PathBuf::from(root);
        let directory = root.join(key);
        let io = |error| TrainError::Io {
            path: directory.clone(),
            error,
        };
        if !resume && directory.exists() {
            std::fs::remove_dir_all(&directory).map_err(io)?;
        }
        std::fs::create_dir_all(&directory).map_err(io)?;
        Ok(Self {
            root,
            directory,
            resume,
        })
    }

    /// A file of this run that another room writes itself.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Whether earlier results may be used.
    pub(super) fn resumes(&self) -> bool {
        self.resume
    }

    /// Runs a stage, or takes its result from an earlier sitting.
    pub(super) fn stage<T>(
        &self,
        stage: Stage,
        emit: &(dyn Fn(TrainEvent) + Sync),
        load: impl FnOnce(&mut PartReader) -> Result<T, PartError>,
        save: impl FnOnce(&T, &mut PartWriter),
        run: impl FnOnce() -> Result<T, TrainError>,
    ) -> Result<T, TrainError> {
        let path = self.path(&format!("{stage:?}.part").to_lowercase());
        if self.resume && path.exists() {
            let found = PartReader::open(&path).and_then(|mut part| {
                let found = load(&mut part)?;
                part.finish()?;
                Ok(found)
            });
            match found {
                Ok(found) => {
                    emit(TrainEvent::StageReused { stage });
                    return Ok(found);
                }
                Err(error) => emit(TrainEvent::Log {
                    level: LogLevel::Warning,
                    message: format!("cannot use an earlier result, doing the stage again: {error}"),
                }),
            }
        }
        emit(TrainEvent::StageStarted { stage });
        let started = Instant::now();
        let made = run()?;
        let mut part = PartWriter::default();
        save(&made, &mut part);
        part.save(&path)?;
        emit(TrainEvent::StageDone {
            stage,
            seconds: started.elapsed().as_secs_f64(),
        });
        Ok(made)
    }

    /// Throws the results away: the model is saved.
    pub(super) fn remove(self) {
        // What cannot be removed costs disk space, not correctness.
        let _ = std::fs::remove_dir_all(&self.directory);
        let _ = std::fs::remove_dir(&self.root);
    }
}

/// What a corpus holds, as a hash: of a file's bytes, or of a folder's names, sizes and times.
pub(super) fn corpus_fingerprint(path: &Path) -> Result<String, TrainError> {
    let io = |error| TrainError::Io {
        path: path.to_owned(),
        error,
    };
    let mut hash = Sha256::new();
    if path.is_dir() {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(io)? {
            let entry = entry.map_err(io)?;
            let facts = entry.metadata().map_err(io)?;
            let modified = facts
                .modified()
                .ok()
                .and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
            names.push(format!(
                "{} {} {:?}",
                entry.file_name().display(),
                facts.len(),
                modified
            ));
        }
        names.sort_unstable();
        hash.update(names.join("\n"));
    } else {
        let mut file = std::fs::File::open(path).map_err(io)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer).map_err(io)? {
                0 => break,
                read => hash.update(&buffer[..read]),
            }
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
