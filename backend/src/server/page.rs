//! The page's own files: read once at start, answered from memory, precompressed, with the right caching.
//!
//! Only names found at start exist, so no path a caller can write leads anywhere else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use gnnxml_shared::bundle::sha256_hex;
use sha2::{Digest as _, Sha256};

/// One file with its compressed twins.
#[derive(Debug, Default)]
struct PageFile {
    plain: Option<Bytes>,
    gzip: Option<Bytes>,
    brotli: Option<Bytes>,
}

/// All files of the page.
#[derive(Debug)]
pub struct Page {
    /// By path from the root, without the leading slash.
    files: BTreeMap<String, PageFile>,
    policy: HeaderValue,
}

/// What is shown while no page has been built.
const NO_PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>GNN-XML</title>\
<p>The server runs, but the page is not built: run <code>cargo xtask web</code> and start the server with \
<code>--web dist</code>. The API is described <a href=\"/api\">here</a>.</p></html>";

/// More than any page of ours; a wrong `--web /` should not read the whole disk into memory.
const MOST_FILES: usize = 2000;
const MOST_BYTES: u64 = 256 << 20;

impl Page {
    /// Reads every file below `folder`. Links are not followed.
    pub fn read(folder: Option<&Path>) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        let mut bytes = 0;
        if let Some(folder) = folder {
            collect(folder, "", &mut files, &mut bytes)?;
        }
        files
            .entry("index.html".to_owned())
            .or_insert_with(PageFile::default)
            .plain
            .get_or_insert(Bytes::from_static(NO_PAGE.as_bytes()));
        let index = files["index.html"].plain.clone().unwrap_or_default();
        Ok(Self {
            files,
            policy: content_policy(&String::from_utf8_lossy(&index)),
        })
    }

    /// The content security policy of every answer.
    pub(super) fn policy(&self) -> &HeaderValue {
        &self.policy
    }

    /// The file at `path`; a path without an extension is a view of the page and answers `index.html`.
    pub(super) fn answer(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        let name = path.strip_prefix('/').unwrap_or(path);
        let last = name.rsplit('/').next().unwrap_or_default();
        let view = !last.contains('.') && !name.contains(['%', '\\', '\0']);
        let name = if view && !self.files.contains_key(name) {
            "index.html"
        } else {
            name
        };
        let file = self.files.get(name)?;
        let accepts = |coding: &str| accepts(headers, coding);
        let (body, coding) = match file {
            PageFile {
                brotli: Some(body), ..
            } if accepts("br") => (body, Some("br")),
            PageFile { gzip: Some(body), .. } if accepts("gzip") => (body, Some("gzip")),
            PageFile {
                plain: Some(body), ..
            } => (body, None),
            _ => return None,
        };
        let tag = etag(body);
        let caching = if is_content_named(name) {
            IMMUTABLE
        } else {
            "no-cache"
        };
        let mut response = Response::new(Body::empty());
        if headers
            .get(header::IF_NONE_MATCH)
            .is_some_and(|seen| names_tag(seen, &tag))
        {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            *response.body_mut() = Body::from(body.clone());
            if let Some(coding) = coding {
                response
                    .headers_mut()
                    .insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
        }
        let answered = response.headers_mut();
        answered.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
        answered.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        answered.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            answered.insert(header::ETAG, tag);
        }
        Some(response)
    }
}

/// For what never changes under its name.
pub(super) const IMMUTABLE: &str = "public, max-age=31536000, immutable";

fn collect(
    folder: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, PageFile>,
    bytes: &mut u64,
) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let Some(name) = entry.file_name().to_str().map(ToOwned::to_owned) else {
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files, bytes)?;
        } else if kind.is_file() {
            *bytes += entry.metadata()?.len();
            if files.len() >= MOST_FILES || *bytes > MOST_BYTES {
                return Err(io::Error::other(format!(
                    "{} is not the folder of a page: it holds more than {MOST_FILES} files or {MOST_BYTES} bytes",
                    folder.display()
                )));
            }
            let body = Some(Bytes::from(std::fs::read(entry.path())?));
            if let Some(plain) = path.strip_suffix(".br") {
                files.entry(plain.to_owned()).or_default().brotli = body;
            } else if let Some(plain) = path.strip_suffix(".gz") {
                files.entry(plain.to_owned()).or_default().gzip = body;
            } else {
                files.entry(path).or_default().plain = body;
            }
        }
    }
    Ok(())
}

/// The policy: our own scripts, compiled WebAssembly, nothing evaluated, nothing from elsewhere.
/// The inline scripts of `index` are allowed by their digest, no others.
fn content_policy(index: &str) -> HeaderValue {
    let mut scripts = String::new();
    let mut rest = index;
    while let Some(start) = rest.find("<script") {
        rest = &rest[start..];
        let (Some(open), Some(close)) = (rest.find('>'), rest.find("</script>")) else {
            break;
        };
        if open < close {
            if !rest[..open].contains("src=") {
                let digest = Sha256::digest(&rest.as_bytes()[open + 1..close]);
                let _ = write!(scripts, " 'sha256-{}'", base64(&digest));
            }
            rest = &rest[close..];
        } else {
            rest = &rest[open..];
        }
    }
    let policy = format!(
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{scripts}; style-src 'self' 'unsafe-inline'; \
         img-src 'self' data: blob:; worker-src 'self' blob:; connect-src 'self'; object-src 'none'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'self'"))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for place in 0..4 {
            if place <= three.len() {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

pub(super) fn etag(body: &[u8]) -> String {
    format!("\"{}\"", &sha256_hex(body)[..24])
}

/// Whether an `If-None-Match` names this tag.
pub(super) fn names_tag(seen: &HeaderValue, tag: &str) -> bool {
    seen.to_str().is_ok_and(|seen| {
        seen.split(',')
            .map(|one| one.trim().trim_start_matches("W/"))
            .any(|one| one == tag || one == "*")
    })
}

/// Whether the client takes `coding`, and not only with `q=0`.
pub(super) fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|one| {
            let mut parts = one.split(';').map(str::trim);
            parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding))
                && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
}

/// A name that carries a digest of its content: eight or more hexadecimal digits before an extension.
fn is_content_named(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    last.split(['.', '-', '_'])
        .any(|part| part.len() >= 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

pub(super) fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "wasm" => "application/wasm",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_usual_one() {
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
        assert_eq!(base64(b"fooba"), "Zm9vYmE=");
        assert_eq!(base64(b"foob"), "Zm9vYg==");
    }

    #[test]
    fn the_policy_lets_in_the_pages_own_inline_script_and_never_eval() {
        let policy =
            content_policy("<script type=module>import('/a.js')</script><script src=\"/b.js\"></script>");
        let policy = policy.to_str().unwrap();
        assert_eq!(policy.matches("'sha256-").count(), 1, "{policy}");
        assert!(policy.contains("'wasm-unsafe-eval'") && !policy.contains("'unsafe-eval'"));
    }

    #[test]
    fn only_names_with_a_digest_are_cached_for_ever() {
        assert!(is_content_named("gnnxml-1a2b3c4d5e6f7081.wasm"));
        assert!(!is_content_named("index.html") && !is_content_named("gnnxml.js"));
    }

    #[test]
    fn a_coding_refused_with_weight_zero_is_not_taken() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, br;q=0"));
        assert!(accepts(&headers, "gzip") && !accepts(&headers, "br"));
    }
}
