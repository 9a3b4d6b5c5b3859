//! The load generator: a server process of our own and clients on loopback that measure it.
//!
//! It measures, it does not judge: figures are printed, targets are in the documents.

mod client;
mod process;
mod soak;
mod steal;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::json;

use client::Connection;
use process::ServerProcess;
pub use soak::{SoakReport, soak};
use steal::StealWatch;

/// What is measured.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    pub requests: usize,
    pub connections: usize,
    pub batch: usize,
    pub seconds: f64,
    pub listeners: usize,
}

/// What came out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoadReport {
    /// From the start of the process to its first tags.
    pub start_to_first_answer_seconds: f64,
    pub batch_documents_per_second: f64,
    pub single_requests_per_second_full: f64,
    /// At half of that rate, sent on time whatever the answers do.
    pub half_load_requests_per_second: f64,
    pub half_load_p50_ms: f64,
    pub half_load_p99_ms: f64,
    pub half_load_worst_ms: f64,
    /// Of these waits, what passed before the generator got to send a request that was due, and what the engine took.
    pub half_load_sent_late_p99_ms: f64,
    pub half_load_engine_p99_ms: f64,
    /// CPU time that the host gave to others meanwhile, and the p99 of the seconds in which that was next to nothing.
    pub half_load_stolen_seconds: f64,
    pub half_load_undisturbed_seconds: usize,
    pub half_load_undisturbed_p99_ms: f64,
    pub connection_test_requests: usize,
    pub connection_test_connections: usize,
    pub connection_test_errors: usize,
    pub connection_test_requests_per_second: f64,
    pub memory_before_mb: f64,
    pub memory_after_mb: f64,
    /// Server CPU over wall time while so many listeners hear one run, minus the same without listeners.
    pub listeners: usize,
    pub listeners_cpu_percent: f64,
    /// Server CPU seconds over all of it.
    pub server_cpu_seconds: f64,
}

/// A second is undisturbed when the host took no more than this share of it.
const QUIET: f64 = 0.03;

fn body_of(text: &str) -> String {
    json!({"text": text, "top": 10}).to_string()
}

/// Runs every part in turn.
pub async fn measure(data: &Path, texts: Vec<String>, options: &LoadOptions) -> anyhow::Result<LoadReport> {
    let mut report = LoadReport {
        connection_test_requests: options.requests,
        connection_test_connections: options.connections,
        listeners: options.listeners,
        ..LoadReport::default()
    };
    let begun = Instant::now();
    let server = ServerProcess::start(data).await?;
    let mut connection = Connection::open(server.addr).await?;
    let first = connection.post("/api/v1/tag", &body_of(&texts[0])).await?;
    anyhow::ensure!(
        first.status == 200,
        "the server has no active model: {}",
        first.text()
    );
    report.start_to_first_answer_seconds = begun.elapsed().as_secs_f64();

    let texts = Arc::new(texts);
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    report.batch_documents_per_second = batches(&server, &texts, options, cores).await?;
    report.single_requests_per_second_full = singles(&server, &texts, options.seconds, cores * 2).await?;
    let rate = report.single_requests_per_second_full / 2.0;
    let watch = StealWatch::start();
    let sent = paced(&server, &texts, options.seconds, rate).await?;
    let stolen = watch.stop();
    let waits = sorted(&sent, |request| request.waited);
    report.half_load_requests_per_second = rate;
    report.half_load_p50_ms = quantile(&waits, 0.5);
    report.half_load_p99_ms = quantile(&waits, 0.99);
    report.half_load_worst_ms = quantile(&waits, 1.0);
    report.half_load_sent_late_p99_ms = quantile(&sorted(&sent, |request| request.sent_late), 0.99);
    report.half_load_engine_p99_ms = quantile(&sorted(&sent, |request| request.engine), 0.99);
    let quiet: Vec<bool> = stolen
        .iter()
        .map(|of_it| *of_it <= QUIET * cores as f64)
        .collect();
    let undisturbed: Vec<Paced> = sent
        .into_iter()
        .filter(|request| quiet.get(request.due as usize).is_some_and(|quiet| *quiet))
        .collect();
    report.half_load_stolen_seconds = stolen.iter().sum();
    report.half_load_undisturbed_seconds = quiet.iter().filter(|quiet| **quiet).count();
    report.half_load_undisturbed_p99_ms = quantile(&sorted(&undisturbed, |request| request.waited), 0.99);

    report.memory_before_mb = server.memory_mb();
    let (errors, seconds) = many(&server, &texts, options).await?;
    report.connection_test_errors = errors;
    report.connection_test_requests_per_second = options.requests as f64 / seconds;
    report.memory_after_mb = server.memory_mb();

    report.listeners_cpu_percent = listeners(&server, &texts, options.listeners).await?;
    report.server_cpu_seconds = server.cpu_seconds();
    server.stop().await?;
    Ok(report)
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        length => sorted[((length as f64 * share) as usize).min(length - 1)],
    }
}

