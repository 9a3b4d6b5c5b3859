use std::io::Write as _;

use axum::body::Body;
use axum::http::StatusCode;
use gnnxml_shared::api::{ErrorCode, Health, HealthStatus};
use serde_json::json;

use super::super::ApiKey;
use super::{Served, request};

#[tokio::test]
async fn a_name_that_was_rebound_to_this_machine_gets_nothing() {
    let served = Served::new().await;
    for host in [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "10.9.8.7",
    ] {
        let asked = axum::http::Request::get("/api/v1/health").header("host", host);
        let reply = served.send(asked.body(Body::empty()).unwrap()).await;
        assert_eq!(reply.code(), ErrorCode::ForbiddenHost, "{host}");
    }
    let without = axum::http::Request::get("/api/v1/health")
        .body(Body::empty())
        .unwrap();
    assert_eq!(served.send(without).await.code(), ErrorCode::ForbiddenHost);
    let twice = request("GET", "/api/v1/health").header("host", "localhost");
    assert_eq!(
        served.send(twice.body(Body::empty()).unwrap()).await.code(),
        ErrorCode::ForbiddenHost
    );
    let health: Health = served.get("/api/v1/health").await.json();
    assert_eq!(health.status, HealthStatus::Ok);
}

#[tokio::test]
async fn pages_of_other_sites_change_nothing() {
    let served = Served::new().await;
    let body = json!({"accepted": ["a"]}).to_string();
    let send = |name: &'static str, value: &'static str| {
        let asked = request("POST", "/api/v1/feedback").header("content-type", "application/json");
        served.send(asked.header(name, value).body(Body::from(body.clone())).unwrap())
    };
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:9999",
        "https://127.0.0.1.evil",
    ] {
        assert_eq!(
            send("origin", origin).await.code(),
            ErrorCode::ForbiddenOrigin,
            "{origin}"
        );
    }
    assert_eq!(
        send("sec-fetch-site", "cross-site").await.code(),
        ErrorCode::ForbiddenOrigin
    );
    assert_eq!(
        send("sec-fetch-site", "same-site").await.code(),
        ErrorCode::ForbiddenOrigin
    );
    assert_eq!(
        send("origin", "http://127.0.0.1:8080").await.status,
        StatusCode::CREATED
    );
    assert_eq!(
        send("sec-fetch-site", "same-origin").await.status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn no_answer_ever_allows_another_origin_and_all_carry_the_safety_headers() {
    let served = Served::new().await;
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/api"),
        ("GET", "/api/v1/health"),
        ("GET", "/api/v1/nothing"),
        ("OPTIONS", "/api/v1/tag"),
        ("POST", "/api/v1/tag"),
    ] {
        let asked = request(method, path).header("access-control-request-method", "POST");
        let reply = served.send(asked.body(Body::empty()).unwrap()).await;
        assert!(
            !reply
                .headers
                .keys()
                .any(|name| name.as_str().starts_with("access-control-")),
            "{method} {path}"
        );
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(reply.header("cross-origin-embedder-policy"), "require-corp");
        let policy = reply.header("content-security-policy");
        assert!(
            policy.contains("'wasm-unsafe-eval'") && !policy.contains("'unsafe-eval'"),
            "{policy}"
        );
        assert!(!reply.header("x-request-id").is_empty());
    }
}

#[tokio::test]
async fn json_routes_take_only_json() {
    let served = Served::new().await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
    ] {
        let asked = request("POST", "/api/v1/tag").header("content-type", kind);
        let reply = served
            .send(asked.body(Body::from("{\"text\":\"a\"}")).unwrap())
            .await;
        assert_eq!(reply.code(), ErrorCode::UnsupportedMediaType, "{kind}");
    }
    let bare = request("POST", "/api/v1/tag")
        .body(Body::from("{\"text\":\"a\"}"))
        .unwrap();
    assert_eq!(served.send(bare).await.code(), ErrorCode::UnsupportedMediaType);
    let broken = served
        .send(
            request("POST", "/api/v1/tag")
                .header("content-type", "application/json; charset=utf-8")
                .body(Body::from("{\"text\": "))
                .unwrap(),
        )
        .await;
    assert_eq!(broken.code(), ErrorCode::InvalidJson);
    assert!(broken.message().contains("line 1"), "{}", broken.message());
}

