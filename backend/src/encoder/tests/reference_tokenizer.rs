//! Our WordPiece against the reference library, on texts chosen to be nasty and on random ones.

use std::str::FromStr;

use gnnxml_shared::text::wordpiece::WordPiece;
use proptest::prelude::*;
use serde_json::json;

/// A tokenizer.json with a vocabulary of letters, a few words and pieces.
fn tokenizer_json(lowercase: bool, strip_accents: Option<bool>) -> String {
    let mut tokens: Vec<String> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        .map(String::from)
        .to_vec();
    for word in [
        "fish", "fisher", "fishing", "un", "unfish", "the", "law", "##fish", "##ing", "##ish", "##er",
        "##laws", "è", "É", "中", "ᄒ", "##ᅡ", "##ᆫ", "ß", "##ß",
    ] {
        tokens.push(word.into());
    }
    for letter in ('a'..='z')
        .chain('A'..='F')
        .chain('0'..='9')
        .chain("éüñçøαωя".chars())
    {
        tokens.push(letter.into());
        tokens.push(format!("##{letter}"));
    }
    for mark in [
        "!", "-", ".", ",", "(", ")", "[", "]", "#", "##", "—", "“", "…", "₂", "$", "+", "¿", "·",
    ] {
        tokens.push(mark.into());
    }
    let vocabulary: serde_json::Map<String, serde_json::Value> = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (token.clone(), json!(id)))
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": strip_accents, "lowercase": lowercase
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": null, "decoder": null,
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary
        }
    })
    .to_string()
}

struct Both {
    ours: WordPiece,
    reference: tokenizers::Tokenizer,
}

impl Both {
    fn new(lowercase: bool, strip_accents: Option<bool>) -> Self {
        let json = tokenizer_json(lowercase, strip_accents);
        Self {
            ours: WordPiece::from_tokenizer_json(&json).unwrap(),
            reference: tokenizers::Tokenizer::from_str(&json).unwrap(),
        }
    }

    fn check(&self, text: &str) {
        let mut ids = Vec::new();
        self.ours.encode_into(text, &mut ids);
        let expected = self.reference.encode(text, false).unwrap();
        assert_eq!(
            ids,
            expected.get_ids(),
            "{text:?}: expected {:?}",
            expected.get_tokens()
        );
    }
}

