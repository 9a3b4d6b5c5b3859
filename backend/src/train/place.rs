//! Where a model goes: a name that is free, or that of a model to be replaced.
//!
//! Replacing deletes what was there, so whatever is not a model of ours is refused, before any work is done.

use std::path::{Path, PathBuf};

use super::ModelError;
use super::model::{FORMAT, MANIFEST};

/// A path under which a model may be put.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: PathBuf,
    name: String,
}

impl Place {
    /// Refuses a path without a name of its own, and one that holds something else than a model.
    pub(super) fn at(out: &Path) -> Result<Self, ModelError> {
        let occupied = |found: &'static str| ModelError::Occupied {
            path: out.to_owned(),
            found,
        };
        let name = out.file_name().ok_or_else(|| occupied("no name of a folder"))?;
        let place = Self {
            path: out.with_file_name(name),
            name: name.to_string_lossy().into_owned(),
        };
        match std::fs::read_dir(&place.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(place),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(occupied("a file")),
            Err(error) => Err(ModelError::Io {
                path: place.path,
                error,
            }),
            Ok(entries) => {
                if entries.count() == 0 || is_model(&place.path) {
                    Ok(place)
                } else {
                    Err(occupied("a folder with other files"))
                }
            }
        }
    }

    /// Where a run keeps the results of its stages.
    pub(super) fn work(&self) -> PathBuf {
        self.path.with_file_name(format!("{}.work", self.name))
    }

    /// An empty folder beside the place, to put a model together in.
    pub(super) fn building(&self) -> Result<PathBuf, ModelError> {
        let building = self.hidden("new");
        remove(&building)?;
        std::fs::create_dir_all(&building).map_err(io(&building))?;
        Ok(building)
    }

    /// Moves a finished folder into the place.
    pub(super) fn take(&self, building: &Path) -> Result<(), ModelError> {
        // A model that is replaced steps aside first: at every moment one of the two is whole under a known name.
        let old = self.hidden("old");
        remove(&old)?;
        if self.path.exists() {
            std::fs::rename(&self.path, &old).map_err(io(&self.path))?;
        }
        std::fs::rename(building, &self.path).map_err(io(&self.path))?;
        if let Some(parent) = self.path.parent().filter(|p| !p.as_os_str().is_empty()) {
            let _ = std::fs::File::open(parent).and_then(|directory| directory.sync_all());
        }
        remove(&old)
    }

    /// A sibling under a name nobody else would choose.
    fn hidden(&self, what: &str) -> PathBuf {
        self.path.with_file_name(format!(".{}.gnnxml-{what}", self.name))
    }
}

/// Whether a folder says that it is a model, of whatever version.
fn is_model(folder: &Path) -> bool {
    std::fs::read(folder.join(MANIFEST))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
        .is_some_and(|manifest| manifest["format"] == FORMAT)
}

fn remove(folder: &Path) -> Result<(), ModelError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(folder)(error)),
        _ => Ok(()),
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ModelError {
    let path = path.to_owned();
    move |error| ModelError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_model_is_not_replaced() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("corpus.jsonl"), "precious").unwrap();
        std::fs::create_dir(path("papers")).unwrap();
        std::fs::write(path("papers/thesis.txt"), "precious").unwrap();
        for refused in ["corpus.jsonl", "papers", "papers/", ".", ".."] {
            let error = Place::at(&path(refused)).unwrap_err();
            assert!(matches!(error, ModelError::Occupied { .. }), "{refused}: {error}");
        }
        assert!(Place::at(Path::new("/")).is_err() && Place::at(Path::new(".")).is_err());
        assert!(path("papers/thesis.txt").exists());
    }

    #[test]
    fn a_free_name_an_empty_folder_and_a_model_of_any_version_are_places() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::create_dir(path("empty")).unwrap();
        std::fs::create_dir(path("model")).unwrap();
        std::fs::write(
            path("model/manifest.json"),
            r#"{"format":"gnnxml-model","version":0}"#,
        )
        .unwrap();
        for free in ["new", "new/", "deep/new", "empty", "model", "model/"] {
            Place::at(&path(free)).unwrap();
        }
    }

    #[test]
    fn a_model_takes_its_place_and_touches_no_neighbour() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        for backup in ["model.old", "model.new"] {
            std::fs::create_dir(path(backup)).unwrap();
            std::fs::write(path(backup).join("mine"), "precious").unwrap();
        }
        for version in ["1", "2"] {
            let place = Place::at(&path("model/")).unwrap();
            let building = place.building().unwrap();
            let manifest = format!(r#"{{"format":"gnnxml-model","version":{version}}}"#);
            std::fs::write(building.join(MANIFEST), &manifest).unwrap();
            place.take(&building).unwrap();
            assert_eq!(
                std::fs::read_to_string(path("model/manifest.json")).unwrap(),
                manifest
            );
        }
        let mut left: Vec<_> = std::fs::read_dir(home.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["model", "model.new", "model.old"]);
        assert!(path("model.old/mine").exists() && path("model.new/mine").exists());
    }
}
