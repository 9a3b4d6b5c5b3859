//! The parts of a bundle, each written and read by one pair of functions.
//!
//! Weights of networks are signed bytes with one scale a row ([`super::matrix`]); rankers and remembered documents have
//! files of their own ([`super::rankers`], [`super::neighbours`]);
//! strings that share a beginning with their forerunner store only what differs; ascending numbers store their gaps.

use super::BundleError;
use super::matrix::{Bits, read_codes, read_table, write_codes, write_table};
use super::wire::{Reader, Writer};
use crate::features::{TfIdf, TfIdfParts};
use crate::model::encoder::{Lsa, VectorTable};
use crate::model::matcher::{Matcher, MatcherConfig, NamedTensor};
use crate::model::tagger::TagLabel;

const LABELS: [u8; 4] = *b"LABL";
const VOCABULARY: [u8; 4] = *b"VOCA";
const PROJECTION: [u8; 4] = *b"LSAP";
const MATCHER: [u8; 4] = *b"GINB";

/// Bytes of one term; a pair of ordinary words has a tenth of it.
const LONGEST_TERM: usize = 1024;
/// All terms of a vocabulary together, and as many times the part's own size: shared beginnings could unfold a small part into a
/// huge one.
const MAX_TERM_BYTES: usize = 256 << 20;
const UNFOLDING: usize = 64;

/// Labels with what the score needs to know of them.
pub(super) fn write_labels(labels: &[TagLabel]) -> Vec<u8> {
    let mut part = Writer::new(LABELS);
    part.count(labels.len());
    for label in labels {
        part.string(&label.name);
        part.varint(u64::from(label.count));
        part.f32(label.log_inverse_propensity);
    }
    part.finish()
}

pub(super) fn read_labels(name: &str, bytes: &[u8]) -> Result<Vec<TagLabel>, BundleError> {
    let mut part = Reader::new(name, bytes, LABELS)?;
    let count = part.count(6, "labels")?;
    let mut labels = Vec::with_capacity(count);
    for _ in 0..count {
        let label = TagLabel {
            name: part.string("label name")?.to_owned(),
            count: part.u32("label count")?,
            log_inverse_propensity: part.f32("label prior")?,
        };
        if !label.log_inverse_propensity.is_finite() {
            return Err(part.bad("label prior", label.log_inverse_propensity, "a finite number"));
        }
        labels.push(label);
    }
    part.finish()?;
    Ok(labels)
}

/// The TF-IDF vocabulary: options, then terms by what each adds to the one before, then weights.
pub(super) fn write_vocabulary(tfidf: &TfIdf) -> Vec<u8> {
    let parts = tfidf.to_parts();
    let mut part = Writer::new(VOCABULARY);
    part.string(&serde_json::to_string(&parts.options).expect("options are plain data"));
    part.string(&serde_json::to_string(&parts.language).expect("a language is a tag"));
    part.varint(u64::from(parts.documents));
    part.count(parts.terms.len());
    let mut last = "";
    for term in &parts.terms {
        let mut same = term.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
        while !term.is_char_boundary(same) {
            same -= 1;
        }
        part.count(same);
        part.string(&term[same..]);
        last = term;
    }
    part.f32s(&parts.idf);
    part.finish()
}

