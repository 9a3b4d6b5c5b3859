//! `gnnxml serve`: the page and the API over one data directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gnnxml_kernels::{Gpu, Preference};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::engine::EngineName;
use crate::runs::QueueSettings;
use crate::server::{self, ApiKey, AppState, ConfigError, ConfigFile, LogFormat, ServerConfig};

/// Arguments of `gnnxml serve`. Each goes before its environment variable, which goes before the file.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where everything is kept [env: GNNXML_DATA] [default: gnnxml-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to listen; other than loopback needs an API key [env: GNNXML_ADDR] [default: 127.0.0.1:8080]
    #[arg(long, value_name = "IP:PORT")]
    addr: Option<SocketAddr>,
    /// A name under which the server may be called, besides its address; may be repeated [env: GNNXML_HOSTS, separated by commas]
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Folder of the built page [env: GNNXML_WEB] [default: web next to the program, or dist]
    #[arg(long, value_name = "DIR")]
    web: Option<PathBuf>,
    /// File that holds the API key; the key itself can be given in GNNXML_API_KEY, never as an argument
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Training runs at once [env: GNNXML_PARALLEL_RUNS] [default: 1]
    #[arg(long, value_name = "N")]
    parallel_runs: Option<usize>,
    /// What runs graph networks: the CPU, a GPU, or whichever a short probe finds quicker [env: GNNXML_ENGINE] [default: cpu]
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    /// How log lines look [env: GNNXML_LOG_FORMAT]; which lines is chosen by RUST_LOG
    #[arg(long, value_enum)]
    log: Option<LogFormat>,
    /// TOML file with any of these settings and a table `limits` [env: GNNXML_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the OpenAPI description and exit
    #[arg(long)]
    print_openapi: bool,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    if args.print_openapi {
        super::print(&server::openapi_json())?;
        return Ok(());
    }
    let (config, log) = settings(args).map_err(|error| super::WrongInput(error.to_string()))?;
    // Refused before anything is touched.
    config
        .check()
        .map_err(|error| super::WrongInput(error.to_string()))?;
    if config.engine == Preference::Gpu {
        pollster::block_on(Gpu::open())
            .map_err(|error| super::WrongInput(format!("--engine gpu: {error}")))?;
    }
    start_log(log);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?
        .block_on(serve(config))
}

async fn serve(config: ServerConfig) -> anyhow::Result<()> {
    // The port first: a second server says at once that it is taken.
    let addr = config.addr;
    let listener = TcpListener::bind(addr)
        .await
        .with_context(|| format!("cannot listen on {addr}"))?;
    let bound = listener.local_addr()?;
    let state = AppState::start(config, QueueSettings::of_this_program()?).await?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        asked_to_stop().await;
        tracing::info!("stopping: the last answers are sent, running children save");
        stop.send_replace(true);
    });
    // Scripts wait for this line; a page is served whoever read it.
    let _ = say!("listening on http://{bound}");
    tracing::info!(%bound, "listening");
    server::serve(listener, state, stopped).await;
    tracing::info!("stopped");
    Ok(())
}

/// Ctrl-C or the service manager's SIGTERM.
async fn asked_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else {
            let _ = tokio::signal::ctrl_c().await;
            return;
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    {
        let _ = tokio::signal::ctrl_c().await;
    }
}

fn start_log(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // Set once for the process; a second call, in a test, changes nothing.
    let _ = match format {
        LogFormat::Text => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
}

fn settings(args: Args) -> Result<(ServerConfig, LogFormat), ConfigError> {
    let file = match args.config.or_else(|| path_variable("GNNXML_CONFIG")) {
        Some(path) => ConfigFile::read(&path)?,
        None => ConfigFile::default(),
    };
    let data = args
        .data
        .or_else(|| path_variable("GNNXML_DATA"))
        .or(file.data)
        .unwrap_or_else(|| "gnnxml-data".into());
    let mut config = ServerConfig::local(data);
    if let Some(addr) = args.addr {
        config.addr = addr;
    } else if let Some(addr) =
        parsed_variable("GNNXML_ADDR", "an address with a port, such as 127.0.0.1:8080")?
    {
        config.addr = addr;
    } else if let Some(addr) = file.addr {
        config.addr = addr;
    }
    config.hosts = if args.hosts.is_empty() {
        match variable("GNNXML_HOSTS") {
            Some(hosts) => hosts
                .split(',')
                .map(|host| host.trim().to_owned())
                .filter(|host| !host.is_empty())
                .collect(),
            None => file.hosts.unwrap_or_default(),
        }
    } else {
        args.hosts
    };
    config.web = args
        .web
        .or_else(|| path_variable("GNNXML_WEB"))
        .or(file.web)
        .or_else(built_page);
    let parallel = parsed_variable("GNNXML_PARALLEL_RUNS", "a number")?;
    config.parallel_runs = args
        .parallel_runs
        .or(parallel)
        .or(file.parallel_runs)
        .unwrap_or(1);
    let engine = match args.engine {
        Some(name) => Some(name),
        None => parsed_variable::<EngineName>("GNNXML_ENGINE", "auto, cpu or gpu")?,
    };
    if let Some(engine) = engine.map(EngineName::preference).or(file.engine) {
        config.engine = engine;
    }
    config.limits = file.limits;
    let key_file = args.api_key_file.or(file.api_key_file);
    config.api_key = match (key_file, variable("GNNXML_API_KEY")) {
        (Some(path), _) => Some(ApiKey::new(&read(&path)?)?),
        (None, Some(key)) => Some(ApiKey::new(&key)?),
        (None, None) => None,
    };
    let log = match args.log {
        Some(log) => log,
        None => match variable("GNNXML_LOG_FORMAT").as_deref() {
            Some("json") => LogFormat::Json,
            Some("text") => LogFormat::Text,
            Some(value) => {
                return Err(ConfigError::Environment {
                    name: "GNNXML_LOG_FORMAT",
                    value: value.to_owned(),
                    expected: "text or json",
                });
            }
            None => file.log.unwrap_or_default(),
        },
    };
    Ok((config, log))
}

/// The page as `cargo xtask web` builds it, where it usually is.
fn built_page() -> Option<PathBuf> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|program| Some(program.parent()?.join("web")));
    [beside, Some(PathBuf::from("dist"))]
        .into_iter()
        .flatten()
        .find(|folder| folder.join("index.html").is_file())
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::File {
        path: path.to_owned(),
        source,
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(Into::into)
}

fn parsed_variable<T: std::str::FromStr>(
    name: &'static str,
    expected: &'static str,
) -> Result<Option<T>, ConfigError> {
    variable(name)
        .map(|value| {
            value.parse().map_err(|_| ConfigError::Environment {
                name,
                value,
                expected,
            })
        })
        .transpose()
}