#[test]
fn nasty_texts_are_split_as_the_reference_splits_them() {
    let long = "fish".repeat(25);
    let longer = "fish".repeat(26);
    let accented = "é".repeat(100);
    let texts = [
        "",
        " ",
        "Fishing the UNFISHLAWS.",
        "un-fishing!!",
        "fish\tfish\nfish\rfish\u{b}fish\u{c}fish\u{1f}fish\u{7f}fish",
        "caf\u{e9} CAFE\u{301} \u{130}stanbul stra\u{df}e STRA\u{1e9e}E",
        "中文字 fish中fish",
        "한국어 하ᅡ",
        "fish\u{200b}ing fish\u{ad}ing\u{feff}",
        "“fish” — fish… ¿fish? H₂O $5 a+b",
        "\u{a0}fish\u{2003}law\u{3000}",
        "e\u{301}\u{327}\u{300}",
        "αΩς яЯ",
        "👩‍👧 fish 🐟",
        "\u{e000}fish\u{fffd}law\u{0}the",
        "[CLS",
        "##ing ## #fish",
        &long,
        &longer,
        &accented,
        "ﬁsh ﬀ",
        "fish\u{85}law\u{2028}law",
        "٣ fish ٪",
        "ΑΒΓ ΐ ǅ",
    ];
    for both in [
        Both::new(true, None),
        Both::new(false, None),
        Both::new(false, Some(true)),
        Both::new(true, Some(false)),
    ] {
        for text in texts {
            both.check(text);
        }
        for line in include_str!("../samples.txt").lines() {
            both.check(line);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_text_is_split_as_the_reference_splits_it(text in "(\\PC|[a-f ]|fish|[\\x00-\\x7f]){0,24}", lowercase: bool) {
        // Special tokens spelled out are text to us; the vocabulary has no added tokens, so to the reference as well.
        Both::new(lowercase, None).check(&text);
    }
}

/// What is sewn between and into the sentences below.
const AWKWARD: [&str; 40] = [
    "naïve",
    "CAFÉ",
    "cafe\u{301}",
    "\u{130}stanbul",
    "straße",
    "中文字",
    "한국어",
    "日本語テスト",
    "fish\u{200b}ing",
    "\u{ad}soft",
    "“quoted”",
    "—",
    "…",
    "¿qué?",
    "H₂O",
    "€5,20",
    "a+b=c",
    "\u{a0}",
    "\u{3000}",
    "e\u{301}\u{327}",
    "αΩς",
    "яЯ",
    "🐟👩‍👧",
    "\u{e000}",
    "\u{fffd}",
    "[CLS]",
    "[SEP]",
    "##ing",
    "ﬁsh",
    "\u{85}",
    "\u{2028}",
    "٣٪",
    "ΐ",
    "ǅ",
    "i\u{307}",
    "\t",
    "\u{7f}",
    "x\u{20d0}y",
    "ⅷ",
    "don't",
];

/// Sentences of real documents: those of `GNNXML_CORPUS` where it is set, otherwise the small corpora's, each in many
/// guises.
fn many_sentences() -> Vec<String> {
    use gnnxml_shared::text::{Language, sentences};
    let split = |text: &str| -> Vec<String> {
        sentences(text, Language::English)
            .into_iter()
            .map(|span| text[span.start..span.end].to_owned())
            .collect()
    };
    if let Some(corpus) = std::env::var_os("GNNXML_CORPUS") {
        let documents = crate::data::open(std::path::Path::new(&corpus)).unwrap();
        return documents
            .flat_map(|document| split(&document.unwrap().text))
            .take(100_000)
            .collect();
    }
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpora/garden.jsonl");
    let plain: Vec<String> = crate::data::open(corpus)
        .unwrap()
        .flat_map(|document| split(&document.unwrap().text))
        .collect();
    let mut all = plain.clone();
    for (nth, awkward) in AWKWARD.iter().cycle().take(400).enumerate() {
        let sentence = &plain[nth * 7 % plain.len()];
        let other = &plain[(nth * 31 + 5) % plain.len()];
        for (place, _) in sentence.char_indices().step_by(3) {
            let (before, after) = sentence.split_at(place);
            all.push(format!("{before}{awkward}{after}"));
        }
        all.push(format!("{sentence}{awkward}{}", other.to_uppercase()));
    }
    all
}

#[test]
fn ten_thousand_sentences_are_split_as_the_reference_splits_them() {
    use crate::encoder::check_tokenizer::{Agreement, TokenizerCheck};
    let fixture = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/encoders/bert");
    let fetched = crate::encoder::place_of("minilm");
    let sentences = many_sentences();
    assert!(sentences.len() >= 10_000, "{} sentences", sentences.len());
    for directory in [fixture, fetched] {
        if !directory.is_dir() {
            eprintln!(
                "NOT TESTED: {} is missing; run `gnnxml encoder fetch minilm`",
                directory.display()
            );
            continue;
        }
        let check = TokenizerCheck::open(&directory).unwrap();
        let mut seen = Agreement::default();
        for sentence in &sentences {
            check.compare(sentence, &mut seen).unwrap();
        }
        assert_eq!(seen.sentences, sentences.len() as u64);
        assert!(seen.tokens > 10 * seen.sentences);
        assert_eq!(seen.differing, 0, "{:#?}", seen.differences);
    }
}

#[test]
fn a_difference_is_noticed() {
    use crate::encoder::check_tokenizer::{Agreement, TokenizerCheck};
    let fixture = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/encoders/bert");
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(fixture.join("config.json"), folder.path().join("config.json")).unwrap();
    // Words of at most three characters: the reference heeds the setting, ours is fixed at a hundred.
    let json = std::fs::read_to_string(fixture.join("tokenizer.json")).unwrap();
    let short = json.replace(
        "\"max_input_chars_per_word\":100",
        "\"max_input_chars_per_word\":3",
    );
    assert_ne!(json, short);
    std::fs::write(folder.path().join("tokenizer.json"), short).unwrap();
    let check = TokenizerCheck::open(folder.path()).unwrap();
    let mut seen = Agreement::default();
    check.compare("the greenhouse", &mut seen).unwrap();
    assert_eq!((seen.differing, seen.differences.len()), (1, 1));
}
