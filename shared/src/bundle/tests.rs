//! A small tagger there and back, and what mutated files do: never a panic, never a runaway allocation.

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
use crate::features::{SparseVector, TfIdfBuilder, TfIdfOptions};
use crate::keygraph::{self, EntityLexicon};
use crate::model::encoder::bert::{Affine, Bert, BertEncoder, BertShape, BertWeights, Layer, Norm};
use crate::model::encoder::{Lsa, SentenceEncoder, StaticEncoder, VectorTable};
use crate::model::matcher::{Matcher, MatcherConfig, NamedTensor};
use crate::model::neighbours::{MOST_WORDS, Neighbours, Remembered};
use crate::model::ranker::{ClusterRankers, LabelRanker};
use crate::model::reach::Reach;
use crate::model::score::Score;
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
            neighbours: 0.4,
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
fn mutated_parts_are_read_or_refused_but_never_panic() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let whole: Vec<Published> = [Bits::Four, Bits::Eight]
        .into_iter()
        .flat_map(|bits| KINDS.map(|kind| published(kind, bits)))
        .collect();
    let mut refused = 0;
    for round in 0..6000 {
        let mut bad = whole[round % whole.len()].clone();
        let victim = rng.random_range(0..bad.parts.len());
        let mut bytes = bad.parts[victim].1.clone();
        match rng.random_range(0..4) {
            0 => bytes.truncate(rng.random_range(0..bytes.len())),
            1 => {
                let at = rng.random_range(0..bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
            2 => {
                let at = rng.random_range(0..bytes.len());
                let run = rng.random_range(1..9).min(bytes.len() - at);
                bytes[at..at + run].fill(0xff);
            }
            _ => {
                let (a, b) = (rng.random_range(0..bytes.len()), rng.random_range(0..bytes.len()));
                bytes.swap(a, b);
            }
        }
        replace(&mut bad, victim, bytes);
        match open(&bad) {
            Ok(bundle) => tag(&bundle, TEXTS[round % TEXTS.len()]),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 2000, "only {refused} of 6000 mutations were noticed");
}

/// Paths of all numbers, as JSON pointers.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Array(list) => (list.iter().enumerate())
            .for_each(|(place, value)| numbers(value, &format!("{path}/{place}"), found)),
        Value::Object(map) => {
            (map.iter()).for_each(|(name, value)| numbers(value, &format!("{path}/{name}"), found))
        }
        _ => (),
    }
}

/// Every number of some JSON in turn, and in its place the numbers that a reader trusts at its peril.
fn extremes(json: &[u8]) -> Vec<(String, Vec<u8>)> {
    let whole: Value = serde_json::from_slice(json).unwrap();
    let mut paths = Vec::new();
    numbers(&whole, "", &mut paths);
    assert!(!paths.is_empty());
    let mut changed = Vec::new();
    for path in paths {
        for number in [
            json!(0),
            json!(1),
            json!(1_u64 << 24),
            json!(1_u64 << 31),
            json!(1_u64 << 40),
            json!(u64::MAX),
            json!(-1),
            json!(1e39),
            json!(-1e39),
            json!(1e300),
        ] {
            let mut value = whole.clone();
            let said = format!("{path} = {number}");
            *value.pointer_mut(&path).unwrap() = number;
            changed.push((said, serde_json::to_vec(&value).unwrap()));
        }
    }
    changed
}

