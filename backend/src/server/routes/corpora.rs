//! Corpora: uploaded as a stream, understood, kept as plain JSONL under a name of ours.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use gnnxml_shared::api::{Complaint, CorpusEntry, CorpusList, ErrorBody, ErrorCode};
use gnnxml_shared::text::Language;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::runs::readable_name;
use crate::data::{
    CorpusError, CorpusFormat, CorpusSource, CorpusWriter, WriteFormat, available_threads, corpus_stats,
};
use crate::runs::{
    CorpusRow, NewCorpus, Store, StoreError, create_private_dir, fail_point, remove_dir_durably,
    rename_durably, sync_tree,
};
use crate::server::AppState;
use crate::server::extract::{Coding, Params, Segments, coding, next_piece, number, require_media_type};
use crate::server::failure::{Answer, Failure};

/// The file a corpus is kept in, inside its folder.
const KEPT: &str = "corpus.jsonl";

/// Bad records beyond which an upload is not a corpus.
const MOST_BAD: usize = 100_000;

fn entry(row: CorpusRow) -> Answer<CorpusEntry> {
    Ok(CorpusEntry {
        id: row.id,
        name: row.corpus.name,
        format: row.corpus.format,
        bytes: row.corpus.bytes,
        sha256: row.corpus.sha256,
        created: row.created,
        stats: serde_json::from_str(&row.corpus.report).map_err(Failure::internal)?,
    })
}

fn corpus_id(segment: &str) -> Answer<u64> {
    number(segment, "corpus", ErrorCode::CorpusNotFound)
}

/// What comes with the body.
#[derive(Debug, Deserialize)]
pub(in crate::server) struct UploadQuery {
    /// The file's name: shown to people, and its ending helps to tell the format. Never a path.
    #[serde(default)]
    name: Option<String>,
}

/// Upload a corpus: the body is the file
///
/// JSONL, CSV, TSV, Annif TSV, the Extreme Classification Repository's format and PECOS' are told apart;
/// gzip and zstd are unpacked. What cannot be understood is left out and complained about, by line.
#[utoipa::path(post, path = "/api/v1/corpora", tag = "corpora", params(("name" = Option<String>, Query)),
    request_body(content = String, content_type = "application/octet-stream"), responses(
    (status = 201, body = CorpusEntry), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn upload(
    State(state): State<AppState>,
    Params(query): Params<UploadQuery>,
    request: Request,
) -> Answer<(StatusCode, Json<CorpusEntry>)> {
    require_media_type(request.headers(), "application/octet-stream")?;
    if coding(request.headers())? != Coding::Identity {
        return Err(Failure::new(
            ErrorCode::UnsupportedEncoding,
            "send the packed file itself as the body, without Content-Encoding: gzip and zstd are recognised",
        ));
    }
    let name = readable_name(query.name)?.unwrap_or_else(|| "corpus".to_owned());
    let incoming = state.data().incoming().map_err(|error| Failure::io(&error))?;
    let raw = incoming.path().join(format!("upload{}", known_ending(&name)));
    receive(&state, request, &raw).await?;
    let store = state.store().clone();
    let data = std::sync::Arc::clone(state.data());
    let limit = state.limits().upload_bytes;
    let stored = tokio::task::spawn_blocking(move || -> Answer<CorpusRow> {
        let folder = incoming.path().join("corpus");
        let new = understand(&name, &raw, &folder, limit)?;
        sync_tree(&folder).map_err(|error| Failure::io(&error))?;
        let stored = store.add_corpus(&new, |id| {
            // An id is given again when the upload before it was not committed; its folder may still be there.
            remove_dir_durably(&data.corpus(id))?;
            rename_durably(&folder, &data.corpus(id))?;
            fail_point("upload_renamed");
            Ok(())
        });
        Ok(stored?)
    })
    .await
    .map_err(Failure::internal)??;
    Ok((StatusCode::CREATED, Json(entry(stored)?)))
}

/// The endings by which formats are told apart; anything else of the name is dropped.
fn known_ending(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let (name, packed) = match name.rsplit_once('.') {
        Some((rest, "gz")) => (rest, ".gz"),
        Some((rest, "zst")) => (rest, ".zst"),
        _ => (name.as_str(), ""),
    };
    let format = match name.rsplit_once('.') {
        Some((_, "csv")) => ".csv",
        Some((_, "tsv")) => ".tsv",
        Some((_, "txt")) => ".txt",
        Some((_, "jsonl" | "ndjson" | "json")) => ".jsonl",
        _ => "",
    };
    format!("{format}{packed}")
}

fn too_large(limit: u64, what: &str) -> Failure {
    Failure::new(
        ErrorCode::UploadTooLarge,
        format!("{what} is larger than the limit `upload_bytes` of {limit} bytes"),
    )
}

/// Streams the body to the disk.
async fn receive(state: &AppState, request: Request, path: &Path) -> Answer<()> {
    use tokio::io::AsyncWriteExt as _;
    let limit = state.limits().upload_bytes;
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large(limit, "the upload"));
    }
    let mut file = tokio::fs::File::create(path)
        .await
        .map_err(|error| Failure::io(&error))?;
    let mut body = request.into_body();
    let mut received = 0;
    while let Some(piece) = next_piece(&mut body, state.patience()).await? {
        received += piece.len() as u64;
        if received > limit {
            return Err(too_large(limit, "the upload"));
        }
        file.write_all(&piece)
            .await
            .map_err(|error| Failure::io(&error))?;
        fail_point("upload_half_written");
    }
    file.flush().await.map_err(|error| Failure::io(&error))
}

