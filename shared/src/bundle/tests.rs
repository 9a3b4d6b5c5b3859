//! A small tagger there and back. What broken bundles do is in [`hostile`].

mod hostile;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::rankers::{Coded, Hints, write_tables};
use super::wire::{Reader, Writer};
use super::{
    Bits, Bundle, BundleError, Manifest, ModelFacts, Opening, PageEncoder, PartRef, PublishError, Published,
    ShardRef, publish,
};
use crate::features::{TfIdfBuilder, TfIdfOptions};
use crate::keygraph::{self, EntityLexicon};
use crate::model::encoder::bert::{Affine, Bert, BertEncoder, BertShape, BertWeights, Layer, Norm};
use crate::model::encoder::{Lsa, SentenceEncoder, StaticEncoder, VectorTable};
use crate::model::matcher::{Matcher, MatcherConfig, NamedTensor};
use crate::model::neighbours::{Neighbours, Remembered};
use crate::model::ranker::{ClusterRankers, LabelRanker};
use crate::model::reach::Reach;
use crate::model::score::{Score, Weight};
use crate::model::tagger::{ClusterMatcher, FinishOptions, LsaSentences, ReadOptions, TagLabel, Tagger};
use crate::text::Language;
use crate::text::wordpiece::{Cleaning, WordPiece};

const TEXTS: [&str; 4] = [
    "The price of cocoa rose. Farmers in Ghana were glad of the cocoa price.",
    "The price of sugar fell. Brazil sold sugar in London.",
    "Doctors tested a vaccine. The vaccine stopped the fever.",
    "A fever spread in London. Doctors closed schools.",
];
const READ: ReadOptions = ReadOptions {
    keygraph: true,
    spans: true,
};
const DIMS: usize = 6;
const LABELS: usize = 5;
const CLUSTERS: usize = 2;

fn random(rng: &mut ChaCha8Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

fn rankers(rng: &mut ChaCha8Rng, labels: &[u32], terms: usize, dims: usize) -> ClusterRankers {
    let rankers = labels.iter().map(|&label| LabelRanker {
        label,
        bias: rng.random_range(-1.0..1.0),
        words: (0..terms as u32)
            .filter(|term| (term + label) % 3 == 0)
            .map(|term| (term, rng.random_range(-2.0..2.0)))
            .collect(),
        embedding: random(rng, dims),
    });
    ClusterRankers::new(rankers.collect(), dims)
}

/// The encoders a bundle can carry, all weights random.
enum Voice {
    Lsa(Lsa),
    Static(StaticEncoder),
    Bert(Box<BertEncoder>),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Lsa,
    Static,
    Bert,
}

const KINDS: [Kind; 3] = [Kind::Lsa, Kind::Static, Kind::Bert];

impl Voice {
    fn page(&self) -> PageEncoder<'_> {
        match self {
            Self::Lsa(lsa) => PageEncoder::Lsa(lsa),
            Self::Static(words) => PageEncoder::Static(words),
            Self::Bert(bert) => PageEncoder::Bert(bert),
        }
    }
}

fn tokenizer() -> WordPiece {
    let words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nprice\nof\ncocoa\nsugar\nrose\nfell\n##s\nfever\nvaccine\nthe\nlondon\n.";
    WordPiece::from_vocabulary(words, Cleaning::UNCASED).unwrap()
}

fn transformer(rng: &mut ChaCha8Rng) -> BertWeights {
    let tokens = tokenizer().len();
    let norm = || Norm {
        gamma: vec![1.0; DIMS],
        beta: vec![0.1; DIMS],
    };
    let inner = 10;
    let mut affine = |outputs: usize, inputs: usize| Affine {
        weights: random(rng, outputs * inputs),
        bias: random(rng, outputs),
    };
    let layers = (0..2).map(|_| Layer {
        attention: affine(3 * DIMS, DIMS),
        attention_output: affine(DIMS, DIMS),
        attention_norm: norm(),
        inner: affine(inner, DIMS),
        outer: affine(DIMS, inner),
        outer_norm: norm(),
    });
    let layers = layers.collect();
    BertWeights {
        shape: BertShape {
            width: DIMS,
            heads: 2,
            layers: 2,
            inner,
            vocabulary: tokens,
            positions: 12,
            epsilon: 1e-12,
        },
        words: random(rng, tokens * DIMS),
        positions: random(rng, 12 * DIMS),
        norm: norm(),
        layers,
    }
}

