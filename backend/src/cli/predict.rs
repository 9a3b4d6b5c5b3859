//! `gnnxml predict`.

/// Arguments of `gnnxml predict`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml predict` is not built yet")
}
