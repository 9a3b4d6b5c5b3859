//! `gnnxml learn`.

use std::path::PathBuf;

use anyhow::Context;

use super::WrongInput;
use crate::data::CorpusSource;
use crate::train::{LearnRequest, learn};

/// Arguments of `gnnxml learn`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  gnnxml learn --model model --corpus corrected.jsonl                  # the model learns in place
  gnnxml learn --model model --corpus new.jsonl --out model-2
  gnnxml learn --model model --names new-subjects.txt                  # labels without documents, a name a line

Known labels move as little as the new documents demand; new labels join a cluster and get a ranker; the answer says when
a full training is due.")]
pub(super) struct Args {
    /// Model directory
    #[arg(long)]
    model: PathBuf,
    /// New documents with their labels
    #[arg(long, required_unless_present = "names")]
    corpus: Option<PathBuf>,
    /// New labels without documents, one name a line
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Where to write the model; over the old one unless given
    #[arg(long)]
    out: Option<PathBuf>,
    /// Bad records to leave out and count before giving up
    #[arg(long, default_value_t = 0)]
    skip_bad: usize,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let names = match &args.names {
        None => Vec::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| WrongInput(format!("{}: {error}", path.display())))?;
            let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        }
    };
    let corpus = (args.corpus.as_ref())
        .map(|path| {
            Ok::<_, anyhow::Error>(
                CorpusSource::detect(path)?
                    .skip_bad(args.skip_bad)
                    .keep_repeated_ids(),
            )
        })
        .transpose()?;
    let request = LearnRequest {
        out: args.out.unwrap_or_else(|| args.model.clone()),
        model: args.model,
        corpus,
        names,
    };
    let learned = learn(&request).context("the model stays as it was")?;
    if args.json {
        say!("{}", serde_json::to_string(&learned)?)?;
        return Ok(());
    }
    say!(
        "{} documents learned; {} labels refitted, {} new, {} by name alone",
        learned.documents,
        learned.refitted_labels,
        learned.new_labels.len(),
        learned.named_labels.len(),
    )?;
    if learned.documents_without_labels > 0 {
        say!(
            "{} documents without a label were left out",
            learned.documents_without_labels
        )?;
    }
    if learned.repeated_ids > 0 {
        say!(
            "{} documents repeat the id of another and were learned too",
            learned.repeated_ids
        )?;
    }
    if learned.skipped > 0 {
        say!("{} bad records were left out", learned.skipped)?;
    }
    if let Some(reason) = &learned.retrain_due {
        say!("train again: {reason}")?;
    }
    say!("{}", request.out.display())?;
    Ok(())
}
