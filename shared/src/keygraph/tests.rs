//! What every KeyGraph keeps, whatever the text.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::text::Language;

fn build(text: &str) -> KeyGraph {
    KeyGraph::build(
        text,
        Language::English,
        &EntityLexicon::default(),
        &Options::default(),
    )
}

fn texts(graph: &KeyGraph) -> Vec<&str> {
    graph
        .vertices()
        .iter()
        .map(|vertex| vertex.text.as_str())
        .collect()
}

/// Holds a graph against the definition, by brute force.
fn check(text: &str, graph: &KeyGraph) {
    let keyed: Vec<&Vertex> = graph
        .vertices()
        .iter()
        .filter(|v| v.kind != VertexKind::Empty)
        .collect();
    for (s, sentence) in graph.sentences().iter().enumerate() {
        assert!(
            text.get(sentence.range()).is_some(),
            "sentence {s} cuts a character"
        );
        let keywords = keyed
            .iter()
            .filter(|vertex| vertex.sentences.contains(&s))
            .count();
        let empty = graph
            .empty_vertex()
            .is_some_and(|vertex| vertex.sentences.contains(&s));
        assert_ne!(keywords > 0, empty, "sentence {s} of {text:?}");
    }
    for vertex in &keyed {
        assert!(!vertex.text.is_empty());
        for [start, end] in &vertex.spans {
            assert!(
                text.get(*start..*end).is_some_and(|span| !span.is_empty()),
                "a span cuts a character"
            );
            let home = graph
                .sentences()
                .iter()
                .position(|s| s.start <= *start && *end <= s.end);
            assert!(
                vertex
                    .sentences
                    .contains(&home.expect("a span lies in one sentence"))
            );
        }
    }
    let mut edges = graph.edges().iter();
    for a in 0..keyed.len() {
        for b in a + 1..keyed.len() {
            let shared = keyed[a]
                .sentences
                .iter()
                .filter(|s| keyed[b].sentences.contains(s))
                .count();
            if shared > 0 {
                assert_eq!(
                    edges.next(),
                    Some(&Edge {
                        source: a,
                        target: b,
                        weight: shared as u32
                    })
                );
            }
        }
    }
    assert_eq!(edges.next(), None);
    let json = serde_json::to_string(graph).unwrap();
    assert_eq!(&serde_json::from_str::<KeyGraph>(&json).unwrap(), graph);
}

const STORY: &str = "Cocoa prices rose in London on Monday. The cocoa harvest in Ghana was late, and cocoa prices \
    may rise again. Traders in London wait for rain. It was so.";

#[test]
fn keywords_and_names_become_vertices() {
    let graph = build(STORY);
    check(STORY, &graph);
    let found = texts(&graph);
    for wanted in ["London", "Ghana", "Monday"] {
        assert!(found.contains(&wanted), "{wanted} not in {found:?}");
    }
    assert!(found.iter().any(|text| text.contains("ocoa")), "{found:?}");
}

#[test]
fn a_sentence_without_keywords_goes_to_the_empty_vertex() {
    let graph = build(STORY);
    assert_eq!(
        graph.empty_vertex().map(|vertex| vertex.sentences.clone()),
        Some(vec![3])
    );
}

#[test]
fn inflections_are_one_vertex() {
    let text = "The vessel sank. Two vessels sank near a vessel.";
    let graph = build(text);
    let vessel = graph
        .vertices()
        .iter()
        .find(|vertex| vertex.text == "vessel")
        .expect("a vertex for vessel");
    assert_eq!(vessel.spans.len(), 3);
}

#[test]
fn adjacent_keywords_become_a_phrase() {
    let text = "Skimmed milk is cheap. We feed skimmed milk to calves. Calves like skimmed milk.";
    let graph = build(text);
    assert!(
        texts(&graph)
            .iter()
            .any(|text| text.eq_ignore_ascii_case("skimmed milk")),
        "{:?}",
        texts(&graph)
    );
}

