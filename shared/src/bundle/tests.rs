//! A small tagger there and back, and what mutated files do: never a panic, never a runaway allocation.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Bundle, BundleError, ModelFacts, Opening, PartRef, Published, publish};
use crate::features::{TfIdfBuilder, TfIdfOptions};
use crate::keygraph::{self, EntityLexicon};
use crate::model::encoder::{Lsa, VectorTable};
use crate::model::matcher::{Matcher, MatcherConfig, NamedTensor};
use crate::model::neighbours::{Neighbours, Remembered};
use crate::model::ranker::{ClusterRankers, LabelRanker};
use crate::model::score::Score;
use crate::model::tagger::{ClusterMatcher, FinishOptions, LsaSentences, ReadOptions, TagLabel, Tagger};
use crate::text::Language;

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

/// A tagger with every part a bundle can have, all weights random.
fn model() -> (Tagger, Lsa, Vec<ClusterRankers>) {
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
    let lsa = Lsa::new(VectorTable::quantise(&random(&mut rng, terms * DIMS), DIMS).unwrap());
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
        encoder: Some(Box::new(LsaSentences::new(Arc::clone(&tfidf), lsa.clone()))),
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
    };
    (tagger, lsa, shards)
}

fn published() -> Published {
    let (tagger, lsa, shards) = model();
    publish(
        &tagger,
        Some(&lsa),
        &shards,
        ModelFacts {
            name: "small".into(),
            documents: 4,
            ..Default::default()
        },
    )
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
    let mut opening = Opening::new(&serde_json::to_vec(&published.manifest).unwrap())?;
    while let Some((role, part)) = next_part(&opening) {
        opening.bring(&role, bytes_of(published, &part).to_vec())?;
    }
    let mut bundle = opening.finish()?;
    for shard in bundle.shards_for(&[0, 1]) {
        let part = bundle.manifest().shards[shard].part.clone();
        bundle.bring_shard(shard, bytes_of(published, &part))?;
    }
    Ok(bundle)
}

#[test]
fn a_bundle_gives_the_tags_of_the_model_it_was_made_from() {
    let (tagger, _, shards) = model();
    let bundle = open(&published()).unwrap();
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
                (twin.score - tag.score).abs() < 0.01,
                "{text:?}: {twin:?} instead of {tag:?}"
            );
        }
    }
}

#[test]
fn rankers_that_have_not_come_are_named_in_the_answer() {
    let published = published();
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
    let published = published();
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

/// The mutated part gets a true checksum, so that its reader meets the bad bytes and not only the guard before it.
#[test]
fn mutated_parts_are_read_or_refused_but_never_panic() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let whole = published();
    let mut refused = 0;
    for round in 0..3000 {
        let mut bad = whole.clone();
        let victim = rng.random_range(0..bad.parts.len());
        let (old, bytes) = &mut bad.parts[victim];
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
        let new = PartRef::of("mutated", bytes);
        for part in bad
            .manifest
            .core
            .values_mut()
            .chain(bad.manifest.shards.iter_mut().map(|shard| &mut shard.part))
        {
            if part == old {
                *part = new.clone();
            }
        }
        *old = new;
        match open(&bad) {
            Ok(bundle) => {
                if let Ok(prepared) = bundle.prepare(TEXTS[round % TEXTS.len()], READ) {
                    bundle.finish(
                        &prepared,
                        FinishOptions {
                            top: 3,
                            explain: true,
                            keygraph: true,
                        },
                    );
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1000, "only {refused} of 3000 mutations were noticed");
}
