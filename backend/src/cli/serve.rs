//! `gnnxml serve`.

/// Arguments of `gnnxml serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml serve` is not built yet")
}
