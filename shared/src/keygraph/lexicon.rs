//! Names and phrases that a corpus taught.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

/// The most entries a lexicon holds; what comes after is left out.
pub(super) const MAX_ENTRIES: usize = 50_000;
/// The most words an entry has.
pub(super) const MAX_ENTRY_WORDS: usize = 4;
/// The longest entry in bytes.
const MAX_ENTRY_BYTES: usize = 200;

/// Words and phrases that name something in a corpus, as folded words with one blank between them.
///
/// It travels in the bundle as a sorted list of strings, so that the browser finds the same entities.
///
/// ```
/// use gnnxml_shared::keygraph::EntityLexicon;
/// let lexicon = EntityLexicon::new(["european union", "ghana"]);
/// assert!(lexicon.contains("ghana"));
/// let json = serde_json::to_string(&lexicon).unwrap();
/// assert_eq!(json, r#"["european union","ghana"]"#);
/// assert_eq!(serde_json::from_str::<EntityLexicon>(&json).unwrap(), lexicon);
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct EntityLexicon {
    /// Sorted, each once.
    entries: Vec<String>,
    words: HashMap<Box<str>, u32>,
    /// Trie over word numbers: (state, word) → state. State 0 is the root.
    steps: HashMap<(u32, u32), u32>,
    /// Whether an entry ends in a state.
    ends: Vec<bool>,
}

impl EntityLexicon {
    /// A lexicon of entries; those that are empty, too long or beyond the limit are left out.
    pub fn new<S: Into<String>>(entries: impl IntoIterator<Item = S>) -> Self {
        let entries: BTreeSet<String> = entries
            .into_iter()
            .map(Into::into)
            .filter(|entry| {
                let words = entry.split(' ').count();
                entry.len() <= MAX_ENTRY_BYTES
                    && (1..=MAX_ENTRY_WORDS).contains(&words)
                    && entry.split(' ').all(|word| !word.is_empty())
            })
            .take(MAX_ENTRIES)
            .collect();
        let mut lexicon = Self {
            ends: vec![false],
            ..Self::default()
        };
        for entry in &entries {
            lexicon.index(entry);
        }
        lexicon.entries = entries.into_iter().collect();
        lexicon
    }

    fn index(&mut self, entry: &str) {
        let mut state = 0;
        for word in entry.split(' ') {
            let next_word = self.words.len() as u32;
            let word = *self.words.entry(word.into()).or_insert(next_word);
            state = *self.steps.entry((state, word)).or_insert_with(|| {
                self.ends.push(false);
                self.ends.len() as u32 - 1
            });
        }
        self.ends[state as usize] = true;
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether this folded word or phrase is an entry.
    pub fn contains(&self, folded: &str) -> bool {
        self.entries
            .binary_search_by(|entry| entry.as_str().cmp(folded))
            .is_ok()
    }

    /// The entries, sorted.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// The number of a word that occurs in some entry.
    pub(super) fn word(&self, folded: &str) -> Option<u32> {
        if self.words.is_empty() {
            None
        } else {
            self.words.get(folded).copied()
        }
    }

    /// How many of the words at the front make the longest entry.
    pub(super) fn longest_match(&self, words: impl Iterator<Item = u32>) -> usize {
        let mut state = 0;
        let mut longest = 0;
        for (i, word) in words.take(MAX_ENTRY_WORDS).enumerate() {
            let Some(next) = self.steps.get(&(state, word)) else {
                break;
            };
            state = *next;
            if self.ends[state as usize] {
                longest = i + 1;
            }
        }
        longest
    }
}

impl PartialEq for EntityLexicon {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for EntityLexicon {}

impl From<Vec<String>> for EntityLexicon {
    fn from(entries: Vec<String>) -> Self {
        Self::new(entries)
    }
}

impl From<EntityLexicon> for Vec<String> {
    fn from(lexicon: EntityLexicon) -> Self {
        lexicon.entries
    }
}

/// Scored entries, the best `limit` of them, as a lexicon.
pub(super) fn best(scored: BTreeMap<String, f64>, limit: usize) -> EntityLexicon {
    let mut scored: Vec<(String, f64)> = scored.into_iter().collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    scored.truncate(limit.min(MAX_ENTRIES));
    EntityLexicon::new(scored.into_iter().map(|(entry, _)| entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(lexicon: &EntityLexicon, words: &[&str]) -> usize {
        lexicon.longest_match(words.iter().map_while(|word| lexicon.word(word)))
    }

    #[test]
    fn the_longest_entry_wins() {
        let lexicon = EntityLexicon::new(["new", "new york", "new york stock exchange", "york"]);
        assert_eq!(
            matched(&lexicon, &["new", "york", "stock", "exchange", "fell"]),
            4
        );
        assert_eq!(matched(&lexicon, &["new", "york", "stock", "fell"]), 2);
        assert_eq!(matched(&lexicon, &["stock"]), 0);
        assert_eq!(matched(&EntityLexicon::default(), &["new"]), 0);
    }

    #[test]
    fn bad_entries_are_left_out() {
        let long = "x".repeat(300);
        let lexicon = EntityLexicon::new(["", " a", "a  b", "a b c d e", long.as_str(), "good"]);
        assert_eq!(lexicon.entries(), ["good"]);
    }

    #[test]
    fn order_of_learning_does_not_show() {
        assert_eq!(
            EntityLexicon::new(["b", "a", "b"]),
            EntityLexicon::new(["a", "b"])
        );
    }
}
