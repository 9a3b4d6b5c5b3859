//! config.json, read number by number, each within what a real model can have.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::encoder::{EncoderError, read_json};

/// Largest number of tokens a model is shown at once, where it sets no limit of its own.
const LONGEST_WINDOW: usize = 512;

/// The settings of a model directory.
pub(super) struct Settings {
    file: PathBuf,
    json: Value,
}

impl Settings {
    pub(super) fn read(directory: &Path) -> Result<Self, EncoderError> {
        let file = directory.join("config.json");
        let json = read_json(&file)?;
        Ok(Self { file, json })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// `model_type`, or nothing.
    pub(super) fn architecture(&self) -> &str {
        self.json["model_type"].as_str().unwrap_or_default()
    }

    /// The file as it was understood: part of a fingerprint.
    pub(super) fn text(&self) -> String {
        self.json.to_string()
    }

    pub(super) fn bad(&self, fault: impl Into<String>) -> EncoderError {
        EncoderError::Config {
            file: self.file.clone(),
            fault: fault.into(),
        }
    }

    /// A whole number from 1 to `most`.
    pub(super) fn number(&self, name: &str, most: u64) -> Result<usize, EncoderError> {
        self.optional(name, most)?
            .ok_or_else(|| self.bad(format!("\"{name}\" is missing")))
    }

    /// The same where the file may leave it out.
    pub(super) fn optional(&self, name: &str, most: u64) -> Result<Option<usize>, EncoderError> {
        let value = &self.json[name];
        if value.is_null() {
            return Ok(None);
        }
        match value.as_u64().filter(|n| (1..=most).contains(n)) {
            Some(n) => Ok(Some(n as usize)),
            None => Err(self.bad(format!(
                "\"{name}\" is {value}, expected a whole number from 1 to {most}"
            ))),
        }
    }

    /// A whole number that may be 0, with a value for files that leave it out.
    pub(super) fn zero_or_more(&self, name: &str, otherwise: usize) -> Result<usize, EncoderError> {
        let value = &self.json[name];
        if value.is_null() {
            return Ok(otherwise);
        }
        value
            .as_u64()
            .filter(|n| *n < 1 << 24)
            .map(|n| n as usize)
            .ok_or_else(|| {
                self.bad(format!(
                    "\"{name}\" is {value}, expected a whole number not below 0"
                ))
            })
    }

    pub(super) fn float(&self, name: &str, otherwise: f64) -> f64 {
        self.json[name].as_f64().unwrap_or(otherwise)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.json[name].as_bool().unwrap_or(false)
    }

    pub(super) fn word(&self, name: &str) -> Option<&str> {
        self.json[name].as_str()
    }

    /// Width and heads, which must go together.
    pub(super) fn heads(&self, width: &str, heads: &str) -> Result<(usize, usize), EncoderError> {
        let (wide, many) = (self.number(width, 1 << 16)?, self.number(heads, 1 << 12)?);
        if !wide.is_multiple_of(many) {
            return Err(self.bad(format!("{many} heads do not divide the width {wide}")));
        }
        Ok((wide, many))
    }
}

/// Tokens of a window: what the model was trained to read where it says so, never more than it has `positions`.
pub(super) fn window(directory: &Path, positions: Option<usize>) -> usize {
    let most = positions.unwrap_or(LONGEST_WINDOW);
    let said = read_json(&directory.join("sentence_bert_config.json"))
        .ok()
        .and_then(|json| json["max_seq_length"].as_u64());
    said.map_or(most, |length| (length as usize).clamp(8, most.max(8)))
        .min(most)
}