/// Documents a second in batches, over as many connections as there are cores.
async fn batches(
    server: &ServerProcess,
    texts: &Arc<Vec<String>>,
    options: &LoadOptions,
    connections: usize,
) -> anyhow::Result<f64> {
    let until = Instant::now() + Duration::from_secs_f64(options.seconds);
    let (next, batch, addr) = (Arc::new(AtomicUsize::new(0)), options.batch, server.addr);
    let begun = Instant::now();
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let (texts, next) = (Arc::clone(texts), Arc::clone(&next));
            tokio::spawn(async move {
                let mut connection = Connection::open(addr).await?;
                let mut done = 0;
                while Instant::now() < until {
                    let from = next.fetch_add(batch, Ordering::Relaxed);
                    let some: Vec<&String> =
                        (from..from + batch).map(|at| &texts[at % texts.len()]).collect();
                    let answer = connection
                        .post("/api/v1/tag", &json!({"texts": some, "top": 10}).to_string())
                        .await?;
                    anyhow::ensure!(answer.status == 200, "a batch failed: {}", answer.text());
                    done += batch;
                }
                anyhow::Ok(done)
            })
        })
        .collect();
    let mut documents = 0;
    for worker in workers {
        documents += worker.await??;
    }
    Ok(documents as f64 / begun.elapsed().as_secs_f64())
}

/// Requests a second when every connection sends the next as soon as it has the last.
async fn singles(
    server: &ServerProcess,
    texts: &Arc<Vec<String>>,
    seconds: f64,
    connections: usize,
) -> anyhow::Result<f64> {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let (next, addr) = (Arc::new(AtomicUsize::new(0)), server.addr);
    let begun = Instant::now();
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let (texts, next) = (Arc::clone(texts), Arc::clone(&next));
            tokio::spawn(async move {
                let mut connection = Connection::open(addr).await?;
                let mut done = 0_usize;
                while Instant::now() < until {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let answer = connection
                        .post("/api/v1/tag", &body_of(&texts[at % texts.len()]))
                        .await?;
                    anyhow::ensure!(answer.status == 200, "a request failed: {}", answer.text());
                    done += 1;
                }
                anyhow::Ok(done)
            })
        })
        .collect();
    let mut requests = 0;
    for worker in workers {
        requests += worker.await??;
    }
    Ok(requests as f64 / begun.elapsed().as_secs_f64())
}

/// A request that was sent on time or should have been; milliseconds, but for `due`.
struct Paced {
    /// Seconds from the start.
    due: f64,
    /// From the moment it was due to its answer.
    waited: f64,
    /// From the moment it was due to the moment it was sent.
    sent_late: f64,
    /// As the server says.
    engine: f64,
}

