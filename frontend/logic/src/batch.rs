//! Tagging a whole file: reading JSONL, CSV, TSV or plain text, and writing what came out.

use gnnxml_shared::api::TagResponse;
use serde::{Deserialize, Serialize};

/// One document of a dropped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchDocument {
    pub id: String,
    pub text: String,
}

/// What the reader understood, and what it did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchFile {
    pub documents: Vec<BatchDocument>,
    /// Line numbers (from 1) with what was found there and what was expected.
    pub complaints: Vec<(usize, String)>,
}

/// The forms a file can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Jsonl,
    Csv,
    Tsv,
    /// One document a line.
    Text,
}

impl Form {
    /// By the file's name; a `.txt` that starts like JSON is still text.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
        if ends(&[".jsonl", ".ndjson"]) {
            Some(Self::Jsonl)
        } else if ends(&[".csv"]) {
            Some(Self::Csv)
        } else if ends(&[".tsv"]) {
            Some(Self::Tsv)
        } else if ends(&[".txt", ".text", ".md"]) {
            Some(Self::Text)
        } else {
            None
        }
    }
}

/// The largest file tagged in one go.
pub const LARGEST_FILE: u64 = 64_000_000;
/// The longest text that is tagged as one.
pub const LONGEST_TEXT: usize = 1 << 20;

/// Why bytes cannot be read as text, said so that a person can act; `None` when they can.
pub fn refusal(name: &str, bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return Some(format!("“{name}” is empty."));
    }
    let head = &bytes[..bytes.len().min(4096)];
    if head.contains(&0) {
        return Some(format!(
            "“{name}” is a binary file. Expected text: JSONL, CSV, TSV or TXT in UTF-8."
        ));
    }
    match std::str::from_utf8(bytes) {
        Ok(_) => None,
        Err(error) => Some(format!(
            "“{name}” is not UTF-8 (byte {} is not part of a character). Save it as UTF-8 and drop it again.",
            error.valid_up_to()
        )),
    }
}

#[derive(Deserialize)]
struct JsonDocument {
    #[serde(default)]
    id: Option<serde_json::Value>,
    text: String,
}

/// Reads the documents of a file.
pub fn read(form: Form, content: &str) -> BatchFile {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    match form {
        Form::Jsonl => read_jsonl(content),
        Form::Text => read_lines(content),
        Form::Csv => read_delimited(content, ','),
        Form::Tsv => read_delimited(content, '\t'),
    }
}

fn read_jsonl(content: &str) -> BatchFile {
    let mut file = BatchFile::default();
    for (index, line) in content.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<JsonDocument>(line) {
            Ok(document) => {
                let id = match document.id {
                    Some(serde_json::Value::String(id)) => id,
                    Some(serde_json::Value::Null) | None => (index + 1).to_string(),
                    Some(other) => other.to_string(),
                };
                file.take(index + 1, id, document.text);
            }
            Err(error) => file.complaints.push((
                index + 1,
                format!("not a document: {error}; expected {{\"id\": …, \"text\": …}} on one line"),
            )),
        }
    }
    file
}

fn read_lines(content: &str) -> BatchFile {
    let mut file = BatchFile::default();
    for (index, line) in content.lines().enumerate() {
        if !line.trim().is_empty() {
            file.take(index + 1, (index + 1).to_string(), line.to_owned());
        }
    }
    file
}

/// With a header that names a `text` column (and perhaps `id`), those are used; else the last column is the text.
fn read_delimited(content: &str, delimiter: char) -> BatchFile {
    let mut file = BatchFile::default();
    let rows = match rows(content, delimiter) {
        Ok(rows) => rows,
        Err(complaint) => {
            file.complaints.push(complaint);
            return file;
        }
    };
    let mut rows = rows.into_iter().peekable();
    let is = |name: &'static str| move |cell: &String| cell.trim().eq_ignore_ascii_case(name);
    let (mut text_column, mut id_column) = (None, None);
    if let Some((_, header)) = rows.peek()
        && let Some(column) = header.iter().position(is("text"))
    {
        text_column = Some(column);
        id_column = header.iter().position(is("id"));
        rows.next();
    }
    for (line, row) in rows {
        let column = text_column.unwrap_or(row.len() - 1);
        match row.get(column) {
            Some(text) => {
                let id = id_column
                    .and_then(|column| row.get(column))
                    .filter(|id| !id.is_empty());
                file.take(
                    line,
                    id.cloned().unwrap_or_else(|| line.to_string()),
                    text.clone(),
                );
            }
            None => file.complaints.push((
                line,
                format!(
                    "{} columns; expected at least {} (the text)",
                    row.len(),
                    column + 1
                ),
            )),
        }
    }
    file
}

