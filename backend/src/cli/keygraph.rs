//! `gnnxml keygraph`.

/// Arguments of `gnnxml keygraph`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("`gnnxml keygraph` is not built yet")
}
