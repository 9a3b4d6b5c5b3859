//! The server that is measured: this very program in a process of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A running `gnnxml serve` on a free port.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    pub(super) addr: SocketAddr,
}

impl ServerProcess {
    pub(super) async fn start(data: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", "--addr", "127.0.0.1:0", "--data"])
            .arg(data)
            .env("RUST_LOG", "error")
            .env_remove("GNNXML_API_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("no output")?;
        let line = BufReader::new(output)
            .lines()
            .next_line()
            .await?
            .unwrap_or_default();
        let addr = line
            .strip_prefix("listening on http://")
            .context("the server did not start")?
            .parse()?;
        Ok(Self { child, addr })
    }

    fn proc(&self, file: &str) -> String {
        let pid = self.child.id().unwrap_or_default();
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    }

    /// Resident memory.
    pub(super) fn memory_mb(&self) -> f64 {
        self.proc("status")
            .lines()
            .find_map(|line| {
                line.strip_prefix("VmRSS:")?
                    .trim()
                    .strip_suffix(" kB")?
                    .trim()
                    .parse::<f64>()
                    .ok()
            })
            .map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
    }

    /// User and system time so far; a tick is a hundredth of a second on Linux.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let stat = self.proc("stat");
        let after_name = stat.rfind(')').map_or("", |at| &stat[at + 1..]);
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or(f64::NAN)
        };
        (ticks(11) + ticks(12)) / 100.0
    }

    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Asks it to stop and waits.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(pid) = self.child.id() {
            Command::new("kill").arg(pid.to_string()).status().await?;
        }
        self.child.wait().await?;
        Ok(())
    }
}