#[tokio::test]
async fn every_limit_is_named_in_its_error() {
    let served = Served::with(
        |config| {
            config.limits.body_bytes = 2000;
            config.limits.text_bytes = 100;
            config.limits.batch_documents = 3;
            config.limits.top = 5;
            config.limits.header_bytes = 500;
        },
        "exit 1",
    )
    .await;
    let checks = [
        (
            json!({"text": "a".repeat(3000)}),
            ErrorCode::BodyTooLarge,
            "body_bytes",
        ),
        (
            json!({"text": "a".repeat(101)}),
            ErrorCode::TextTooLong,
            "text_bytes",
        ),
        (
            json!({"texts": ["a", "b", "c", "d"]}),
            ErrorCode::BatchTooLarge,
            "batch_documents",
        ),
        (json!({"text": "a", "top": 6}), ErrorCode::TopOutOfRange, "top"),
        (json!({"text": "a", "top": 0}), ErrorCode::TopOutOfRange, "top"),
    ];
    for (body, code, limit) in checks {
        let reply = served.post("/api/v1/tag", &body).await;
        assert_eq!(reply.code(), code);
        assert!(reply.message().contains(limit), "{}", reply.message());
    }
    let heavy = request("GET", "/api/v1/health").header("x-filler", "x".repeat(600));
    let reply = served.send(heavy.body(Body::empty()).unwrap()).await;
    assert_eq!(reply.code(), ErrorCode::HeadersTooLarge);
    assert!(reply.message().contains("header_bytes"));
    let long = served
        .get(&format!("/api/v1/labels?query={}", "q".repeat(9000)))
        .await;
    assert_eq!(long.code(), ErrorCode::UriTooLong);
    // A body without an announced length is counted as it comes.
    let chunks = futures::stream::iter((0..10).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1000])));
    let asked = request("POST", "/api/v1/tag").header("content-type", "application/json");
    let reply = served.send(asked.body(Body::from_stream(chunks)).unwrap()).await;
    assert_eq!(reply.code(), ErrorCode::BodyTooLarge);
}

#[tokio::test]
async fn a_small_compressed_body_cannot_grow_past_the_limit() {
    let served = Served::with(|config| config.limits.body_bytes = 100_000, "exit 1").await;
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let send = |coding: &'static str, body: Vec<u8>| {
        let asked = request("POST", "/api/v1/feedback").header("content-type", "application/json");
        served.send(
            asked
                .header("content-encoding", coding)
                .body(Body::from(body))
                .unwrap(),
        )
    };
    let bomb = gzip(&vec![b' '; 50_000_000]);
    assert!(bomb.len() < 100_000);
    assert_eq!(send("gzip", bomb).await.code(), ErrorCode::BodyTooLarge);
    let good = gzip(json!({"accepted": ["a"]}).to_string().as_bytes());
    assert_eq!(send("gzip", good).await.status, StatusCode::CREATED);
    assert_eq!(
        send("gzip", b"not gzip".to_vec()).await.code(),
        ErrorCode::InvalidJson
    );
    assert_eq!(
        send("br", Vec::new()).await.code(),
        ErrorCode::UnsupportedEncoding
    );
}

#[tokio::test]
async fn path_tricks_get_nowhere() {
    let served = Served::new().await;
    let secret = served.folder.path().join("secret.txt");
    std::fs::write(&secret, "secret").unwrap();
    let bundle = served.state.data().bundle("0123456789abcdef");
    std::fs::create_dir_all(&bundle).unwrap();
    std::fs::write(bundle.join("manifest.json"), "{}").unwrap();
    std::os::unix::fs::symlink(&secret, bundle.join("link.json")).unwrap();
    let found = served
        .get("/api/v1/models/0123456789abcdef/bundle/manifest.json")
        .await;
    assert_eq!(found.status, StatusCode::OK);
    assert!(found.header("cache-control").contains("immutable"));
    let tricks = [
        "../secret.txt",
        "..%2fsecret.txt",
        "%2e%2e%2fsecret.txt",
        "%252e%252e%252fsecret.txt",
        "..%5csecret.txt",
        "..\\secret.txt",
        "%2fetc%2fpasswd",
        "link.json",
        "manifest.json%00",
        "nul",
        "CON",
        ".",
        "..",
        "%2e%2e",
        "%ff",
    ];
    for trick in tricks {
        for path in [
            format!("/api/v1/models/0123456789abcdef/bundle/{trick}"),
            format!("/api/v1/models/{trick}/bundle/manifest.json"),
            format!("/api/v1/runs/{trick}"),
            format!("/api/v1/corpora/{trick}"),
            format!("/{trick}"),
            format!("/assets/{trick}"),
        ] {
            let Ok(asked) = request("GET", &path).body(Body::empty()) else {
                continue; // not even a request
            };
            let reply = served.send(asked).await;
            assert!(
                !String::from_utf8_lossy(&reply.body).contains("secret\n"),
                "{path}"
            );
            assert!(reply.body != "secret", "{path}");
            let view = reply.header("content-type").starts_with("text/html");
            assert!(view || reply.status.is_client_error(), "{path}: {}", reply.status);
        }
    }
}

