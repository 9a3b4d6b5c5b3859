//! `gnnxml keygraph`: one text in, its KeyGraph out.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use gnnxml_shared::keygraph::{EntityLexicon, KeyGraph, Options, drawing};
use gnnxml_shared::text::Language;

use super::{WrongInput, print};

/// A picture with more vertices is no picture.
const DRAWN: usize = 40;

const EXAMPLES: &str = "\
A KeyGraph has one vertex a keyword or named entity, and an edge between two for the sentences they share.
Sentences without any keyword belong to the one empty vertex.

Examples:
  Look at a text as a picture:
    gnnxml keygraph report.txt --format svg > report.svg
  Five strongest keywords, with jq:
    gnnxml keygraph report.txt | jq -r '.vertices[:5][].text'
  From a pipe, in German:
    curl -s https://example.org/artikel.txt | gnnxml keygraph - --language de
  With GraphViz:
    gnnxml keygraph report.txt --format dot | sfdp -Tpdf > report.pdf

The JSON: {\"sentences\":[{\"start\",\"end\"}…], \"vertices\":[{\"id\",\"text\",\"kind\":\"keyword|entity|empty\",\"rank\",
\"sentences\":[…],\"spans\":[[start,end]…]}…], \"edges\":[{\"source\",\"target\",\"weight\"}…]}; offsets are bytes.";

/// Arguments of `gnnxml keygraph`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Plain text in UTF-8; `-` or nothing reads standard input
    file: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
    /// Language of the text as a BCP-47 tag; `und` for a language without stop words and stemmer here
    #[arg(long, default_value = "en", value_name = "TAG")]
    language: Language,
    /// Keep only the strongest vertices [default: 40 for svg, otherwise 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_vertices: Option<u32>,
    /// Words this close to each other support each other
    #[arg(long, value_name = "WORDS", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=10))]
    window: u8,
    /// Entity lexicon of a trained model: a JSON list of names
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,
    /// Heading of the picture
    #[arg(long, default_value = "", hide_default_value = true)]
    title: String,
    /// Write here instead of standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The graph with all spans, for programs
    Json,
    /// GraphViz
    Dot,
    /// A picture
    Svg,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let lexicon = args
        .lexicon
        .as_deref()
        .map(read_lexicon)
        .transpose()?
        .unwrap_or_default();
    let text = read_text(args.file.as_deref())?;
    let standard = (args.format == Format::Svg).then_some(DRAWN);
    let options = Options {
        window: usize::from(args.window),
        max_vertices: args.max_vertices.map(|n| n as usize).or(standard),
        ..Options::default()
    };
    let graph = KeyGraph::build(&text, args.language, &lexicon, &options);
    let rendered = match args.format {
        Format::Json => {
            let mut json = serde_json::to_string(&graph)?;
            json.push('\n');
            json
        }
        Format::Dot => drawing::dot(&graph),
        Format::Svg => drawing::svg(&graph, &args.title),
    };
    write(args.out.as_deref(), &rendered)
}

fn read_text(file: Option<&Path>) -> anyhow::Result<String> {
    let (name, bytes) = match file.filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let name = path.display().to_string();
            let bytes = std::fs::read(path).map_err(|error| WrongInput(format!("{name}: {error}")))?;
            (name, bytes)
        }
        None => {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .context("standard input")?;
            ("standard input".to_owned(), bytes)
        }
    };
    Ok(decoded(&name, bytes)?)
}

/// The text, or where it stops being UTF-8.
fn decoded(name: &str, bytes: Vec<u8>) -> Result<String, WrongInput> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        let found: Vec<String> = bytes[at..]
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        WrongInput(format!(
            "{name}: not UTF-8 at byte {at} (line {line}): found {}, expected UTF-8 text. \
             If it is Latin-1: iconv -f latin1 -t utf-8 FILE",
            found.join(" ")
        ))
    })
}

fn read_lexicon(path: &Path) -> anyhow::Result<EntityLexicon> {
    let file = File::open(path).map_err(|error| WrongInput(format!("{}: {error}", path.display())))?;
    serde_json::from_reader(io::BufReader::new(file)).map_err(|error| {
        WrongInput(format!(
            "{}: expected a JSON list of names: {error}",
            path.display()
        ))
        .into()
    })
}

fn write(out: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match out {
        Some(path) => std::fs::write(path, text).with_context(|| path.display().to_string()),
        None => Ok(print(text)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_utf8_is_named_by_byte_and_line() {
        let error = decoded("notes.txt", b"good\nbad \xff\xfe".to_vec())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("notes.txt: not UTF-8 at byte 9 (line 2): found ff fe"),
            "{error}"
        );
        assert_eq!(decoded("notes.txt", "gut – ja".into()).unwrap(), "gut – ja");
    }
}
