//! `gnnxml corpus`.

/// Arguments of `gnnxml corpus`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml corpus` is not built yet")
}
