//! Where a run keeps the results of its stages until it is done: `OUT.work/KEY/`.
//!
//! KEY is a hash of the program's version, the settings and what is read, so a resumed run can only ever find its own.

use std::path::PathBuf;

use gnnxml_shared::api::{LogLevel, Stage, TrainEvent};
use sha2::{Digest, Sha256};

use super::codec::{PartError, PartReader, PartWriter};
use super::progress::Spent;
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
        root: PathBuf,
        config: &TrainConfig,
        fingerprints: &[String],
        resume: bool,
    ) -> Result<Self, TrainError> {
        let mut hash = Sha256::new();
        hash.update(env!("CARGO_PKG_VERSION"));
        hash.update(serde_json::to_vec(config).expect("settings are plain data"));
        for fingerprint in fingerprints {
            hash.update(b"\n");
            hash.update(fingerprint.as_bytes());
        }
        let key = hex(&hash.finalize()[..8]);
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
        let started = Spent::now();
        let made = run()?;
        let mut part = PartWriter::default();
        save(&made, &mut part);
        part.save(&path)?;
        emit(started.done(stage));
        Ok(made)
    }

    /// Throws the results away: the model is saved.
    pub(super) fn remove(self) {
        // What cannot be removed costs disk space, not correctness.
        let _ = std::fs::remove_dir_all(&self.directory);
        let _ = std::fs::remove_dir(&self.root);
    }
}

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