pub(super) fn read_vocabulary(name: &str, bytes: &[u8]) -> Result<TfIdf, BundleError> {
    let json = |fault: serde_json::Error| BundleError::json(name, fault);
    let mut part = Reader::new(name, bytes, VOCABULARY)?;
    let options = serde_json::from_str(part.string("options")?).map_err(json)?;
    let language = serde_json::from_str(part.string("language")?).map_err(json)?;
    let documents = part.u32("documents")?;
    // What is shared, what is added, and a weight.
    let count = part.count(6, "terms")?;
    let most = UNFOLDING.saturating_mul(bytes.len()).min(MAX_TERM_BYTES);
    let mut terms: Vec<String> = Vec::with_capacity(count);
    let mut total = 0;
    for _ in 0..count {
        let same = part.varint("shared prefix")?;
        let last = terms.last().map_or("", String::as_str);
        let Some(prefix) = usize::try_from(same).ok().and_then(|same| last.get(..same)) else {
            return Err(part.bad(
                "shared prefix",
                same,
                &format!("a character boundary of {last:?}"),
            ));
        };
        let added = part.string("term")?;
        let length = prefix.len() + added.len();
        if length > LONGEST_TERM {
            return Err(part.bad("bytes of a term", length, &format!("at most {LONGEST_TERM}")));
        }
        total += length;
        if total > most {
            return Err(part.bad("bytes of terms", total, &format!("at most {most}")));
        }
        terms.push([prefix, added].concat());
    }
    let idf = part.f32s("idf")?;
    let tfidf = TfIdf::from_parts(TfIdfParts {
        options,
        language,
        documents,
        terms,
        idf,
    })
    .map_err(|fault| part.bad("vocabulary", fault, "distinct terms with positive weights"))?;
    part.finish()?;
    Ok(tfidf)
}

/// The projection of `lsa`: it is a table of bytes already.
pub(super) fn write_lsa(lsa: &Lsa, bits: Bits) -> Vec<u8> {
    let mut part = Writer::new(PROJECTION);
    write_table(&mut part, lsa.projection(), bits);
    part.finish()
}

pub(super) fn read_lsa(name: &str, bytes: &[u8]) -> Result<Lsa, BundleError> {
    let mut part = Reader::new(name, bytes, PROJECTION)?;
    let table = read_table(&mut part)?;
    part.finish()?;
    Ok(Lsa::new(table))
}

/// The graph network: its shape as JSON, matrices in bytes, vectors in full.
pub(super) fn write_matcher(matcher: &Matcher, bits: Bits) -> Vec<u8> {
    let mut part = Writer::new(MATCHER);
    part.string(&serde_json::to_string(matcher.config()).expect("a configuration is plain data"));
    for tensor in matcher.tensors() {
        if tensor.shape.len() < 2 {
            part.f32s(&tensor.data);
        } else {
            let width: usize = tensor.shape[1..].iter().product();
            let table =
                VectorTable::quantise(&tensor.data, width.max(1)).expect("trained weights are finite");
            write_codes(&mut part, table.scales(), table.codes(), bits);
        }
    }
    part.finish()
}

pub(super) fn read_matcher(name: &str, bytes: &[u8]) -> Result<Matcher, BundleError> {
    let mut part = Reader::new(name, bytes, MATCHER)?;
    let config: MatcherConfig = serde_json::from_str(part.string("configuration")?)
        .map_err(|fault| BundleError::json(name, fault))?;
    config
        .validate()
        .map_err(|fault| part.bad("configuration", fault, "a shape the network can have"))?;
    let mut tensors = Vec::new();
    for spec in config.tensors() {
        let data = if spec.shape.len() < 2 {
            part.f32s("weights")?
        } else {
            let width: usize = spec.shape[1..].iter().product();
            let (scales, codes) = read_codes(&mut part, width)?;
            if scales.len() != spec.shape[0] {
                return Err(part.bad(
                    "rows",
                    scales.len(),
                    &format!("{:?} for {}", spec.shape, spec.name),
                ));
            }
            let rows = codes.chunks_exact(width.max(1)).zip(&scales);
            rows.flat_map(|(row, &scale)| row.iter().map(move |&code| f32::from(code) * scale))
                .collect()
        };
        tensors.push(NamedTensor {
            name: spec.name,
            shape: spec.shape,
            data,
        });
    }
    let matcher = Matcher::new(config, tensors)
        .map_err(|fault| part.bad("network", fault, "the tensors its configuration names"))?;
    part.finish()?;
    Ok(matcher)
}
