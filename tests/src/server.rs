//! A server process: started, spoken to, stopped, killed, started again.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::{program, small_corpus};

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Where it listens, `HOST:PORT`; a free port when it is not said.
    pub address: Option<String>,
    /// The place where it dies.
    pub fail_point: Option<String>,
    /// More arguments of `gnnxml serve`.
    pub arguments: Vec<String>,
    /// More of its environment.
    pub environment: Vec<(String, String)>,
}

/// A running `gnnxml serve`.
#[derive(Debug)]
pub struct Server {
    process: Child,
    data: PathBuf,
    /// `http://127.0.0.1:PORT`
    pub base: String,
    client: reqwest::blocking::Client,
    log: PathBuf,
}

impl Server {
    /// Starts a server over `data` on a free port and waits until it listens.
    pub fn start(data: &Path) -> anyhow::Result<Self> {
        Self::start_with(data, &ServerOptions::default())
    }

    pub fn start_with(data: &Path, options: &ServerOptions) -> anyhow::Result<Self> {
        let log = data.with_extension("log");
        let errors = std::fs::File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new(program());
        command
            .arg("serve")
            .arg("--data")
            .arg(data)
            .args(["--addr", options.address.as_deref().unwrap_or("127.0.0.1:0")])
            .args(&options.arguments)
            .env_remove("GNNXML_API_KEY")
            .env_remove("GNNXML_FAIL_POINT")
            .stdout(Stdio::piped())
            .stderr(errors);
        if let Some(point) = &options.fail_point {
            command.env("GNNXML_FAIL_POINT", point);
        }
        for (name, value) in &options.environment {
            command.env(name, value);
        }
        let mut process = command.spawn().context("the server cannot be started")?;
        let mut lines = BufReader::new(process.stdout.take().context("no output")?).lines();
        let listening = lines.next().transpose()?.unwrap_or_default();
        let Some(base) = listening.strip_prefix("listening on ") else {
            let _ = process.wait();
            bail!("the server did not start: {}", std::fs::read_to_string(&log)?);
        };
        Ok(Self {
            process,
            data: data.to_owned(),
            base: base.to_owned(),
            client: reqwest::blocking::Client::builder()
                .timeout(Duration::from_secs(120))
                .build()?,
            log,
        })
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn client(&self) -> &reqwest::blocking::Client {
        &self.client
    }

    /// What it wrote to its log so far, over all starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// `GET`, with the answer as JSON.
    pub fn get(&self, path: &str) -> anyhow::Result<Value> {
        answer(self.client.get(format!("{}{path}", self.base)).send()?)
    }

    /// `POST` of JSON, with the answer as JSON.
    pub fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        answer(
            self.client
                .post(format!("{}{path}", self.base))
                .json(body)
                .send()?,
        )
    }

    pub fn delete(&self, path: &str) -> anyhow::Result<Value> {
        answer(self.client.delete(format!("{}{path}", self.base)).send()?)
    }

    /// Uploads a corpus and answers with its id.
    pub fn upload(&self, name: &str, content: String) -> anyhow::Result<u64> {
        let request = self
            .client
            .post(format!("{}/api/v1/corpora?name={name}", self.base))
            .header("content-type", "application/octet-stream")
            .body(content);
        let corpus = answer(request.send()?)?;
        corpus["id"].as_u64().context("a corpus has an id")
    }

    /// Waits until a run is over and answers with it.
    pub fn finished(&self, run: u64) -> anyhow::Result<Value> {
        let begun = Instant::now();
        loop {
            let found = self.get(&format!("/api/v1/runs/{run}"))?;
            if !matches!(
                found["status"].as_str(),
                Some("queued" | "running" | "cancelling")
            ) {
                return Ok(found);
            }
            ensure!(
                begun.elapsed() < Duration::from_secs(120),
                "run {run} does not end: {found}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Trains on a corpus and answers with the finished run's id.
    pub fn train(&self, corpus: u64, seed: u64) -> anyhow::Result<u64> {
        let run = self.post(
            "/api/v1/runs",
            &serde_json::json!({"corpus": corpus, "seed": seed, "threads": 1}),
        )?;
        let id = run["id"].as_u64().context("a run has an id")?;
        let done = self.finished(id)?;
        ensure!(done["status"] == "done", "the run did not end well: {done}");
        Ok(id)
    }

    /// Publishes a model of the small corpus, as [`Server::publish`] does.
    pub fn publish_small(
        &self,
        documents: usize,
        seed: u64,
        name: Option<&str>,
    ) -> anyhow::Result<(u64, Value)> {
        self.publish(small_corpus(documents), seed, name)
    }

    /// Uploads a corpus, trains on it and publishes the run: the run, and the model's summary.
    pub fn publish(&self, corpus: String, seed: u64, name: Option<&str>) -> anyhow::Result<(u64, Value)> {
        let corpus = self.upload("small.jsonl", corpus)?;
        let run = self.train(corpus, seed)?;
        let body = name.map_or_else(|| serde_json::json!({}), |name| serde_json::json!({"name": name}));
        Ok((run, self.post(&format!("/api/v1/runs/{run}/publish"), &body)?))
    }

    /// As `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Waits until it has died by itself.
    pub fn died(mut self) -> anyhow::Result<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            ensure!(
                begun.elapsed() < Duration::from_secs(60),
                "the server lives on: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to stop (SIGTERM) and waits for its end.
    pub fn stop(self) -> anyhow::Result<ExitStatus> {
        let asked = Command::new("kill").arg(self.process.id().to_string()).status()?;
        ensure!(asked.success(), "the server is gone already");
        self.died()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn answer(mut response: reqwest::blocking::Response) -> anyhow::Result<Value> {
    let status = response.status();
    let mut body = String::new();
    response.read_to_string(&mut body)?;
    ensure!(status.is_success(), "{status}: {body}");
    if body.is_empty() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_str(&body)?)
}