/// A tagger with every part a bundle can have, all weights random.
fn model(kind: Kind) -> (Tagger, Voice, Vec<ClusterRankers>) {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut builder = TfIdfBuilder::new(
        TfIdfOptions {
            min_df: 1,
            ..Default::default()
        },
        Language::English,
    );
    for text in TEXTS {
        builder.add(text);
    }
    let tfidf = Arc::new(builder.finish());
    let terms = tfidf.len();
    let (voice, encoder): (Voice, Box<dyn SentenceEncoder + Send + Sync>) = match kind {
        Kind::Lsa => {
            let lsa = Lsa::new(VectorTable::quantise(&random(&mut rng, terms * DIMS), DIMS).unwrap());
            let encoder = LsaSentences::new(Arc::clone(&tfidf), lsa.clone());
            (Voice::Lsa(lsa), Box::new(encoder))
        }
        Kind::Static => {
            let rows = random(&mut rng, tokenizer().len() * DIMS);
            let words = StaticEncoder::new(tokenizer(), VectorTable::quantise(&rows, DIMS).unwrap()).unwrap();
            (Voice::Static(words.clone()), Box::new(words))
        }
        Kind::Bert => {
            let weights = transformer(&mut rng);
            let model = Bert::int8(&weights, &[vec![2, 4, 5, 6, 3], vec![2, 9, 3]]).unwrap();
            let bert = BertEncoder::new(tokenizer(), model, 8).unwrap();
            (Voice::Bert(Box::new(bert.clone())), Box::new(bert))
        }
    };
    let config = MatcherConfig::fast(DIMS, CLUSTERS, terms);
    let tensors = config.tensors().into_iter().map(|spec| {
        let data = random(&mut rng, spec.len())
            .into_iter()
            .map(|weight| 0.2 * weight.abs())
            .collect();
        NamedTensor {
            name: spec.name,
            shape: spec.shape,
            data,
        }
    });
    let graph = Box::new(Matcher::new(config.clone(), tensors.collect()).unwrap());
    let linear = rankers(&mut rng, &[0, 1], terms, 0);
    let shards = vec![
        rankers(&mut rng, &[0, 2, 4], terms, DIMS),
        rankers(&mut rng, &[1, 3], terms, DIMS),
    ];
    let remembered: Vec<Remembered> = (TEXTS.iter().enumerate())
        .map(|(nth, text)| Remembered::new(&tfidf.transform(text), &[nth as u32], 8))
        .collect();
    let tagger = Tagger {
        neighbours: Some(Neighbours::new(&remembered, terms)),
        names: None,
        encoder: Some(encoder),
        tfidf,
        lexicon: EntityLexicon::new(["ghana"]),
        keygraph: keygraph::Options::default(),
        dims: DIMS,
        encoded_sentences: 3,
        rank_embedding: true,
        embedding_weight: 0.7,
        matcher: ClusterMatcher::Both {
            linear,
            graph,
            share: 0.4,
        },
        labels: (0..LABELS)
            .map(|label| TagLabel {
                name: format!("label {label} Ω"),
                count: label as u32 + 1,
                log_inverse_propensity: 0.1 * label as f32,
            })
            .collect(),
        clusters: vec!["trade".into(), "health".into()],
        score: Score {
            neighbours: Weight {
                common: 0.4,
                rarity: 0.0,
            },
            ..Score::default()
        },
        reach: Reach::default(),
    };
    (tagger, voice, shards)
}

fn published(kind: Kind, bits: Bits) -> Published {
    let (tagger, voice, shards) = model(kind);
    publish(
        &tagger,
        Some(voice.page()),
        &shards,
        bits,
        ModelFacts {
            name: "small".into(),
            documents: 4,
            ..Default::default()
        },
    )
    .unwrap()
}

fn bytes_of<'a>(published: &'a Published, part: &PartRef) -> &'a [u8] {
    &published
        .parts
        .iter()
        .find(|(held, _)| held == part)
        .expect("every part is published")
        .1
}

fn next_part(opening: &Opening) -> Option<(String, PartRef)> {
    opening
        .wanted()
        .next()
        .map(|(role, part)| (role.to_owned(), part.clone()))
}

/// Brings everything; any fault on the way is the answer.
fn open(published: &Published) -> Result<Bundle, BundleError> {
    open_by(&serde_json::to_vec(&published.manifest).unwrap(), published)
}

