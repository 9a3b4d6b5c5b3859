//! What can be wrong with an encoder someone names: each a sentence with the file and the fault.

use std::path::PathBuf;

/// Why an encoder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "no encoder {0:?}: expected lsa, static, minilm, a model directory (config.json, vocab.txt or tokenizer.json, \
         model.safetensors), or a hub id such as sentence-transformers/all-MiniLM-L6-v2"
    )]
    Unknown(String),
    #[error("{directory} has no weights: expected model.safetensors or model.safetensors.index.json")]
    NoWeights { directory: PathBuf },
    #[error(
        "{file} is a pickle, which can run code when it is read: convert it to model.safetensors with the library that \
         wrote it"
    )]
    Pickle { file: PathBuf },
    #[error("{file} is not whole safetensors: {fault}")]
    Safetensors { file: PathBuf, fault: String },
    #[error("{file} has no tensor {name}")]
    MissingTensor { file: PathBuf, name: String },
    #[error("{file}: tensor {name} has the shape {found:?}, config.json asks for {expected:?}")]
    Shape {
        file: PathBuf,
        name: String,
        found: Vec<usize>,
        expected: Vec<usize>,
    },
    #[error("{file}: tensor {name} holds {dtype}, expected F32, F16 or BF16")]
    Dtype {
        file: PathBuf,
        name: String,
        dtype: String,
    },
    #[error("{file}: tensor {name} holds a number that is not finite at place {place}")]
    NotFinite {
        file: PathBuf,
        name: String,
        place: usize,
    },
    #[error("{file}: {fault}")]
    Config { file: PathBuf, fault: String },
    #[error("{file}: the architecture {found:?} is none of {known}")]
    Architecture {
        file: PathBuf,
        found: String,
        known: &'static str,
    },
    #[error(
        "{file}: the tokenizer knows {tokens} tokens, config.json says {expected}: it belongs to another model"
    )]
    Vocabulary {
        file: PathBuf,
        tokens: usize,
        expected: usize,
    },
    #[error("{file}: {fault}")]
    Tokenizer { file: PathBuf, fault: String },
    #[error("{directory}: {fault}")]
    Model { directory: PathBuf, fault: String },
    #[error("the encoder {0} is fitted on a corpus: train with it, it cannot be opened by itself")]
    NeedsCorpus(&'static str),
    #[error(
        "the weights of {name} are not here (looked in {directory}): run `gnnxml encoder fetch {name}` once"
    )]
    NotFetched { name: String, directory: PathBuf },
    #[error("hub model {id}: {fault}; download it elsewhere and give its directory instead")]
    Hub { id: String, fault: String },
    #[error("{0}")]
    Device(String),
}
