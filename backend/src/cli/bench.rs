//! `gnnxml bench`.

/// Arguments of `gnnxml bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml bench` is not built yet")
}
