//! How well entities are found: exact spans against a fixture that was marked by hand.

use std::collections::BTreeMap;

use gnnxml_shared::keygraph::{EntityLexicon, entities};
use gnnxml_shared::text::Language;

const FIXTURE: &str = include_str!("fixtures/entities.txt");

/// A sentence without its marks, and the spans they held.
fn unmarked(line: &str) -> (String, Vec<[usize; 2]>) {
    let mut text = String::new();
    let mut spans = Vec::new();
    for c in line.chars() {
        match c {
            '⟦' => spans.push([text.len(), 0]),
            '⟧' => spans.last_mut().expect("a mark opens before it closes")[1] = text.len(),
            other => text.push(other),
        }
    }
    (text, spans)
}

#[derive(Default)]
struct Score {
    right: usize,
    found: usize,
    gold: usize,
}

impl Score {
    fn f1(&self) -> f64 {
        2.0 * self.right as f64 / (self.found + self.gold).max(1) as f64
    }
}

#[test]
fn entities_of_several_domains_are_found_with_f1_of_at_least_080() {
    let mut domain = "";
    let mut sentences = 0;
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    for line in FIXTURE.lines().filter(|line| !line.is_empty()) {
        if let Some(heading) = line.strip_prefix("## ") {
            domain = heading;
        }
        if line.starts_with('#') {
            continue;
        }
        sentences += 1;
        let (text, gold) = unmarked(line);
        let found: Vec<[usize; 2]> = entities(&text, Language::English, &EntityLexicon::default())
            .iter()
            .map(|mention| [mention.span.start, mention.span.end])
            .collect();
        let right = found.iter().filter(|span| gold.contains(span)).count();
        let score = scores.entry(domain).or_default();
        score.right += right;
        score.found += found.len();
        score.gold += gold.len();
        if right < gold.len().max(found.len()) {
            let show = |spans: &[[usize; 2]]| {
                spans
                    .iter()
                    .map(|[a, b]| text[*a..*b].to_owned())
                    .collect::<Vec<_>>()
            };
            println!(
                "  {text}\n    found {:?}\n    gold  {:?}",
                show(&found),
                show(&gold)
            );
        }
    }
    let mut all = Score::default();
    for (domain, score) in &scores {
        println!("{domain:<18} F1 {:.3}  ({} gold)", score.f1(), score.gold);
        all.right += score.right;
        all.found += score.found;
        all.gold += score.gold;
    }
    println!(
        "{sentences} sentences: precision {:.3}, recall {:.3}, F1 {:.3}",
        all.right as f64 / all.found as f64,
        all.right as f64 / all.gold as f64,
        all.f1()
    );
    assert!(sentences >= 60 && all.gold >= 100);
    assert!(all.f1() >= 0.80, "F1 {:.3}", all.f1());
}