#[test]
fn extreme_numbers_in_the_json_of_a_bundle_are_taken_or_refused_at_once() {
    let mut whole = published(Kind::Lsa, Bits::Eight);
    whole.manifest.text_bytes = Some(1000);
    whole.manifest.metrics.insert("P@1".into(), 90.0);
    let part = |role: &str| bytes_of(&whole, whole.manifest.core_part(role).unwrap());
    // The JSON that a binary part begins with, and what follows it.
    let begins_with_json = |role: &'static str, kind: [u8; 4]| {
        let bytes = part(role);
        let json = Reader::new(role, bytes, kind).unwrap().string("json").unwrap();
        let head = |json: &str| {
            let mut head = Writer::new(kind);
            head.string(json);
            head.finish()
        };
        let rest = bytes[head(json).len()..].to_vec();
        let changed = extremes(json.as_bytes()).into_iter().map(move |(said, json)| {
            let head = head(std::str::from_utf8(&json).unwrap());
            (format!("{role}{said}"), [head, rest.clone()].concat())
        });
        changed
            .map(|(said, bytes)| (said, with_core(&whole, role, bytes)))
            .collect::<Vec<_>>()
    };
    let tagger = extremes(part("tagger")).into_iter();
    let tagger = tagger.map(|(said, json)| (format!("tagger{said}"), with_core(&whole, "tagger", json)));
    let mut cases: Vec<(String, Vec<u8>, Published)> = tagger
        .chain(begins_with_json("matcher", *b"GINB"))
        .chain(begins_with_json("vocabulary", *b"VOCA"))
        .map(|(said, bundle)| (said, serde_json::to_vec(&bundle.manifest).unwrap(), bundle))
        .collect();
    let manifest = extremes(&serde_json::to_vec(&whole.manifest).unwrap()).into_iter();
    cases.extend(manifest.map(|(said, json)| (format!("manifest{said}"), json, whole.clone())));
    let (mut taken, mut refused) = (0, 0);
    for (said, manifest, bundle) in cases {
        let begun = Instant::now();
        match open_by(&manifest, &bundle) {
            Ok(bundle) => {
                taken += 1;
                tag(&bundle, TEXTS[0]);
                // What is computed has the sizes of what was brought, whatever the numbers say.
                let prepared = bundle.prepare(TEXTS[0], READ).unwrap();
                assert_eq!(prepared.cluster_log_odds.len(), CLUSTERS, "{said}");
                assert_eq!(prepared.embedding.len(), DIMS, "{said}");
            }
            Err(fault) => {
                refused += 1;
                assert!(fault.to_string().len() < 600, "{said}: {fault}");
            }
        }
        // Generous: all of it takes milliseconds where nothing believes a number.
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{said} took {:?}",
            begun.elapsed()
        );
    }
    assert!(
        taken > 50 && refused > 150,
        "{taken} were taken, {refused} refused"
    );
}

/// The fault that a part in place of another brings.
#[track_caller]
fn fault_of(published: &Published, role: &str, bytes: Vec<u8>) -> String {
    open(&with_core(published, role, bytes)).unwrap_err().to_string()
}

#[test]
fn a_width_that_no_row_pays_for_is_refused() {
    let whole = published(Kind::Lsa, Bits::Eight);
    for dims in [0, 8193, 1 << 40] {
        let mut lsa = Writer::new(*b"LSAP");
        lsa.varint(dims);
        lsa.f32s(&[]);
        lsa.u8(8);
        lsa.i8s(&[]);
        let fault = fault_of(&whole, "lsa", lsa.finish());
        assert!(fault.contains("from 1 to 8192"), "{fault}");
    }
    // Nor may the facts claim one where there is no encoder.
    let (mut tagger, _, mut shards) = model(Kind::Lsa);
    tagger.rank_embedding = false;
    let linear = tagger.matcher.linear().unwrap().clone();
    tagger.matcher = ClusterMatcher::Linear(linear);
    for cluster in &mut shards {
        let rankers = cluster.to_labels().into_iter().map(|ranker| LabelRanker {
            embedding: Vec::new(),
            ..ranker
        });
        *cluster = ClusterRankers::new(rankers.collect(), 0);
    }
    let fault = publish(&tagger, None, &shards, Bits::Eight, ModelFacts::default()).unwrap_err();
    assert!(fault.to_string().contains("encoder"), "{fault}");
    tagger.dims = 0;
    let bundle = publish(&tagger, None, &shards, Bits::Eight, ModelFacts::default()).unwrap();
    assert_eq!(bundle.manifest.encoder, "none");
    open(&bundle).unwrap();
}

