//! What can be wrong with a bundle.

use std::fmt::Display;

/// Characters of a bundle's own words that an error repeats.
pub(super) const QUOTED: usize = 80;
/// Characters of what a JSON reader says: it lists the names it knows, and where it stood comes last.
const SAID: usize = 400;

/// A fault in a bundle: which part, what was found, what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    #[error("{part}: not JSON of the expected shape: {fault}")]
    Json { part: String, fault: String },
    #[error("manifest: format is {found:?}, expected {expected:?}; this folder does not hold a bundle")]
    Format { found: String, expected: &'static str },
    #[error(
        "manifest: bundle version {found}, this program reads version {expected}; export the model again with a matching `gnnxml export`"
    )]
    Version { found: u32, expected: u32 },
    #[error("manifest: {file:?} is not a plain file name; a bundle's parts lie beside its manifest")]
    UnsafeName { file: String },
    #[error(
        "manifest: the model reads {language:?}, whose stop words and stems this build does not hold; use a build with the feature `all-languages`"
    )]
    Language { language: String },
    /// A model with an encoder or a graph network in a build without them.
    #[error(
        "the model has a part {part:?}, which this build cannot run; use a build with the feature `networks`"
    )]
    Networks { part: String },
    #[error("manifest: there is no part {part:?}")]
    MissingPart { part: String },
    #[error("{part}: {found} bytes, the manifest says {expected}; fetch it again")]
    Length { part: String, found: u64, expected: u64 },
    #[error("{part}: SHA-256 is {found}, the manifest says {expected}; fetch it again")]
    Checksum {
        part: String,
        found: String,
        expected: String,
    },
    #[error("{part}: ends at byte {at}, {wanted} more bytes were expected for {what}")]
    Truncated {
        part: String,
        at: usize,
        wanted: u64,
        what: &'static str,
    },
    #[error("{part}: {extra} bytes left over after its last field")]
    Trailing { part: String, extra: usize },
    #[error("{part}: {what} at byte {at}: found {found}, expected {expected}")]
    Value {
        part: String,
        at: usize,
        what: &'static str,
        found: String,
        expected: String,
    },
}

impl BundleError {
    /// A part that is not the JSON it should be.
    pub(super) fn json(part: &str, fault: impl Display) -> Self {
        Self::Json {
            part: part.into(),
            fault: cut(&fault.to_string(), SAID),
        }
    }

    /// A value of a part that has no bytes to point at.
    pub(super) fn value(part: &str, what: &'static str, found: impl Display, expected: impl Display) -> Self {
        Self::Value {
            part: part.into(),
            at: 0,
            what,
            found: cut(&found.to_string(), QUOTED),
            expected: cut(&expected.to_string(), QUOTED),
        }
    }
}

/// At most about `most` characters, the beginning and the end: a bundle may say megabytes, a person reads a line.
pub(super) fn cut(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(most / 2).collect();
    let end: String = text.chars().skip(length - most / 2).collect();
    format!("{beginning}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_keep_their_beginning_and_their_end() {
        assert_eq!(cut("cocoa", 5), "cocoa");
        assert_eq!(cut("äöü and so on ÄÖÜ", 6), "äöü…ÄÖÜ");
        let fault = BundleError::json("tagger", format!("unknown field {}, line 7", "x".repeat(1 << 20)));
        assert!(
            fault.to_string().len() < 500 && fault.to_string().ends_with("line 7"),
            "{fault}"
        );
    }
}
