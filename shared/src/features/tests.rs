use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::text::{Language, fold, is_stop_word, words};

use super::*;

fn learned(options: TfIdfOptions, texts: &[&str]) -> TfIdf {
    let mut builder = TfIdfBuilder::new(options, Language::English);
    for text in texts {
        builder.add(text);
    }
    builder.finish()
}

fn every_term() -> TfIdfOptions {
    TfIdfOptions {
        min_df: 1,
        ..Default::default()
    }
}

const TEXTS: [&str; 4] = [
    "Cocoa prices rose and cocoa stocks fell.",
    "Sugar prices fell; the sugar harvest was late.",
    "The harvest of maize.",
    "Rates rose.",
];

#[test]
fn values_are_those_worked_by_hand() {
    let tfidf = learned(every_term(), &TEXTS);
    // n = 4. "cocoa" is in one document: ln(5/2) + 1 = 1.9162907; "prices" in two: ln(5/3) + 1 = 1.5108256.
    let idf = |term: &str| tfidf.idf()[tfidf.index_of(term).unwrap() as usize];
    assert!((idf("cocoa") - 1.916_290_7).abs() < 1e-6);
    assert!((idf("prices") - 1.510_825_6).abs() < 1e-6);
    // "Cocoa cocoa prices": (1 + ln 2)·1.9162907 = 3.2445621 and 1.5108256; length √(10.527183 + 2.282594) = 3.5790749.
    let vector = tfidf.transform("Cocoa cocoa prices!");
    assert_eq!(
        vector.indices,
        [
            tfidf.index_of("cocoa").unwrap(),
            tfidf.index_of("prices").unwrap()
        ]
    );
    assert!((vector.values[0] - 0.906_536).abs() < 1e-5, "{:?}", vector.values);
    assert!((vector.values[1] - 0.422_127).abs() < 1e-5, "{:?}", vector.values);
}

#[test]
fn without_sublinear_the_count_itself_is_taken() {
    let tfidf = learned(
        TfIdfOptions {
            sublinear: false,
            ..every_term()
        },
        &["one apple", "one pear apple"],
    );
    let vector = tfidf.transform("apple apple apple pear");
    let [apple, pear] = vector.values[..] else {
        panic!("{vector:?}")
    };
    // idf: apple ln(3/3) + 1 = 1, pear ln(3/2) + 1 = 1.4054651.
    assert!((apple / pear - 3.0 / 1.405_465_1).abs() < 1e-5);
}

#[test]
fn rare_terms_are_left_out_and_frequent_ones_if_asked() {
    let common = learned(TfIdfOptions::default(), &TEXTS);
    assert_eq!(
        common.terms().collect::<Vec<_>>(),
        ["fell", "harvest", "prices", "rose"]
    );
    let rare = learned(
        TfIdfOptions {
            max_df: 0.25,
            ..every_term()
        },
        &TEXTS,
    );
    assert!(rare.index_of("prices").is_none() && rare.index_of("cocoa").is_some());
}

#[test]
fn the_most_frequent_terms_stay_when_there_are_too_many() {
    let tfidf = learned(
        TfIdfOptions {
            max_features: 3,
            ..every_term()
        },
        &TEXTS,
    );
    assert_eq!(tfidf.terms().collect::<Vec<_>>(), ["fell", "harvest", "prices"]);
}

#[test]
fn stop_words_and_single_letters_are_no_terms() {
    let tfidf = learned(every_term(), &["The cat and a dog: x y"]);
    assert_eq!(tfidf.terms().collect::<Vec<_>>(), ["cat", "dog"]);
    let tfidf = learned(
        TfIdfOptions {
            stop_words: false,
            ..every_term()
        },
        &["The cat and a dog: x y"],
    );
    assert_eq!(tfidf.terms().collect::<Vec<_>>(), ["and", "cat", "dog", "the"]);
}

#[test]
fn single_ideographs_are_terms() {
    let tfidf = learned(every_term(), &["北京"]);
    assert_eq!(tfidf.len(), 2);
}

#[test]
fn words_of_the_lead_are_terms_of_their_own() {
    let options = TfIdfOptions {
        lead: "Freedom of movement".len(),
        ..every_term()
    };
    let text = "Freedom of movement: workers have freedom.";
    let tfidf = learned(options.clone(), &[text]);
    assert_eq!(
        tfidf.terms().collect::<Vec<_>>(),
        ["^freedom", "^movement", "freedom", "movement", "workers"]
    );
    let (vector, spans) = tfidf.transform_with_spans(text);
    assert_eq!(vector.indices, [0, 1, 2, 3, 4]);
    assert_eq!((spans[0].len(), spans[2].len()), (1, 2));
    // A sentence that was cut out of a text does not know where it stood.
    assert_eq!(tfidf.transform_part("Freedom of movement").indices, [2, 3]);
    let pairs = learned(
        TfIdfOptions {
            lead_bigrams: true,
            ..options
        },
        &[text],
    );
    assert!(pairs.index_of("freedom movement").is_some());
    assert_eq!(pairs.index_of("workers freedom"), None);
    assert_eq!(words_of_term("^freedom"), "freedom");
}

#[test]
fn bigrams_reach_over_stop_words() {
    let options = TfIdfOptions {
        bigrams: true,
        ..every_term()
    };
    let tfidf = learned(options, &["freedom of movement for workers"]);
    assert_eq!(
        tfidf.terms().collect::<Vec<_>>(),
        [
            "freedom",
            "freedom movement",
            "movement",
            "movement workers",
            "workers"
        ]
    );
    let text = "The freedom of movement";
    let (vector, spans) = tfidf.transform_with_spans(text);
    let pair = vector
        .indices
        .iter()
        .position(|&i| tfidf.term(i) == "freedom movement")
        .unwrap();
    assert_eq!(&text[spans[pair][0].range()], "freedom of movement");
}

