//! The command line: one file a command, each a thin shell around a room of the library.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage or input.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Prints a line to standard output. Unlike `println!` it hands a failure back, see [`printed`].
macro_rules! say {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        $crate::cli::printed(writeln!(std::io::stdout(), $($line)*))
    }};
}

/// Writes a line to standard error, if anybody listens: a training of hours does not end because its terminal was closed.
macro_rules! tell {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($line)*);
    }};
}

mod bench;
mod bench_ablation;
mod bench_encoder;
mod bench_growth;
mod bench_keygraph;
mod bench_labels;
mod bench_matcher;
mod bench_server;
mod clusters;
mod corpus;
mod dot_plot;
mod encoder;
mod engine;
mod evaluate;
mod export;
mod keygraph;
mod learn;
mod left_out;
mod predict;
mod serve;
mod train;
mod train_display;

/// Tag texts with the right handful of labels out of thousands to millions.
#[derive(Debug, Parser)]
#[command(name = "gnnxml", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a model on a corpus
    Train(train::Args),
    /// Score a model on a labelled corpus
    Evaluate(evaluate::Args),
    /// Teach a trained model new documents and new labels
    Learn(learn::Args),
    /// Tag documents
    Predict(predict::Args),
    /// Publish a trained model as a bundle for the browser
    Export(export::Args),
    /// Serve the page and the API
    Serve(serve::Args),
    /// Look at, convert, split or fetch corpora
    Corpus(corpus::Args),
    /// Draw the KeyGraph of a text
    Keygraph(keygraph::Args),
    /// List the label clusters of a model
    Clusters(clusters::Args),
    /// Fetch, run or distil sentence encoders
    Encoder(encoder::Args),
    /// Measure
    Bench(bench::Args),
}

/// Marks an error as the caller's: wrong usage or wrong input, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongInput(pub String);

/// Standard output that took no more.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
struct Unprinted(io::Error);

/// Everything that goes to standard output passes here: a reader that went away (`… | head`) ends the command, but is no
/// failure of it.
fn printed(written: io::Result<()>) -> Result<(), Unprinted> {
    written.map_err(Unprinted)
}

/// Prints a text as it is.
fn print(text: &str) -> Result<(), Unprinted> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Train(args) => train::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Learn(args) => learn::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Export(args) => export::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Corpus(args) => corpus::run(args),
        Command::Keygraph(args) => keygraph::run(args),
        Command::Clusters(args) => clusters::run(args),
        Command::Encoder(args) => encoder::run(args),
        Command::Bench(args) => bench::run(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.chain().any(nobody_reads) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("gnnxml: {}", sentence(&error));
            if error.chain().any(is_the_callers) {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// An error and its causes in one line. Many of ours quote their cause already; nothing is said twice.
fn sentence(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

/// Whether a command ended early because its reader had enough.
fn nobody_reads(cause: &(dyn std::error::Error + 'static)) -> bool {
    (cause.downcast_ref::<Unprinted>())
        .is_some_and(|Unprinted(error)| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether an error came from what the caller gave (exit 2) rather than from us (exit 1).
/// Rooms with a typed input error add it here.
fn is_the_callers(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<WrongInput>()
        || cause
            .downcast_ref::<crate::data::CorpusError>()
            .is_some_and(crate::data::CorpusError::is_the_callers)
        || cause
            .downcast_ref::<crate::train::LearnError>()
            .is_some_and(crate::train::LearnError::is_the_callers)
        || (cause.downcast_ref::<crate::train::ModelError>())
            .is_some_and(crate::train::ModelError::is_the_callers)
        || cause.is::<crate::labels::LabelError>()
        || cause.is::<crate::encoder::EncoderError>()
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_cause_that_the_message_quotes_is_said_once() {
        let read = || crate::data::open("nope.jsonl");
        let missing = io::Error::from_raw_os_error(2).to_string();
        let error = anyhow::Error::from(read().unwrap_err());
        assert_eq!(sentence(&error), format!("cannot read nope.jsonl: {missing}"));
        let error = read().context("the model stays as it was").unwrap_err();
        assert_eq!(
            sentence(&error),
            format!("the model stays as it was: cannot read nope.jsonl: {missing}")
        );
    }

    #[test]
    fn only_a_reader_that_went_away_is_no_failure() {
        let of = |kind: io::ErrorKind| anyhow::Error::from(printed(Err(kind.into())).unwrap_err());
        assert!(of(io::ErrorKind::BrokenPipe).chain().any(nobody_reads));
        assert!(!of(io::ErrorKind::StorageFull).chain().any(nobody_reads));
        // A server that hangs up on us is another story.
        let hung_up = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(!hung_up.chain().any(nobody_reads));
    }
}
