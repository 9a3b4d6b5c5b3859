//! `gnnxml bench server`: a load generator on loopback against a server process of its own.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::server::load::{LoadOptions, measure, soak};

/// Arguments of `gnnxml bench server`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Data directory with an active model; it is served by a process of its own while this runs
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Corpus whose texts are sent
    #[arg(long, value_name = "FILE", required_unless_present = "soak")]
    corpus: Option<PathBuf>,
    /// Requests of the connection test
    #[arg(long, default_value_t = 10_000)]
    requests: usize,
    /// Connections of the connection test
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Texts in one batch
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Seconds of each timed part
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Listeners on one run
    #[arg(long, default_value_t = 200)]
    listeners: usize,
    /// Instead: so many rounds of kill and restart at random moments, checking that nothing is lost
    #[arg(long, value_name = "ROUNDS")]
    soak: Option<usize>,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    if let Some(rounds) = args.soak {
        let report = runtime.block_on(soak(&args.data, rounds))?;
        say!("{}", serde_json::to_string_pretty(&report)?)?;
        return Ok(());
    }
    let mut texts = Vec::new();
    for document in crate::data::open(args.corpus.context("--corpus is needed")?)? {
        texts.push(document?.text);
        if texts.len() == 20_000 {
            break;
        }
    }
    anyhow::ensure!(!texts.is_empty(), "the corpus has no document");
    let options = LoadOptions {
        requests: args.requests,
        connections: args.connections,
        batch: args.batch,
        seconds: args.seconds,
        listeners: args.listeners,
    };
    let report = runtime.block_on(measure(&args.data, texts, &options))?;
    say!("{}", serde_json::to_string_pretty(&report)?)?;
    Ok(())
}
