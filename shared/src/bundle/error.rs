//! What can be wrong with a bundle.

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
