//! The command line: one file a command, each a thin shell around a room of the library.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage or input.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
        Err(error) => {
            eprintln!("gnnxml: {error:#}");
            if error.chain().any(is_the_callers) {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
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
