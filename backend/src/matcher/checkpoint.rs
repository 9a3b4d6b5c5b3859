//! A run's state on disk, every epoch: weights, optimiser, samplers. One safetensors file, replaced whole.
//!
//! Batches and dropout are pure functions of (seed, epoch, step), so these three numbers *are* the samplers' and generators' state.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Crc;
use safetensors::tensor::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::options::WordDescent;
use super::{Losses, MatcherError};
use gnnxml_shared::model::matcher::{MatcherConfig, NamedTensor};

const VERSION: &str = "2";

/// The numbers that change from step to step besides the weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The epoch being run, from 0, and the steps of it that are done.
    pub(super) epoch: u32,
    pub(super) step: u64,
    /// Optimiser steps in all.
    pub(super) t: u64,
    /// Loss sums of the epoch so far, in steps: total, conventional, rebalance.
    pub(super) losses: [f64; 3],
    pub(super) best_loss: Option<f64>,
    pub(super) best_recall: Option<f64>,
    pub(super) best_epoch: u32,
    pub(super) epochs_without_gain: u32,
    pub(super) finished: bool,
}

impl Position {
    pub(super) fn add(&mut self, losses: Losses) {
        self.losses[0] += losses.total;
        self.losses[1] += losses.sides[0];
        self.losses[2] += losses.sides[1];
    }
}

/// Everything a run needs to go on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) dense: Vec<f32>,
    pub(super) embedding: Vec<f32>,
    pub(super) dense_m: Vec<f32>,
    pub(super) dense_v: Vec<f32>,
    /// The embedding's moments: a row each with [`WordDescent::ByRow`], one v for the whole table otherwise.
    pub(super) embedding_m: Vec<f32>,
    pub(super) embedding_v: Vec<f32>,
    pub(super) position: Position,
}

/// What must be the same for a checkpoint to fit.
#[derive(Clone, Debug)]
pub(super) struct Identity<'a> {
    pub(super) config: &'a MatcherConfig,
    pub(super) layout: &'a Layout,
    pub(super) words: WordDescent,
    /// The settings and the corpus, as the run's owner names them.
    pub(super) fingerprint: &'a str,
}

struct Bytes<'a> {
    shape: Vec<usize>,
    data: &'a [f32],
}

impl View for Bytes<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(self.data))
    }

    fn data_len(&self) -> usize {
        self.data.len() * 4
    }
}

/// The file of the run's last state in `directory`.
pub(super) fn last(directory: &Path) -> PathBuf {
    directory.join("last.safetensors")
}

/// The file of the run's best weights in `directory`.
pub(super) fn best(directory: &Path) -> PathBuf {
    directory.join("best.safetensors")
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> MatcherError + '_ {
    move |source| MatcherError::Io {
        path: path.to_owned(),
        source,
    }
}

fn write(
    path: &Path,
    tensors: Vec<(String, Bytes<'_>)>,
    mut notes: HashMap<String, String>,
) -> Result<(), MatcherError> {
    let mut tensors = tensors;
    // Safetensors lays equal types out by name; the checksum runs in the same order.
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let mut crc = Crc::new();
    for (_, tensor) in &tensors {
        crc.update(bytemuck::cast_slice(tensor.data));
    }
    notes.insert("version".to_owned(), VERSION.to_owned());
    notes.insert("crc32".to_owned(), format!("{:08x}", crc.sum()));
    let bytes = safetensors::serialize(tensors, Some(notes)).map_err(|error| MatcherError::File {
        path: path.to_owned(),
        what: "could not be laid out",
        found: error.to_string(),
        expected: "a safetensors file".to_owned(),
    })?;
    let temporary = path.with_extension("partial");
    let file = File::create(&temporary).map_err(io(&temporary))?;
    let mut out = BufWriter::new(file);
    out.write_all(&bytes).map_err(io(&temporary))?;
    out.flush().map_err(io(&temporary))?;
    out.get_ref().sync_all().map_err(io(&temporary))?;
    std::fs::rename(&temporary, path).map_err(io(path))
}

fn weights<'a>(identity: &Identity<'_>, dense: &'a [f32], embedding: &'a [f32]) -> Vec<(String, Bytes<'a>)> {
    let mut tensors: Vec<_> = identity
        .layout
        .slots
        .iter()
        .map(|slot| {
            (
                slot.name.clone(),
                Bytes {
                    shape: slot.shape.clone(),
                    data: slot.of(dense),
                },
            )
        })
        .collect();
    if let Some(spec) = identity.config.embedding_tensor() {
        tensors.push((
            spec.name,
            Bytes {
                shape: spec.shape,
                data: embedding,
            },
        ));
    }
    tensors
}

fn notes(identity: &Identity<'_>) -> HashMap<String, String> {
    let config = serde_json::to_string(identity.config).expect("a configuration is plain data");
    HashMap::from([
        ("config".to_owned(), config),
        ("fingerprint".to_owned(), identity.fingerprint.to_owned()),
    ])
}

/// Writes the run's state.
pub(super) fn save(directory: &Path, identity: &Identity<'_>, state: &State) -> Result<(), MatcherError> {
    std::fs::create_dir_all(directory).map_err(io(directory))?;
    let mut tensors = weights(identity, &state.dense, &state.embedding);
    for (name, data) in [
        ("optimiser.dense.m", &state.dense_m[..]),
        ("optimiser.dense.v", &state.dense_v[..]),
        ("optimiser.embedding.m", &state.embedding_m[..]),
        ("optimiser.embedding.v", &state.embedding_v[..]),
    ] {
        tensors.push((
            name.to_owned(),
            Bytes {
                shape: vec![data.len()],
                data,
            },
        ));
    }
    let mut notes = notes(identity);
    let position = serde_json::to_string(&state.position).expect("a position is plain data");
    notes.insert("position".to_owned(), position);
    write(&last(directory), tensors, notes)
}

