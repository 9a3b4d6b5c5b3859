//! `gnnxml bench encoder`: tokens a second, ours and the peers' in one run, what eight bits cost, and what `static` keeps.

mod lsa;
mod quality;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use gnnxml_shared::model::encoder::SentenceEncoder;
use gnnxml_shared::model::encoder::bert::Tokens;

use super::WrongInput;
use crate::cpu_time::cpu_seconds;
use crate::encoder::bert::NativeBert;
use crate::encoder::{Encoder, Precision, distil, place_of};

/// Arguments of `gnnxml bench encoder`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Sentences, one a line: measures speed and compares int8 with f32
    #[arg(long)]
    sentences: Option<PathBuf>,
    /// The same on sentences taken evenly from the documents of a corpus
    #[arg(long, conflicts_with = "sentences")]
    corpus: Option<PathBuf>,
    /// How many of them to encode
    #[arg(long, default_value_t = 400)]
    count: usize,
    /// A BERT-type model directory (default: the fetched MiniLM)
    #[arg(long)]
    model: Option<PathBuf>,
    /// Thread counts to measure
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A Python with onnxruntime, onnx and safetensors: the peer runs in the same rounds
    #[arg(long)]
    python: Option<PathBuf>,
    /// The peer's program
    #[arg(long, default_value = "tests/peers/onnx_encoder.py")]
    peer: PathBuf,
    /// Compare int8 with f32 on this many sentences
    #[arg(long, default_value_t = 5000)]
    compare: usize,
    /// Documents with labels: measures how well nearest neighbours share labels, and how often sentences repeat
    #[arg(long)]
    labelled: Option<PathBuf>,
    /// Documents that look for their neighbours
    #[arg(long, default_value_t = 1500)]
    documents: usize,
    /// Sentences of a document that its vector is made of
    #[arg(long, default_value_t = 8)]
    sentences_a_document: usize,
    /// Fits `lsa` on this corpus and reports time and peak memory (alone, for a true peak)
    #[arg(long)]
    lsa: Option<PathBuf>,
    /// Width of `lsa`
    #[arg(long, default_value_t = 128)]
    lsa_dims: usize,
}

/// One measured pass.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
struct Pass {
    tokens: u64,
    seconds: f64,
    cpu_seconds: f64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.lsa.is_none() && args.sentences.is_none() && args.corpus.is_none() && args.labelled.is_none() {
        let fault = "give at least one of --sentences, --corpus, --labelled and --lsa";
        return Err(WrongInput(fault.into()).into());
    }
    if let Some(corpus) = &args.lsa {
        lsa::report(corpus, args.lsa_dims)?;
    }
    if let Some(file) = &args.sentences {
        let text = std::fs::read_to_string(file)
            .map_err(|error| WrongInput(format!("{}: {error}", file.display())))?;
        let sentences = text.lines().filter(|line| !line.trim().is_empty());
        speed(args, &sentences.map(str::to_owned).collect::<Vec<_>>())?;
    } else if let Some(corpus) = &args.corpus {
        speed(
            args,
            &quality::sentences_of(corpus, args.count.max(args.compare))?,
        )?;
    }
    if let Some(corpus) = &args.labelled {
        keeps(args, corpus)?;
    }
    Ok(())
}

/// Retrieval of the transformer and of its table, and repeated sentences.
fn keeps(args: &Args, corpus: &Path) -> anyhow::Result<()> {
    let (sentences, different) = quality::repetition(corpus)?;
    say!(
        "{sentences} sentences, {different} different: {:.1} % repeat another",
        100.0 * (sentences - different) as f64 / sentences.max(1) as f64
    )?;
    let directory = args.model.clone().unwrap_or_else(|| place_of("minilm"));
    let documents = quality::documents(corpus, args.documents)?;
    let whole = NativeBert::open(&directory, Precision::Int8)?;
    let table = distil::open(&place_of("static"))?;
    let mut found = Vec::new();
    for (name, encoder) in [("transformer int8", &whole as &dyn Encoder), ("static", &table)] {
        let retrieval = quality::retrieval(encoder, &documents, args.sentences_a_document)?;
        say!(
            "labels of 10 neighbours among {} documents, {name}: P@1 {:.2}, P@5 {:.2}",
            documents.len(),
            retrieval.p1,
            retrieval.p5
        )?;
        found.push(retrieval);
    }
    say!(
        "static keeps {:.1} % of P@1 and {:.1} % of P@5",
        100.0 * found[1].p1 / found[0].p1,
        100.0 * found[1].p5 / found[0].p5
    )?;
    Ok(())
}