fn sorted(sent: &[Paced], of: impl Fn(&Paced) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = sent.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Requests sent at a fixed rate; waiting for a free connection counts as waiting.
async fn paced(
    server: &ServerProcess,
    texts: &Arc<Vec<String>>,
    seconds: f64,
    rate: f64,
) -> anyhow::Result<Vec<Paced>> {
    const CONNECTIONS: usize = 16;
    let addr = server.addr;
    let count = ((seconds * rate) as usize).max(1);
    let begun = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (texts, next) = (Arc::clone(texts), Arc::clone(&next));
            tokio::spawn(async move {
                let mut connection = Connection::open(addr).await?;
                let mut sent = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return anyhow::Ok(sent);
                    }
                    let due = begun + Duration::from_secs_f64(at as f64 / rate);
                    tokio::time::sleep_until(due.into()).await;
                    let sent_late = due.elapsed().as_secs_f64() * 1e3;
                    let answer = connection
                        .post("/api/v1/tag", &body_of(&texts[at % texts.len()]))
                        .await?;
                    anyhow::ensure!(answer.status == 200, "a request failed: {}", answer.text());
                    let waited = due.elapsed().as_secs_f64() * 1e3;
                    let engine = answer.json()?["milliseconds"].as_f64().unwrap_or(f64::NAN);
                    sent.push(Paced {
                        due: at as f64 / rate,
                        waited,
                        sent_late,
                        engine,
                    });
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await??);
    }
    Ok(all)
}

/// Many requests over many connections: how many fail, and how long all take.
async fn many(
    server: &ServerProcess,
    texts: &Arc<Vec<String>>,
    options: &LoadOptions,
) -> anyhow::Result<(usize, f64)> {
    let (next, addr, requests) = (Arc::new(AtomicUsize::new(0)), server.addr, options.requests);
    let begun = Instant::now();
    let workers: Vec<_> = (0..options.connections)
        .map(|_| {
            let (texts, next) = (Arc::clone(texts), Arc::clone(&next));
            tokio::spawn(async move {
                let mut errors = 0;
                let mut connection = Connection::open(addr).await?;
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= requests {
                        return anyhow::Ok(errors);
                    }
                    match connection
                        .post("/api/v1/tag", &body_of(&texts[at % texts.len()]))
                        .await
                    {
                        Ok(answer) if answer.status == 200 => {}
                        Ok(_) => errors += 1,
                        Err(_) => {
                            errors += 1;
                            connection = Connection::open(addr).await?;
                        }
                    }
                }
            })
        })
        .collect();
    let mut errors = 0;
    for worker in workers {
        errors += worker.await??;
    }
    Ok((errors, begun.elapsed().as_secs_f64()))
}

/// Server CPU while one run is heard by `count` listeners, less what the run costs it unheard, in percent of one core.
async fn listeners(server: &ServerProcess, texts: &[String], count: usize) -> anyhow::Result<f64> {
    // Long enough that coming and going, which cost more than listening, count as they would in a real run.
    let corpus: String = texts
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let labels = [format!("a{}", number % 50), format!("b{}", number % 7)];
            json!({"id": number.to_string(), "text": text, "labels": labels}).to_string() + "\n"
        })
        .collect();
    let mut connection = Connection::open(server.addr).await?;
    let uploaded = connection
        .upload("/api/v1/corpora?name=load.jsonl", corpus.into_bytes())
        .await?;
    let corpus = uploaded.json()?["id"]
        .as_u64()
        .context("the upload was refused")?;
    let mut shares = [0.0; 2];
    for (share, heard) in shares.iter_mut().zip([0, count]) {
        let run = connection
            .post(
                "/api/v1/runs",
                &json!({"corpus": corpus, "threads": 1}).to_string(),
            )
            .await?;
        let run = run.json()?["id"].as_u64().context("the run was refused")?;
        let path = format!("/api/v1/runs/{run}/events");
        let mut hearing = Vec::new();
        for _ in 0..heard {
            let (path, addr) = (path.clone(), server.addr);
            hearing.push(tokio::spawn(async move {
                Connection::open(addr).await?.get(&path).await
            }));
        }
        let (begun, cpu) = (Instant::now(), server.cpu_seconds());
        // The stream ends with the run.
        Connection::open(server.addr).await?.get(&path).await?;
        *share = (server.cpu_seconds() - cpu) / begun.elapsed().as_secs_f64() * 100.0;
        for listener in hearing {
            listener.await??;
        }
        connection = Connection::open(server.addr).await?;
        connection.delete(&format!("/api/v1/runs/{run}")).await?;
    }
    connection.delete(&format!("/api/v1/corpora/{corpus}")).await?;
    Ok(shares[1] - shares[0])
}
