//! What an encoder's vectors are good for: labels of the nearest documents. And how often a corpus repeats itself.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use gnnxml_shared::model::tagger::document_vector;
use gnnxml_shared::text::{Language, sentences};
use rayon::prelude::*;

use crate::data::{CorpusSource, Document, available_threads, for_each_document};
use crate::encoder::Encoder;
use crate::encoder::cache::TextKey;

/// Neighbours that vote.
const NEIGHBOURS: usize = 10;

/// Precision of the labels that a document's neighbours vote for, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retrieval {
    pub(super) p1: f64,
    pub(super) p5: f64,
}

/// The first `most` documents of a corpus that have labels.
pub(super) fn documents(corpus: &Path, most: usize) -> anyhow::Result<Vec<Document>> {
    let mut found = Vec::new();
    for document in CorpusSource::detect(corpus)?.open()? {
        let document = document?;
        if !document.labels.is_empty() {
            found.push(document);
        }
        if found.len() == most {
            break;
        }
    }
    Ok(found)
}

/// Every document asks the others; each one's vector is the mean of its first `most` sentences'.
pub(super) fn retrieval(
    encoder: &dyn Encoder,
    documents: &[Document],
    most: usize,
) -> anyhow::Result<Retrieval> {
    let split: Vec<Vec<&str>> = documents
        .iter()
        .map(|document| {
            let spans = sentences(&document.text, Language::English);
            spans
                .iter()
                .take(most)
                .map(|span| &document.text[span.start..span.end])
                .collect()
        })
        .collect();
    let dims = encoder.dims();
    let encoded = encoder.encode(&split.concat())?;
    let mut rest = &encoded[..];
    let vectors: Vec<Vec<f32>> = split
        .iter()
        .map(|of_document| {
            let (own, later) = rest.split_at(of_document.len() * dims);
            rest = later;
            document_vector(own, dims, 1.0)
        })
        .collect();
    let hits: Vec<[f64; 2]> = (0..documents.len())
        .into_par_iter()
        .map(|asking| votes(asking, documents, &vectors))
        .collect();
    let share = |k: usize| 100.0 * hits.iter().map(|hit| hit[k]).sum::<f64>() / hits.len().max(1) as f64;
    Ok(Retrieval {
        p1: share(0),
        p5: share(1),
    })
}

/// P@1 and P@5 of one document's votes.
fn votes(asking: usize, documents: &[Document], vectors: &[Vec<f32>]) -> [f64; 2] {
    let cosine = |other: usize| -> f32 {
        vectors[asking]
            .iter()
            .zip(&vectors[other])
            .map(|(x, y)| x * y)
            .sum()
    };
    let mut others: Vec<(f32, usize)> = (0..documents.len())
        .filter(|&other| other != asking)
        .map(|other| (cosine(other), other))
        .collect();
    others.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut scores: BTreeMap<&str, f32> = BTreeMap::new();
    for &(weight, other) in others.iter().take(NEIGHBOURS) {
        for label in &documents[other].labels {
            *scores.entry(label).or_default() += weight;
        }
    }
    let mut ranked: Vec<(&str, f32)> = scores.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let right = |k: usize| {
        let true_ones = ranked
            .iter()
            .take(k)
            .filter(|(label, _)| documents[asking].labels.iter().any(|own| own == label));
        true_ones.count() as f64 / k as f64
    };
    [right(1), right(5)]
}

/// About `most` sentences of a corpus, taken evenly from beginning to end.
pub(super) fn sentences_of(corpus: &Path, most: usize) -> anyhow::Result<Vec<String>> {
    let parts = for_each_document(
        &mut CorpusSource::detect(corpus)?.open()?,
        available_threads(),
        Vec::new,
        |found, place, document| {
            let spans = sentences(&document.text, Language::English);
            let own = spans.iter().map(|span| &document.text[span.start..span.end]);
            let own = own.filter(|sentence| !sentence.trim().is_empty());
            found.push((place, own.map(str::to_owned).collect::<Vec<_>>()));
        },
    )?;
    let mut documents: Vec<_> = parts.into_iter().flatten().collect();
    documents.sort_unstable_by_key(|(place, _)| *place);
    let all: Vec<String> = documents.into_iter().flat_map(|(_, own)| own).collect();
    Ok(evenly(&all, most))
}

/// `most` of these, at equal distances.
pub(super) fn evenly<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    let count = most.min(all.len());
    (0..count)
        .map(|index| all[index * all.len() / count].clone())
        .collect()
}

/// Sentences of a whole corpus, and how many of them are different.
pub(super) fn repetition(corpus: &Path) -> anyhow::Result<(u64, u64)> {
    let parts = for_each_document(
        &mut CorpusSource::detect(corpus)?.open()?,
        available_threads(),
        || (0_u64, HashSet::new()),
        |(count, different), _, document| {
            for span in sentences(&document.text, Language::English) {
                *count += 1;
                different.insert(TextKey::of(&document.text[span.start..span.end]));
            }
        },
    )?;
    let (mut count, mut different) = (0, HashSet::new());
    for (part, keys) in parts {
        count += part;
        different.extend(keys);
    }
    Ok((count, different.len() as u64))
}
