//! `gnnxml bench labels`: what the label graph, its clusters and the map cost.

use std::time::Instant;

use crate::collective::SingleProcess;
use crate::labels::generate::Shape;
use crate::labels::{ClusterOptions, LabelVectors, Sampling, cluster_labels_with};

/// Arguments of `gnnxml bench labels`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Generate a vocabulary of this many labels; several for a table of growth
    #[arg(long, value_delimiter = ',')]
    generated: Vec<usize>,
    /// Width of the generated label vectors
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// Mean labels a generated document
    #[arg(long, default_value_t = 5.45)]
    labels_per_document: f64,
    /// Filter with sampled neighbours: B labels at a time, S neighbours a step
    #[arg(long, value_names = ["B", "S"], num_args = 2)]
    sampled: Option<Vec<usize>>,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    println!("labels\tdocuments\tnon-zeros\tgraph entries\tclusters\tstep\tseconds");
    for &labels in &args.generated {
        growth(&args, labels)?;
    }
    Ok(())
}

/// One vocabulary of Amazon-670K's proportions: 490,449 documents for 670,091 labels.
fn growth(args: &Args, labels: usize) -> anyhow::Result<()> {
    let shape = Shape {
        labels,
        documents: (labels as u64 * 490_449 / 670_091) as usize,
        labels_per_document: args.labels_per_document,
        width: args.width,
        topics: (labels / 200).max(1),
        seed: 1,
    };
    let documents = shape.documents()?;
    let vectors = LabelVectors::Dense(shape.vectors());
    let options = ClusterOptions {
        sampling: args.sampled.as_ref().map(|s| Sampling {
            batch: s[0],
            samples: s[1],
        }),
        ..ClusterOptions::default()
    };
    let mut steps: Vec<(&'static str, Instant)> = Vec::new();
    let clusters = cluster_labels_with(&documents, vectors, &options, &SingleProcess, &mut |step| {
        steps.push((step, Instant::now()));
    })?;
    steps.push(("end", Instant::now()));
    for pair in steps.windows(2) {
        println!(
            "{labels}\t{}\t{}\t{}\t{}\t{}\t{:.2}",
            documents.documents(),
            documents.nonzeros(),
            clusters.report().graph_entries,
            clusters.len(),
            pair[0].0,
            (pair[1].1 - pair[0].1).as_secs_f64()
        );
    }
    Ok(())
}
