//! A corpus small enough to train in seconds: four subjects, each with its own words.

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
