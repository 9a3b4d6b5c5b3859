//! The parts of a bundle, each written and read by one pair of functions.
//!
//! Weights of networks are signed bytes with one scale a row (value = code · scale); word weights of rankers are steps of one size above the
//! label's smallest, because it is the absolute error of a margin that a probability feels; strings that share a beginning with their
//! forerunner store only what differs; ascending numbers store their gaps.

use super::BundleError;
use super::wire::{Reader, Writer};
use crate::features::{SparseVector, TfIdf, TfIdfParts};
use crate::model::encoder::{Lsa, VectorTable};
use crate::model::matcher::{Matcher, MatcherConfig, NamedTensor};
use crate::model::neighbours::{Neighbours, Remembered};
use crate::model::ranker::{ClusterRankers, LabelRanker};
use crate::model::tagger::TagLabel;

const LABELS: [u8; 4] = *b"LABL";
const VOCABULARY: [u8; 4] = *b"VOCA";
const PROJECTION: [u8; 4] = *b"LSAP";
const MATCHER: [u8; 4] = *b"GINB";
const RANKERS: [u8; 4] = *b"RNKS";
const NEIGHBOURS: [u8; 4] = *b"NEAR";

/// All terms of a vocabulary together.
const MAX_TERM_BYTES: usize = 256 << 20;

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
    let json = |fault: serde_json::Error| BundleError::Json {
        part: name.into(),
        fault: fault.to_string(),
    };
    let mut part = Reader::new(name, bytes, VOCABULARY)?;
    let options = serde_json::from_str(part.string("options")?).map_err(json)?;
    let language = serde_json::from_str(part.string("language")?).map_err(json)?;
    let documents = part.u32("documents")?;
    let count = part.count(2, "terms")?;
    let mut terms: Vec<String> = Vec::with_capacity(count);
    let mut total = 0;
    for _ in 0..count {
        let same = part.varint("shared prefix")? as usize;
        let last = terms.last().map_or("", String::as_str);
        let Some(prefix) = last.get(..same) else {
            return Err(part.bad(
                "shared prefix",
                same,
                &format!("a character boundary of {last:?}"),
            ));
        };
        let mut term = prefix.to_owned();
        term.push_str(part.string("term")?);
        // Shared beginnings could unfold a small part into a huge one.
        total += term.len();
        if total > MAX_TERM_BYTES {
            return Err(part.bad("bytes of terms", total, &format!("at most {MAX_TERM_BYTES}")));
        }
        terms.push(term);
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
pub(super) fn write_lsa(lsa: &Lsa) -> Vec<u8> {
    let table = lsa.projection();
    let mut part = Writer::new(PROJECTION);
    part.count(table.dims());
    part.f32s(table.scales());
    part.i8s(table.codes());
    part.finish()
}

pub(super) fn read_lsa(name: &str, bytes: &[u8]) -> Result<Lsa, BundleError> {
    let mut part = Reader::new(name, bytes, PROJECTION)?;
    let dims = part.varint("dimensions")? as usize;
    let scales = part.f32s("scales")?;
    let codes = part.i8s("codes")?.to_vec();
    let table = VectorTable::from_parts(dims, scales, codes)
        .map_err(|fault| part.bad("projection", fault, "one row of codes a scale"))?;
    part.finish()?;
    Ok(Lsa::new(table))
}

/// The graph network: its shape as JSON, matrices in bytes, vectors in full.
pub(super) fn write_matcher(matcher: &Matcher) -> Vec<u8> {
    let mut part = Writer::new(MATCHER);
    part.string(&serde_json::to_string(matcher.config()).expect("a configuration is plain data"));
    for tensor in matcher.tensors() {
        if tensor.shape.len() < 2 {
            part.f32s(&tensor.data);
        } else {
            let width: usize = tensor.shape[1..].iter().product();
            let table =
                VectorTable::quantise(&tensor.data, width.max(1)).expect("trained weights are finite");
            part.f32s(table.scales());
            part.i8s(table.codes());
        }
    }
    part.finish()
}

pub(super) fn read_matcher(name: &str, bytes: &[u8]) -> Result<Matcher, BundleError> {
    let mut part = Reader::new(name, bytes, MATCHER)?;
    let config: MatcherConfig =
        serde_json::from_str(part.string("configuration")?).map_err(|fault| BundleError::Json {
            part: name.into(),
            fault: fault.to_string(),
        })?;
    config
        .validate()
        .map_err(|fault| part.bad("configuration", fault, "a shape the network can have"))?;
    let mut tensors = Vec::new();
    for spec in config.tensors() {
        let data = if spec.shape.len() < 2 {
            part.f32s("weights")?
        } else {
            let scales = part.f32s("scales")?;
            let codes = part.i8s("codes")?;
            let width: usize = spec.shape[1..].iter().product();
            if scales.len() != spec.shape[0] || scales.len().checked_mul(width) != Some(codes.len()) {
                return Err(part.bad(
                    "codes",
                    codes.len(),
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

/// Rankers of several clusters: for each, first what its labels are and where their words stand, then all weights. What is alike lies together and
/// packs better. Features are gaps, word weights multiples of `step`.
pub(super) fn write_rankers(clusters: &[&ClusterRankers], step: f32) -> Vec<u8> {
    let mut part = Writer::new(RANKERS);
    part.f32(step);
    part.count(clusters.len());
    for cluster in clusters {
        part.count(cluster.dims());
        let labels = cluster.to_labels();
        part.count(labels.len());
        for ranker in &labels {
            part.varint(u64::from(ranker.label));
            part.f32(ranker.bias);
            let features: Vec<u32> = ranker.words.iter().map(|word| word.0).collect();
            part.ascending(&features);
        }
        for ranker in &labels {
            write_steps(&mut part, &ranker.words, step);
            if cluster.dims() > 0 {
                write_codes(&mut part, &ranker.embedding);
            }
        }
    }
    part.finish()
}

/// Rankers whose features lie below `terms` and whose labels lie below `labels`.
pub(super) fn read_rankers(
    name: &str,
    bytes: &[u8],
    terms: usize,
    labels: usize,
) -> Result<Vec<ClusterRankers>, BundleError> {
    let mut part = Reader::new(name, bytes, RANKERS)?;
    let step = part.f32("step of the weights")?;
    if !(step.is_finite() && step > 0.0) {
        return Err(part.bad("step of the weights", step, "a positive number"));
    }
    let count = part.count(2, "clusters")?;
    let mut clusters = Vec::with_capacity(count);
    for _ in 0..count {
        let dims = part.varint("embedding width")? as usize;
        let members = part.count(10, "labels of a cluster")?;
        let mut rankers = Vec::with_capacity(members);
        for _ in 0..members {
            let label = part.u32("label")?;
            if label as usize >= labels {
                return Err(part.bad("label", label, &format!("below {labels}")));
            }
            let bias = part.f32("bias")?;
            if !bias.is_finite() {
                return Err(part.bad("bias", bias, "a finite number"));
            }
            let features = part.ascending(u32::try_from(terms).unwrap_or(u32::MAX), "features")?;
            rankers.push(LabelRanker {
                label,
                bias,
                words: features.into_iter().map(|feature| (feature, 0.0)).collect(),
                embedding: Vec::new(),
            });
        }
        for ranker in &mut rankers {
            read_steps(&mut part, &mut ranker.words, step)?;
            if dims > 0 {
                ranker.embedding = read_codes(&mut part, dims, "embedding")?;
            }
        }
        clusters.push(ClusterRankers::new(rankers, dims));
    }
    part.finish()?;
    Ok(clusters)
}

/// The remembered documents: a step each, words by gap with codes of the step, labels by gap.
pub(super) fn write_neighbours(neighbours: &Neighbours) -> Vec<u8> {
    let mut part = Writer::new(NEIGHBOURS);
    part.count(neighbours.len());
    for document in neighbours.documents() {
        let step = document.words.values.iter().copied().fold(0.0, f32::max) / 255.0;
        part.f32(step);
        part.ascending(&document.words.indices);
        let codes = document
            .words
            .values
            .iter()
            .map(|weight| (weight / step).round() as u8);
        part.i8s(&codes.map(u8::cast_signed).collect::<Vec<_>>());
        part.ascending(&document.labels);
    }
    part.finish()
}

/// Remembered documents whose words lie below `terms` and whose labels lie below `labels`.
pub(super) fn read_neighbours(
    name: &str,
    bytes: &[u8],
    terms: usize,
    labels: usize,
) -> Result<Neighbours, BundleError> {
    let bound = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut part = Reader::new(name, bytes, NEIGHBOURS)?;
    let count = part.count(7, "documents")?;
    let mut documents = Vec::with_capacity(count);
    for _ in 0..count {
        let step = part.f32("step")?;
        if !step.is_finite() || step < 0.0 {
            return Err(part.bad("step", step, "a number from 0"));
        }
        let indices = part.ascending(bound(terms), "words")?;
        let codes = part.i8s("weights")?;
        if codes.len() != indices.len() {
            return Err(part.bad("weights", codes.len(), &format!("{} codes", indices.len())));
        }
        let values = codes
            .iter()
            .map(|code| f32::from(code.cast_unsigned()) * step)
            .collect();
        documents.push(Remembered {
            words: SparseVector { indices, values },
            labels: part.ascending(bound(labels), "labels")?,
        });
    }
    part.finish()?;
    Ok(Neighbours::new(&documents, terms))
}

/// Weights as steps above the smallest of them, the sign in the last bit: most fit a byte.
fn write_steps(part: &mut Writer, words: &[(u32, f32)], step: f32) {
    let sizes = words.iter().map(|(_, weight)| weight.abs());
    let smallest = sizes.reduce(f32::min).unwrap_or(0.0);
    part.f32(smallest);
    for (_, weight) in words {
        let steps = ((weight.abs() - smallest) / step).round();
        part.varint((steps as u64) << 1 | u64::from(weight.is_sign_negative()));
    }
}

fn read_steps(part: &mut Reader<'_>, words: &mut [(u32, f32)], step: f32) -> Result<(), BundleError> {
    let smallest = part.f32("smallest weight")?;
    if !(smallest.is_finite() && smallest >= 0.0) {
        return Err(part.bad("smallest weight", smallest, "zero or more"));
    }
    for (_, weight) in words {
        let code = part.u32("weight")?;
        let size = smallest + (code >> 1) as f32 * step;
        if !size.is_finite() {
            return Err(part.bad("weight", size, "a finite number"));
        }
        *weight = if code & 1 == 1 { -size } else { size };
    }
    Ok(())
}

fn write_codes(part: &mut Writer, values: &[f32]) {
    let table = VectorTable::quantise(values, values.len().max(1)).expect("trained weights are finite");
    part.f32(table.scales().first().copied().unwrap_or(0.0));
    part.i8s(table.codes());
}

fn read_codes(part: &mut Reader<'_>, count: usize, what: &'static str) -> Result<Vec<f32>, BundleError> {
    let scale = part.f32(what)?;
    let codes = part.i8s(what)?;
    if codes.len() != count || !scale.is_finite() {
        return Err(part.bad(
            what,
            format!("{} codes with scale {scale}", codes.len()),
            &format!("{count} codes"),
        ));
    }
    Ok(codes.iter().map(|&code| f32::from(code) * scale).collect())
}
