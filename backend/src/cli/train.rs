//! `gnnxml train`.

/// Arguments of `gnnxml train`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml train` is not built yet")
}