#[test]
fn a_vocabulary_that_unfolds_to_a_multiple_of_itself_is_refused() {
    let whole = published(Kind::Lsa, Bits::Eight);
    let vocabulary = |terms: usize, length: usize| {
        let mut part = Writer::new(*b"VOCA");
        part.string(&serde_json::to_string(&TfIdfOptions::default()).unwrap());
        part.string("\"en\"");
        part.varint(10);
        part.count(terms);
        for term in 0..terms {
            let same = if term == 0 { 0 } else { length - 4 };
            part.count(same);
            part.string(&format!("{}{term:04x}", "a".repeat(length - 4 - same)));
        }
        part.f32s(&vec![1.0; terms]);
        part.finish()
    };
    // 1,025 bytes of one term; then 20,000 terms of 1,000 bytes in some 200 kB.
    let fault = fault_of(&whole, "vocabulary", vocabulary(2, 1025));
    assert!(fault.contains("found 1025, expected at most 1024"), "{fault}");
    let fault = fault_of(&whole, "vocabulary", vocabulary(20_000, 1000));
    assert!(fault.contains("bytes of terms"), "{fault}");
    super::parts::read_vocabulary("vocabulary", &vocabulary(300, 300)).unwrap();
}

#[test]
fn a_term_that_no_reader_takes_is_not_published() {
    let (mut tagger, voice, shards) = model(Kind::Static);
    let mut parts = tagger.tfidf.to_parts();
    *parts.terms.last_mut().unwrap() = "z".repeat(2000);
    tagger.tfidf = Arc::new(crate::features::TfIdf::from_parts(parts).unwrap());
    let fault = publish(
        &tagger,
        Some(voice.page()),
        &shards,
        Bits::Eight,
        ModelFacts::default(),
    );
    let fault = fault.unwrap_err();
    assert!(matches!(fault, PublishError::Unreadable { .. }));
    assert!(fault.to_string().contains("bytes of a term"), "{fault}");
}

#[test]
fn a_document_is_remembered_by_a_thousand_words_at_most() {
    let document = |words: u32| Remembered {
        words: SparseVector {
            indices: (0..words).collect(),
            values: (0..words).map(|word| 0.5 + word as f32 / 1e4).collect(),
        },
        labels: vec![0],
    };
    let most = MOST_WORDS as u32;
    // What is written is clipped to the heaviest.
    let long = Neighbours::new(&[document(most + 5)], 3000);
    let read =
        super::parts::read_neighbours("near", &super::parts::write_neighbours(&long), 3000, 1).unwrap();
    assert_eq!(read[0].words.indices, (5..most + 5).collect::<Vec<_>>());
    assert_eq!(
        Remembered::new(&document(most + 5).words, &[], 5000).words.len(),
        MOST_WORDS
    );
    // What is read is refused.
    let mut part = Writer::new(*b"NEAR");
    part.count(1);
    part.f32(0.001);
    part.ascending(&(0..=most).collect::<Vec<_>>());
    part.i8s(&vec![100; MOST_WORDS + 1]);
    part.ascending(&[0]);
    let fault = super::parts::read_neighbours("near", &part.finish(), 3000, 1).unwrap_err();
    assert!(fault.to_string().contains("at most 1024"), "{fault}");
}

