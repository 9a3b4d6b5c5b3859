//! `gnnxml predict`.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use gnnxml_kernels::{Engine, Preference, Processor, Work};
use gnnxml_shared::api::{Evidence, TagResponse};
use gnnxml_shared::model::tagger::FinishOptions;
use rayon::prelude::*;
use serde::Serialize;

use super::WrongInput;
use crate::train::Model;

/// Documents tagged together; output keeps their order.
const BATCH: usize = 256;
/// The longest line that is read.
const LONGEST_LINE: u64 = 256 << 20;

/// Arguments of `gnnxml predict`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Model directory
    #[arg(long)]
    model: PathBuf,
    /// Tags a document at most
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// Only tags of at least this probability; `auto` takes the one of best F1
    #[arg(long)]
    cutoff: Option<String>,
    /// Say why each tag was given
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
    /// JSONL file, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum EngineName {
    Auto,
    Cpu,
    Gpu,
}

#[derive(Serialize)]
struct Line {
    id: String,
    labels: Vec<Label>,
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
    let cutoff = match args.cutoff.as_deref() {
        None => 0.0,
        Some("auto") => model.tagger.score.cutoff,
        Some(number) => number.parse().map_err(|_| {
            WrongInput(format!(
                "--cutoff: found {number:?}, expected a probability or auto"
            ))
        })?,
    };
    let engine = open_engine(args.engine, &model)?;
    let input: Box<dyn Read> = if args.file == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = std::fs::File::open(&args.file)
            .map_err(|error| WrongInput(format!("{}: {error}", args.file.display())))?;
        if args.file.extension().is_some_and(|e| e == "gz") {
            Box::new(flate2::read::MultiGzDecoder::new(file))
        } else {
            Box::new(file)
        }
    };
    let mut input = BufReader::new(input);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let options = FinishOptions {
        top: args.top,
        explain: args.explain,
        keygraph: false,
    };
    let mut number = 0u64;
    loop {
        let mut batch: Vec<(String, String)> = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let Some(line) = next_line(&mut input, &args.file, number + 1)? else {
                break;
            };
            number += 1;
            batch.push(document(&line, number, &args)?);
        }
        if batch.is_empty() {
            break;
        }
        let tagged: Vec<anyhow::Result<TagResponse>> = batch
            .par_iter()
            .map(|(_, text)| {
                model.tag_with(text, options, |matcher, graph| {
                    let ran = pollster::block_on(engine.logits(graph, |graph| matcher.forward(graph)))?;
                    Ok(ran.logits)
                })
            })
            .collect();
        for ((id, _), response) in batch.into_iter().zip(tagged) {
            let response = response.with_context(|| format!("document {id:?}"))?;
            let kept = response.tags.into_iter().filter(|tag| tag.score >= cutoff);
            let labels = kept
                .map(|t| Label {
                    name: t.name,
                    score: t.score,
                    evidence: t.evidence,
                })
                .collect();
            serde_json::to_writer(&mut out, &Line { id, labels })?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
    }
    if let Some(trouble) = engine.trouble().filter(|_| args.engine == EngineName::Gpu) {
        eprintln!("some documents were computed on the CPU: {trouble}");
    }
    Ok(())
}

/// The processor of the graph network, named on standard error unless it is the one nobody asked about.
fn open_engine(name: EngineName, model: &Model) -> anyhow::Result<Engine> {
    let preference = match name {
        EngineName::Cpu => return Ok(Engine::cpu()),
        EngineName::Auto => Preference::Auto,
        EngineName::Gpu => Preference::Gpu,
    };
    let begun = std::time::Instant::now();
    let clock = || begun.elapsed().as_secs_f64() * 1e3;
    // Sentences are encoded by the backend's own encoders, many at a time.
    let work = Work {
        matcher: model.tagger.matcher.graph(),
        encoder: None,
    };
    let opened = Engine::new(work, preference, None, clock);
    let engine = pollster::block_on(opened).map_err(|error| WrongInput(format!("--engine gpu: {error}")))?;
    let processor = match engine.processor() {
        Processor::Cpu => "CPU",
        Processor::Gpu => "GPU",
    };
    match (engine.choice(), engine.trouble()) {
        (Some(choice), _) => eprintln!(
            "engine: {processor}; a document takes {:.2} ms on the CPU, {:.2} ms on {}",
            choice.cpu_milliseconds, choice.gpu_milliseconds, choice.adapter
        ),
        (None, Some(trouble)) => eprintln!("engine: {processor}; {trouble}"),
        (None, None) => eprintln!("engine: {processor}; this model has no graph network"),
    }
    Ok(engine)
}

/// A line without its end, or nothing at the end of the input.
fn next_line(input: &mut impl BufRead, file: &Path, number: u64) -> anyhow::Result<Option<String>> {
    let mut bytes = Vec::new();
    let read = input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    if read == 0 {
        return Ok(None);
    }
    if read as u64 == LONGEST_LINE && bytes.last() != Some(&b'\n') {
        let reason = format!(
            "{}:{number}: a line longer than {LONGEST_LINE} bytes",
            file.display()
        );
        return Err(WrongInput(reason).into());
    }
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        WrongInput(format!(
            "{}:{number}: not UTF-8 at byte {}",
            file.display(),
            error.utf8_error().valid_up_to()
        ))
    })?;
    Ok(Some(text))
}

/// Id and text of one input line. An empty line is a document without words: it gets an answer like any other.
fn document(line: &str, number: u64, args: &Args) -> anyhow::Result<(String, String)> {
    if args.text || line.trim().is_empty() {
        return Ok((number.to_string(), line.to_owned()));
    }
    let wrong = |found: String| {
        WrongInput(format!(
            "{}:{number}: {found}; expected a JSON object with \"text\" (plain text needs --text)",
            args.file.display()
        ))
    };
    let value: serde_json::Value = serde_json::from_str(line).map_err(|e| wrong(format!("not JSON: {e}")))?;
    let text = value
        .get("text")
        .and_then(|t| t.as_str())
        .ok_or_else(|| wrong("no \"text\"".into()))?;
    let id = match value.get("id") {
        None | Some(serde_json::Value::Null) => number.to_string(),
        Some(serde_json::Value::String(id)) => id.clone(),
        Some(other) => other.to_string(),
    };
    Ok((id, text.to_owned()))
}
