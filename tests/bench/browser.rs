//! `cargo xtask bench browser`: what tagging costs inside a real Chromium, in time and in bytes, and our encoder beside
//! onnxruntime-web in the same browser.
//!
//! It measures what is built and never builds it: xtask brings page and program up to date first. Start reading at
//! [`run`]; what happens inside the page is `page.js`.

mod encoder;
mod site;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};
use gnnxml_tests::{Browser, BrowserOptions, program};
use serde_json::{Value, json};

use site::{Kind, Published, Site};

/// Words of the text that is timed.
const WORDS: usize = 580;
/// Runs before the clock counts: the browser compiles what is hot.
const WARM: usize = 20;
/// Texts of one script: a driver does not wait for ever.
const BATCH: usize = 10;
/// Texts given to the GPU.
const GPU_TEXTS: usize = 5;
/// Browsers tried until one has a GPU: Chromium's software GPU fails some from their start.
const BROWSERS: usize = 8;

/// What to measure.
struct Options {
    models: Vec<PathBuf>,
    bundles: Vec<PathBuf>,
    texts: PathBuf,
    /// Runs of the text that is timed, and texts whose shards are counted.
    runs: usize,
    encoder: Option<PathBuf>,
    python: Option<PathBuf>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let (mut models, mut bundles) = (Vec::new(), Vec::new());
        let (mut texts, mut runs, mut encoder, mut python) = (None, 50, None, None);
        while let Some(name) = args.next() {
            let value = args.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--model" => models.push(value.into()),
                "--bundle" => bundles.push(value.into()),
                "--texts" => texts = Some(value.into()),
                "--runs" => runs = value.parse().with_context(|| format!("--runs {value}"))?,
                "--encoder" => encoder = Some(value.into()),
                "--python" => python = Some(value.into()),
                _ => bail!("no option {name}; `cargo xtask help` lists them"),
            }
        }
        ensure!(runs > 0, "--runs 0: at least one is needed");
        Ok(Self {
            models,
            bundles,
            texts: texts.context("--texts FILE.jsonl is needed: the texts that are tagged")?,
            runs,
            encoder,
            python,
        })
    }
}

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench browser: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let texts = read_texts(&options.texts)?;
    let text = (texts.iter().min_by_key(|text| words(text).abs_diff(WORDS)))
        .with_context(|| format!("{} holds no text", options.texts.display()))?;
    let folder = tempfile::tempdir()?;
    let mut site = Site::new(&folder.path().join("web"))?;
    let mut bundles = Vec::new();
    for (number, model) in options.models.iter().enumerate() {
        let out = folder.path().join(format!("bundle-{number}"));
        export(model, &out)?;
        bundles.push(site.add(&out)?);
    }
    for bundle in &options.bundles {
        bundles.push(site.add(bundle)?);
    }
    let contest = match &options.encoder {
        Some(directory) => Some(encoder::Contest::prepare(
            directory,
            options.python.as_deref(),
            &mut site,
            &texts,
        )?),
        None => {
            println!("Without --encoder DIR no encoder is measured.");
            None
        }
    };
    let server = site.serve(&folder.path().join("data"))?;

    println!(
        "\nA text of {} words, {} runs after {WARM}; headless Chromium, one thread.\n\n| what | seen | asked |\n|---|---|---|",
        words(text),
        options.runs
    );
    row("page core, gzip", &kilobytes(site.core_bytes()? as f64), "600 kB");
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    for bundle in &bundles {
        measure(&browser, bundle, text, &texts, options.runs)?;
    }
    if let Some(contest) = &contest {
        contest.hold(&browser)?;
    }
    drop(browser);
    for bundle in bundles.iter().filter(|bundle| bundle.kind != Kind::Words) {
        measure_gpu(&server.base, bundle, &texts[..GPU_TEXTS.min(texts.len())])?;
    }
    Ok(())
}

/// Times and bytes of one bundle on the processor.
fn measure(browser: &Browser, bundle: &Published, text: &str, texts: &[String], runs: usize) -> Result<()> {
    let name = &bundle.name;
    let (core, time) = match bundle.kind {
        Kind::Words => ("8 MB", "30 ms"),
        Kind::Networks => ("16 MB", "40 ms"),
        Kind::Transformer => ("", ""),
    };
    row(
        &format!("{name}: core"),
        &format!("{:.2} MB", bundle.core_bytes as f64 / 1e6),
        core,
    );
    for explain in [true, false] {
        let found = call(
            browser,
            "cached",
            &json!({"bundle": bundle.address, "text": text, "explain": explain, "warm": WARM, "runs": runs}),
        )?;
        let engine = found["engine"].as_str().unwrap_or_default();
        let with = if explain { "with" } else { "without" };
        row(
            &format!("{name}: {engine}, {with} evidence, shards there"),
            &spread(numbers(&found["times"])?),
            time,
        );
    }
    let same: Vec<&str> = vec![text; runs];
    let fetched = fetching(browser, bundle, &same)?;
    row(
        &format!("{name}: with evidence, shards fetched from loopback"),
        &spread(fetched.iter().map(|one| one.time).collect()),
        "",
    );
    row(
        &format!("{name}: shards of that text"),
        &format!("{} in {} files", kilobytes(fetched[0].bytes), fetched[0].shards),
        "1 MB",
    );
    let others: Vec<&str> = texts.iter().take(runs).map(String::as_str).collect();
    let bytes: Vec<f64> = (fetching(browser, bundle, &others)?.iter())
        .map(|one| one.bytes)
        .collect();
    row(
        &format!("{name}: shards of {} texts", bytes.len()),
        &format!(
            "mean {}, most {}",
            kilobytes(bytes.iter().sum::<f64>() / bytes.len() as f64),
            kilobytes(bytes.iter().copied().fold(0.0, f64::max))
        ),
        "1 MB",
    );
    Ok(())
}

