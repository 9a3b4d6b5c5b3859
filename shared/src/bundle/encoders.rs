//! The parts that carry a sentence encoder: a WordPiece vocabulary with a table of word vectors, or with a transformer in
//! eight bits.

use super::BundleError;
use super::matrix::{Bits, WIDEST, read_codes, read_table, write_codes, write_table};
use super::wire::{Reader, Writer};
use crate::model::encoder::bert::{Bert, BertEncoder, BertShape, Layer, Norm, Words};
use crate::model::encoder::{Lsa, StaticEncoder};
use crate::model::ops::{Int8Linear, Linear};
use crate::text::wordpiece::{Cleaning, WordPiece};

const TOKENIZER: [u8; 4] = *b"WPCE";
const STATIC: [u8; 4] = *b"STAT";
const TRANSFORMER: [u8; 4] = *b"BERT";

/// Most tokens of a vocabulary: each costs many times its bytes once it can be looked up.
const MOST_TOKENS: usize = 1 << 21;
/// What a transformer's shape may claim at most, besides [`WIDEST`]; far above any that a page can run.
const MOST_LAYERS: usize = 1024;
/// Attention has a number for every two tokens of a window.
const MOST_POSITIONS: usize = 8192;

/// A sentence encoder that a page can run.
#[derive(Clone, Copy, Debug)]
pub enum PageEncoder<'a> {
    /// Over the bundle's own vocabulary.
    Lsa(&'a Lsa),
    /// One vector a WordPiece.
    Static(&'a StaticEncoder),
    /// A BERT-type transformer whose weights are in eight bits.
    Bert(&'a BertEncoder),
}

impl PageEncoder<'_> {
    /// What the manifest calls it; also the role of its part.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lsa(_) => "lsa",
            Self::Static(_) => "static",
            Self::Bert(_) => "bert",
        }
    }
}

/// Why a model cannot be laid out as parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    #[error("the encoder's weights are in single precision; a bundle holds them in eight bits")]
    Precision,
    #[error(
        "the vocabulary has {tokens} tokens; a bundle holds at most {MOST_TOKENS}, none with a line end in it"
    )]
    Vocabulary { tokens: usize },
    /// Whatever a reader refuses is not written.
    #[error("a page could not open the bundle: {fault}")]
    Unreadable { fault: BundleError },
}

impl From<BundleError> for PublishError {
    fn from(fault: BundleError) -> Self {
        Self::Unreadable { fault }
    }
}

/// The vocabulary, a token a line, and what is done to a text before it is split.
pub(super) fn write_tokenizer(tokenizer: &WordPiece) -> Result<Vec<u8>, PublishError> {
    let vocabulary = tokenizer.vocabulary();
    let lines = vocabulary.lines().count();
    if lines != tokenizer.len() || lines > MOST_TOKENS {
        return Err(PublishError::Vocabulary {
            tokens: tokenizer.len(),
        });
    }
    let Cleaning {
        clean,
        space_chinese,
        strip_accents,
        lowercase,
    } = tokenizer.cleaning();
    let mut part = Writer::new(TOKENIZER);
    part.u8([clean, space_chinese, strip_accents, lowercase]
        .iter()
        .rev()
        .fold(0, |bits, &flag| bits << 1 | u8::from(flag)));
    part.string(&vocabulary);
    Ok(part.finish())
}

pub(super) fn read_tokenizer(name: &str, bytes: &[u8]) -> Result<WordPiece, BundleError> {
    let mut part = Reader::new(name, bytes, TOKENIZER)?;
    let bits = part.u8("cleaning")?;
    if bits > 0b1111 {
        return Err(part.bad("cleaning", bits, "four flags"));
    }
    let cleaning = Cleaning {
        clean: bits & 1 != 0,
        space_chinese: bits & 2 != 0,
        strip_accents: bits & 4 != 0,
        lowercase: bits & 8 != 0,
    };
    let vocabulary = part.string("vocabulary")?;
    let tokens = vocabulary.bytes().filter(|byte| *byte == b'\n').count();
    if tokens > MOST_TOKENS {
        return Err(part.bad("tokens", tokens, &format!("at most {MOST_TOKENS}")));
    }
    let tokenizer = WordPiece::from_vocabulary(vocabulary, cleaning)
        .map_err(|fault| part.bad("vocabulary", fault, "a WordPiece vocabulary"))?;
    part.finish()?;
    Ok(tokenizer)
}

/// The table of `static`.
pub(super) fn write_static(encoder: &StaticEncoder, bits: Bits) -> Vec<u8> {
    let mut part = Writer::new(STATIC);
    write_table(&mut part, encoder.table(), bits);
    part.finish()
}

