//! The demo: from a clone to a page with a trained model, unattended.

use anyhow::{Result, bail};

use crate::setup;

pub(crate) fn run(_args: &[String]) -> Result<()> {
    setup::for_demo()?;
    bail!("the demo needs the page and the server, which are not built yet")
}