/// The same with another manifest, as long as it names files that are there.
fn open_by(manifest: &[u8], published: &Published) -> Result<Bundle, BundleError> {
    let bytes = |part: &PartRef| {
        let held = published.parts.iter().find(|(held, _)| held.file == part.file);
        held.map(|(_, bytes)| bytes.clone()).unwrap_or_default()
    };
    let mut opening = Opening::new(manifest)?;
    while let Some((role, part)) = next_part(&opening) {
        opening.bring(&role, bytes(&part))?;
    }
    let mut bundle = opening.finish()?;
    for shard in bundle.shards_for(&[0, 1]) {
        let part = bundle.manifest().shards[shard].part.clone();
        bundle.bring_shard(shard, &bytes(&part))?;
    }
    Ok(bundle)
}

/// Puts other bytes in the place of a part, under a true checksum: its reader meets them, not only the guard before it.
fn replace(published: &mut Published, victim: usize, bytes: Vec<u8>) {
    let new = PartRef::of("mutated", &bytes);
    let old = std::mem::replace(&mut published.parts[victim], (new.clone(), bytes)).0;
    let manifest = &mut published.manifest;
    let shards = manifest.shards.iter_mut().map(|shard| &mut shard.part);
    for part in manifest.core.values_mut().chain(shards) {
        if *part == old {
            *part = new.clone();
        }
    }
}

/// [`replace`] for the core part of this role.
fn with_core(published: &Published, role: &str, bytes: Vec<u8>) -> Published {
    let mut changed = published.clone();
    let part = changed.manifest.core_part(role).unwrap();
    let victim = changed.parts.iter().position(|(held, _)| held == part).unwrap();
    replace(&mut changed, victim, bytes);
    changed
}

/// Tags a text with everything an answer can hold.
fn tag(bundle: &Bundle, text: &str) {
    if let Ok(prepared) = bundle.prepare(text, READ) {
        let options = FinishOptions {
            top: 3,
            explain: true,
            keygraph: true,
        };
        bundle.finish(&prepared, options);
    }
}

#[test]
fn the_manifest_says_how_far_a_text_reaches() {
    let mut published = published(Kind::Lsa, Bits::Eight);
    assert_eq!(published.manifest.text_bytes, None);
    published.manifest.text_bytes = Some(77);
    let shards = published.manifest.shards.iter();
    let shards = shards.map(|shard| (&shard.clusters[..], shard.part.bytes));
    let bundle = open(&published).unwrap();
    assert_eq!(bundle.tagger().reach, Reach::new(CLUSTERS, shards, Some(77)));
}

#[test]
fn a_bundle_gives_the_tags_of_the_model_it_was_made_from() {
    for kind in KINDS {
        same_tags(kind, Bits::Eight, 0.01);
    }
}

#[test]
fn four_bits_give_much_the_same_tags_in_fewer_bytes() {
    for kind in KINDS {
        same_tags(kind, Bits::Four, 0.15);
        let [four, eight] = [Bits::Four, Bits::Eight].map(|bits| published(kind, bits).manifest);
        assert!(four.core_bytes() < eight.core_bytes(), "{kind:?}");
        assert_eq!((&*four.quantisation, &*eight.quantisation), ("int4", "int8"));
    }
}

fn same_tags(kind: Kind, bits: Bits, tolerance: f32) {
    let (tagger, voice, shards) = model(kind);
    let bundle = open(&published(kind, bits)).unwrap();
    assert_eq!(bundle.manifest().encoder, voice.page().name());
    // In eight bits the encoder travels whole: the same bytes give the same vectors, bit for bit.
    let sentences = [
        "The price of cocoa rose.",
        "",
        "fevers in London, sugar and sugar and cocoa prices of vaccines",
    ];
    let encode = |tagger: &Tagger| tagger.encoder.as_ref().unwrap().encode(&sentences);
    if bits == Bits::Eight {
        assert_eq!(encode(bundle.tagger()), encode(&tagger), "{kind:?}");
    }
    assert!(encode(&tagger)[..DIMS].iter().any(|x| *x != 0.0), "{kind:?}");
    let options = FinishOptions {
        top: LABELS,
        explain: true,
        keygraph: true,
    };
    for text in TEXTS.iter().copied().chain(["", "Unknown words only."]) {
        let prepared = tagger
            .prepare(
                text,
                ReadOptions {
                    keygraph: true,
                    spans: true,
                },
            )
            .unwrap();
        let expected = tagger.finish(&prepared, |cluster| shards.get(cluster as usize), options);
        let found = bundle.finish(&bundle.prepare(text, READ).unwrap(), options);
        assert_eq!(found.keygraph, expected.keygraph);
        assert!(found.missing_clusters.is_empty());
        for tag in &expected.tags {
            let twin = found.tags.iter().find(|twin| twin.label == tag.label).unwrap();
            assert!(
                (twin.score - tag.score).abs() < tolerance,
                "{text:?}: {twin:?} instead of {tag:?}"
            );
        }
    }
}

