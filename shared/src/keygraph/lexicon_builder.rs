//! Learns the entity lexicon from a corpus, document by document, in bounded memory.

use std::collections::{BTreeMap, HashMap};

use super::EntityLexicon;
use super::lexicon::{MAX_ENTRIES, best};
use super::tokens::{Shape, Tokens};
use crate::text::{Language, Stemmer};

/// Limits of the tables; beyond them the rarest entries are forgotten.
const MAX_WORDS: usize = 400_000;
const MAX_PAIRS: usize = 1_000_000;
const MAX_TRIPLES: usize = 500_000;

/// A word is a name when this share of its places inside sentences is capitalised …
const NAME_SHARE: f64 = 0.8;
/// … and it stood there at least so often.
const NAME_COUNT: u32 = 3;
/// A phrase needs this normalised pointwise mutual information …
const PHRASE_NPMI: f64 = 0.5;
/// … in at least so many documents …
const PHRASE_DOCUMENTS: u32 = 4;
/// … and not in more than this share of them: that is the corpus' boilerplate.
const BOILERPLATE_SHARE: f64 = 0.2;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Documents that hold the word.
    documents: u32,
    /// Places away from sentence starts and shouted headings.
    inside: u32,
    /// Those of them with a capital.
    capital: u32,
}

/// Counts words and phrases of documents; [`finish`](Self::finish) turns the counts into a lexicon.
///
/// Several builders can count parts of a corpus and be merged. As long as no table overflows (hundreds of
/// thousands of distinct words) the parts do not matter; merge them in a fixed order all the same.
///
/// ```
/// use gnnxml_shared::keygraph::EntityLexiconBuilder;
/// use gnnxml_shared::text::Language;
/// let mut builder = EntityLexiconBuilder::default();
/// for _ in 0..5 {
///     builder.add("Exports from Ghana rose, and ships left Accra for ports elsewhere.", Language::English);
/// }
/// let lexicon = builder.finish();
/// assert!(lexicon.contains("ghana") && lexicon.contains("accra") && !lexicon.contains("ports"));
/// ```
#[derive(Debug)]
pub struct EntityLexiconBuilder {
    limit: usize,
    documents: u32,
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    counts: Vec<Counts>,
    /// Documents that hold two words side by side.
    pairs: HashMap<(u32, u32), u32>,
    triples: HashMap<(u32, u32, u32), u32>,
    tokens: Tokens,
    /// Of the document at hand: its phrases, and its words' numbers here.
    near: Vec<[u32; 3]>,
    local: Vec<u32>,
}

impl Default for EntityLexiconBuilder {
    fn default() -> Self {
        Self::with_limit(20_000)
    }
}

/// No third word.
const NONE: u32 = u32::MAX;

