//! From a trained tagger to the files of a bundle.

use std::collections::BTreeMap;

use super::manifest::{FORMAT, Manifest, PartRef, ShardRef, VERSION};
use super::open::TaggerFacts;
use super::{PageEncoder, PublishError, encoders, parts};
use crate::model::ranker::{ClusterRankers, LabelRanker};
use crate::model::tagger::Tagger;

/// Small clusters share a shard up to this size; a larger one has a shard of its own, so that a text that asks for one
/// cluster does not fetch another.
const SHARD_BYTES: usize = 64 << 10;

/// What the manifest says about a model beyond its weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFacts {
    pub name: String,
    pub documents: u64,
    pub metrics: BTreeMap<String, f64>,
    pub licence_notes: Vec<String>,
    /// Parts that tagging does without, by role.
    pub extra: BTreeMap<String, Vec<u8>>,
}

/// The files of a bundle, to be written parts first and manifest last.
#[derive(Clone, Debug)]
pub struct Published {
    pub manifest: Manifest,
    pub parts: Vec<(PartRef, Vec<u8>)>,
}

/// Lays a tagger out as a bundle. `encoder` computes its sentence vectors, where something looks at them.
pub fn publish(
    tagger: &Tagger,
    encoder: Option<PageEncoder<'_>>,
    rankers: &[ClusterRankers],
    facts: ModelFacts,
) -> Result<Published, PublishError> {
    let mut parts: Vec<(PartRef, Vec<u8>)> = Vec::new();
    let mut core = BTreeMap::new();
    let mut put = |role: &str, bytes: Vec<u8>| {
        let part = PartRef::of(role, &bytes);
        core.insert(role.to_owned(), part.clone());
        parts.push((part, bytes));
    };
    let json = |value: serde_json::Result<Vec<u8>>| value.expect("plain data is always JSON");
    put("labels", parts::write_labels(&tagger.labels));
    put("vocabulary", parts::write_vocabulary(&tagger.tfidf));
    put("lexicon", json(serde_json::to_vec(&tagger.lexicon)));
    put("tagger", json(serde_json::to_vec(&TaggerFacts::of(tagger))));
    if let Some(encoder) = encoder {
        let bytes = match encoder {
            PageEncoder::Lsa(lsa) => parts::write_lsa(lsa),
            PageEncoder::Static(words) => {
                put("tokenizer", encoders::write_tokenizer(words.tokenizer())?);
                encoders::write_static(words)
            }
            PageEncoder::Bert(bert) => {
                put("tokenizer", encoders::write_tokenizer(bert.tokenizer())?);
                encoders::write_bert(bert)?
            }
        };
        put(encoder.name(), bytes);
    }
    if let Some(linear) = tagger.matcher.linear() {
        let step = step(tagger.score.cluster_exponent);
        put("linear", parts::write_rankers(&[&without_noughts(linear)], step));
    }
    if let Some(graph) = tagger.matcher.graph() {
        put("matcher", parts::write_matcher(graph));
    }
    if let Some(neighbours) = &tagger.neighbours {
        put("neighbours", parts::write_neighbours(neighbours));
    }
    let mut extra = BTreeMap::new();
    for (role, bytes) in facts.extra {
        let part = PartRef::of(&role, &bytes);
        extra.insert(role, part.clone());
        parts.push((part, bytes));
    }
    let mut shards = Vec::new();
    let mut next = 0;
    while next < rankers.len() {
        let mut bytes = about_bytes(&rankers[next]);
        let mut end = next + 1;
        while end < rankers.len() && bytes + about_bytes(&rankers[end]) <= SHARD_BYTES {
            bytes += about_bytes(&rankers[end]);
            end += 1;
        }
        let held: Vec<&ClusterRankers> = rankers[next..end].iter().collect();
        let content = parts::write_rankers(
            &held,
            step(tagger.score.margin.slope * tagger.score.label_exponent),
        );
        let part = PartRef::of("rankers", &content);
        parts.push((part.clone(), content));
        shards.push(ShardRef {
            clusters: (next as u32..end as u32).collect(),
            part,
        });
        next = end;
    }
    let manifest = Manifest {
        format: FORMAT.into(),
        version: VERSION,
        name: facts.name,
        language: tagger.tfidf.language().tag().to_owned(),
        encoder: encoder.map_or("none", PageEncoder::name).into(),
        quantisation: "int8".into(),
        labels: tagger.labels.len() as u64,
        clusters: rankers.len() as u64,
        documents: facts.documents,
        metrics: facts.metrics,
        licence_notes: facts.licence_notes,
        core,
        extra,
        shards,
    };
    Ok(Published { manifest, parts })
}

/// The step that word weights are rounded to when their sum is multiplied by `factor` on its way to a log-odds. Texts have unit length, so
/// rounding moves the sum by 0.29 steps (one standard deviation), and with this step a probability by at most 0.001.
fn step(factor: f32) -> f32 {
    0.01 / factor.abs().max(1.0)
}

/// The linear matcher without the weights that would round to zero in eight bits. It gives most words a weight in every cluster,
/// most of them tiny: what says nothing is a third of its bytes.
fn without_noughts(rankers: &ClusterRankers) -> ClusterRankers {
    let heard = |mut label: LabelRanker| {
        let largest = (label.words.iter()).fold(0.0_f32, |most, (_, weight)| most.max(weight.abs()));
        let half_a_step = largest / 127.0 / 2.0;
        label.words.retain(|(_, weight)| weight.abs() > half_a_step);
        label
    };
    let labels = rankers.to_labels().into_iter().map(heard);
    ClusterRankers::new(labels.collect(), rankers.dims())
}

/// About how many bytes a cluster's rankers take in a shard.
fn about_bytes(rankers: &ClusterRankers) -> usize {
    2 * rankers.weight_count() + rankers.labels().len() * (16 + rankers.dims())
}