#[test]
fn a_label_in_two_clusters_is_refused_within_a_shard_and_across() {
    let (tagger, voice, shards) = model(Kind::Lsa);
    let twice = vec![shards[0].clone(), shards[0].clone()];
    let facts = ModelFacts::default();
    let within = publish(&tagger, Some(voice.page()), &twice, Bits::Eight, facts).unwrap();
    assert_eq!(within.manifest.shards.len(), 1);
    let refusal = "found 0, expected one that stands in no other cluster";
    let fault = open(&within).unwrap_err().to_string();
    assert!(fault.contains(refusal), "{fault}");

    // A part of one cluster, brought for two. It is coded without remembered documents.
    let hints = Hints::new(&tagger.tfidf, &[], LABELS);
    let coded = Coded::new(&hints, &[&shards[0]], 0.01, Bits::Eight);
    let tables = Coded::tables([&coded]);
    let content = coded.finish(&tables);
    let part = PartRef::of("rankers", &content);
    let nothing = super::parts::write_neighbours(&Neighbours::default());
    let across = with_core(&within, "neighbours", nothing);
    let mut across = with_core(&across, "ranker-codes", write_tables(&tables));
    across.parts.push((part.clone(), content));
    let shard = |cluster| ShardRef {
        clusters: vec![cluster],
        part: part.clone(),
    };
    across.manifest.shards = vec![shard(0), shard(1)];
    let fault = open(&across).unwrap_err().to_string();
    assert!(fault.contains(refusal), "{fault}");

    // The same shard may come again.
    across.manifest.shards.truncate(1);
    let mut bundle = open(&across).unwrap();
    bundle.bring_shard(0, bytes_of(&across, &part)).unwrap();
}

#[test]
fn a_manifest_that_says_other_than_the_parts_is_refused() {
    let whole = published(Kind::Lsa, Bits::Eight);
    let fault = |change: fn(&mut Manifest)| {
        let mut bad = whole.clone();
        change(&mut bad.manifest);
        open(&bad).unwrap_err().to_string()
    };
    assert!(fault(|manifest| manifest.language = "und".into()).contains("expected en"));
    assert!(fault(|manifest| manifest.encoder = "bert".into()).contains("found bert, expected lsa"));
    assert!(fault(|manifest| manifest.encoder = "x".repeat(1 << 20)).len() < 300);
    let mut tagged = whole.clone();
    tagged.manifest.language = "en-GB".into();
    open(&tagged).unwrap();
}

#[test]
fn an_encoder_in_single_precision_is_not_published() {
    let (tagger, _, shards) = model(Kind::Bert);
    let weights = transformer(&mut ChaCha8Rng::seed_from_u64(1));
    let dense = BertEncoder::new(tokenizer(), Bert::dense(&weights).unwrap(), 8).unwrap();
    let fault = publish(
        &tagger,
        Some(PageEncoder::Bert(&dense)),
        &shards,
        Bits::Eight,
        ModelFacts::default(),
    );
    assert_eq!(fault.unwrap_err(), PublishError::Precision);
}

#[test]
fn an_encoder_of_another_width_or_none_at_all_is_refused() {
    let (mut tagger, voice, shards) = model(Kind::Static);
    let facts = ModelFacts::default;
    let without = publish(&tagger, None, &shards, Bits::Eight, facts()).unwrap_err();
    let PublishError::Unreadable { fault } = without else {
        panic!("{without}")
    };
    assert!(matches!(fault, BundleError::MissingPart { .. }));
    tagger.dims = DIMS + 1;
    let wide = publish(&tagger, Some(voice.page()), &shards, Bits::Eight, facts()).unwrap_err();
    assert!(wide.to_string().contains("encoder"));
}

/// A claim of many layers or positions in a small part costs nothing.
#[test]
fn a_transformer_that_claims_more_than_it_brings_is_refused() {
    let whole = published(Kind::Bert, Bits::Eight);
    let part = whole.manifest.core_part("bert").unwrap();
    let bytes = bytes_of(&whole, part);
    // Magic, version and kind take ten bytes; then width, heads, layers, inner, vocabulary, positions, one byte each.
    for (at, what) in [
        (10, "width"),
        (12, "layers"),
        (13, "inner"),
        (14, "words"),
        (15, "positions"),
    ] {
        let mut bad = bytes.to_vec();
        bad[at] = 0x7f;
        let fault = super::encoders::read_bert("bert", &bad, tokenizer()).unwrap_err();
        assert!(!fault.to_string().is_empty(), "{what}");
        let mut bad = bytes.to_vec();
        bad.splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert!(
            matches!(
                super::encoders::read_bert("bert", &bad, tokenizer()),
                Err(BundleError::Value { .. })
            ),
            "{what}"
        );
    }
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