/// Writes the best weights.
pub(super) fn save_best(
    directory: &Path,
    identity: &Identity<'_>,
    dense: &[f32],
    embedding: &[f32],
) -> Result<(), MatcherError> {
    std::fs::create_dir_all(directory).map_err(io(directory))?;
    write(
        &best(directory),
        weights(identity, dense, embedding),
        notes(identity),
    )
}

/// A file's weights and notes, checked against the run that wants them.
struct Loaded {
    tensors: HashMap<String, Vec<f32>>,
    notes: HashMap<String, String>,
}

fn read(path: &Path, identity: &Identity<'_>) -> Result<Loaded, MatcherError> {
    let bytes = std::fs::read(path).map_err(io(path))?;
    let bad = |what, found: String, expected: String| MatcherError::File {
        path: path.to_owned(),
        what,
        found,
        expected,
    };
    let damaged = |error: safetensors::SafeTensorError| {
        bad(
            "damaged or truncated checkpoint",
            error.to_string(),
            "a whole safetensors file".to_owned(),
        )
    };
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
    let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
    let notes = metadata.metadata().clone().unwrap_or_default();
    let note = |name: &str| notes.get(name).cloned().unwrap_or_else(|| "nothing".to_owned());
    if note("version") != VERSION {
        return Err(bad(
            "checkpoint of another version",
            note("version"),
            VERSION.to_owned(),
        ));
    }
    let expected = serde_json::to_string(identity.config).expect("a configuration is plain data");
    if note("config") != expected {
        return Err(bad(
            "checkpoint of a matcher of another shape",
            note("config"),
            expected,
        ));
    }
    if note("fingerprint") != identity.fingerprint {
        return Err(bad(
            "checkpoint of another corpus or other settings",
            note("fingerprint"),
            identity.fingerprint.to_owned(),
        ));
    }
    let mut names = file.names();
    names.sort_unstable();
    let mut crc = Crc::new();
    let mut tensors = HashMap::new();
    for name in names {
        let tensor = file.tensor(name).map_err(damaged)?;
        crc.update(tensor.data());
        if tensor.dtype() != Dtype::F32 {
            return Err(bad(
                "number type of a weight",
                format!("{name}: {:?}", tensor.dtype()),
                "F32".to_owned(),
            ));
        }
        tensors.insert(name.to_owned(), bytemuck::pod_collect_to_vec(tensor.data()));
    }
    let found = format!("{:08x}", crc.sum());
    if found != note("crc32") {
        return Err(bad("checksum", found, note("crc32")));
    }
    Ok(Loaded { tensors, notes })
}

impl Loaded {
    fn take(&mut self, path: &Path, name: &str, len: usize) -> Result<Vec<f32>, MatcherError> {
        let found = self.tensors.remove(name);
        match found {
            Some(data) if data.len() == len => Ok(data),
            other => Err(MatcherError::File {
                path: path.to_owned(),
                what: "values of a weight",
                found: format!(
                    "{name}: {}",
                    other.map_or("nothing".to_owned(), |d| d.len().to_string())
                ),
                expected: len.to_string(),
            }),
        }
    }

    fn weights(
        &mut self,
        path: &Path,
        identity: &Identity<'_>,
    ) -> Result<(Vec<f32>, Vec<f32>), MatcherError> {
        let mut dense = Vec::with_capacity(identity.layout.len);
        for slot in &identity.layout.slots {
            dense.extend(self.take(path, &slot.name, slot.len)?);
        }
        let embedding = match identity.config.embedding_tensor() {
            Some(spec) => self.take(path, &spec.name, spec.len())?,
            None => Vec::new(),
        };
        Ok((dense, embedding))
    }
}

/// Reads the run's last state.
pub(super) fn load(directory: &Path, identity: &Identity<'_>) -> Result<State, MatcherError> {
    let path = last(directory);
    let mut file = read(&path, identity)?;
    let (dense, embedding) = file.weights(&path, identity)?;
    let moments = identity.words.moments(embedding.len());
    let position = file.notes.get("position").map(String::as_str).unwrap_or_default();
    let position = serde_json::from_str(position).map_err(|error| MatcherError::File {
        path: path.clone(),
        what: "position of the run",
        found: error.to_string(),
        expected: "epoch, step and losses".to_owned(),
    })?;
    Ok(State {
        dense_m: file.take(&path, "optimiser.dense.m", dense.len())?,
        dense_v: file.take(&path, "optimiser.dense.v", dense.len())?,
        embedding_m: file.take(&path, "optimiser.embedding.m", moments.0)?,
        embedding_v: file.take(&path, "optimiser.embedding.v", moments.1)?,
        dense,
        embedding,
        position,
    })
}

/// Reads the best weights.
pub(super) fn load_best(
    directory: &Path,
    identity: &Identity<'_>,
) -> Result<(Vec<f32>, Vec<f32>), MatcherError> {
    let path = best(directory);
    read(&path, identity)?.weights(&path, identity)
}

/// The weights under their names, embedding first.
pub(super) fn named(identity: &Identity<'_>, dense: &[f32], embedding: Vec<f32>) -> Vec<NamedTensor> {
    let mut tensors = identity.layout.named(dense);
    if let Some(spec) = identity.config.embedding_tensor() {
        tensors.push(NamedTensor {
            name: spec.name,
            shape: spec.shape,
            data: embedding,
        });
    }
    tensors
}
