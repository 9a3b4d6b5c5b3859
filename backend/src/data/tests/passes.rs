//! Whole passes over a corpus: counting, dividing, on one thread or several.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gnnxml_shared::text::Language;
use proptest::prelude::*;

use super::*;

fn jsonl(documents: &[Document]) -> String {
    documents
        .iter()
        .map(|document| serde_json::to_string(document).unwrap() + "\n")
        .collect()
}

#[test]
fn statistics_by_hand() {
    let documents = [
        document("a", "Tin rose. It rose again.", &["tin", "metals"]),
        document("b", "TIN ROSE; it rose again!", &["tin"]),
        document("c", "Zinc fell.", &["zinc", "metals", "fall"]),
        document("d", "…", &[]),
        document("e", "", &["tin"]),
    ];
    let sample = Sample::new("c.jsonl", jsonl(&documents) + "wrong\n");
    let mut reader = sample.source().skip_bad(1).open().unwrap();
    let stats = corpus_stats(&mut reader, Language::English, 2).unwrap();
    assert_eq!((stats.documents, stats.labels, stats.assignments), (5, 4, 7));
    assert_eq!(stats.labels_per_document.mean, 7.0 / 5.0);
    assert_eq!(stats.documents_per_label.mean, 7.0 / 4.0);
    assert_eq!(
        (stats.words_per_document.max, stats.words_per_document.mean),
        (5, 12.0 / 5.0)
    );
    assert_eq!(stats.sentences_per_document.max, 2);
    assert_eq!((stats.duplicates, stats.empty_texts, stats.unlabelled), (1, 2, 1));
    let tail: Vec<u64> = stats.tail.iter().map(|share| share.labels).collect();
    assert_eq!(tail, [0, 0, 2, 2]);
    assert_eq!(stats.most_frequent[0].name, "tin");
    assert_eq!(stats.curve.len(), 4);
    assert_eq!((stats.skipped, stats.complaints[0].line), (1, 6));
}

#[test]
fn statistics_do_not_depend_on_the_number_of_threads() {
    let documents: Vec<Document> = (0..300)
        .map(|number| {
            let text = format!("Story {} about ship {}. The end.", number % 50, number % 7);
            document(&number.to_string(), &text, &[["tin", "zinc", "lead"][number % 3]])
        })
        .collect();
    let sample = Sample::new("c.jsonl", jsonl(&documents));
    let stats =
        |threads| corpus_stats(&mut sample.source().open().unwrap(), Language::English, threads).unwrap();
    let one = stats(1);
    assert_eq!(one, stats(2));
    assert_eq!(one, stats(7));
}

#[test]
fn an_error_in_the_middle_stops_a_parallel_pass() {
    let sample = Sample::new(
        "c.jsonl",
        "{\"text\": \"a\"}\n".repeat(100) + "wrong\n" + &"{\"text\": \"a\"}\n".repeat(100),
    );
    let error = corpus_stats(&mut sample.source().open().unwrap(), Language::English, 2).unwrap_err();
    assert_eq!(error.complaint().unwrap().line, 101);
}

#[test]
fn every_document_is_seen_once_with_its_place() {
    let documents: Vec<Document> = (0..100).map(|n| document(&n.to_string(), "x", &[])).collect();
    let sample = Sample::new("c.jsonl", jsonl(&documents));
    let mut reader = sample.source().open().unwrap();
    let seen = for_each_document(&mut reader, 3, Vec::new, |seen, place, document| {
        seen.push((place, document.id));
    })
    .unwrap();
    let mut seen: Vec<_> = seen.into_iter().flatten().collect();
    seen.sort();
    let expected: Vec<_> = (0..100).map(|n| (n, n.to_string())).collect();
    assert_eq!(seen, expected);
}

/// A corpus with a long tail and some repeated texts.
fn tailed() -> impl Strategy<Value = Vec<Document>> {
    let row = (0_u8..60, proptest::collection::btree_set(0_u32..12, 0..4));
    proptest::collection::vec(row, 1..80).prop_map(|rows| {
        rows.into_iter()
            .enumerate()
            .map(|(number, (text, labels))| Document {
                id: format!("d{number}"),
                text: format!("story {text}"),
                // Squares thin out: low numbers are frequent, high ones rare.
                labels: labels
                    .into_iter()
                    .map(|l| format!("l{}", l * l / 8))
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect(),
            })
            .collect()
    })
}

proptest! {
    // Each case writes files: fewer cases than usual.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_split_loses_nothing_keeps_duplicates_together_and_every_label_learnable(
        documents in tailed(), seed in 0_u64..50, keep in 1_u32..3,
    ) {
        let sample = Sample::new("c.jsonl", jsonl(&documents));
        let source = sample.source();
        let options = SplitOptions { valid: 0.2, test: 0.1, seed, keep };
        let split = Split::of(&source, &options).unwrap();
        prop_assert_eq!(&split, &Split::of(&source, &options).unwrap());
        let mut parts: HashMap<String, Part> = HashMap::new();
        split.deal(&mut source.open().unwrap(), |part, document| { parts.insert(document.id, part); Ok(()) }).unwrap();
        prop_assert_eq!(parts.len(), documents.len());
        // Duplicates stay together.
        let mut by_text: HashMap<&str, Part> = HashMap::new();
        for document in &documents {
            prop_assert_eq!(*by_text.entry(&document.text).or_insert(parts[&document.id]), parts[&document.id]);
        }
        // Each label keeps its documents in training.
        let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for document in &documents {
            for label in &document.labels {
                let (all, train) = counts.entry(label).or_default();
                *all += 1;
                *train += u32::from(parts[&document.id] == Part::Train);
            }
        }
        for (label, (all, train)) in counts {
            prop_assert!(train >= keep.min(all), "{}: {} of {}", label, train, all);
        }
        // And no part takes more than its share.
        prop_assert!(split.count(Part::Valid) <= (0.2 * documents.len() as f64).round() as usize);
        prop_assert!(split.count(Part::Test) <= (0.1 * documents.len() as f64).round() as usize);
    }
}

#[test]
fn a_split_reaches_its_shares_and_follows_its_seed() {
    let documents: Vec<Document> = (0..500)
        .map(|n| document(&n.to_string(), &format!("story {n}"), &[["a", "b"][n % 2]]))
        .collect();
    let sample = Sample::new("c.jsonl", jsonl(&documents));
    let split = |seed| {
        Split::of(
            &sample.source(),
            &SplitOptions {
                valid: 0.1,
                test: 0.2,
                seed,
                keep: 1,
            },
        )
        .unwrap()
    };
    let first = split(1);
    assert_eq!(
        (
            first.count(Part::Valid),
            first.count(Part::Test),
            first.count(Part::Train)
        ),
        (50, 100, 350)
    );
    assert_ne!(first, split(2));
}