impl BatchFile {
    fn take(&mut self, line: usize, id: String, text: String) {
        if text.trim().is_empty() {
            self.complaints.push((line, "the text is empty".to_owned()));
        } else if text.len() > LONGEST_TEXT {
            self.complaints.push((
                line,
                format!(
                    "the text has {} bytes; at most {LONGEST_TEXT} are tagged as one",
                    text.len()
                ),
            ));
        } else {
            self.documents.push(BatchDocument { id, text });
        }
    }
}

type Row = (usize, Vec<String>);

/// Rows of cells, each with the line it starts on. Quoted cells may hold delimiters, line breaks and doubled quotes.
fn rows(content: &str, delimiter: char) -> Result<Vec<Row>, (usize, String)> {
    let mut rows: Vec<Row> = Vec::new();
    let mut row: Vec<String> = Vec::new();
    let mut cell = String::new();
    let (mut line, mut row_line) = (1, 1);
    let mut quoted_since = None;
    let mut characters = content.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\n' {
            line += 1;
        }
        match (quoted_since, character) {
            (Some(_), '"') if characters.next_if_eq(&'"').is_some() => cell.push('"'),
            (Some(_), '"') => quoted_since = None,
            (Some(_), other) => cell.push(other),
            (None, '"') if cell.is_empty() => quoted_since = Some(line),
            (None, '\r') if characters.peek() == Some(&'\n') => {}
            (None, '\n') => {
                row.push(std::mem::take(&mut cell));
                if row.iter().any(|cell| !cell.is_empty()) {
                    rows.push((row_line, std::mem::take(&mut row)));
                }
                row.clear();
                row_line = line;
            }
            (None, other) if other == delimiter => row.push(std::mem::take(&mut cell)),
            (None, other) => cell.push(other),
        }
    }
    if let Some(since) = quoted_since {
        return Err((
            since,
            "a quoted cell is opened here and never closed; expected a closing \"".to_owned(),
        ));
    }
    row.push(cell);
    if row.iter().any(|cell| !cell.is_empty()) {
        rows.push((row_line, row));
    }
    Ok(rows)
}

/// One cell, quoted when it must be. A cell that a spreadsheet would run as a formula is disarmed.
pub fn csv_cell(text: &str) -> String {
    let risky = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let shown = if risky {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if shown.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", shown.replace('"', "\"\""))
    } else {
        shown
    }
}

/// Tags at or above `threshold` as `id,label,probability` lines.
pub fn to_csv(results: &[(String, TagResponse)], threshold: f32) -> String {
    let heading = "id,label,probability\n".to_owned();
    let lines = results.iter().flat_map(|(id, response)| {
        let kept = response.tags.iter().filter(move |tag| tag.score >= threshold);
        kept.map(move |tag| format!("{},{},{:.4}\n", csv_cell(id), csv_cell(&tag.name), tag.score))
    });
    std::iter::once(heading).chain(lines).collect()
}

#[derive(Serialize)]
struct TaggedDocument<'a> {
    id: &'a str,
    labels: Vec<TaggedLabel<'a>>,
}

#[derive(Serialize)]
struct TaggedLabel<'a> {
    name: &'a str,
    score: f32,
}

