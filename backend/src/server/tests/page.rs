use axum::body::Body;
use axum::http::StatusCode;

use super::{Served, request};

async fn with_page() -> (tempfile::TempDir, Served) {
    let dist = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| std::fs::write(dist.path().join(name), content).unwrap();
    write("index.html", "<!doctype html><title>page</title>");
    write("app-0123456789abcdef.wasm", "plain wasm");
    write("app-0123456789abcdef.wasm.br", "brotli wasm");
    write("app-0123456789abcdef.wasm.gz", "gzip wasm");
    write(".hidden", "hidden");
    let web = dist.path().to_owned();
    let served = Served::with(|config| config.web = Some(web), "exit 1").await;
    (dist, served)
}

#[tokio::test]
async fn the_page_is_served_precompressed_with_the_right_type_and_caching() {
    let (_dist, served) = with_page().await;
    let wasm = |codings: &'static str| {
        let asked = request("GET", "/app-0123456789abcdef.wasm").header("accept-encoding", codings);
        served.send(asked.body(Body::empty()).unwrap())
    };
    let brotli = wasm("gzip, deflate, br").await;
    assert_eq!(
        (brotli.header("content-encoding"), &brotli.body[..]),
        ("br", &b"brotli wasm"[..])
    );
    assert_eq!(brotli.header("content-type"), "application/wasm");
    assert!(brotli.header("cache-control").contains("immutable"));
    assert_eq!(&wasm("gzip").await.body[..], b"gzip wasm");
    assert_eq!(&wasm("identity").await.body[..], b"plain wasm");
    let index = served.get("/").await;
    assert_eq!(index.header("cache-control"), "no-cache");
    let again = request("GET", "/").header("if-none-match", index.header("etag"));
    let again = served.send(again.body(Body::empty()).unwrap()).await;
    assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
}

#[tokio::test]
async fn views_of_the_page_answer_its_index_and_missing_files_do_not() {
    let (_dist, served) = with_page().await;
    for view in ["/labels", "/train/3", "/labels/cluster/7"] {
        let reply = served.get(view).await;
        assert_eq!(reply.status, StatusCode::OK, "{view}");
        assert!(reply.header("content-type").starts_with("text/html"));
    }
    for missing in ["/missing.js", "/.hidden", "/app-0123456789abcdef.wasm.br"] {
        assert_eq!(
            served.get(missing).await.status,
            StatusCode::NOT_FOUND,
            "{missing}"
        );
    }
}