#[tokio::test]
async fn with_a_key_everything_but_health_and_the_page_needs_it() {
    let key = "a long and secret key";
    let served = Served::with(
        |config| config.api_key = Some(ApiKey::new(key).unwrap()),
        "exit 1",
    )
    .await;
    for open in ["/", "/api", "/api/v1/health"] {
        assert_eq!(served.get(open).await.status, StatusCode::OK, "{open}");
    }
    for path in [
        "/api/v1/runs",
        "/api/v1/models",
        "/api/v1/metrics",
        "/metrics",
        "/v1/projects",
        "/v1",
        "/api/v1/none",
    ] {
        let reply = served.get(path).await;
        assert_eq!(reply.code(), ErrorCode::Unauthorized, "{path}");
        assert!(!reply.message().contains(key));
    }
    let with = |name: &'static str, value: String| {
        served.send(
            request("GET", "/api/v1/runs")
                .header(name, value)
                .body(Body::empty())
                .unwrap(),
        )
    };
    assert_eq!(
        with("authorization", format!("Bearer {key}")).await.status,
        StatusCode::OK
    );
    assert_eq!(with("x-api-key", key.to_owned()).await.status, StatusCode::OK);
    assert_eq!(
        with("x-api-key", format!("{key}x")).await.code(),
        ErrorCode::Unauthorized
    );
    assert_eq!(
        with("authorization", "Bearer".to_owned()).await.code(),
        ErrorCode::Unauthorized
    );
}

#[tokio::test]
async fn nothing_a_caller_sends_is_fetched_or_opened_as_a_path() {
    let served = Served::new().await;
    let url = served
        .post("/api/v1/tag", &json!({"url": "http://127.0.0.1:1/"}))
        .await;
    assert_eq!(
        url.code(),
        ErrorCode::InvalidJson,
        "there is no field for an address"
    );
    assert_eq!(
        served
            .upload("c.jsonl", "{\"text\":\"a\",\"labels\":[\"x\"]}\n")
            .await
            .status,
        StatusCode::CREATED
    );
    for config in [
        "encoder = \"/etc\"",
        "encoder = \"http://evil.example/model\"",
        "[encoder]\nname = \"..\\\\x\"",
        "[a.b]\nc = [\"/etc/passwd\"]",
        "not toml",
    ] {
        let reply = served
            .post("/api/v1/runs", &json!({"corpus": 1, "config": config}))
            .await;
        assert_eq!(reply.code(), ErrorCode::InvalidSettings, "{config}");
    }
    let path = served
        .post("/api/v1/runs", &json!({"corpus": "/etc/passwd"}))
        .await;
    assert_eq!(path.code(), ErrorCode::InvalidJson);
}

#[tokio::test]
async fn unknown_addresses_and_methods_are_answered_in_our_own_words() {
    let served = Served::new().await;
    assert_eq!(
        served.get("/api/v1/nothing").await.code(),
        ErrorCode::RouteNotFound
    );
    assert_eq!(served.get("/v1/nothing").await.code(), ErrorCode::RouteNotFound);
    assert_eq!(
        served.delete("/api/v1/health").await.code(),
        ErrorCode::MethodNotAllowed
    );
    assert_eq!(
        served.get("/api/v1/runs/zero").await.code(),
        ErrorCode::RunNotFound
    );
    assert_eq!(
        served.get("/api/v1/runs/99999999999999999999").await.code(),
        ErrorCode::RunNotFound
    );
    assert_eq!(
        served.get("/api/v1/models/rollback").await.code(),
        ErrorCode::MethodNotAllowed
    );
    assert_eq!(
        served.get("/api/v1/clusters").await.code(),
        ErrorCode::NoActiveModel
    );
    let no_model = served.post("/api/v1/tag", &json!({"text": "a"})).await;
    assert_eq!(no_model.code(), ErrorCode::NoActiveModel);
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_hold_nothing_a_caller_wrote() {
    let served = Served::new().await;
    served.get("/api/v1/runs/12345").await;
    served.get("/secret-page").await;
    let text = String::from_utf8(served.get("/api/v1/metrics").await.body.to_vec()).unwrap();
    assert!(
        text.contains("gnnxml_requests_total{method=\"GET\",route=\"/api/v1/runs/{id}\",status=\"404\"} 1"),
        "{text}"
    );
    assert!(!text.contains("12345") && !text.contains("secret-page"));
}
