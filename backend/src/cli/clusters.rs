//! `gnnxml clusters`: the label clusters of a model, as JSON or as a table.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use serde::Serialize;

use gnnxml_shared::api::{ClusterDetail, ClusterStatistics};

use super::{WrongInput, printed};
use crate::labels::LabelClusters;

/// Arguments of `gnnxml clusters`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A trained model's directory, or a label cluster file
    #[arg(long)]
    model: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// One object: statistics, and every cluster with its labels
    Json,
    /// One line a label: cluster, cluster name, label, count, x, y
    Tsv,
}

#[derive(Serialize)]
struct Everything {
    statistics: ClusterStatistics,
    clusters: Vec<ClusterDetail>,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let path = if args.model.is_dir() {
        args.model.join(LabelClusters::FILE_NAME)
    } else {
        args.model
    };
    if !path.exists() {
        return Err(WrongInput(format!(
            "{} does not exist: give --model the directory that `gnnxml train --out` wrote",
            path.display()
        ))
        .into());
    }
    let clusters = LabelClusters::load(&path)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = match args.format {
        Format::Json => json(&clusters, &mut out),
        Format::Tsv => tsv(&clusters, &mut out),
    };
    Ok(printed(written.and_then(|()| out.flush()))?)
}

fn json(clusters: &LabelClusters, out: &mut impl Write) -> std::io::Result<()> {
    let everything = Everything {
        statistics: clusters.statistics(),
        clusters: (0..clusters.len() as u32)
            .filter_map(|cluster| clusters.detail(cluster))
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &everything)?;
    writeln!(out)
}

fn tsv(clusters: &LabelClusters, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "cluster\tcluster_name\tlabel\tdocuments\tx\ty")?;
    for cluster in 0..clusters.len() as u32 {
        let name = one_line(&clusters.cluster(cluster).name);
        for &label in clusters.members(cluster) {
            let found = clusters.label_summary(label);
            writeln!(
                out,
                "{cluster}\t{name}\t{}\t{}\t{}\t{}",
                one_line(&found.name),
                found.count,
                found.x,
                found.y
            )?;
        }
    }
    Ok(())
}

/// A name without the characters that separate fields and lines.
fn one_line(name: &str) -> String {
    name.replace(['\t', '\n', '\r'], " ")
}
