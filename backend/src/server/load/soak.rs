//! Killing and restarting a server at random moments while it is written to: what it acknowledged must be there.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde_json::json;

use super::client::Connection;
use super::process::ServerProcess;
use crate::runs::Store;

/// What came out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SoakReport {
    pub rounds: usize,
    pub acknowledged: u64,
    pub lost: u64,
    pub database_complaints: u64,
    pub seconds: f64,
}

/// `rounds` times: start, write, kill. In the end everything acknowledged is looked for.
pub async fn soak(data: &Path, rounds: usize) -> anyhow::Result<SoakReport> {
    let begun = Instant::now();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut acknowledged: Vec<u64> = Vec::new();
    let mut report = SoakReport {
        rounds,
        ..SoakReport::default()
    };
    for round in 0..rounds {
        let server = ServerProcess::start(data)
            .await
            .with_context(|| format!("round {round}: the server does not come up again"))?;
        let addr = server.addr;
        let writing = tokio::spawn(async move {
            let mut stored = Vec::new();
            let Ok(mut connection) = Connection::open(addr).await else {
                return stored;
            };
            loop {
                let body = json!({"text": "soak", "keep_text": true, "accepted": ["soak"]}).to_string();
                let Ok(answer) = connection.post("/api/v1/feedback", &body).await else {
                    return stored;
                };
                if answer.status != 201 {
                    return stored;
                }
                stored.extend(answer.json().ok().and_then(|json| json["id"].as_u64()));
            }
        });
        tokio::time::sleep(Duration::from_millis(random.random_range(1..120))).await;
        server.kill().await?;
        acknowledged.extend(writing.await?);
        let complaints = Store::open(&data.join("gnnxml.sqlite"))?.check()?;
        report.database_complaints += complaints.len() as u64;
    }
    let store = Store::open(&data.join("gnnxml.sqlite"))?;
    let (mut found, mut after) = (std::collections::HashSet::new(), 0);
    loop {
        let page = store.exportable_feedback(after, 1000)?;
        let Some(last) = page.last() else { break };
        after = last.id;
        found.extend(page.iter().map(|piece| piece.id));
    }
    report.acknowledged = acknowledged.len() as u64;
    report.lost = acknowledged.iter().filter(|id| !found.contains(id)).count() as u64;
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}
