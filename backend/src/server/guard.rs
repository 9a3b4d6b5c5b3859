//! Who may come in: own `Host`, own `Origin`, the key where one is needed, and nothing oversized.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use gnnxml_shared::api::ErrorCode;

use super::AppState;
use super::failure::{Answer, Failure};

/// The longest address a request may have.
const URI_BYTES: usize = 8 << 10;

/// Checks every request before any route sees it.
pub(super) async fn guard(State(state): State<AppState>, request: Request, next: Next) -> Response {
    match admit(&state, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn admit(state: &AppState, request: &Request) -> Answer<()> {
    sizes(state, request)?;
    let host = own_host(state, request)?;
    own_origin(request, &host)?;
    key(state, request)
}

fn sizes(state: &AppState, request: &Request) -> Answer<()> {
    let limit = state.limits().header_bytes;
    let bytes: usize = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    if bytes as u64 > limit {
        return Err(Failure::new(
            ErrorCode::HeadersTooLarge,
            format!("the header fields have {bytes} bytes, the limit `header_bytes` is {limit}"),
        ));
    }
    let uri = request
        .uri()
        .path_and_query()
        .map_or(0, |whole| whole.as_str().len());
    if uri > URI_BYTES {
        return Err(Failure::new(
            ErrorCode::UriTooLong,
            format!("the address has {uri} bytes, the limit is {URI_BYTES}"),
        ));
    }
    Ok(())
}

/// Exactly one `Host`, and it is ours: a name rebound to this machine gets nothing.
fn own_host(state: &AppState, request: &Request) -> Answer<String> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => "",
    };
    if state.config().is_own_host(host) {
        return Ok(host.to_owned());
    }
    Err(Failure::new(
        ErrorCode::ForbiddenHost,
        "the Host header does not name this server: call it by its address, or start it with --host NAME for that name",
    ))
}

/// A browser says where a request comes from; other sites may follow links here and no more.
fn own_origin(request: &Request, host: &str) -> Answer<()> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(());
    }
    let headers = request.headers();
    let cross_site = headers
        .get("sec-fetch-site")
        .is_some_and(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    let foreign_origin = headers
        .get_all(header::ORIGIN)
        .iter()
        .any(|origin| !is_origin_of(origin, host));
    if cross_site || foreign_origin {
        return Err(Failure::new(
            ErrorCode::ForbiddenOrigin,
            "this request comes from a page of another site, which may not change anything here",
        ));
    }
    Ok(())
}

fn is_origin_of(origin: &HeaderValue, host: &str) -> bool {
    origin
        .to_str()
        .ok()
        .and_then(|origin| {
            origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"))
        })
        .is_some_and(|origin| origin.eq_ignore_ascii_case(host))
}

/// With a key configured, every API route but health needs it. The page's own files hold no secret.
fn key(state: &AppState, request: &Request) -> Answer<()> {
    let Some(key) = &state.config().api_key else {
        return Ok(());
    };
    let path = request.uri().path();
    let open = path == "/api/v1/health"
        || path == "/api"
        || !(path.starts_with("/api/") || path.starts_with("/v1") || path == "/metrics");
    if open || offered_key(request.headers()).is_some_and(|offered| key.matches(offered)) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::Unauthorized,
        "this server needs its API key: send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`",
    ))
}

fn offered_key(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(key) = headers.get("x-api-key") {
        return Some(key.as_bytes());
    }
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(key)
}

/// The headers every answer carries. `policy` is the page's own content security policy.
pub(super) fn secure(headers: &mut HeaderMap, policy: &HeaderValue) {
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
}
