//! Our eight-bit encoder in WASM beside onnxruntime-web's, on the same weights, sentences and tokens, turn by turn.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use gnnxml_shared::text::wordpiece::WordPiece;
use gnnxml_shared::text::{Language, sentences};
use gnnxml_tests::{Browser, npm_file, program};
use serde_json::{Value, json};

use crate::site::{Published, Site};
use crate::{call, number, row, succeed};

/// The peer, and where its files lie in its package.
const PEER: &str = "onnxruntime-web@1.30.0";
const PEER_FILES: [&str; 3] = [
    "ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm",
];
/// Sentences that both encode.
const SENTENCES: usize = 96;
/// Longer sentences would be cut into windows by us and cut off by others.
const MOST_TOKENS: usize = 126;
/// Sentences of like length that the peer may take at once; it goes on with the size it was quickest with.
const PEER_BATCHES: [usize; 3] = [1, 4, 16];
/// Turns of each; the median counts.
const TURNS: usize = 5;
/// Least cosine between the two's vectors of a sentence: both round to eight bits, each in its own way.
const LEAST_COSINE: f64 = 0.95;

/// What is needed of a model that only has to carry an encoder.
const SETTINGS: &str = "\
[clusters]
k = 4

[ranker]
embedding = true
";

/// onnxruntime-web in the page.
struct Peer {
    version: String,
    /// Sentences it takes at once.
    batch: usize,
    /// The least cosine between its vector of a sentence and ours.
    cosine: f64,
}

/// Both encoders and what they are given.
pub(crate) struct Contest {
    bundle: Published,
    sentences: Vec<String>,
    tokens: Vec<Vec<u32>>,
    has_peer: bool,
}

impl Contest {
    /// A bundle around the encoder of `directory`, and the peer's files where there is a Python to write its model.
    pub(crate) fn prepare(
        directory: &Path,
        python: Option<&Path>,
        site: &mut Site,
        texts: &[String],
    ) -> Result<Self> {
        let file = directory.join("tokenizer.json");
        let tokenizer =
            std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let tokenizer = WordPiece::from_tokenizer_json(&tokenizer)?;
        let mut contest = Self {
            bundle: bundle_with(directory, site)?,
            sentences: Vec::new(),
            tokens: Vec::new(),
            has_peer: python.is_some(),
        };
        for text in texts {
            for span in sentences(text, Language::English).into_iter().take(3) {
                let sentence = &text[span.start..span.end];
                let mut ids = vec![tokenizer.special().class];
                tokenizer.encode_into(sentence, &mut ids);
                ids.push(tokenizer.special().separator);
                if (3..=MOST_TOKENS).contains(&ids.len()) && contest.sentences.len() < SENTENCES {
                    contest.sentences.push(sentence.to_owned());
                    contest.tokens.push(ids);
                }
            }
        }
        match python {
            Some(python) => add_peer(directory, python, site)?,
            None => println!(
                "Without --python PYTHON (with onnx, onnxruntime, safetensors) the encoder is measured without its peer."
            ),
        }
        Ok(contest)
    }

    /// Measures both in turn and prints the rows.
    pub(crate) fn hold(&self, browser: &Browser) -> Result<()> {
        let engine = call(browser, "openEncoder", &json!({"bundle": self.bundle.address}))?;
        let what = format!("encoder, int8, {} tokens", self.tokens());
        // Once for the browser's compiler.
        let our_vectors = self.own_turn(browser)?.1;
        let peer = if self.has_peer {
            Some(self.open_peer(browser, &our_vectors)?)
        } else {
            None
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            ours.push(self.own_turn(browser)?.0);
            if let Some(peer) = &peer {
                theirs.push(self.peer_turn(browser, peer.batch)?.0);
            }
        }
        let ours = median(ours);
        row(
            &format!("{what}: ours, {}", engine.as_str().unwrap_or_default()),
            &format!("{ours:.0} tokens/s"),
            "",
        );
        if let Some(Peer {
            version,
            batch,
            cosine,
        }) = peer
        {
            let theirs = median(theirs);
            row(
                &format!("{what}: onnxruntime-web {version}, WASM, sentences at once: {batch}"),
                &format!("{theirs:.0} tokens/s"),
                "",
            );
            row(
                "ours to onnxruntime-web",
                &format!("{:.2} (least cosine of a sentence {cosine:.4})", ours / theirs),
                "1.0",
            );
        }
        Ok(())
    }

    fn tokens(&self) -> usize {
        self.tokens.iter().map(Vec::len).sum()
    }