#[test]
fn a_phrase_that_does_not_recur_leaves_its_words_to_their_own_vertices() {
    let text = "Crop sales rose. Limited sales fell. Sales of crops rose, and crops fell.";
    let graph = build(text);
    let sales = graph
        .vertices()
        .iter()
        .find(|vertex| vertex.text == "sales")
        .expect("a vertex for sales");
    assert_eq!(sales.sentences, [0, 1, 2]);
}

#[test]
fn lexicon_entries_are_entities_even_in_lower_case() {
    let lexicon = EntityLexicon::new(["skimmed milk"]);
    let graph = KeyGraph::build(
        "we sell skimmed milk here",
        Language::English,
        &lexicon,
        &Options::default(),
    );
    assert!(
        graph
            .vertices()
            .iter()
            .any(|v| v.text == "skimmed milk" && v.kind == VertexKind::Entity)
    );
}

#[test]
fn the_strongest_come_first_and_the_limit_counts_the_empty_vertex() {
    for limit in [1, 2, 5] {
        let options = Options {
            max_vertices: Some(limit),
            ..Options::default()
        };
        let graph = KeyGraph::build(STORY, Language::English, &EntityLexicon::default(), &options);
        check(STORY, &graph);
        assert!(graph.vertices().len() <= limit);
    }
    let graph = build(STORY);
    assert!(
        graph
            .vertices()
            .windows(2)
            .all(|pair| pair[0].rank >= pair[1].rank)
    );
}

#[test]
fn the_json_is_the_documented_one() {
    let graph = build("Ghana sells cocoa.");
    let json: serde_json::Value = serde_json::to_value(&graph).unwrap();
    assert_eq!(json["sentences"][0], serde_json::json!({"start": 0, "end": 18}));
    let vertex = &json["vertices"][0];
    for field in ["id", "text", "kind", "rank", "sentences", "spans"] {
        assert!(!vertex[field].is_null(), "{field} in {vertex}");
    }
    assert_eq!(vertex["spans"][0].as_array().map(Vec::len), Some(2));
}

#[test]
fn json_that_is_no_keygraph_is_refused_with_the_reason() {
    let good = serde_json::to_value(build(STORY)).unwrap();
    let refuse = |change: fn(&mut serde_json::Value), reason: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = serde_json::from_value::<KeyGraph>(bad).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    refuse(|json| json["edges"][0]["weight"] = 9.into(), "edges");
    refuse(|json| json["vertices"][1]["id"] = 7.into(), "vertex 1: its id");
    refuse(
        |json| json["vertices"][0]["sentences"] = serde_json::json!([99]),
        "does not exist",
    );
    refuse(
        |json| json["vertices"][0]["spans"] = serde_json::json!([[0, 1_000_000]]),
        "spans",
    );
    refuse(|json| json["sentences"][1]["start"] = 0.into(), "sentence 1");
    refuse(
        |json| json["vertices"].as_array_mut().unwrap().clear(),
        "attached to no vertex",
    );
}

#[test]
fn text_without_words_gives_an_empty_graph() {
    for text in ["", " \r\n\t", "?!... --- ()", "🙂🚀👩‍👩‍👧", "\0\0\0", "\u{feff}"] {
        let graph = build(text);
        assert!(
            graph.vertices().is_empty() && graph.sentences().is_empty(),
            "{text:?}"
        );
    }
}

#[test]
fn one_word_is_one_vertex() {
    let graph = build("fisheries");
    assert_eq!(texts(&graph), ["fisheries"]);
}

#[test]
fn control_characters_line_ends_and_byte_order_marks_do_no_harm() {
    for text in [
        "Cod\0 and\0 haddock.",
        "\u{feff}Cod and haddock.\r\nHake.\r\n\r\nLing",
        "Cod\u{b}\u{c}\u{7f}haddock\u{85}hake",
    ] {
        let graph = build(text);
        check(text, &graph);
        assert!(!graph.vertices().is_empty());
    }
}

