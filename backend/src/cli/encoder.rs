//! `gnnxml encoder`.

/// Arguments of `gnnxml encoder`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml encoder` is not built yet")
}