pub(super) fn read_static(
    name: &str,
    bytes: &[u8],
    tokenizer: WordPiece,
) -> Result<StaticEncoder, BundleError> {
    let mut part = Reader::new(name, bytes, STATIC)?;
    let table = read_table(&mut part)?;
    let tokens = tokenizer.len();
    let encoder = StaticEncoder::new(tokenizer, table)
        .map_err(|fault| part.bad("table", fault, &format!("a row for each of {tokens} tokens")))?;
    part.finish()?;
    Ok(encoder)
}

/// A transformer: its shape, then every matrix in codes and every vector in full.
pub(super) fn write_bert(encoder: &BertEncoder, bits: Bits) -> Result<Vec<u8>, PublishError> {
    let model = encoder.model();
    let shape = model.shape();
    let Words::Int8(words) = model.words() else {
        return Err(PublishError::Precision);
    };
    let mut part = Writer::new(TRANSFORMER);
    for number in [
        shape.width,
        shape.heads,
        shape.layers,
        shape.inner,
        shape.vocabulary,
        shape.positions,
        encoder.window(),
    ] {
        part.count(number);
    }
    part.f32(shape.epsilon);
    write_table(&mut part, words, bits);
    part.f32s(model.positions());
    write_norm(&mut part, model.norm());
    for layer in model.layers() {
        for linear in [
            &layer.attention,
            &layer.attention_output,
            &layer.inner,
            &layer.outer,
        ] {
            let Linear::Int8(linear) = linear else {
                return Err(PublishError::Precision);
            };
            part.f32s(linear.shrink());
            write_codes(&mut part, linear.scales(), &linear.codes(), bits);
            part.f32s(linear.bias());
        }
        write_norm(&mut part, &layer.attention_norm);
        write_norm(&mut part, &layer.outer_norm);
    }
    Ok(part.finish())
}

pub(super) fn read_bert(name: &str, bytes: &[u8], tokenizer: WordPiece) -> Result<BertEncoder, BundleError> {
    let mut part = Reader::new(name, bytes, TRANSFORMER)?;
    let width = part.number(WIDEST, "width")?;
    let heads = part.number(WIDEST, "heads")?;
    let layers = part.number(MOST_LAYERS, "layers")?;
    let inner = part.number(WIDEST, "inner width")?;
    let vocabulary = part.number(MOST_TOKENS, "vocabulary")?;
    let positions = part.number(MOST_POSITIONS, "positions")?;
    let window = part.number(MOST_POSITIONS, "window")?;
    let epsilon = part.f32("epsilon")?;
    if !(epsilon.is_finite() && epsilon > 0.0) {
        return Err(part.bad("epsilon", epsilon, "a small positive number"));
    }
    let shape = BertShape {
        width,
        heads,
        layers,
        inner,
        vocabulary,
        positions,
        epsilon,
    };
    let words = read_table(&mut part)?;
    let places = part.f32s("positions")?;
    // Products of the shape's numbers may not fit a page's 32-bit lengths: checked here, once.
    if positions.checked_mul(width) != Some(places.len()) {
        return Err(part.bad(
            "position vectors",
            places.len(),
            &format!("{positions} of {width}"),
        ));
    }
    if words.dims() != width || words.rows() != vocabulary {
        let found = format!("{} of {}", words.rows(), words.dims());
        return Err(part.bad("word vectors", found, &format!("{vocabulary} of {width}")));
    }
    let norm = read_norm(&mut part)?;
    let mut read = Vec::new();
    for _ in 0..layers {
        read.push(Layer {
            attention: read_linear(&mut part)?,
            attention_output: read_linear(&mut part)?,
            inner: read_linear(&mut part)?,
            outer: read_linear(&mut part)?,
            attention_norm: read_norm(&mut part)?,
            outer_norm: read_norm(&mut part)?,
        });
    }
    let encoder = Bert::new(shape, Words::Int8(words), places, norm, read)
        .and_then(|model| BertEncoder::new(tokenizer, model, window))
        .map_err(|fault| part.bad("transformer", fault, "the weights its shape asks for"))?;
    part.finish()?;
    Ok(encoder)
}

fn write_norm(part: &mut Writer, norm: &Norm) {
    part.f32s(&norm.gamma);
    part.f32s(&norm.beta);
}

fn read_norm(part: &mut Reader<'_>) -> Result<Norm, BundleError> {
    Ok(Norm {
        gamma: part.f32s("scale of a norm")?,
        beta: part.f32s("shift of a norm")?,
    })
}

fn read_linear(part: &mut Reader<'_>) -> Result<Linear, BundleError> {
    let shrink = part.f32s("shrink")?;
    let (scales, codes) = read_codes(part, shrink.len())?;
    let bias = part.f32s("bias")?;
    Int8Linear::from_parts(&codes, scales, bias, shrink)
        .map(Linear::Int8)
        .map_err(|fault| part.bad("layer", fault, "weights of its outputs and inputs"))
}