/// Tags at or above `threshold`, one document a line, as `gnnxml predict` writes them.
pub fn to_jsonl(results: &[(String, TagResponse)], threshold: f32) -> String {
    let mut lines = String::new();
    for (id, response) in results {
        let labels = response
            .tags
            .iter()
            .filter(|tag| tag.score >= threshold)
            .map(|tag| TaggedLabel {
                name: &tag.name,
                score: tag.score,
            })
            .collect();
        // Strings and finite numbers always serialise.
        lines.push_str(&serde_json::to_string(&TaggedDocument { id, labels }).unwrap_or_default());
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use gnnxml_shared::api::Tag;
    use proptest::prelude::*;

    use super::*;

    fn texts(file: &BatchFile) -> Vec<&str> {
        file.documents
            .iter()
            .map(|document| document.text.as_str())
            .collect()
    }

    #[test]
    fn jsonl_gives_documents_and_located_complaints() {
        let file = read(
            Form::Jsonl,
            "{\"id\":\"a\",\"text\":\"one\"}\n\nnot json\n{\"id\":7,\"text\":\"two\"}\n{\"text\":\" \"}",
        );
        assert_eq!(texts(&file), ["one", "two"]);
        assert_eq!(file.documents[1].id, "7");
        assert_eq!(
            file.complaints.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
            [3, 5]
        );
    }

    #[test]
    fn csv_uses_the_named_columns_and_keeps_line_breaks_in_quotes() {
        let file = read(
            Form::Csv,
            "id,title,text\r\nx,T,\"first, line\nsecond \"\"line\"\"\"\r\ny,T,plain\r\n",
        );
        assert_eq!(texts(&file), ["first, line\nsecond \"line\"", "plain"]);
        assert_eq!(file.documents[0].id, "x");
    }

    #[test]
    fn a_table_without_a_header_takes_its_last_column() {
        assert_eq!(
            texts(&read(Form::Tsv, "1\talpha beta\n2\tgamma\n")),
            ["alpha beta", "gamma"]
        );
    }

    #[test]
    fn an_unclosed_quote_is_located() {
        let file = read(Form::Csv, "text\nfine\n\"never closed\n");
        assert_eq!(file.complaints[0].0, 3);
        assert!(file.documents.is_empty());
    }

    #[test]
    fn binary_and_wrongly_encoded_files_are_refused_with_a_reason() {
        assert!(refusal("a.bin", b"PK\0\x03").unwrap().contains("binary"));
        assert!(refusal("a.txt", b"caf\xe9 au lait").unwrap().contains("byte 3"));
        assert!(refusal("a.txt", b"").unwrap().contains("empty"));
        assert_eq!(refusal("a.txt", "café".as_bytes()), None);
    }

    #[test]
    fn a_formula_is_disarmed_and_quotes_are_doubled() {
        assert_eq!(csv_cell("=1+1"), "'=1+1");
        assert_eq!(csv_cell("a \"b\", c"), "\"a \"\"b\"\", c\"");
    }

    #[test]
    fn only_tags_above_the_threshold_are_written() {
        let tag = |name: &str, score| Tag {
            label: 0,
            name: name.to_owned(),
            score,
            cluster: 0,
            evidence: None,
        };
        let response = TagResponse {
            tags: vec![tag("crude", 0.9), tag("gas", 0.2)],
            clusters: Vec::new(),
            cutoff: 0.5,
            missing_clusters: Vec::new(),
            keygraph: None,
        };
        let results = [("d1".to_owned(), response)];
        assert_eq!(to_csv(&results, 0.5), "id,label,probability\nd1,crude,0.9000\n");
        assert_eq!(
            to_jsonl(&results, 0.5),
            "{\"id\":\"d1\",\"labels\":[{\"name\":\"crude\",\"score\":0.9}]}\n"
        );
    }

    proptest! {
        #[test]
        fn any_cell_survives_writing_and_reading(cell in "[a-z\",\n ]{1,30}") {
            prop_assume!(!cell.trim().is_empty());
            let written = format!("text\n{}\n", csv_cell(&cell));
            let file = read(Form::Csv, &written);
            prop_assert_eq!(texts(&file), [cell.as_str()]);
        }

        #[test]
        fn no_content_makes_the_reader_panic(content in ".{0,200}") {
            for form in [Form::Jsonl, Form::Csv, Form::Tsv, Form::Text] {
                let _ = read(form, &content);
            }
        }
    }
}
