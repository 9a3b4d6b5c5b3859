//! Adjacent keywords become phrases.
//!
//! TextRank merges whatever keywords stand side by side. Taken literally, "crop sales", "limited sales" and
//! "sales" become three vertices that share no sentence. So a run of keywords is cut into phrases
//! that stand: those that recur in the text, and those whose words occur nowhere else in it. The paper is silent.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::build::{Node, Place};

/// At most this many adjacent keywords become one phrase.
pub const MAX_PHRASE_WORDS: usize = 4;

/// One place of a phrase; places of the same phrase share an id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phrase {
    pub(super) id: u32,
    /// Number of its first place.
    pub(super) first: usize,
    /// How many places it takes.
    pub(super) words: usize,
}

/// Hash of one u64, for keys that are already numbers.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, key: u64) {
        let mixed = (self.0.rotate_left(5) ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

/// Phrases as numbers: a node is its own number, a longer phrase is (number of all but its last word, last word).
struct Numbers {
    longer: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    /// How often each phrase occurs.
    counts: Vec<u32>,
}

impl Numbers {
    fn longer(&mut self, front: u32, last: u32) -> u32 {
        let next = self.counts.len() as u32;
        let id = *self
            .longer
            .entry(u64::from(front) << 32 | u64::from(last))
            .or_insert(next);
        if id == next {
            self.counts.push(0);
        }
        id
    }
}

/// Cuts the kept places of a text into phrases, in the order of the text. A name stays a phrase of its own.
pub(super) fn merge_adjacent(text: &str, places: &[Place], nodes: &[Node], kept: &[bool]) -> Vec<Phrase> {
    let runs = runs(text, places, kept);
    let mut numbers = Numbers {
        longer: HashMap::default(),
        counts: nodes.iter().map(|node| node.count).collect(),
    };
    for (start, end) in &runs {
        for i in *start..*end {
            let mut id = places[i].node;
            for place in &places[i + 1..(*end).min(i + MAX_PHRASE_WORDS)] {
                id = numbers.longer(id, place.node);
                numbers.counts[id as usize] += 1;
            }
        }
    }
    let mut phrases = Vec::with_capacity(places.len());
    for (start, end) in runs {
        let mut i = start;
        while i < end {
            let phrase = longest(&mut numbers, places, nodes, i, end);
            i += phrase.words;
            phrases.push(phrase);
        }
    }
    phrases
}

/// Stretches of kept words with nothing between them but a blank or a hyphen.
fn runs(text: &str, places: &[Place], kept: &[bool]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (i, place) in places
        .iter()
        .enumerate()
        .filter(|(_, place)| kept[place.node as usize])
    {
        let joins = runs.last().is_some_and(|(_, end)| *end == i)
            && !place.is_entity
            && !places[i - 1].is_entity
            && places[i - 1].end == place.first
            && places[i - 1].sentence == place.sentence
            && is_joint(&text[places[i - 1].end_byte..place.start_byte]);
        match runs.last_mut() {
            Some((_, end)) if joins => *end = i + 1,
            _ => runs.push((i, i + 1)),
        }
    }
    runs
}

/// The longest phrase at place `i` that stands.
fn longest(numbers: &mut Numbers, places: &[Place], nodes: &[Node], i: usize, end: usize) -> Phrase {
    let mut best = Phrase {
        id: places[i].node,
        first: i,
        words: 1,
    };
    let mut id = places[i].node;
    let mut commonest = nodes[places[i].node as usize].count;
    for (k, place) in places[i + 1..end.min(i + MAX_PHRASE_WORDS)].iter().enumerate() {
        id = numbers.longer(id, place.node);
        commonest = commonest.max(nodes[place.node as usize].count);
        let count = numbers.counts[id as usize];
        if count >= 2 || commonest == count {
            best = Phrase {
                id,
                first: i,
                words: k + 2,
            };
        }
    }
    best
}

/// What may stand between two words of a phrase.
fn is_joint(gap: &str) -> bool {
    matches!(gap, "" | " " | "-" | "\n" | "\r\n" | "\u{a0}")
}
