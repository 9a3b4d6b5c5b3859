//! `gnnxml clusters`.

/// Arguments of `gnnxml clusters`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml clusters` is not built yet")
}
