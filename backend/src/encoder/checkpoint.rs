//! Reading safetensors, one file or many. No length that a file claims is believed before it is checked against the file.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use super::EncoderError;

/// Largest header we read. Real ones have a few hundred kilobytes.
const LARGEST_HEADER: u64 = 64 << 20;

/// The tensors of a model directory.
#[derive(Debug)]
pub struct Checkpoint {
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Which file holds which tensor.
    places: BTreeMap<String, usize>,
}

impl Checkpoint {
    /// Reads model.safetensors, or the shards that model.safetensors.index.json names.
    pub fn open(directory: &Path) -> Result<Self, EncoderError> {
        let single = directory.join("model.safetensors");
        let index = directory.join("model.safetensors.index.json");
        let paths = if single.is_file() {
            vec![single]
        } else if index.is_file() {
            shards(directory, &index)?
        } else {
            for pickle in [
                "pytorch_model.bin",
                "pytorch_model.bin.index.json",
                "model.ckpt",
                "pytorch_model.pt",
            ] {
                if directory.join(pickle).exists() {
                    return Err(EncoderError::Pickle {
                        file: directory.join(pickle),
                    });
                }
            }
            return Err(EncoderError::NoWeights {
                directory: directory.to_path_buf(),
            });
        };
        let mut checkpoint = Self {
            files: Vec::new(),
            places: BTreeMap::new(),
        };
        for path in paths {
            let bytes = read_checked(&path)?;
            let number = checkpoint.files.len();
            let tensors = parse(&path, &bytes)?;
            checkpoint
                .places
                .extend(tensors.names().into_iter().map(|name| (name.to_string(), number)));
            checkpoint.files.push((path, bytes));
        }
        Ok(checkpoint)
    }

    /// Whether a tensor of that name is here.
    pub fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Shows every byte of the weights, in a fixed order.
    pub fn feed(&self, mut take: impl FnMut(&[u8])) {
        for (_, bytes) in &self.files {
            take(bytes);
        }
    }

    /// The file that holds (or should hold) a tensor.
    pub fn file_of(&self, name: &str) -> &Path {
        &self.files[self.places.get(name).copied().unwrap_or(0)].0
    }

    /// A tensor's numbers in single precision, its shape and its numbers checked.
    pub fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncoderError> {
        let Some(&number) = self.places.get(name) else {
            return Err(EncoderError::MissingTensor {
                file: self.files[0].0.clone(),
                name: name.into(),
            });
        };
        let (file, bytes) = &self.files[number];
        let tensors = parse(file, bytes)?;
        let tensor = tensors.tensor(name).map_err(|error| EncoderError::Safetensors {
            file: file.clone(),
            fault: error.to_string(),
        })?;
        if tensor.shape() != shape {
            return Err(EncoderError::Shape {
                file: file.clone(),
                name: name.into(),
                found: tensor.shape().to_vec(),
                expected: shape.to_vec(),
            });
        }
        let data = tensor.data();
        let numbers: Vec<f32> = match tensor.dtype() {
            Dtype::F32 => data
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
            Dtype::F16 => data
                .chunks_exact(2)
                .map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32())
                .collect(),
            Dtype::BF16 => data
                .chunks_exact(2)
                .map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32())
                .collect(),
            other => {
                return Err(EncoderError::Dtype {
                    file: file.clone(),
                    name: name.into(),
                    dtype: format!("{other:?}"),
                });
            }
        };
        if let Some(place) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(EncoderError::NotFinite {
                file: file.clone(),
                name: name.into(),
                place,
            });
        }
        Ok(numbers)
    }
}

/// The shard files of an index, each once, in order.
fn shards(directory: &Path, index: &Path) -> Result<Vec<PathBuf>, EncoderError> {
    let json = super::read_json(index)?;
    let bad = |fault: String| EncoderError::Config {
        file: index.to_path_buf(),
        fault,
    };
    let map = json["weight_map"]
        .as_object()
        .ok_or_else(|| bad("it has no \"weight_map\"".into()))?;
    let mut names: Vec<&str> = Vec::new();
    for (tensor, file) in map {
        let name = file
            .as_str()
            .ok_or_else(|| bad(format!("{tensor} has no file name")))?;
        if name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(bad(format!("{tensor} points outside the directory: {name:?}")));
        }
        names.push(name);
    }
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Err(bad("its \"weight_map\" is empty".into()));
    }
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// Reads a file whose header has been found to fit into it.
fn read_checked(path: &Path) -> Result<Vec<u8>, EncoderError> {
    let io = |source| EncoderError::Io {
        path: path.to_path_buf(),
        source,
    };
    let bad = |fault: String| EncoderError::Safetensors {
        file: path.to_path_buf(),
        fault,
    };
    let mut file = std::fs::File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    if size < 8 {
        return Err(bad(format!("{size} bytes are too few for a header")));
    }
    let mut head = [0; 8];
    file.read_exact(&mut head).map_err(io)?;
    let header = u64::from_le_bytes(head);
    if header > LARGEST_HEADER || header > size - 8 {
        return Err(bad(format!(
            "its header claims {header} bytes, the file has {size}"
        )));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    bytes.extend_from_slice(&head);
    file.read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>, EncoderError> {
    SafeTensors::deserialize(bytes).map_err(|error| EncoderError::Safetensors {
        file: path.to_path_buf(),
        fault: match error {
            safetensors::SafeTensorError::MetadataIncompleteBuffer => {
                format!(
                    "{error}; {} bytes are there, the download was probably cut off",
                    bytes.len()
                )
            }
            _ => error.to_string(),
        },
    })
}
