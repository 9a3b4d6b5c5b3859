//! From a trained tagger to the files of a bundle.

use std::collections::BTreeMap;
use std::ops::Range;

use super::manifest::{FORMAT, Manifest, PartRef, ShardRef, VERSION};
use super::open::TaggerFacts;
use super::rankers::{self, Coded, Hints};
use super::{Bits, BundleError, Opening, PageEncoder, PublishError, encoders, neighbours, parts};
use crate::model::ranker::ClusterRankers;
use crate::model::tagger::Tagger;

/// Small clusters share a shard up to this size; a larger one has a shard of its own, so that a text that asks for one
/// cluster does not fetch another.
const SHARD_BYTES: usize = 24 << 10;

/// What the manifest says about a model beyond its weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFacts {
    pub name: String,
    pub documents: u64,
    pub metrics: BTreeMap<String, f64>,
    pub licence_notes: Vec<String>,
    /// Parts that tagging does without, by role.
    pub extra: BTreeMap<String, Vec<u8>>,
    /// [`Manifest::text_bytes`].
    pub text_bytes: Option<u64>,
}

/// The files of a bundle, to be written parts first and manifest last.
#[derive(Clone, Debug)]
pub struct Published {
    pub manifest: Manifest,
    pub parts: Vec<(PartRef, Vec<u8>)>,
}

impl Published {
    /// Opens the core as a page does: what a reader would refuse is better refused here.
    fn check_core(&self) -> Result<(), BundleError> {
        let manifest = serde_json::to_vec(&self.manifest).expect("a manifest is plain data");
        let mut opening = Opening::new(&manifest)?;
        for (role, part) in &self.manifest.core {
            let bytes = self.parts.iter().find(|(held, _)| held == part);
            opening.bring(role, bytes.map(|(_, bytes)| bytes.clone()).unwrap_or_default())?;
        }
        opening.finish().map(|_| ())
    }
}

/// Lays a tagger out as a bundle. `encoder` computes its sentence vectors, where something looks at them.
pub fn publish(
    tagger: &Tagger,
    encoder: Option<PageEncoder<'_>>,
    rankers: &[ClusterRankers],
    bits: Bits,
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
            PageEncoder::Lsa(lsa) => parts::write_lsa(lsa, bits),
            PageEncoder::Static(words) => {
                put("tokenizer", encoders::write_tokenizer(words.tokenizer())?);
                encoders::write_static(words, bits)
            }
            PageEncoder::Bert(bert) => {
                put("tokenizer", encoders::write_tokenizer(bert.tokenizer())?);
                encoders::write_bert(bert, bits)?
            }
        };
        put(encoder.name(), bytes);
    }
    if let Some(graph) = tagger.matcher.graph() {
        put("matcher", parts::write_matcher(graph, bits));
    }
    // Hints come from the bytes that a reader gets, so that both sides code against the same numbers.
    let mut documents = Vec::new();
    if let Some(remembered) = &tagger.neighbours {
        let bytes = neighbours::write_neighbours(remembered, tagger.tfidf.len());
        documents =
            neighbours::read_neighbours("neighbours", &bytes, tagger.tfidf.len(), tagger.labels.len())?;
        put("neighbours", bytes);
    }
    if let Some(linear) = tagger.matcher.linear() {
        let hints = Hints::new(&tagger.tfidf, &[], rankers.len());
        let coded = Coded::new(
            &hints,
            &[linear],
            step(CLUSTER_STEP, tagger.score.cluster_exponent, bits),
            bits,
        );
        let tables = Coded::tables([&coded]);
        put("linear-codes", rankers::write_tables(&tables));
        put("linear", coded.finish(&tables));
    }
    let hints = Hints::new(&tagger.tfidf, &documents, tagger.labels.len());
    let rarest = (tagger.labels.iter()).fold(0.0f32, |most, label| most.max(label.log_inverse_propensity));
    let step = step(
        LABEL_STEP,
        tagger.score.margin.steepest(rarest) * tagger.score.label_exponent,
        bits,
    );
    let runs = runs(rankers);
    let coded: Vec<Coded> = runs
        .iter()
        .map(|run| {
            Coded::new(
                &hints,
                &rankers[run.clone()].iter().collect::<Vec<_>>(),
                step,
                bits,
            )
        })
        .collect();
    let tables = Coded::tables(&coded);
    put("ranker-codes", rankers::write_tables(&tables));
    let mut extra = BTreeMap::new();
    for (role, bytes) in facts.extra {
        let part = PartRef::of(&role, &bytes);
        extra.insert(role, part.clone());
        parts.push((part, bytes));
    }
    let mut shards = Vec::new();
    for (run, coded) in runs.into_iter().zip(coded) {
        let content = coded.finish(&tables);
        let part = PartRef::of("rankers", &content);
        parts.push((part.clone(), content));
        shards.push(ShardRef {
            clusters: (run.start as u32..run.end as u32).collect(),
            part,
        });
    }
    let manifest = Manifest {
        format: FORMAT.into(),
        version: VERSION,
        name: facts.name,
        language: tagger.tfidf.language().tag().to_owned(),
        encoder: encoder.map_or("none", PageEncoder::name).into(),
        quantisation: bits.name().into(),
        labels: tagger.labels.len() as u64,
        clusters: rankers.len() as u64,
        documents: facts.documents,
        metrics: facts.metrics,
        licence_notes: facts.licence_notes,
        core,
        extra,
        shards,
        text_bytes: facts.text_bytes,
    };
    let published = Published { manifest, parts };
    published.check_core()?;
    Ok(published)
}

/// Clusters whose rankers go into one shard each time.
fn runs(rankers: &[ClusterRankers]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (cluster, rankers) in rankers.iter().enumerate() {
        bytes += about_bytes(rankers);
        match runs.last_mut() {
            Some(run) if bytes <= SHARD_BYTES => run.end = cluster + 1,
            _ => {
                bytes = about_bytes(rankers);
                runs.push(cluster..cluster + 1);
            }
        }
    }
    runs
}

/// Steps of a label's log-odds that the weights of its words are rounded to. Texts have unit length, so rounding moves a margin by 0.29
/// steps (one standard deviation). Half a step takes one bit more a weight; this one keeps probabilities within 0.005
/// (docs/results/kernels.md, EURLEX57K).
const LABEL_STEP: f32 = 0.008;
/// The same for clusters. They are asked or not by a threshold, so rounding must not push many across: the linear matcher is more exact.
const CLUSTER_STEP: f32 = 0.005;

/// The step of weights whose sum is multiplied by `factor` on its way to a log-odds.
fn step(of_log_odds: f32, factor: f32, bits: Bits) -> f32 {
    let coarser = match bits {
        Bits::Four => 4.0,
        Bits::Eight => 1.0,
    };
    coarser * of_log_odds / factor.abs().max(1.0)
}

/// About how many bytes a cluster's rankers take in a shard.
fn about_bytes(rankers: &ClusterRankers) -> usize {
    rankers.weight_count() * 5 / 4 + rankers.labels().len() * (8 + rankers.dims())
}