fn speed(args: &Args, sentences: &[String]) -> anyhow::Result<()> {
    let directory = args.model.clone().unwrap_or_else(|| place_of("minilm"));
    let all: Vec<&str> = sentences.iter().map(String::as_str).collect();
    let sample = &quality::evenly(&all, args.count)[..];
    let int8 = NativeBert::open(&directory, Precision::Int8)?;
    let f32 = NativeBert::open(&directory, Precision::F32)?;
    let tokens = int8.encoder().tokenise(sample);
    say!(
        "{} sentences, {} tokens; median of {} rounds",
        sample.len(),
        tokens.len(),
        args.rounds
    )?;

    let mut file = tempfile::NamedTempFile::new()?;
    for window in tokens.windows() {
        serde_json::to_writer(&mut file, window)?;
        file.write_all(b"\n")?;
    }
    file.flush()?;

    say!(
        "{:<28} {:>7} {:>12} {:>14}",
        "encoder",
        "threads",
        "tokens/s",
        "tokens/CPU s"
    )?;
    let mut ours_alone = Vec::new();
    for &threads in &args.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let mut passes: Vec<(&str, Vec<Pass>)> =
            ["ours int8", "ours f32", "candle f32", "peer int8", "peer f32"]
                .map(|name| (name, Vec::new()))
                .into();
        for _ in 0..args.rounds {
            passes[0]
                .1
                .push(pool.install(|| measure(&int8, sample, tokens.len()))?);
            passes[1]
                .1
                .push(pool.install(|| measure(&f32, sample, tokens.len()))?);
            passes[2].1.push(pool.install(|| candle(&directory, &tokens))?);
            if let Some(python) = &args.python {
                for (slot, precision) in [(3, "int8"), (4, "f32")] {
                    let pass = peer(python, &args.peer, &directory, file.path(), precision, threads)?;
                    passes[slot].1.push(pass);
                }
            }
        }
        let medians: Vec<Option<Pass>> = passes.iter().map(|(_, passes)| median(passes)).collect();
        for ((name, _), pass) in passes.iter().zip(&medians) {
            if let Some(pass) = pass {
                let (speed, efficiency) = (
                    pass.tokens as f64 / pass.seconds,
                    pass.tokens as f64 / pass.cpu_seconds,
                );
                say!("{name:<28} {threads:>7} {speed:>12.0} {efficiency:>14.0}")?;
            }
        }
        for (name, ours, theirs) in [
            ("int8 / peer int8", 0, 3),
            ("f32 / peer f32", 1, 4),
            ("int8 / candle f32", 0, 2),
        ] {
            if let (Some(ours), Some(theirs)) = (medians[ours], medians[theirs]) {
                say!(
                    "ratio {name:<22} {threads:>7} {:>12.2} {:>14.2}",
                    theirs.seconds / ours.seconds,
                    theirs.cpu_seconds / ours.cpu_seconds
                )?;
            }
        }
        ours_alone.push((threads, medians[0]));
    }
    if let [(1, Some(one)), (more, Some(many)), ..] = ours_alone[..] {
        say!(
            "int8 from 1 to {more} threads: {:.2} times",
            one.seconds / many.seconds
        )?;
    }
    report_static(sample)?;
    compare(&int8, &f32, &quality::evenly(&all, args.compare))
}

/// Our encoder on the current pool.
fn measure(encoder: &NativeBert, sentences: &[&str], tokens: usize) -> anyhow::Result<Pass> {
    let (started, used) = (Instant::now(), cpu_seconds());
    encoder.encode(sentences)?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(Pass {
        tokens: tokens as u64,
        seconds,
        cpu_seconds: cpu_since(used, seconds),
    })
}

