//! A few training documents of each label, for whoever wonders what a label means.

use std::collections::{BTreeMap, BinaryHeap};

use gnnxml_shared::api::ExampleDocument;
use serde::{Deserialize, Serialize};

/// Characters of a document that are shown.
const EXCERPT: usize = 160;

/// The examples of every label; a document that serves several labels is stored once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Examples {
    documents: Vec<ExampleDocument>,
    /// By label: places in `documents`.
    of_label: Vec<Vec<u32>>,
}

/// A document that may be shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'d> {
    pub id: &'d str,
    pub text: &'d str,
    pub labels: &'d [u32],
}

impl Examples {
    /// Of each of `labels` labels the `each` documents with the fewest labels, the first of equals: they are about it and
    /// little else.
    pub fn choose(documents: &[Shown<'_>], labels: usize, each: usize) -> Self {
        let mut best: Vec<BinaryHeap<(usize, usize)>> = vec![BinaryHeap::new(); labels];
        for (place, document) in documents.iter().enumerate() {
            for &label in document.labels {
                let Some(best) = best.get_mut(label as usize) else {
                    continue;
                };
                best.push((document.labels.len(), place));
                if best.len() > each {
                    best.pop();
                }
            }
        }
        let mut places = BTreeMap::new();
        let mut examples = Self::default();
        for best in best {
            let chosen = best.into_sorted_vec().into_iter().map(|(_, place)| {
                *places.entry(place).or_insert_with(|| {
                    let Shown { id, text, .. } = documents[place];
                    examples.documents.push(ExampleDocument {
                        id: id.to_owned(),
                        excerpt: excerpt(text),
                    });
                    examples.documents.len() as u32 - 1
                })
            });
            let chosen = chosen.collect();
            examples.of_label.push(chosen);
        }
        examples
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The documents of a label.
    pub fn of(&self, label: u32) -> Vec<ExampleDocument> {
        let places = self.of_label.get(label as usize).map_or(&[][..], Vec::as_slice);
        places
            .iter()
            .filter_map(|&place| self.documents.get(place as usize).cloned())
            .collect()
    }
}

/// As much of a text as [`excerpt`] looks at.
pub(super) fn beginning(text: &str) -> &str {
    let mut left = EXCERPT;
    for word in text.split_whitespace() {
        let length = word.chars().count() + 1;
        if length > left {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            let bytes: usize = word.chars().take(EXCERPT + 1).map(char::len_utf8).sum();
            return &text[..start + bytes];
        }
        left -= length;
    }
    text
}

/// The beginning of a text, cut between words, on one line.
fn excerpt(text: &str) -> String {
    let mut line = String::new();
    let mut left = EXCERPT;
    for word in text.split_whitespace() {
        let length = word.chars().count() + 1;
        if length > left {
            if line.is_empty() {
                line.extend(word.chars().take(EXCERPT));
            }
            line.push('…');
            return line;
        }
        left -= length;
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_with_few_labels_are_the_examples() {
        let shown = |id, labels| Shown {
            id,
            text: "Cocoa\n  rose.",
            labels,
        };
        let documents = [
            shown("wide", &[0, 1, 2][..]),
            shown("plain", &[1]),
            shown("pair", &[0, 1]),
        ];
        let examples = Examples::choose(&documents, 4, 2);
        let ids = |label| -> Vec<String> { examples.of(label).into_iter().map(|d| d.id).collect() };
        assert_eq!(ids(0), ["pair", "wide"]);
        assert_eq!(ids(1), ["plain", "pair"]);
        assert_eq!(ids(2), ["wide"]);
        assert!(ids(3).is_empty() && ids(9).is_empty());
        assert_eq!(examples.of(1)[0].excerpt, "Cocoa rose.");
        assert!(Examples::choose(&documents, 4, 0).is_empty());
    }

    #[test]
    fn an_excerpt_is_cut_between_words() {
        let text = "tide ".repeat(100);
        let short = excerpt(&text);
        assert!(
            short.ends_with("tide…") && short.chars().count() <= EXCERPT,
            "{short}"
        );
        assert_eq!(excerpt(&"é".repeat(500)).chars().count(), EXCERPT + 1);
        assert_eq!(excerpt("  "), "");
    }

    #[test]
    fn a_beginning_is_enough_for_the_excerpt() {
        let texts = [
            "tide ".repeat(100),
            format!("  long {} word", "é".repeat(500)),
            "é".repeat(500),
            " short\n text ".into(),
            String::new(),
        ];
        for text in texts {
            let kept = beginning(&text);
            assert_eq!(excerpt(kept), excerpt(&text));
            assert!(kept.len() <= 2 * (EXCERPT + 10), "{}", kept.len());
        }
    }
}
