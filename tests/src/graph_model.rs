//! A model with a graph network, trained on the garden corpus, and its bundle.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use gnnxml_shared::bundle::{Bundle, Opening};
use serde_json::Value;

use crate::program;

/// What differs from the preset `fast`: sentence vectors and a graph network over them.
const SETTINGS: &str = "\
[encoder]
name = \"lsa\"
dims = 48

[clusters]
k = 12

[matcher]
kind = \"graph\"
epochs = 12
hidden = 48
embedding = 32

[score]
clusters = 6
calibration = \"platt\"
";

/// The trained model, gone when it is dropped.
#[derive(Debug)]
pub struct GraphModel {
    folder: tempfile::TempDir,
    /// Id and text of every document.
    pub documents: Vec<(String, String)>,
}

/// A tag's name and score.
pub type Scored = (String, f64);

impl GraphModel {
    /// Trains and exports it.
    pub fn train() -> Result<Self> {
        Self::train_with(SETTINGS)
    }

    /// Another model on the same corpus: `settings` say what differs from the preset `fast`.
    pub fn train_with(settings: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("settings.toml");
        std::fs::write(&config, settings)?;
        let corpus = corpus();
        let model = Self {
            documents: documents(&corpus)?,
            folder,
        };
        run(model
            .gnnxml()
            .args(["train", "--seed", "7", "--corpus"])
            .arg(&corpus)
            .arg("--config")
            .arg(&config)
            .arg("--out")
            .arg(model.model()))?;
        run(model
            .gnnxml()
            .args(["export", "--model"])
            .arg(model.model())
            .arg("--out")
            .arg(model.bundle()))?;
        Ok(model)
    }

    /// The program, with a cache that is gone with the model.
    fn gnnxml(&self) -> Command {
        let mut command = Command::new(program());
        command.env("GNNXML_CACHE", self.folder.path().join("cache"));
        command
    }

    /// The model's directory.
    pub fn model(&self) -> PathBuf {
        self.folder.path().join("model")
    }

    /// The published bundle.
    pub fn bundle(&self) -> PathBuf {
        self.folder.path().join("bundle")
    }

    /// The corpus it was trained on.
    pub fn corpus(&self) -> PathBuf {
        corpus()
    }

    /// `gnnxml predict` over the corpus: the ten best tags of every document, and what it said on standard error.
    pub fn predict(&self, engine: &str) -> Result<(Vec<Vec<Scored>>, String)> {
        let answer = Command::new(program())
            .args(["predict", "--top", "10", "--engine", engine, "--model"])
            .arg(self.model())
            .arg(corpus())
            .output()?;
        let said = String::from_utf8_lossy(&answer.stderr).into_owned();
        ensure!(answer.status.success(), "predict --engine {engine}: {said}");
        let lines = String::from_utf8(answer.stdout)?;
        let tags = lines
            .lines()
            .map(|line| scored(&serde_json::from_str::<Value>(line)?["labels"]))
            .collect::<Result<_>>()?;
        Ok((tags, said))
    }

    /// The bundle, opened as the page opens it, with every ranker.
    pub fn open_bundle(&self) -> Result<Bundle> {
        open_bundle(&self.bundle())
    }
}

/// The bundle in a folder, opened as the page opens it, with every ranker.
pub fn open_bundle(folder: &Path) -> Result<Bundle> {
    let read = |name: &str| {
        let file = folder.join(name);
        std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))
    };
    let mut opening = Opening::new(&read("manifest.json")?)?;
    for (role, part) in opening.manifest().core.clone() {
        opening.bring(&role, read(&part.file)?)?;
    }
    let mut bundle = opening.finish()?;
    for shard in 0..bundle.manifest().shards.len() {
        let bytes = read(&bundle.manifest().shards[shard].part.file)?;
        bundle.bring_shard(shard, &bytes)?;
    }
    Ok(bundle)
}

/// Names and scores of a list of `{name, score}`.
pub fn scored(list: &Value) -> Result<Vec<Scored>> {
    let list = list.as_array().context("a list of tags")?;
    list.iter()
        .map(|tag| {
            let name = tag["name"].as_str().context("a tag's name")?;
            Ok((name.to_owned(), tag["score"].as_f64().context("a tag's score")?))
        })
        .collect()
}

/// Scores this close may change places.
const TIE: f64 = 1e-3;

/// How far two lists of tags are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    pub documents: usize,
    /// Documents whose first five tags differ by more than a tie.
    pub differing: usize,
    /// The largest difference of a score.
    pub largest: f64,
}

/// Compares the first five tags of every document; the lists should be longer than that.
pub fn compare(found: &[Vec<Scored>], expected: &[Vec<Scored>]) -> Agreement {
    let mut agreement = Agreement {
        documents: found.len().min(expected.len()),
        ..Agreement::default()
    };
    for (found, expected) in found.iter().zip(expected) {
        let score_in = |list: &[Scored], name: &str| list.iter().find(|tag| tag.0 == name).map(|tag| tag.1);
        // The worst score that still is among the first five, give or take a tie.
        let bar = expected.iter().take(5).map(|tag| tag.1).fold(1.0, f64::min) - TIE;
        let mut before = f64::INFINITY;
        let mut same = found.len().min(5) == expected.len().min(5);
        for (name, score) in found.iter().take(5) {
            match score_in(expected, name) {
                Some(reference) => {
                    agreement.largest = agreement.largest.max((score - reference).abs());
                    same &= reference >= bar && reference <= before + TIE;
                    before = reference;
                }
                None => same = false,
            }
        }
        agreement.differing += usize::from(!same);
    }
    agreement
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/garden.jsonl")
}

fn documents(corpus: &Path) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(corpus)?;
    text.lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line)?;
            let field = |name: &str| {
                let found = value[name].as_str();
                Ok::<_, anyhow::Error>(found.with_context(|| format!("a document's {name}"))?.to_owned())
            };
            Ok((field("id")?, field("text")?))
        })
        .collect()
}

fn run(command: &mut Command) -> Result<()> {
    let answer = command.output()?;
    ensure!(
        answer.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&answer.stderr)
    );
    Ok(())
}
