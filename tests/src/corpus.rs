//! Corpora small enough to train in seconds: subjects, each with its own words.

use std::fmt::Write as _;

/// `documents` lines of JSONL, the same every time.
pub fn small_corpus(documents: usize) -> String {
    const SUBJECTS: [(&str, &str, [&str; 6]); 4] = [
        (
            "fishing",
            "fleets",
            ["trawler", "quota", "cod", "harbour", "net", "herring"],
        ),
        (
            "energy",
            "grids",
            ["reactor", "turbine", "voltage", "coal", "solar", "pipeline"],
        ),
        (
            "farming",
            "fields",
            ["wheat", "tractor", "harvest", "soil", "barley", "subsidy"],
        ),
        (
            "finance",
            "markets",
            ["bank", "bond", "inflation", "credit", "deposit", "currency"],
        ),
    ];
    let mut lines = String::new();
    for number in 0..documents {
        let (label, other, words) = &SUBJECTS[number % SUBJECTS.len()];
        let word = |step: usize| words[(number / SUBJECTS.len() * 5 + step * 7) % words.len()];
        let text = format!(
            "The {} and the {} were discussed. A report on {} followed. The Council of {} noted the {} again.",
            word(0),
            word(1),
            word(2),
            other,
            word(3)
        );
        let _ = writeln!(
            lines,
            "{{\"id\":\"d{number}\",\"text\":\"{text}\",\"labels\":[\"{label}\",\"{}\"]}}",
            word(0)
        );
    }
    lines
}

/// Subjects of [`wide_corpus`].
const WIDE: u64 = 6;

/// `documents` lines of JSONL about six subjects, each with so many words that its rankers fill a shard of their own.
pub fn wide_corpus(documents: u64) -> String {
    (0..documents).fold(String::new(), |mut lines, number| {
        let subject = number % WIDE;
        let text = wide_text(&[subject], number);
        let mut labels = vec![format!("subject {subject}")];
        labels.extend(text.split(' ').take(3).map(ToOwned::to_owned));
        let line = serde_json::json!({"id": format!("d{number}"), "text": text, "labels": labels});
        let _ = writeln!(lines, "{line}");
        lines
    })
}

/// A text in the words of these subjects of [`wide_corpus`], another one for every `seed`.
pub fn wide_text(subjects: &[u64], seed: u64) -> String {
    const WORDS: u64 = 60;
    const LENGTH: usize = 60;
    // Knuth's generator: any will do that is the same everywhere.
    let mut state = seed;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let words: Vec<String> = (0..LENGTH)
        .map(|place| word(subjects[place % subjects.len()] * WORDS + draw() % WORDS))
        .collect();
    let sentences: Vec<String> = words.chunks(10).map(|sentence| sentence.join(" ")).collect();
    sentences.join(". ") + "."
}

/// The word of this number, in syllables.
fn word(mut number: u64) -> String {
    let mut word = String::new();
    for _ in 0..3 {
        word.push(char::from(b"bdfgklmnprstvz"[(number % 14) as usize]));
        word.push(char::from(b"aeiou"[(number / 14 % 5) as usize]));
        number /= 70;
    }
    word + "x"
}