/// The same tokens through candle's own BERT, sorted by length and padded, sixteen sentences at a time.
fn candle(directory: &Path, tokens: &Tokens) -> anyhow::Result<Pass> {
    let weights = std::fs::read(directory.join("model.safetensors"))?;
    let config: Config = serde_json::from_slice(&std::fs::read(directory.join("config.json"))?)?;
    let builder = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)?;
    let model = BertModel::load(builder, &config)?;
    let mut windows: Vec<&[u32]> = tokens.windows().collect();
    windows.sort_by_key(|window| std::cmp::Reverse(window.len()));
    let (started, used) = (Instant::now(), cpu_seconds());
    for batch in windows.chunks(16) {
        let width = batch[0].len();
        let mut ids = vec![0_u32; batch.len() * width];
        let mut mask = vec![0_u32; batch.len() * width];
        for (row, window) in batch.iter().enumerate() {
            ids[row * width..row * width + window.len()].copy_from_slice(window);
            mask[row * width..row * width + window.len()].fill(1);
        }
        let shape = (batch.len(), width);
        let ids = Tensor::from_vec(ids, shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, shape, &Device::Cpu)?;
        let hidden = model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let weight = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        hidden.broadcast_mul(&weight)?.sum(1)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(Pass {
        tokens: tokens.len() as u64,
        seconds,
        cpu_seconds: cpu_since(used, seconds),
    })
}

fn peer(
    python: &Path,
    program: &Path,
    model: &Path,
    tokens: &Path,
    precision: &str,
    threads: usize,
) -> anyhow::Result<Pass> {
    let output = Command::new(python)
        .arg(program)
        .args([model, tokens])
        .args([
            "--precision",
            precision,
            "--batch",
            "8",
            "--repeat",
            "2",
            "--threads",
            &threads.to_string(),
        ])
        .output()
        .with_context(|| format!("starting {}", python.display()))?;
    if !output.status.success() {
        anyhow::bail!("the peer failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    let line = answer.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("the peer said {line:?}"))
}

/// `static`, tokenisation included, on one core.
fn report_static(sentences: &[&str]) -> anyhow::Result<()> {
    let place = place_of("static");
    if !place.is_dir() {
        say!("static: not measured, run `gnnxml encoder distil` first")?;
        return Ok(());
    }
    let encoder = distil::open(&place)?;
    let encoder = encoder.inner();
    let mut ids = Vec::new();
    for sentence in sentences {
        encoder.tokenizer().encode_into(sentence, &mut ids);
    }
    let (started, used) = (Instant::now(), cpu_seconds());
    let mut rounds = 0;
    while started.elapsed().as_secs_f64() < 2.0 {
        std::hint::black_box(encoder.encode(sentences));
        rounds += 1;
    }
    let seconds = started.elapsed().as_secs_f64();
    let tokens = (ids.len() * rounds) as f64;
    say!(
        "{:<28} {:>7} {:>12.0} {:>14.0}",
        "static (text in)",
        1,
        tokens / seconds,
        tokens / cpu_since(used, seconds)
    )?;
    Ok(())
}

/// How far eight bits lead away from single precision.
fn compare(int8: &NativeBert, f32: &NativeBert, sentences: &[&str]) -> anyhow::Result<()> {
    let (a, b) = (int8.encode(sentences)?, f32.encode(sentences)?);
    let dims = int8.dims();
    let mut cosines: Vec<(f32, &str)> = a
        .chunks_exact(dims)
        .zip(b.chunks_exact(dims))
        .zip(sentences)
        .map(|((a, b), sentence)| (a.iter().zip(b).map(|(x, y)| x * y).sum(), *sentence))
        .filter(|(cosine, _)| *cosine != 0.0)
        .collect();
    cosines.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (Some(worst), Some(middle)) = (cosines.first(), cosines.get(cosines.len() / 2)) else {
        return Ok(());
    };
    let start: String = worst.1.chars().take(60).collect();
    say!(
        "cosine of int8 to f32 on {} sentences: least {:.5} ({start:?}), median {:.5}",
        cosines.len(),
        worst.0,
        middle.0
    )?;
    Ok(())
}

fn median(passes: &[Pass]) -> Option<Pass> {
    let middle = |pick: fn(&Pass) -> f64| {
        let mut values: Vec<f64> = passes.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    Some(Pass {
        tokens: passes.first()?.tokens,
        seconds: middle(|pass| pass.seconds)?,
        cpu_seconds: middle(|pass| pass.cpu_seconds)?,
    })
}

/// CPU seconds since `before`; wall seconds where the system does not tell.
fn cpu_since(before: f64, wall: f64) -> f64 {
    let used = cpu_seconds() - before;
    if used > 0.0 { used } else { wall }
}
