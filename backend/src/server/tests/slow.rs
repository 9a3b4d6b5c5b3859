//! Clients that take their time, over real sockets.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::Served;

struct Listening {
    addr: std::net::SocketAddr,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<()>,
    _served: Served,
}

async fn listening() -> Listening {
    let served = Served::with(|config| config.limits.request_seconds = 1, "exit 1").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(super::super::serve(listener, served.state.clone(), stopped));
    Listening {
        addr,
        stop,
        serving,
        _served: served,
    }
}

async fn answer(addr: std::net::SocketAddr, sent: &str) -> (String, Duration) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let begun = Instant::now();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(8), stream.read_to_end(&mut said))
        .await
        .expect("cut off");
    (String::from_utf8_lossy(&said).into_owned(), begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_ends_its_head_or_body_is_cut_off() {
    let server = listening().await;
    let (_, took) = answer(server.addr, "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n").await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    let body = "POST /api/v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{\"te";
    let (said, took) = answer(server.addr, body).await;
    assert!(
        said.starts_with("HTTP/1.1 408") && said.contains("request_seconds"),
        "{said}"
    );
    assert!(took < Duration::from_secs(5), "{took:?}");
    let upload = "POST /api/v1/corpora HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{\"te";
    let (said, _) = answer(server.addr, upload).await;
    assert!(said.starts_with("HTTP/1.1 408"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overlong_head_is_refused_and_the_server_lives_on() {
    let server = listening().await;
    let long = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let _ = stream.write_all(long.as_bytes()).await;
    let mut said = vec![0; 64];
    let read = stream.read(&mut said).await.unwrap_or(0);
    assert!(read == 0 || said.starts_with(b"HTTP/1.1 431"));
    let (said, _) = answer(
        server.addr,
        "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(
        said.starts_with(&format!("HTTP/1.1 {}", StatusCode::OK.as_u16())),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_the_answer_under_way_out() {
    let server = listening().await;
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let head = "POST /api/v1/feedback HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.stop.send_replace(true);
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream.write_all(b"{\"accepted\":[\"a\"]}").await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    tokio::time::timeout(Duration::from_secs(5), server.serving)
        .await
        .expect("stops")
        .unwrap();
    assert!(TcpStream::connect(server.addr).await.is_err());
}