    /// Our tokens a second, and our vectors.
    fn own_turn(&self, browser: &Browser) -> Result<(f64, Value)> {
        self.turn(browser, "encode", &json!({"sentences": self.sentences}))
    }

    /// The peer's tokens a second, and its vectors in the order of [`Self::by_length`].
    fn peer_turn(&self, browser: &Browser, batch: usize) -> Result<(f64, Value)> {
        let batches: Vec<Vec<&[u32]>> = (self.by_length().chunks(batch))
            .map(|batch| batch.iter().map(|&one| &self.tokens[one][..]).collect())
            .collect();
        self.turn(browser, "encodePeer", &json!({"batches": batches}))
    }

    fn turn(&self, browser: &Browser, function: &str, argument: &Value) -> Result<(f64, Value)> {
        let mut answer = call(browser, function, argument)?;
        let speed = self.tokens() as f64 / number(&answer["time"])? * 1e3;
        Ok((speed, answer["vectors"].take()))
    }

    /// Starts the peer, sees that it encodes as we do, and finds the batch it likes.
    fn open_peer(&self, browser: &Browser, our_vectors: &Value) -> Result<Peer> {
        let files =
            json!({"script": "/ort/ort.wasm.min.mjs", "folder": "/ort/", "model": "/ort/encoder.onnx"});
        let version = call(browser, "openPeer", &files)?;
        let vectors = self.peer_turn(browser, PEER_BATCHES[0])?.1;
        let cosine = least_cosine(&self.by_length(), our_vectors, &vectors)?;
        ensure!(
            cosine > LEAST_COSINE,
            "the two do not encode alike: a sentence's vectors have a cosine of {cosine}"
        );
        let mut best = (0.0, PEER_BATCHES[0]);
        for batch in PEER_BATCHES {
            let speed = self.peer_turn(browser, batch)?.0;
            if speed > best.0 {
                best = (speed, batch);
            }
        }
        Ok(Peer {
            version: version.as_str().unwrap_or_default().to_owned(),
            batch: best.1,
            cosine,
        })
    }

    /// Sentences by length, the longest first.
    fn by_length(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.tokens.len()).collect();
        order.sort_by_key(|&one| (std::cmp::Reverse(self.tokens[one].len()), one));
        order
    }
}

/// Trains a small model around an encoder, in seconds: a bundle is the only way into the page.
fn bundle_with(encoder: &Path, site: &mut Site) -> Result<Published> {
    let folder = tempfile::tempdir()?;
    let settings = folder.path().join("settings.toml");
    let directory = encoder
        .canonicalize()
        .with_context(|| format!("{} is not there", encoder.display()))?;
    let name = Value::from(directory.display().to_string());
    std::fs::write(
        &settings,
        format!("{SETTINGS}\n[encoder]\nname = {name}\nsentences = 1\n"),
    )?;
    let (model, bundle) = (folder.path().join("model"), folder.path().join("bundle"));
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/garden.jsonl");
    let mut train = Command::new(program());
    train.arg("train").arg("--corpus").arg(corpus);
    succeed(train.arg("--config").arg(&settings).arg("--out").arg(&model))?;
    crate::export(&model, &bundle)?;
    site.add(&bundle)
}

/// The peer's scripts from npm and the same weights as ONNX, in the site's folder `ort`.
fn add_peer(encoder: &Path, python: &Path, site: &Site) -> Result<()> {
    let folder = site.folder.join("ort");
    std::fs::create_dir_all(&folder)?;
    for file in PEER_FILES {
        let fetched = npm_file("ort", PEER, &format!("onnxruntime-web/dist/{file}"))?;
        std::fs::copy(&fetched, folder.join(file))?;
    }
    let writer = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/onnx_encoder.py");
    let mut write = Command::new(python);
    write
        .arg(writer)
        .arg(encoder)
        .args(["--precision", "int8", "--write"]);
    succeed(write.arg(folder.join("encoder.onnx")))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The least cosine between our vector of a sentence and the peer's, whose vectors come in another order.
fn least_cosine(order: &[usize], ours: &Value, theirs: &Value) -> Result<f64> {
    let mut least = 1.0_f64;
    for (place, &sentence) in order.iter().enumerate() {
        let (a, b) = (crate::numbers(&ours[sentence])?, crate::numbers(&theirs[place])?);
        ensure!(
            a.len() == b.len(),
            "vectors of {} and {} numbers",
            a.len(),
            b.len()
        );
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        least = least.min(dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt());
    }
    Ok(least)
}