#[test]
fn rankers_that_have_not_come_are_named_in_the_answer() {
    let published = published(Kind::Lsa, Bits::Eight);
    let mut opening = Opening::new(&serde_json::to_vec(&published.manifest).unwrap()).unwrap();
    while let Some((role, part)) = next_part(&opening) {
        opening
            .bring(&role, bytes_of(&published, &part).to_vec())
            .unwrap();
    }
    let bundle = opening.finish().unwrap();
    let answer = bundle.finish(&bundle.prepare(TEXTS[0], READ).unwrap(), FinishOptions::default());
    assert!(answer.tags.is_empty());
    let mut missing = answer.missing_clusters;
    missing.sort_unstable();
    assert_eq!(missing, [0, 1]);
}

#[test]
fn bytes_the_manifest_did_not_promise_are_refused() {
    let published = published(Kind::Lsa, Bits::Eight);
    let mut opening = Opening::new(&serde_json::to_vec(&published.manifest).unwrap()).unwrap();
    let part = published.manifest.core_part("labels").unwrap();
    let mut bytes = bytes_of(&published, part).to_vec();
    bytes[20] ^= 1;
    assert!(matches!(
        opening.bring("labels", bytes),
        Err(BundleError::Checksum { .. })
    ));
    assert!(matches!(
        opening.bring("no such part", vec![]),
        Err(BundleError::MissingPart { .. })
    ));
    assert!(matches!(opening.finish(), Err(BundleError::MissingPart { .. })));
}

#[test]
fn a_vertex_is_worth_what_its_cluster_loses_without_it_in_every_tag() {
    let (mut tagger, _, shards) = model(Kind::Static);
    if let ClusterMatcher::Both { graph, .. } = tagger.matcher {
        tagger.matcher = ClusterMatcher::Graph(graph);
    }
    let options = FinishOptions {
        top: LABELS,
        explain: true,
        keygraph: true,
    };
    let prepared = tagger.prepare(TEXTS[0], READ).unwrap();
    let answer = tagger.finish(&prepared, |cluster| shards.get(cluster as usize), options);
    let (matcher, input) = (tagger.matcher.graph().unwrap(), prepared.graph.as_ref().unwrap());
    let whole = matcher.forward(input).unwrap();
    let clusters: BTreeSet<u32> = answer.tags.iter().map(|tag| tag.cluster).collect();
    assert_eq!(clusters.len(), CLUSTERS, "tags of every cluster");
    for tag in &answer.tags {
        let vertices = &tag.evidence.as_ref().unwrap().vertices;
        assert!(!vertices.is_empty());
        for found in vertices {
            let place = input.origin.iter().position(|&v| v as usize == found.vertex);
            let without = matcher.forward_without(input, place.unwrap()).unwrap();
            let cluster = tag.cluster as usize;
            assert_eq!(found.weight, whole[cluster] - without[cluster]);
        }
    }
}

#[test]
fn weights_of_the_linear_matcher_that_round_to_nothing_are_not_published() {
    let (mut tagger, voice, shards) = model(Kind::Lsa);
    let ranker = |label, words| LabelRanker {
        label,
        bias: 0.5,
        words,
        embedding: Vec::new(),
    };
    let rankers = vec![
        ranker(0, vec![(0, 2.54), (1, 0.002), (2, -0.002), (3, 0.003)]),
        ranker(1, vec![(1, -1.0)]),
    ];
    tagger.matcher = ClusterMatcher::Linear(ClusterRankers::new(rankers, 0));
    let published = publish(
        &tagger,
        Some(voice.page()),
        &shards,
        Bits::Eight,
        ModelFacts::default(),
    )
    .unwrap();
    let bundle = open(&published).unwrap();
    let labels = bundle.tagger().matcher.linear().unwrap().to_labels();
    let words = |label: usize| labels[label].words.iter().map(|word| word.0).collect::<Vec<_>>();
    assert_eq!((words(0), words(1)), (vec![0, 3], vec![1]));
}