/// A text tagged by a tagger that had to fetch its shards.
struct Fetched {
    time: f64,
    bytes: f64,
    shards: f64,
}

fn fetching(browser: &Browser, bundle: &Published, texts: &[&str]) -> Result<Vec<Fetched>> {
    let mut all = Vec::new();
    for batch in texts.chunks(BATCH) {
        let found = call(
            browser,
            "uncached",
            &json!({"bundle": bundle.address, "texts": batch}),
        )?;
        for one in found.as_array().context("a list of texts")? {
            all.push(Fetched {
                time: number(&one["time"])?,
                bytes: number(&one["bytes"])?,
                shards: number(&one["shards"])?,
            });
        }
    }
    Ok(all)
}

/// What a text asks of WebGPU: the most of a few texts.
fn measure_gpu(base: &str, bundle: &Published, texts: &[String]) -> Result<()> {
    for _ in 0..BROWSERS {
        let browser = Browser::open(BrowserOptions {
            webgpu: true,
            ..BrowserOptions::default()
        })?;
        browser.goto(base)?;
        let Ok(found) = call(
            &browser,
            "onGpu",
            &json!({"bundle": bundle.address, "texts": texts}),
        ) else {
            continue;
        };
        if found["engine"] != "WebGPU" {
            continue;
        }
        let answers = found["answers"].as_array().context("a list of texts")?;
        let of = |what: &str| -> Result<Vec<f64>> { answers.iter().map(|one| number(&one[what])).collect() };
        let most = |what: &str| -> Result<f64> { Ok(of(what)?.into_iter().fold(0.0, f64::max)) };
        let name = &bundle.name;
        row(
            &format!("{name}: WebGPU, a text at most"),
            &format!(
                "{} dispatches in {} submissions",
                most("dispatches")?,
                most("submissions")?
            ),
            "40 dispatches",
        );
        row(
            &format!("{name}: WebGPU, a text at most"),
            &format!(
                "{} bytes up, {} bytes down in {} read-backs",
                most("up")?,
                most("down")?,
                most("readBacks")?
            ),
            "one read-back",
        );
        row(
            &format!("{name}: WebGPU by SwiftShader (software: no yardstick)"),
            &spread(of("time")?),
            "",
        );
        return Ok(());
    }
    println!(
        "\nNone of {BROWSERS} browsers had a WebGPU that ran {}.",
        bundle.name
    );
    Ok(())
}

/// Calls a function of `page.js` with one argument.
fn call(browser: &Browser, function: &str, argument: &Value) -> Result<Value> {
    browser.run_async(&format!(
        "const page = await import('/bench.js'); return await page.{function}({argument});"
    ))
}

fn number(value: &Value) -> Result<f64> {
    value
        .as_f64()
        .with_context(|| format!("expected a number, found {value}"))
}

fn numbers(value: &Value) -> Result<Vec<f64>> {
    let list = value.as_array().context("a list of numbers")?;
    list.iter().map(number).collect()
}

/// A row of the table.
fn row(what: &str, seen: &str, asked: &str) {
    println!("| {what} | {seen} | {asked} |");
}

/// Median and 95th percentile of times.
fn spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() as f64 * share).ceil() as usize).max(1) - 1];
    format!("median {:.1} ms, 95 % below {:.1} ms", at(0.5), at(0.95))
}

fn kilobytes(bytes: f64) -> String {
    format!("{:.0} kB", bytes / 1e3)
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn read_texts(file: &std::path::Path) -> Result<Vec<String>> {
    let lines =
        std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let mut texts = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        let document: Value =
            serde_json::from_str(line).with_context(|| format!("{}, line {}", file.display(), number + 1))?;
        let text = document["text"].as_str();
        texts.push(
            text.with_context(|| format!("{}, line {}: no \"text\"", file.display(), number + 1))?
                .to_owned(),
        );
    }
    Ok(texts)
}

fn export(model: &std::path::Path, out: &std::path::Path) -> Result<()> {
    let mut command = Command::new(program());
    command
        .args(["export", "--model"])
        .arg(model)
        .arg("--out")
        .arg(out);
    succeed(&mut command)
}

/// Runs a command to its end; its own words are the error.
fn succeed(command: &mut Command) -> Result<()> {
    let answer = command
        .output()
        .with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(
        answer.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&answer.stderr)
    );
    Ok(())
}