#[test]
fn stems_join_inflections() {
    let tfidf = learned(
        TfIdfOptions {
            stem: true,
            ..every_term()
        },
        &["regulations", "a regulation"],
    );
    assert_eq!(tfidf.len(), 1);
    assert_eq!(tfidf.transform("Regulation!").len(), 1);
}

#[test]
fn spans_point_at_the_words_behind_each_entry() {
    let tfidf = learned(every_term(), &TEXTS);
    let text = "COCOA fell. Then cocoa rose, and Cocoa fell.";
    let (vector, spans) = tfidf.transform_with_spans(text);
    assert_eq!(vector, tfidf.transform(text));
    for (&index, spans) in vector.indices.iter().zip(&spans) {
        for span in spans {
            assert_eq!(fold(&text[span.range()]), tfidf.term(index));
        }
    }
    let cocoa = vector
        .indices
        .iter()
        .position(|&i| tfidf.term(i) == "cocoa")
        .unwrap();
    assert_eq!(spans[cocoa].len(), 3);
}

#[test]
fn texts_without_a_known_term_give_an_empty_vector() {
    let tfidf = learned(every_term(), &TEXTS);
    for text in ["", "!!!", "🙂", "quartz", "the"] {
        assert!(tfidf.transform(text).is_empty());
    }
    assert!(learned(every_term(), &[]).transform("anything").is_empty());
}

#[test]
fn parts_survive_a_round_trip_and_bad_parts_are_refused() {
    let tfidf = learned(every_term(), &TEXTS);
    let json = serde_json::to_string(&tfidf).unwrap();
    assert_eq!(serde_json::from_str::<TfIdf>(&json).unwrap(), tfidf);
    let mut short = tfidf.to_parts();
    short.idf.pop();
    assert!(matches!(
        TfIdf::from_parts(short),
        Err(TfIdfError::Lengths { .. })
    ));
    let mut twice = tfidf.to_parts();
    twice.terms[1] = twice.terms[0].clone();
    assert!(matches!(
        TfIdf::from_parts(twice),
        Err(TfIdfError::RepeatedTerm { .. })
    ));
    let mut nan = tfidf.to_parts();
    nan.idf[0] = f32::NAN;
    assert!(matches!(TfIdf::from_parts(nan), Err(TfIdfError::Weight { .. })));
}

/// The same vector from maps and definitions alone.
fn slow_vector(tfidf: &TfIdf, text: &str) -> BTreeMap<String, f64> {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for span in words(text) {
        let word = fold(&text[span.range()]).into_owned();
        if !is_stop_word(&word, Language::English) && tfidf.terms().any(|term| term == word) {
            *counts.entry(word).or_default() += 1.0;
        }
    }
    for (word, value) in &mut counts {
        let number = tfidf.terms().position(|term| term == word).unwrap();
        *value = (1.0 + value.ln()) * f64::from(tfidf.idf()[number]);
    }
    let length = counts.values().map(|value| value * value).sum::<f64>().sqrt();
    counts.values_mut().for_each(|value| *value /= length);
    counts
}

const WORD: &str =
    "(cocoa|Cocoa|SUGAR|sugar|the|of|maize|Maïs|prix|x|42|rose|fell|[a-c]{1,3}|[ ,.;'’])( |, |\n)";

fn a_text(most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(WORD, 0..most).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn vectors_agree_with_the_definition(
        texts in proptest::collection::vec(a_text(12), 0..8),
        text in a_text(20),
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tfidf = learned(every_term(), &texts);
        let vector = tfidf.transform(&text);
        let slow = slow_vector(&tfidf, &text);
        prop_assert_eq!(vector.len(), slow.len());
        prop_assert!(vector.indices.is_sorted());
        for (index, value) in vector.iter() {
            prop_assert!((f64::from(value) - slow[tfidf.term(index)]).abs() < 1e-6);
        }
        prop_assert!(vector.is_empty() || (vector.norm() - 1.0).abs() < 1e-5);
        prop_assert_eq!(&vector, &tfidf.transform_words(&text, words(&text), &mut TransformScratch::default()));
    }

    #[test]
    fn merged_builders_learn_what_one_would(
        texts in proptest::collection::vec(a_text(12), 0..8),
        cut in 0_usize..8,
    ) {
        let cut = cut.min(texts.len());
        let all: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut tail = TfIdfBuilder::new(TfIdfOptions::default(), Language::English);
        all[cut..].iter().for_each(|text| tail.add(text));
        let mut head = TfIdfBuilder::new(TfIdfOptions::default(), Language::English);
        all[..cut].iter().for_each(|text| head.add(text));
        tail.merge(head);
        prop_assert_eq!(tail.finish(), learned(TfIdfOptions::default(), &all));
    }

    #[test]
    fn no_text_breaks_it(text in "\\PC*") {
        for options in [
            every_term(),
            TfIdfOptions { bigrams: true, stem: true, ..every_term() },
            TfIdfOptions { lead: 9, lead_bigrams: true, ..every_term() },
        ] {
            let tfidf = learned(options, &[&text]);
            let (vector, spans) = tfidf.transform_with_spans(&text);
            prop_assert_eq!(vector.len(), spans.len());
            prop_assert_eq!(vector.len(), tfidf.len());
        }
    }
}
