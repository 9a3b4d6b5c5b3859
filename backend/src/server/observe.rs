//! What is seen of the server's work: request ids, log lines without any document text, Prometheus counters.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;

use super::{AppState, guard};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Upper bounds of the latency histogram, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0];

#[derive(Clone, Copy, Debug, Default)]
struct Latencies {
    counts: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

/// Counters since the server started.
#[derive(Debug)]
pub(super) struct Counters {
    since: Instant,
    next_request: AtomicU64,
    /// By method, route and status: bounded, since routes are patterns.
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    latencies: Mutex<BTreeMap<String, Latencies>>,
    pub(super) documents: AtomicU64,
    pub(super) engine_micros: AtomicU64,
    pub(super) refused_busy: AtomicU64,
    pub(super) listeners: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) in_flight: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            next_request: AtomicU64::new(1),
            requests: Mutex::default(),
            latencies: Mutex::default(),
            documents: AtomicU64::new(0),
            engine_micros: AtomicU64::new(0),
            refused_busy: AtomicU64::new(0),
            listeners: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
        }
    }
}

/// Counts one while it lives.
#[derive(Debug)]
pub(super) struct Gauge<G: std::ops::Deref<Target = AtomicU64>>(G);

impl<G: std::ops::Deref<Target = AtomicU64>> Gauge<G> {
    pub(super) fn new(gauge: G) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(gauge)
    }
}

impl<G: std::ops::Deref<Target = AtomicU64>> Drop for Gauge<G> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    pub(super) fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    fn count(&self, method: &str, route: &str, status: u16, took: Duration) {
        *self
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry((method.to_owned(), route.to_owned(), status))
            .or_default() += 1;
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let latency = latencies.entry(route.to_owned()).or_default();
        let seconds = took.as_secs_f64();
        for (count, bound) in latency.counts.iter_mut().zip(BOUNDS) {
            *count += u64::from(seconds <= bound);
        }
        latency.count += 1;
        latency.seconds += seconds;
    }

    /// The counters in Prometheus' text format; `gauges` are added at the end as they are.
    pub(super) fn prometheus(&self, gauges: &[(&str, &str, f64)]) -> String {
        let mut text = String::new();
        let requests = self
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let latencies = self
            .latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        text += "# HELP gnnxml_requests_total Requests answered.\n# TYPE gnnxml_requests_total counter\n";
        for ((method, route, status), count) in requests {
            let _ = writeln!(
                text,
                "gnnxml_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}"
            );
        }
        text += "# HELP gnnxml_request_seconds Time to the head of the answer.\n# TYPE gnnxml_request_seconds histogram\n";
        for (route, latency) in latencies {
            for (count, bound) in latency.counts.iter().zip(BOUNDS) {
                let _ = writeln!(
                    text,
                    "gnnxml_request_seconds_bucket{{route=\"{route}\",le=\"{bound}\"}} {count}"
                );
            }
            let _ = writeln!(
                text,
                "gnnxml_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}\n\
                 gnnxml_request_seconds_sum{{route=\"{route}\"}} {sum}\n\
                 gnnxml_request_seconds_count{{route=\"{route}\"}} {count}",
                count = latency.count,
                sum = latency.seconds,
            );
        }
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let own = [
            ("gnnxml_documents_tagged_total", "counter", load(&self.documents)),
            (
                "gnnxml_engine_seconds_total",
                "counter",
                load(&self.engine_micros) / 1e6,
            ),
            ("gnnxml_refused_busy_total", "counter", load(&self.refused_busy)),
            ("gnnxml_event_listeners", "gauge", load(&self.listeners)),
            ("gnnxml_connections", "gauge", load(&self.connections)),
            ("gnnxml_requests_in_flight", "gauge", load(&self.in_flight)),
            ("gnnxml_uptime_seconds", "gauge", self.uptime().as_secs_f64()),
        ];
        for (name, kind, value) in own.iter().chain(gauges) {
            let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}

/// Gives every request an id, counts it, writes one log line about it, and puts the safety headers on the answer.
///
/// The log line holds method, route pattern, status and time: never a query, a body or a header.
pub(super) async fn observe(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let counters = state.counters();
    let _in_flight = Gauge::new(&counters.in_flight);
    let id = format!(
        "{:x}-{:x}",
        std::process::id(),
        counters.next_request.fetch_add(1, Ordering::Relaxed)
    );
    let method = request.method().as_str().to_owned();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let span = tracing::info_span!("request", id);
    let mut response = next.run(request).instrument(span.clone()).await;
    let took = started.elapsed();
    let status = response.status().as_u16();
    // Methods are the client's word: only the known ones become a label.
    let known = ["GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS"];
    let label = if known.contains(&method.as_str()) {
        method.as_str()
    } else {
        "other"
    };
    counters.count(label, &route, status, took);
    span.in_scope(|| {
        tracing::info!(
            method = label,
            route,
            status,
            millis = took.as_secs_f64() * 1e3,
            "answered"
        );
    });
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    guard::secure(response.headers_mut(), state.page().policy());
    response
}