#[test]
fn mixed_scripts_and_right_to_left_text_have_keywords() {
    for text in [
        "北京大学的学生学习。北京很大。",
        "تعلن المفوضية الأوروبية عن قواعد جديدة. قواعد الصيد جديدة.",
        "שלום עולם. עולם הדגים.",
        "The журнал covers 北京 and שלום today.",
    ] {
        for language in [Language::Neutral, Language::English, Language::Arabic] {
            let graph = KeyGraph::build(text, language, &EntityLexicon::default(), &Options::default());
            check(text, &graph);
            assert!(
                graph.vertices().iter().any(|v| v.kind != VertexKind::Empty),
                "{text}"
            );
        }
    }
}

#[test]
fn a_megabyte_word_is_one_short_label() {
    let text = "x".repeat(1 << 20);
    let graph = build(&text);
    assert_eq!(graph.vertices().len(), 1);
    assert!(graph.vertices()[0].text.len() < 300);
}

#[test]
fn a_text_of_one_sentence_stays_within_the_limits() {
    let mut text = String::new();
    for i in 0..60_000u32 {
        write!(
            text,
            "w{} ",
            (0..4)
                .map(|k| char::from(b'a' + (i >> (4 * k) & 15) as u8))
                .collect::<String>()
        )
        .unwrap();
    }
    let graph = build(&text);
    assert!(graph.vertices().len() <= MAX_VERTICES);
    assert!(graph.edges().len() <= MAX_VERTICES * MAX_VERTICES / 2);
}

#[test]
fn a_sentence_cut_between_a_sign_and_its_number_keeps_spans_inside() {
    for pad in 0..12 {
        let text = format!("{}{}", "x".repeat(pad), " € 5 %".repeat(1_000));
        check(&text, &build(&text));
    }
}

#[test]
fn options_out_of_range_are_brought_back() {
    let options = Options {
        window: 0,
        damping: f64::NAN,
        tolerance: -1.0,
        keep: f64::INFINITY,
        max_candidates: 0,
        max_vertices: Some(0),
    };
    let graph = KeyGraph::build(STORY, Language::English, &EntityLexicon::default(), &options);
    check(STORY, &graph);
}

#[test]
fn a_builder_gives_the_same_graph_before_and_after_other_texts() {
    let lexicon = EntityLexicon::new(["cocoa prices"]);
    let mut builder = KeyGraphBuilder::new(Language::English, &lexicon, &Options::default());
    let first = builder.build(STORY);
    builder.build("Something else entirely, about Oslo and herring. Herring!");
    assert_eq!(builder.build(STORY), first);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_string_gives_a_valid_graph_twice_the_same(text in "\\PC{0,200}|[\\x00-\\u{ffff}]{0,80}") {
        let lexicon = EntityLexicon::new(["a", "a b"]);
        for language in [Language::English, Language::German, Language::French, Language::Neutral] {
            let graph = KeyGraph::build(&text, language, &lexicon, &Options::default());
            check(&text, &graph);
            prop_assert_eq!(graph, KeyGraph::build(&text, language, &lexicon, &Options::default()));
        }
    }

    #[test]
    fn text_like_strings_give_valid_graphs(
        text in "((The|of|and|No|J|EU|NATO|Article|Bank|June|milk|skimmed|rose|sank|5|1985|12/5|\\$3|mg|million|Smith's|北京|é)[ ,.;:!?\n()/%\"-]{1,2}){0,60}",
        limit in proptest::option::of(1usize..12),
    ) {
        let options = Options { max_vertices: limit, ..Options::default() };
        let lexicon = EntityLexicon::new(["skimmed milk", "bank"]);
        let graph = KeyGraph::build(&text, Language::English, &lexicon, &options);
        check(&text, &graph);
        prop_assert!(graph.vertices().len() <= limit.unwrap_or(MAX_VERTICES));
    }
}
