//! The native form: one JSON object a line, `{"id": "…", "text": "…", "labels": ["…", …]}`.
//!
//! `text` is needed. A missing `id` becomes `line:N`, a missing `labels` an unlabelled document; other fields are
//! ignored. An integer is taken as an id; a label must be a name, never a number, because a number says nothing to a
//! person and shifts when a vocabulary changes.

use serde::Deserialize;
use serde_json::Value;

use super::document::{Document, without_repeats};
use super::error::{CorpusError, quote};
use super::lines::Lines;
use super::reader::{Record, Records};

pub(super) struct Jsonl {
    lines: Lines,
}

impl Jsonl {
    pub(super) fn new(lines: Lines) -> Self {
        Self { lines }
    }
}

#[derive(Deserialize)]
struct Parsed {
    #[serde(default)]
    id: Option<Id>,
    text: String,
    #[serde(default)]
    labels: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Name(String),
    Number(i64),
}

impl Records for Jsonl {
    fn next_record(&mut self) -> Option<Result<Record, CorpusError>> {
        loop {
            let parsed = match self.lines.next_line()? {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => parse(line),
                Err(error) => return Some(Err(error)),
            };
            let line = self.lines.number();
            return Some(match parsed {
                Ok(Parsed { id, text, labels }) => {
                    let id = match id {
                        Some(Id::Name(name)) => name,
                        Some(Id::Number(number)) => number.to_string(),
                        None => format!("line:{line}"),
                    };
                    Ok(Record {
                        line,
                        document: Document {
                            id,
                            text,
                            labels: without_repeats(labels),
                        },
                    })
                }
                Err((found, expected)) => Err(CorpusError::record(self.lines.file(), line, found, expected)),
            });
        }
    }
}

/// One object, or what was found and what was expected instead.
fn parse(line: &str) -> Result<Parsed, (String, String)> {
    // A list would do for the derived reader; it is no document.
    if !line.trim_start().starts_with('{') {
        return Err(diagnose(line, "no object"));
    }
    match serde_json::from_str::<Parsed>(line) {
        Ok(parsed) if parsed.labels.iter().all(|label| !label.trim().is_empty()) => Ok(parsed),
        Ok(parsed) => {
            let position = parsed
                .labels
                .iter()
                .position(|label| label.trim().is_empty())
                .unwrap_or(0);
            Err((
                format!("an empty label at position {}", position + 1),
                "a label name".into(),
            ))
        }
        Err(error) => {
            // The line in the message is always the first: the complaint knows the right one.
            let message = error.to_string();
            Err(diagnose(
                line,
                message.split(" at line ").next().unwrap_or(&message),
            ))
        }
    }
}

/// Reads the line again without a shape in mind, to say what exactly is wrong with it.
fn diagnose(line: &str, message: &str) -> (String, String) {
    const OBJECT: &str = r#"an object {"id": …, "text": …, "labels": […]}"#;
    let value = match serde_json::from_str::<Value>(line) {
        Ok(value) => value,
        Err(syntax) if syntax.is_eof() => {
            return (
                format!("a line that ends inside its JSON, {}", quote(line)),
                format!("the rest of {OBJECT}"),
            );
        }
        Err(syntax) => {
            return (
                format!("no JSON at column {}, {}", syntax.column(), quote(line)),
                OBJECT.into(),
            );
        }
    };
    let Value::Object(fields) = &value else {
        return (kind(&value), OBJECT.into());
    };
    match fields.get("text") {
        None => {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            return (
                format!("no field \"text\" among {}", quote(&names.join(", "))),
                "a text".into(),
            );
        }
        Some(Value::String(_)) => {}
        Some(other) => return (format!("{} as \"text\"", kind(other)), "a string".into()),
    }
    match fields.get("id") {
        None | Some(Value::String(_)) => {}
        Some(Value::Number(number)) if number.is_i64() => {}
        Some(other) => return (format!("{} as \"id\"", kind(other)), "a string".into()),
    }
    match fields.get("labels") {
        None => {}
        Some(Value::Array(labels)) => {
            for (position, label) in labels.iter().enumerate() {
                if !label.is_string() {
                    return (
                        format!("{} as label {}", kind(label), position + 1),
                        "a label name, a string".into(),
                    );
                }
            }
        }
        Some(other) => {
            return (
                format!("{} as \"labels\"", kind(other)),
                "a list of label names".into(),
            );
        }
    }
    (message.to_owned(), OBJECT.into())
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => format!("the truth value {truth}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", quote(text)),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}