impl EntityLexiconBuilder {
    /// A builder whose lexicon will hold at most `limit` entries.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit: limit.min(MAX_ENTRIES),
            documents: 0,
            numbers: HashMap::new(),
            names: Vec::new(),
            counts: Vec::new(),
            pairs: HashMap::new(),
            triples: HashMap::new(),
            tokens: Tokens::default(),
            near: Vec::new(),
            local: Vec::new(),
        }
    }

    /// Counts one document.
    pub fn add(&mut self, text: &str, language: Language) {
        self.documents += 1;
        // Names are counted as they are written: no stemming here.
        let whole = Stemmer::new(Language::Neutral);
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.read(text, language, &whole, &EntityLexicon::default());
        self.count_words(&tokens);
        self.count_phrases(text, &tokens, language);
        self.tokens = tokens;
        self.prune();
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(word.into(), number);
        self.names.push(word.into());
        self.counts.push(Counts::default());
        number
    }

    fn count_words(&mut self, tokens: &Tokens) {
        self.local.clear();
        for id in 0..tokens.folded.len() {
            let word = tokens.words[id];
            let number = if word.content {
                self.number(tokens.folded.get(id as u32))
            } else {
                NONE
            };
            if number != NONE {
                self.counts[number as usize].documents += 1;
            }
            self.local.push(number);
        }
        for s in (0..tokens.sentences.len()).filter(|s| !tokens.shouted[*s]) {
            for token in tokens.of(s).iter().skip(1) {
                let number = self.local[token.word as usize];
                if number != NONE && !matches!(token.shape, Shape::Number | Shape::Measure | Shape::Caseless)
                {
                    let counts = &mut self.counts[number as usize];
                    counts.inside += 1;
                    counts.capital += u32::from(token.shape.is_capital());
                }
            }
        }
    }

    /// Content words side by side, each phrase once a document.
    fn count_phrases(&mut self, text: &str, tokens: &Tokens, language: Language) {
        self.near.clear();
        let joined = |a: usize, b: usize, all: &[super::tokens::Token]| {
            matches!(
                &text[all[a].span.end..all[b].span.start],
                " " | "-" | "\n" | "\r\n"
            )
        };
        for s in 0..tokens.sentences.len() {
            let all = tokens.of(s);
            for i in 1..all.len() {
                let (a, b) = (
                    self.local[all[i - 1].word as usize],
                    self.local[all[i].word as usize],
                );
                if a == NONE || b == NONE || !joined(i - 1, i, all) {
                    continue;
                }
                // A script without blanks has no phrases to be found between blanks.
                if language == Language::Neutral && all[i].shape == Shape::Caseless {
                    continue;
                }
                self.near.push([a, b, NONE]);
                if let Some(third) = all.get(i + 1) {
                    let c = self.local[third.word as usize];
                    if c != NONE && joined(i, i + 1, all) {
                        self.near.push([a, b, c]);
                    }
                }
            }
        }
        self.near.sort_unstable();
        self.near.dedup();
        for [a, b, c] in &self.near {
            if *c == NONE {
                *self.pairs.entry((*a, *b)).or_default() += 1;
            } else {
                *self.triples.entry((*a, *b, *c)).or_default() += 1;
            }
        }
    }

    /// Adds what another builder counted.
    pub fn merge(&mut self, other: Self) {
        self.documents += other.documents;
        let numbers: Vec<u32> = other.names.iter().map(|name| self.number(name)).collect();
        let to = |word: u32| numbers[word as usize];
        for (number, counts) in numbers.iter().zip(&other.counts) {
            let own = &mut self.counts[*number as usize];
            own.documents += counts.documents;
            own.inside += counts.inside;
            own.capital += counts.capital;
        }
        for ((a, b), count) in other.pairs {
            *self.pairs.entry((to(a), to(b))).or_default() += count;
        }
        for ((a, b, c), count) in other.triples {
            *self.triples.entry((to(a), to(b), to(c))).or_default() += count;
        }
        self.prune();
    }

    /// Forgets the rarest entries of a table that is too large.
    fn prune(&mut self) {
        forget_rarest(&mut self.pairs, MAX_PAIRS);
        forget_rarest(&mut self.triples, MAX_TRIPLES);
        if self.names.len() > MAX_WORDS {
            self.forget_rarest_words();
        }
    }

    fn forget_rarest_words(&mut self) {
        let mut floor = 1;
        while self
            .counts
            .iter()
            .filter(|counts| counts.documents > floor)
            .count()
            > MAX_WORDS / 2
        {
            floor += 1;
        }
        let mut moved = vec![NONE; self.names.len()];
        let names = std::mem::take(&mut self.names);
        let counts = std::mem::take(&mut self.counts);
        self.numbers.clear();
        for (old, (name, counts)) in names.into_iter().zip(counts).enumerate() {
            if counts.documents > floor {
                moved[old] = self.names.len() as u32;
                self.numbers.insert(name.clone(), moved[old]);
                self.names.push(name);
                self.counts.push(counts);
            }
        }
        let to = |word: u32| moved[word as usize];
        let pairs = std::mem::take(&mut self.pairs);
        self.pairs = pairs
            .into_iter()
            .map(|((a, b), count)| ((to(a), to(b)), count))
            .filter(|((a, b), _)| *a != NONE && *b != NONE)
            .collect();
        let triples = std::mem::take(&mut self.triples);
        self.triples = triples
            .into_iter()
            .map(|((a, b, c), count)| ((to(a), to(b), to(c)), count))
            .filter(|((a, b, c), _)| *a != NONE && *b != NONE && *c != NONE)
            .collect();
    }

    /// npmi(x, y) = ln(p(xy) / (p(x)·p(y))) / −ln p(xy), probabilities over documents.
    fn npmi(&self, together: u32, a: u32, b: u32) -> f64 {
        let documents = f64::from(self.documents.max(1));
        let p = |count: u32| f64::from(count) / documents;
        let joint = p(together);
        if joint >= 1.0 {
            return 0.0;
        }
        (joint / (p(a) * p(b))).ln() / -joint.ln()
    }

    /// The lexicon of everything counted.
    pub fn finish(self) -> EntityLexicon {
        let mut scored: BTreeMap<String, f64> = BTreeMap::new();
        for (name, counts) in self.names.iter().zip(&self.counts) {
            let share = f64::from(counts.capital) / f64::from(counts.inside.max(1));
            if counts.inside >= NAME_COUNT && share >= NAME_SHARE {
                scored.insert(name.to_string(), share * f64::from(1 + counts.documents).ln());
            }
        }
        let boilerplate = (f64::from(self.documents) * BOILERPLATE_SHARE).max(f64::from(PHRASE_DOCUMENTS));
        let usable = |count: u32| count >= PHRASE_DOCUMENTS && f64::from(count) <= boilerplate;
        let documents = |word: u32| self.counts[word as usize].documents;
        let name = |word: u32| &self.names[word as usize];
        for ((a, b), count) in &self.pairs {
            let npmi = self.npmi(*count, documents(*a), documents(*b));
            if usable(*count) && npmi >= PHRASE_NPMI {
                scored.insert(
                    format!("{} {}", name(*a), name(*b)),
                    npmi * f64::from(1 + count).ln(),
                );
            }
        }
        for ((a, b, c), count) in &self.triples {
            let pair = |x: u32, y: u32| self.pairs.get(&(x, y)).copied().unwrap_or(*count);
            // A phrase of three holds together only if it does at both joints.
            let npmi = self.npmi(*count, documents(*a), pair(*b, *c)).min(self.npmi(
                *count,
                pair(*a, *b),
                documents(*c),
            ));
            if usable(*count) && npmi >= PHRASE_NPMI {
                scored.insert(
                    format!("{} {} {}", name(*a), name(*b), name(*c)),
                    npmi * f64::from(1 + count).ln(),
                );
            }
        }
        best(scored, self.limit)
    }
}

