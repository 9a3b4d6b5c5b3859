//! `gnnxml bench`: measurements that print their figures, one subcommand a room.

use clap::Subcommand;

use super::bench_labels;

/// Arguments of `gnnxml bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: BenchCommand,
}

/// What can be measured.
#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Label graph, clustering and map: quality, speed against scikit-learn, growth
    Labels(bench_labels::Args),
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        BenchCommand::Labels(args) => bench_labels::run(args),
    }
}
