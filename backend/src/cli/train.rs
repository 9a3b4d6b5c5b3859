//! `gnnxml train`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gnnxml_shared::api::TrainEvent;

use super::WrongInput;
use super::train_display::{Display, Style};
use crate::data::{CorpusSource, IdFilter, available_threads};
use crate::matcher::DeviceChoice;
use crate::train::{ConfigError, TrainConfig, TrainError, TrainRequest, preset, train};

/// Arguments of `gnnxml train`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Training corpus
    #[arg(long, required_unless_present = "print_preset")]
    corpus: Option<PathBuf>,
    /// Corpus to fit the score on; without it a seeded part of the training documents is held out
    #[arg(long)]
    valid: Option<PathBuf>,
    /// Only the training documents whose ids are in this file, one a line
    #[arg(long)]
    ids: Option<PathBuf>,
    /// Where the model goes
    #[arg(long, required_unless_present = "print_preset")]
    out: Option<PathBuf>,
    /// fast, balanced or best
    #[arg(long, default_value = "fast")]
    preset: String,
    /// TOML file whose settings take the place of the preset's
    #[arg(long)]
    config: Option<PathBuf>,
    /// Encoder: lsa, static, minilm, a directory or a hub id
    #[arg(long)]
    encoder: Option<String>,
    /// Language of the texts as a BCP-47 tag; `und` for one without stop words and stemmer here; `auto` lets the texts tell
    #[arg(long)]
    language: Option<String>,
    /// auto, cpu or cuda
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Threads; all cores unless given
    #[arg(long)]
    threads: Option<usize>,
    #[arg(long)]
    seed: Option<u64>,
    /// Bad records to leave out and count before giving up
    #[arg(long, default_value_t = 0)]
    skip_bad: usize,
    /// Go on where an interrupted run of the same command stopped
    #[arg(long)]
    resume: bool,
    /// One JSON object a line on standard output instead of progress bars
    #[arg(long)]
    json_progress: bool,
    /// Print a preset's TOML file and exit
    #[arg(long, value_name = "NAME")]
    print_preset: Option<String>,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    if let Some(name) = &args.print_preset {
        super::print(preset(name).map_err(|e| WrongInput(e.to_string()))?)?;
        return Ok(());
    }
    let (Some(corpus), Some(out)) = (&args.corpus, &args.out) else {
        return Err(WrongInput("--corpus and --out are both needed".into()).into());
    };
    let config = settings(&args)?;
    let threads = args.threads.unwrap_or_else(available_threads).max(1);
    // Fails only when a pool exists already, which then has the size someone chose before us.
    let _ = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // A second signal ends the process at once.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut source = CorpusSource::detect(corpus)?
        .skip_bad(args.skip_bad)
        .keep_repeated_ids();
    if let Some(ids) = &args.ids {
        source = source.only(IdFilter::from_file(ids)?);
    }
    let request = TrainRequest {
        corpus: source,
        valid: (args.valid.as_ref())
            .map(|path| CorpusSource::detect(path).map(CorpusSource::keep_repeated_ids))
            .transpose()?,
        out: out.clone(),
        config,
        device: args.device,
        threads,
        resume: args.resume,
        stop,
    };
    let display = Display::new(if args.json_progress {
        Style::Json
    } else {
        Style::Terminal
    });
    match train(&request, &|event| display.show(&event)) {
        Ok(outcome) => {
            display.finish(&outcome, out);
            Ok(())
        }
        Err(TrainError::Interrupted) => {
            display.show(&TrainEvent::Interrupted { resumable: true });
            Err(TrainError::Interrupted.into())
        }
        Err(error) => {
            display.show(&TrainEvent::Failed {
                message: error.to_string(),
            });
            if error.is_the_callers() {
                return Err(WrongInput(error.to_string()).into());
            }
            Err(error.into())
        }
    }
}

/// The preset, the file's settings over it, the command line's over both.
fn settings(args: &Args) -> anyhow::Result<TrainConfig> {
    let wrong = |error: ConfigError| WrongInput(error.to_string());
    let mut config = match &args.config {
        None => TrainConfig::of_preset(&args.preset),
        Some(file) => {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file)
                .map_err(|error| WrongInput(format!("--config {name}: {error}")))?;
            TrainConfig::of_preset_with(&args.preset, &name, &text)
        }
    }
    .map_err(wrong)?;
    config.seed = args.seed.unwrap_or(config.seed);
    if let Some(tag) = &args.language {
        config.language.clone_from(tag);
        config.check("--language").map_err(wrong)?;
    }
    if let Some(name) = &args.encoder {
        if !config.needs_vectors() {
            let reason = format!(
                "--encoder {name}: these settings read words only; expected --preset balanced or best, or \
                 `kind = \"both\"` under [matcher] in a --config file"
            );
            return Err(WrongInput(reason).into());
        }
        config.encoder.name.clone_from(name);
        config.check("--encoder").map_err(wrong)?;
    }
    Ok(config)
}
