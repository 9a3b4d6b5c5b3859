//! `gnnxml export`.

use std::path::PathBuf;

use anyhow::Context;
use gnnxml_shared::bundle::Bits;

use crate::export::{ExportOptions, FolderStore, export};
use crate::train::Model;

/// Publish a trained model as a bundle: a folder of small files that a web page fetches as it needs them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gnnxml export --model model --out bundle")]
pub(super) struct Args {
    /// Model directory, as written by `gnnxml train`
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Folder for the bundle; parts that are there already are kept
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What the model is called [default: the model directory's name]
    #[arg(long)]
    name: Option<String>,
    /// Bits of a weight in networks and tables; with 4 the weights of rankers are coarser too
    #[arg(long, default_value = "8", value_parser = bits)]
    bits: Bits,
    /// Kilobytes of rankers that a page fetches for one text at most; only the most probable cluster's are fetched whatever
    /// their size. 0 for no limit
    #[arg(long, value_name = "KB", default_value_t = 1000)]
    fetch: u64,
    /// What must be said about the data and weights behind the model, for the manifest; may be repeated. Whose weights its
    /// sentence encoder has is said without
    #[arg(long = "licence-note", value_name = "TEXT")]
    licence_notes: Vec<String>,
}

fn bits(number: &str) -> Result<Bits, String> {
    match number {
        "4" => Ok(Bits::Four),
        "8" => Ok(Bits::Eight),
        other => Err(format!("found {other}, expected 4 or 8")),
    }
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let model = Model::load(&args.model)?;
    let name = args.name.unwrap_or_else(|| {
        args.model
            .file_name()
            .map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned())
    });
    let options = ExportOptions {
        bits: args.bits,
        text_bytes: (args.fetch > 0).then(|| args.fetch.saturating_mul(1000)),
        licence_notes: args.licence_notes,
    };
    let manifest = export(&model, &name, options, &FolderStore::create(&args.out)?)
        .with_context(|| format!("exporting {}", args.model.display()))?;
    let shards: u64 = manifest.shards.iter().map(|shard| shard.part.bytes).sum();
    say!(
        "{}: {} labels in {} clusters; core {:.2} MB in {} parts, rankers {:.2} MB in {} shards",
        args.out.display(),
        manifest.labels,
        manifest.clusters,
        manifest.core_bytes() as f64 / 1e6,
        manifest.core.len(),
        shards as f64 / 1e6,
        manifest.shards.len(),
    )?;
    Ok(())
}
