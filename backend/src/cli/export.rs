//! `gnnxml export`.

/// Arguments of `gnnxml export`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml export` is not built yet")
}
