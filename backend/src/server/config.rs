//! What the server is told: flags over environment over a TOML file over defaults.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use gnnxml_kernels::Preference;
use gnnxml_shared::api::Limits;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// A secret that never reaches a log: only its digest is kept, `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey([u8; 32]);

impl ApiKey {
    /// Keys shorter than this are guessed too soon.
    pub const SHORTEST: usize = 16;

    pub fn new(key: &str) -> Result<Self, ConfigError> {
        let key = key.trim();
        if key.len() < Self::SHORTEST {
            return Err(ConfigError::ShortKey);
        }
        Ok(Self(Sha256::digest(key.as_bytes()).into()))
    }

    /// Compares in a time that does not depend on where the two differ.
    pub fn matches(&self, offered: &[u8]) -> bool {
        let offered: [u8; 32] = Sha256::digest(offered).into();
        let difference = self.0.iter().zip(&offered).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "{0} can be reached from other machines, so it needs an API key: set GNNXML_API_KEY (or --api-key-file FILE), or listen on 127.0.0.1"
    )]
    KeyNeeded(SocketAddr),
    #[error("the API key is shorter than {} characters", ApiKey::SHORTEST)]
    ShortKey,
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Toml {
        path: PathBuf,
        source: Box<toml::de::Error>,
    },
    #[error("{name}={value:?} is not {expected}")]
    Environment {
        name: &'static str,
        value: String,
        expected: &'static str,
    },
}

/// The TOML file; every key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    pub data: Option<PathBuf>,
    pub addr: Option<SocketAddr>,
    pub hosts: Option<Vec<String>>,
    pub web: Option<PathBuf>,
    pub api_key_file: Option<PathBuf>,
    pub parallel_runs: Option<usize>,
    pub engine: Option<Preference>,
    pub log: Option<LogFormat>,
    pub limits: Limits,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl ConfigFile {
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File {
            path: path.to_owned(),
            source,
        })?;
        toml::from_str(&text).map_err(|source| ConfigError::Toml {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }
}

/// Everything the server needs to know before it starts.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub data: PathBuf,
    pub addr: SocketAddr,
    /// Names, besides the address itself, under which the server may be called.
    pub hosts: Vec<String>,
    /// The folder of the built page.
    pub web: Option<PathBuf>,
    pub api_key: Option<ApiKey>,
    pub parallel_runs: usize,
    /// What runs the graph networks of models.
    pub engine: Preference,
    pub limits: Limits,
}

impl ServerConfig {
    /// The safe default: loopback, no key.
    pub fn local(data: PathBuf) -> Self {
        Self {
            data,
            addr: SocketAddr::from(([127, 0, 0, 1], 8080)),
            hosts: Vec::new(),
            web: None,
            api_key: None,
            parallel_runs: 1,
            engine: Preference::Cpu,
            limits: Limits::default(),
        }
    }

    /// Refuses an address that others can reach when there is no key.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.addr.ip().is_loopback() || self.api_key.is_some() {
            Ok(())
        } else {
            Err(ConfigError::KeyNeeded(self.addr))
        }
    }

    /// Whether a `Host` header names this server.
    ///
    /// Rebinding a name to this machine needs a name: names are taken only when configured, besides `localhost`.
    /// An address is taken when the server listens on it.
    pub fn is_own_host(&self, host: &str) -> bool {
        let name = host_without_port(host);
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return ip.is_loopback() || ip == self.addr.ip() || self.addr.ip().is_unspecified();
        }
        name.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// `name:port`, `[v6]:port` or either without a port; nothing for what is neither.
fn host_without_port(host: &str) -> &str {
    let end = if host.starts_with('[') {
        host.find(']').map_or(0, |end| end + 1)
    } else {
        host.find(':').unwrap_or(host.len())
    };
    let (name, port) = host.split_at(end);
    let plain = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if plain { name } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_others_can_reach_needs_a_key() {
        let mut config = ServerConfig::local("data".into());
        config.check().unwrap();
        config.addr = "0.0.0.0:80".parse().unwrap();
        let refusal = config.check().unwrap_err().to_string();
        assert!(refusal.contains("GNNXML_API_KEY"), "{refusal}");
        config.api_key = Some(ApiKey::new("0123456789abcdef").unwrap());
        config.check().unwrap();
        assert!(ApiKey::new("short").is_err());
    }

    #[test]
    fn a_key_is_never_shown_and_only_the_whole_key_matches() {
        let key = ApiKey::new("correct horse battery staple").unwrap();
        assert!(!format!("{key:?}").contains("correct"));
        assert!(key.matches(b"correct horse battery staple"));
        assert!(!key.matches(b"correct horse battery stapl"));
        assert!(!key.matches(b""));
    }

    #[test]
    fn only_own_names_and_addresses_are_hosts() {
        let mut config = ServerConfig::local("data".into());
        for own in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "[::1]:8080",
            "LOCALHOST",
        ] {
            assert!(config.is_own_host(own), "{own}");
        }
        for other in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "10.0.0.1",
            "",
            "[::1].evil",
        ] {
            assert!(!config.is_own_host(other), "{other}");
        }
        config.addr = "0.0.0.0:80".parse().unwrap();
        config.hosts.push("tags.example".into());
        assert!(config.is_own_host("tags.example:443") && config.is_own_host("10.1.2.3"));
        assert!(!config.is_own_host("evil.example"));
    }

    #[test]
    fn an_unknown_key_in_the_file_is_an_error() {
        assert!(toml::from_str::<ConfigFile>("adr = '127.0.0.1:80'").is_err());
        let file: ConfigFile = toml::from_str("engine = 'gpu'\n[limits]\ntop = 5").unwrap();
        assert_eq!(file.engine, Some(Preference::Gpu));
        assert_eq!(
            (file.limits.top, file.limits.batch_documents),
            (5, Limits::default().batch_documents)
        );
    }
}
