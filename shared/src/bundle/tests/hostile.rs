//! What mutated, extreme and contradictory bundles do: they are read or refused, never a panic, never a runaway allocation.

use super::*;
use crate::bundle::neighbours::write_neighbours;

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
    crate::bundle::parts::read_vocabulary("vocabulary", &vocabulary(300, 300)).unwrap();
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
    let nothing = write_neighbours(&Neighbours::default(), tagger.tfidf.len());
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
        let fault = crate::bundle::encoders::read_bert("bert", &bad, tokenizer()).unwrap_err();
        assert!(!fault.to_string().is_empty(), "{what}");
        let mut bad = bytes.to_vec();
        bad.splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert!(
            matches!(
                crate::bundle::encoders::read_bert("bert", &bad, tokenizer()),
                Err(BundleError::Value { .. })
            ),
            "{what}"
        );
    }
}
