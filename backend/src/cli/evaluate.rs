//! `gnnxml evaluate`.

/// Arguments of `gnnxml evaluate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml evaluate` is not built yet")
}
