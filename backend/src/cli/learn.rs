//! `gnnxml learn`.

/// Arguments of `gnnxml learn`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml learn` is not built yet")
}