/// Drops entries counted once, then twice, … until half the table is free. Which ones go depends on their
/// counts alone.
fn forget_rarest<K: std::hash::Hash + Eq>(table: &mut HashMap<K, u32>, limit: usize) {
    if table.len() <= limit {
        return;
    }
    let mut floor = 1;
    while table.len() > limit / 2 {
        table.retain(|_, count| *count > floor);
        floor += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Vec<String> {
        let fruit = [
            "apples", "pears", "plums", "figs", "dates", "limes", "nuts", "kiwis",
        ];
        (0..40)
            .map(|i| {
                let f = fruit[i % 8];
                if i % 8 == 0 {
                    format!("Prices of {f} rose as Ghana sold {f} and bought skimmed milk powder from farms.")
                } else {
                    format!("The {f} were sold. Many {f} went to market and some {f} to town number {i}.")
                }
            })
            .collect()
    }

    #[test]
    fn names_and_phrases_are_learned_and_common_words_are_not() {
        let mut builder = EntityLexiconBuilder::default();
        documents()
            .iter()
            .for_each(|text| builder.add(text, Language::English));
        let lexicon = builder.finish();
        for entry in ["ghana", "skimmed milk", "skimmed milk powder"] {
            assert!(lexicon.contains(entry), "{entry} not in {:?}", lexicon.entries());
        }
        for entry in ["pears", "prices", "market", "many pears"] {
            assert!(!lexicon.contains(entry), "{entry} in {:?}", lexicon.entries());
        }
    }

    #[test]
    fn merged_parts_learn_what_the_whole_learns() {
        let documents = documents();
        let mut whole = EntityLexiconBuilder::default();
        documents
            .iter()
            .for_each(|text| whole.add(text, Language::English));
        let mut merged = EntityLexiconBuilder::default();
        for part in documents.chunks(7) {
            let mut builder = EntityLexiconBuilder::default();
            part.iter().for_each(|text| builder.add(text, Language::English));
            merged.merge(builder);
        }
        assert_eq!(merged.finish(), whole.finish());
    }

    #[test]
    fn an_empty_corpus_teaches_nothing() {
        let mut builder = EntityLexiconBuilder::default();
        builder.add("", Language::English);
        assert!(builder.finish().is_empty());
    }

    #[test]
    fn tables_stay_within_their_limits() {
        let mut table: HashMap<u32, u32> = (0..100).map(|i| (i, 1 + i / 50)).collect();
        forget_rarest(&mut table, 99);
        assert!(table.len() <= 50 && table.keys().all(|key| *key >= 50));
    }

    #[test]
    fn the_limit_keeps_the_best() {
        let mut builder = EntityLexiconBuilder::with_limit(1);
        documents()
            .iter()
            .for_each(|text| builder.add(text, Language::English));
        assert_eq!(builder.finish().len(), 1);
    }
}
