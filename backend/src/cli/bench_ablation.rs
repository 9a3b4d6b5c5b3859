//! `gnnxml bench ablation`: a preset with one part changed at a time, each trained and scored whole.

use std::path::PathBuf;

use super::WrongInput;
use super::bench::trained;
use super::dot_plot::{Dot, dot_plot};
use crate::cpu_time::cpu_seconds;
use crate::data::{CorpusSource, IdFilter, available_threads};
use crate::train::TrainConfig;

/// Arguments of `gnnxml bench ablation`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Documents to learn from
    #[arg(long)]
    corpus: PathBuf,
    /// Only the documents whose ids are in this file, one a line
    #[arg(long)]
    ids: Option<PathBuf>,
    /// Documents to score
    #[arg(long)]
    test: PathBuf,
    /// The preset that is changed
    #[arg(long, default_value = "fast")]
    preset: String,
    /// Groups of rows: partition, features, clusters, matcher, ranker, score
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "partition,features,clusters,matcher,ranker,score"
    )]
    groups: Vec<String>,
    /// Draw P@1 and PSP@1 of every row into this SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// One more row: a name and TOML settings, such as 'C = 2: [ranker]\ncost = 2.0'; may be repeated
    #[arg(long = "try", value_name = "NAME: TOML")]
    tries: Vec<String>,
}

/// A row: what is changed, and the settings that change it.
struct Row {
    name: String,
    settings: String,
}

fn row(name: &str, settings: &str) -> Row {
    Row {
        name: name.to_owned(),
        settings: settings.to_owned(),
    }
}

/// The rows of a group; `labels` sets the scale of K.
fn group(name: &str, labels: usize) -> anyhow::Result<Vec<Row>> {
    Ok(match name {
        "partition" => ["graph", "k_means", "random"]
            .map(|method| {
                row(
                    &format!("partition {method}"),
                    &format!("[clusters]\nmethod = \"{method}\""),
                )
            })
            .into(),
        "features" => ["words", "vectors"]
            .map(|features| {
                row(
                    &format!("labels by {features}, lsa"),
                    &format!(
                        "label_features = \"{features}\"\n[encoder]\nname = \"lsa\"\n[ranker]\nembedding = true"
                    ),
                )
            })
            .into(),
        "clusters" => [240, 120, 60, 30, 15]
            .map(|share| {
                let k = (labels / share).max(2);
                row(&format!("K = L/{share} = {k}"), &format!("[clusters]\nk = {k}"))
            })
            .into(),
        "matcher" => {
            let mut rows = vec![row("matcher linear", "[matcher]\nkind = \"linear\"")];
            for variant in ["v1", "v2", "v3", "v4"] {
                rows.push(row(
                    &format!("matcher graph {variant}"),
                    &format!(
                        "[encoder]\nname = \"lsa\"\n[matcher]\nkind = \"graph\"\nvariant = \"{variant}\""
                    ),
                ));
            }
            rows.push(row(
                "matcher both",
                "[encoder]\nname = \"lsa\"\n[matcher]\nkind = \"both\"",
            ));
            rows
        }
        "ranker" => vec![
            row(
                "ranker logistic, C = 8",
                "[ranker]\nloss = \"logistic\"\ncost = 8.0",
            ),
            row("ranker without predicted negatives", "[ranker]\nnegatives = 0"),
            row("ranker keeps weights from 0.01", "[ranker]\nthreshold = 0.01"),
            row("ranker keeps weights from 0.1", "[ranker]\nthreshold = 0.1"),
            row("ranker lifts the tail 0.5", "[ranker]\ntail_weight = 0.5"),
        ],
        "score" => vec![
            row("score without neighbours", "[score]\nremembered_words = 0"),
            row("score without names", "[score]\nnames = false"),
            row("score without prior", "[score]\ntail_emphasis = 0.0\ngamma = 0.0"),
            row("score asks 5 clusters", "[score]\nclusters = 5"),
            row("score asks 30 clusters", "[score]\nclusters = 30"),
        ],
        other => {
            let message =
                format!("no group {other:?}; expected partition, features, clusters, matcher, ranker or score");
            return Err(WrongInput(message).into());
        }
    })
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let mut corpus = CorpusSource::detect(&args.corpus)?.keep_repeated_ids();
    if let Some(ids) = &args.ids {
        corpus = corpus.only(IdFilter::from_file(ids)?);
    }
    let test = CorpusSource::detect(&args.test)?.keep_repeated_ids();
    let folder = tempfile::tempdir()?;
    say!(
        "| | P@1 | P@3 | P@5 | nDCG@5 | PSP@1 | PSP@3 | PSP@5 | train CPU s | MB |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    let mut dots = Vec::new();
    let mut measure = |row: &Row| -> anyhow::Result<usize> {
        let config = TrainConfig::of_preset_with(&args.preset, &row.name, &row.settings)?;
        let out = folder.path().join("model");
        let used = cpu_seconds();
        let mut model = trained(corpus.clone(), config, out)?;
        let seconds = cpu_seconds() - used;
        if let Err(error) = model.remember_vectors() {
            tell!("Every sentence is encoded anew: {error}");
        }
        let report = crate::evaluate::evaluate(&model, &test, available_threads())?;
        let of = |name: &str| report.get(name).unwrap_or(f64::NAN);
        let bytes: u64 = model.manifest.parts.values().map(|part| part.bytes).sum();
        say!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {seconds:.0} | {:.1} |",
            row.name,
            of("P@1"),
            of("P@3"),
            of("P@5"),
            of("nDCG@5"),
            of("PSP@1"),
            of("PSP@3"),
            of("PSP@5"),
            bytes as f64 / 1e6,
        )?;
        dots.push(Dot {
            name: row.name.clone(),
            values: [of("P@1"), of("PSP@1")],
        });
        Ok(model.manifest.labels)
    };
    let labels = measure(&row(&format!("preset {}", args.preset), ""))?;
    for name in args.groups.iter().filter(|name| !name.is_empty()) {
        for row in group(name, labels)? {
            measure(&row)?;
        }
    }
    for tried in &args.tries {
        let Some((name, settings)) = tried.split_once(':') else {
            return Err(WrongInput(format!("{tried:?}: expected a name, a colon and TOML settings")).into());
        };
        measure(&row(name.trim(), &settings.replace("\\n", "\n")))?;
    }
    if let Some(path) = &args.plot {
        crate::data::write_atomic(path, dot_plot(["P@1", "PSP@1"], &dots).as_bytes())?;
    }
    Ok(())
}