/// Reads what was uploaded and writes the good documents as JSONL into `folder`.
fn understand(name: &str, raw: &Path, folder: &Path, limit: u64) -> Answer<NewCorpus> {
    create_private_dir(folder).map_err(|error| Failure::io(&error))?;
    let fault = |error: CorpusError| unreadable(name, error);
    let source = CorpusSource::detect(raw).map_err(fault)?.skip_bad(MOST_BAD);
    let kept = folder.join(KEPT);
    let mut reader = source.open().map_err(fault)?;
    let mut writer = CorpusWriter::create(&kept, WriteFormat::Jsonl).map_err(fault)?;
    let mut unpacked = 0_u64;
    for document in reader.by_ref() {
        let document = document.map_err(fault)?;
        unpacked += document.text.len() as u64;
        if unpacked > limit {
            return Err(too_large(limit, "what the upload unpacks to"));
        }
        writer.write(&document).map_err(fault)?;
    }
    let documents = writer.finish().map_err(fault)?;
    let complaints: Vec<Complaint> = reader
        .complaints()
        .iter()
        .cloned()
        .map(|one| named(name, one))
        .collect();
    if documents == 0 {
        let first = complaints
            .first()
            .map_or("the file is empty".to_owned(), ToString::to_string);
        return Err(Failure::new(
            ErrorCode::CorpusUnreadable,
            format!("not one document could be read: {first}"),
        ));
    }
    let (bytes, sha256) = digest(&kept).map_err(|error| Failure::io(&error))?;
    let mut again = CorpusSource::of_format(&kept, CorpusFormat::Jsonl)
        .open()
        .map_err(fault)?;
    let mut stats = corpus_stats(&mut again, Language::default(), available_threads()).map_err(fault)?;
    stats.skipped = reader.skipped() as u64;
    stats.complaints = complaints;
    Ok(NewCorpus {
        name: name.to_owned(),
        file: KEPT.to_owned(),
        format: source.format().to_string(),
        bytes,
        sha256,
        report: serde_json::to_string(&stats).map_err(Failure::internal)?,
    })
}

/// A complaint names the file as the caller does, not where we keep it.
fn named(name: &str, complaint: Complaint) -> Complaint {
    Complaint {
        file: name.to_owned(),
        ..complaint
    }
}

fn unreadable(name: &str, error: CorpusError) -> Failure {
    match error.complaint().cloned() {
        Some(complaint) => Failure::new(ErrorCode::CorpusUnreadable, named(name, complaint).to_string()),
        None => match error {
            CorpusError::Read { source, .. } | CorpusError::Write { source, .. } => Failure::io(&source),
            other => Failure::internal(other),
        },
    }
}

fn digest(path: &Path) -> std::io::Result<(u64, String)> {
    struct Hasher(Sha256);
    impl std::io::Write for Hasher {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut hasher = Hasher(Sha256::new());
    let bytes = std::io::copy(&mut std::fs::File::open(path)?, &mut hasher)?;
    hasher.flush()?;
    let mut hexadecimal = String::new();
    for byte in hasher.0.finalize() {
        let _ = std::fmt::Write::write_fmt(&mut hexadecimal, format_args!("{byte:02x}"));
    }
    Ok((bytes, hexadecimal))
}

/// All corpora, newest first
#[utoipa::path(get, path = "/api/v1/corpora", tag = "corpora", responses(
    (status = 200, body = CorpusList), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn list(State(state): State<AppState>) -> Answer<Json<CorpusList>> {
    let rows = state.store().call(Store::corpora).await?;
    let corpora = rows.into_iter().map(entry).collect::<Answer<_>>()?;
    Ok(Json(CorpusList { corpora }))
}

/// One corpus with its statistics and complaints
#[utoipa::path(get, path = "/api/v1/corpora/{id}", tag = "corpora", params(("id" = u64, Path)), responses(
    (status = 200, body = CorpusEntry), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn one(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<Json<CorpusEntry>> {
    let id = corpus_id(&id)?;
    let row = state.store().call(move |store| store.corpus(id)).await;
    let row = row.map_err(|error| Failure::store(error, ErrorCode::CorpusNotFound, ErrorCode::Internal))?;
    Ok(Json(entry(row)?))
}

/// Forget a corpus that no run uses
#[utoipa::path(delete, path = "/api/v1/corpora/{id}", tag = "corpora", params(("id" = u64, Path)), responses(
    (status = 204), (status = "default", body = ErrorBody)))]
pub(in crate::server) async fn delete(
    State(state): State<AppState>,
    Segments(id): Segments<String>,
) -> Answer<StatusCode> {
    let id = corpus_id(&id)?;
    let folder: PathBuf = state.data().corpus(id);
    state
        .store()
        .call(move |store| {
            store.delete_corpus(id)?;
            if let Err(error) = remove_dir_durably(&folder) {
                tracing::warn!(corpus = id, %error, "the corpus' folder could not be removed");
            }
            Ok(())
        })
        .await
        .map_err(|error| match error {
            StoreError::InUse => Failure::new(
                ErrorCode::CorpusInUse,
                format!("a run uses corpus {id}: delete that run first"),
            ),
            other => Failure::store(other, ErrorCode::CorpusNotFound, ErrorCode::Internal),
        })?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::known_ending;

    #[test]
    fn only_the_ending_of_a_name_is_kept_and_only_if_it_is_known() {
        assert_eq!(known_ending("Laws.CSV.gz"), ".csv.gz");
        assert_eq!(known_ending("../../etc/passwd"), "");
        assert_eq!(known_ending("x.jsonl/../y.sh"), "");
        assert_eq!(known_ending("a.ndjson"), ".jsonl");
    }
}
