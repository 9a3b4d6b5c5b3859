//! `gnnxml bench`: measurements that print their figures, one subcommand a room.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Subcommand;

use super::{
    bench_ablation, bench_encoder, bench_growth, bench_keygraph, bench_labels, bench_matcher, bench_server,
};
use crate::data::{CorpusSource, available_threads};
use crate::matcher::DeviceChoice;
use crate::train::{Model, TrainConfig, TrainRequest, train};

/// Arguments of `gnnxml bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: BenchCommand,
}

/// What can be measured.
#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// The whole model with one part changed at a time: partition, number of clusters, matcher, ranker, score
    Ablation(bench_ablation::Args),
    /// Sentence encoders: tokens a second against onnxruntime and candle, and what eight bits cost
    Encoder(bench_encoder::Args),
    /// Training generated corpora of growing vocabularies: time, memory, and whether anything was learned
    Growth(bench_growth::Args),
    /// Reading a corpus and drawing every KeyGraph, by number of threads
    Keygraph(bench_keygraph::Args),
    /// Label graph, clustering and map: quality, speed against scikit-learn, growth
    Labels(bench_labels::Args),
    /// Cluster matching: recall against linear baselines, the ablation, epoch time, growth
    Matcher(Box<bench_matcher::Args>),
    /// The server under load on loopback, or killed and restarted again and again
    Server(bench_server::Args),
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        BenchCommand::Ablation(args) => bench_ablation::run(&args),
        BenchCommand::Encoder(args) => bench_encoder::run(&args),
        BenchCommand::Growth(args) => bench_growth::run(&args),
        BenchCommand::Keygraph(args) => bench_keygraph::run(&args),
        BenchCommand::Labels(args) => bench_labels::run(args),
        BenchCommand::Matcher(args) => bench_matcher::run(&args),
        BenchCommand::Server(args) => bench_server::run(args),
    }
}

/// Trains without a word and loads what was saved.
pub(super) fn trained(corpus: CorpusSource, config: TrainConfig, out: PathBuf) -> anyhow::Result<Model> {
    let request = TrainRequest {
        corpus,
        valid: None,
        out,
        config,
        device: DeviceChoice::Auto,
        threads: available_threads(),
        resume: false,
        stop: Arc::new(AtomicBool::new(false)),
    };
    train(&request, &|_| {})?;
    Ok(Model::load(&request.out)?)
}

/// The largest memory this process has held.
pub(super) fn peak_megabytes() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(0, |kilobytes| kilobytes / 1024)
}
