//! `gnnxml predict`.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use gnnxml_shared::api::{Evidence, TagResponse};
use gnnxml_shared::keygraph::KeyGraph;
use gnnxml_shared::model::tagger::FinishOptions;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::engine::{EngineName, open_engine};
use super::printed;
use crate::data::{CorpusError, Lines, ReadAhead};
use crate::train::Model;

/// Arguments of `gnnxml predict`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Documents are answered in order and as they come: a program may write one, read its tags and write the next."
)]
pub(super) struct Args {
    /// Model directory
    #[arg(long)]
    model: PathBuf,
    /// Tags a document at most
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// Only tags of at least this probability; `auto` takes the one of best F1
    #[arg(long, value_parser = cutoff)]
    cutoff: Option<Cutoff>,
    /// Say why each tag was given, with the KeyGraph whose vertices and sentences the evidence names by number
    #[arg(long)]
    explain: bool,
    /// Plain text, one document a line, instead of JSONL
    #[arg(long)]
    text: bool,
    /// Threads; all cores unless given
    #[arg(long)]
    threads: Option<usize>,
    /// What runs the graph network: the CPU, a GPU, or whichever a short probe finds quicker
    #[arg(long, value_enum, default_value_t = EngineName::Cpu)]
    engine: EngineName,
    /// JSONL file, gzipped or zstd-packed or not, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cutoff {
    /// The one of best F1 on validation documents.
    Auto,
    At(f32),
}

fn cutoff(given: &str) -> Result<Cutoff, String> {
    if given == "auto" {
        return Ok(Cutoff::Auto);
    }
    match given.parse::<f32>() {
        Ok(probability) if (0.0..=1.0).contains(&probability) => Ok(Cutoff::At(probability)),
        _ => Err(format!(
            "found {given}, expected a probability from 0 to 1, or auto"
        )),
    }
}

/// A text and what its answer is called.
struct Document {
    id: String,
    text: String,
}

#[derive(Serialize)]
struct Line {
    id: String,
    labels: Vec<Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keygraph: Option<KeyGraph>,
}

#[derive(Serialize)]
struct Label {
    name: String,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    if let Some(threads) = args.threads {
        let _ = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .build_global();
    }
    let model = Model::load(&args.model)?;
    let cutoff = match args.cutoff {
        None => 0.0,
        Some(Cutoff::Auto) => model.tagger.score.cutoff,
        Some(Cutoff::At(probability)) => probability,
    };
    let engine = open_engine(args.engine, model.tagger.matcher.graph())?;
    let options = FinishOptions {
        top: args.top,
        explain: args.explain,
        keygraph: args.explain,
    };
    let mut documents = ReadAhead::new(documents(&args.file, args.text)?, |document| document.text.len());
    let mut out = BufWriter::new(std::io::stdout().lock());
    loop {
        let batch = documents.next_batch()?;
        if batch.is_empty() {
            break;
        }
        let tagged: Vec<anyhow::Result<TagResponse>> = batch
            .par_iter()
            .map(|document| {
                model.tag_with(&document.text, options, |matcher, graph| {
                    let ran = pollster::block_on(engine.logits(graph, |graph| matcher.forward(graph)))?;
                    Ok(ran.logits)
                })
            })
            .collect();
        for (Document { id, .. }, response) in batch.into_iter().zip(tagged) {
            let response = response.with_context(|| format!("document {id:?}"))?;
            let line = serde_json::to_string(&answer(id, response, cutoff))?;
            printed(writeln!(out, "{line}"))?;
        }
        printed(out.flush())?;
    }
    if let Some(trouble) = engine.trouble().filter(|_| args.engine == EngineName::Gpu) {
        tell!("some documents were computed on the CPU: {trouble}");
    }
    Ok(())
}

fn answer(id: String, response: TagResponse, cutoff: f32) -> Line {
    let kept = response.tags.into_iter().filter(|tag| tag.score >= cutoff);
    let labels = kept
        .map(|tag| Label {
            name: tag.name,
            score: tag.score,
            evidence: tag.evidence,
        })
        .collect();
    Line {
        id,
        labels,
        keygraph: response.keygraph,
    }
}

/// The documents of the input, one a line; ends with the first that is none.
fn documents(
    file: &Path,
    plain: bool,
) -> Result<impl Iterator<Item = Result<Document, CorpusError>> + Send + use<>, CorpusError> {
    let mut lines = Lines::open(file)?;
    Ok(std::iter::from_fn(move || {
        let line = match lines.next_line()? {
            Ok(line) => line.to_owned(),
            Err(error) => return Some(Err(error)),
        };
        let number = lines.number();
        // An empty line is a document without words: it gets an answer like any other.
        if plain || line.trim().is_empty() {
            let id = number.to_string();
            return Some(Ok(Document { id, text: line }));
        }
        Some(parse(&line, number).map_err(|found| {
            let expected = "a JSON object with \"text\" (plain text needs --text)";
            CorpusError::record(lines.file(), number, found, expected)
        }))
    }))
}

/// A document, or what was found instead.
fn parse(line: &str, number: u64) -> Result<Document, String> {
    let mut value: Value =
        serde_json::from_str(line).map_err(|error| format!("no JSON at column {}", error.column()))?;
    let Some(Value::String(text)) = value.get_mut("text").map(Value::take) else {
        return Err("no string \"text\"".into());
    };
    let id = match value.get("id") {
        None | Some(Value::Null) => number.to_string(),
        Some(Value::String(id)) => id.clone(),
        Some(other) => other.to_string(),
    };
    Ok(Document { id, text })
}
