//! What runs a model's graph network, as the command line names it.

use std::str::FromStr;

use gnnxml_kernels::{Engine, Preference, Processor};
use gnnxml_shared::model::matcher::Matcher;

use super::WrongInput;
use crate::server::open_network;

/// The CPU, a GPU, or whichever a short probe finds quicker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EngineName {
    Auto,
    Cpu,
    Gpu,
}

impl EngineName {
    pub(super) fn preference(self) -> Preference {
        match self {
            Self::Auto => Preference::Auto,
            Self::Cpu => Preference::Cpu,
            Self::Gpu => Preference::Gpu,
        }
    }
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        <Self as clap::ValueEnum>::from_str(name, false)
    }
}

/// The processor of a model's graph network, named on standard error unless it is the one nobody asked about.
pub(super) fn open_engine(name: EngineName, matcher: Option<&Matcher>) -> anyhow::Result<Engine> {
    if name == EngineName::Cpu {
        return Ok(Engine::cpu());
    }
    let engine = open_network(matcher, name.preference())
        .map_err(|error| WrongInput(format!("--engine gpu: {error}")))?;
    let processor = match engine.processor() {
        Processor::Cpu => "CPU",
        Processor::Gpu => "GPU",
    };
    match (engine.choice(), engine.trouble()) {
        (Some(choice), _) => tell!(
            "engine: {processor}; a document takes {:.2} ms on the CPU, {:.2} ms on {}",
            choice.cpu_milliseconds,
            choice.gpu_milliseconds,
            choice.adapter
        ),
        (None, Some(trouble)) => tell!("engine: {processor}; {trouble}"),
        (None, None) => tell!("engine: {processor}; this model has no graph network"),
    }
    Ok(engine)
}
