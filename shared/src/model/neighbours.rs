//! The labels of the training documents most like a text.
//!
//! ```text
//! sim(x, n) = Σ words of x and n, as unit TF-IDF vectors            N(x): the COUNT most similar documents
//! v_ℓ(x)    = Σ_{n ∈ N(x), ℓ ∈ n} sim(x, n)^POWER / Σ_{n ∈ N(x)} sim(x, n)^POWER
//! ```
//!
//! A ranker of a rare label has seen a handful of documents and is unsure of all its words; one near copy of a text settles the
//! matter. A document is remembered by its strongest words only, so memory grows with documents, not with their length.

use crate::features::SparseVector;

/// Neighbours that vote.
const COUNT: usize = 16;
/// Words by which a document is remembered at most.
pub const MOST_WORDS: usize = 1024;
/// Steps that a word's weight is kept in, up to the document's heaviest.
pub const STEPS: f32 = 31.0;
/// How much more a near neighbour counts than a far one.
const POWER: i32 = 3;
/// v at which a vote begins to count: [`lift`] is 0 for none and grows with the logarithm from here.
const FAINT: f32 = 0.02;

/// What a vote adds to a label's log-odds, per unit of weight: ln(1 + v/FAINT).
pub fn lift(vote: f32) -> f32 {
    (vote / FAINT).ln_1p()
}

/// A document as it is remembered: its strongest words, ascending, and its labels, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remembered {
    pub words: SparseVector,
    pub labels: Vec<u32>,
}

impl Remembered {
    /// Keeps the `most` heaviest words ([`MOST_WORDS`] at most), each in one of [`STEPS`] steps of the heaviest.
    pub fn new(words: &SparseVector, labels: &[u32], most: usize) -> Self {
        let mut order: Vec<usize> = (0..words.len()).collect();
        order.sort_by(|&a, &b| words.values[b].total_cmp(&words.values[a]).then(a.cmp(&b)));
        order.truncate(most.min(MOST_WORDS));
        order.sort_unstable();
        let heaviest = order.iter().map(|&at| words.values[at]).fold(0.0, f32::max);
        let step = short(heaviest / STEPS);
        let mut kept = SparseVector::default();
        for at in order {
            let code = (words.values[at] / step).round();
            if code >= 1.0 {
                kept.indices.push(words.indices[at]);
                kept.values.push(code * step);
            }
        }
        Self {
            words: kept,
            labels: labels.to_vec(),
        }
    }

    /// What its words' weights are multiples of.
    pub fn step(&self) -> f32 {
        self.words.values.iter().copied().fold(0.0, f32::max) / STEPS
    }
}

/// The next number with sixteen bits: its multiples up to [`STEPS`] are exact, so that what is written in steps comes back bit for bit.
/// A neighbour that is nearer by the last bit could have other labels.
fn short(step: f32) -> f32 {
    f32::from_bits((step.to_bits() + 0xff) & !0xff)
}

/// The remembered documents, by word.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// Where each word's entries begin in `entries`, and where the last one's end.
    offsets: Vec<usize>,
    /// (document, weight) of each word, ascending by document.
    entries: Vec<(u32, f32)>,
    /// Where each document's labels begin in `labels`, and where the last one's end.
    label_offsets: Vec<usize>,
    labels: Vec<u32>,
}

impl Neighbours {
    /// Lays out documents over a vocabulary of `terms` words; words beyond it are passed over.
    pub fn new(documents: &[Remembered], terms: usize) -> Self {
        let mut offsets = vec![0usize; terms + 1];
        let known = |word: &u32| (*word as usize) < terms;
        for document in documents {
            for &word in document.words.indices.iter().filter(|word| known(word)) {
                offsets[word as usize + 1] += 1;
            }
        }
        for word in 0..terms {
            offsets[word + 1] += offsets[word];
        }
        let mut next = offsets.clone();
        let mut entries = vec![(0, 0.0); offsets[terms]];
        let (mut label_offsets, mut labels) = (vec![0], Vec::new());
        for (number, document) in documents.iter().enumerate() {
            for (word, weight) in document.words.iter().filter(|(word, _)| known(word)) {
                entries[next[word as usize]] = (number as u32, weight);
                next[word as usize] += 1;
            }
            labels.extend_from_slice(&document.labels);
            label_offsets.push(labels.len());
        }
        Self {
            offsets,
            entries,
            label_offsets,
            labels,
        }
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.label_offsets.len().saturating_sub(1)
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The documents, as [`Self::new`] took them.
    pub fn documents(&self) -> Vec<Remembered> {
        let mut documents: Vec<Remembered> = self
            .label_offsets
            .windows(2)
            .map(|range| Remembered {
                words: SparseVector::default(),
                labels: self.labels[range[0]..range[1]].to_vec(),
            })
            .collect();
        for (word, range) in self.offsets.windows(2).enumerate() {
            for &(document, weight) in &self.entries[range[0]..range[1]] {
                let words = &mut documents[document as usize].words;
                words.indices.push(word as u32);
                words.values.push(weight);
            }
        }
        documents
    }

    /// The documents most like a text with their similarity, most similar first.
    pub fn nearest(&self, words: &SparseVector) -> Vec<(u32, f32)> {
        let mut similar = vec![0.0f32; self.len()];
        for (word, weight) in words.iter() {
            let word = word as usize;
            if word + 1 >= self.offsets.len() {
                continue;
            }
            for &(document, other) in &self.entries[self.offsets[word]..self.offsets[word + 1]] {
                similar[document as usize] += weight * other;
            }
        }
        let mut found: Vec<(u32, f32)> = Vec::with_capacity(2 * COUNT);
        let mut least = 0.0;
        for (document, &similarity) in similar.iter().enumerate() {
            if similarity > least {
                found.push((document as u32, similarity));
                if found.len() == 2 * COUNT {
                    least = keep_nearest(&mut found);
                }
            }
        }
        keep_nearest(&mut found);
        found
    }

    /// v of every label that a neighbour carries, ascending by label.
    pub fn votes(&self, words: &SparseVector) -> Vec<(u32, f32)> {
        let nearest = self.nearest(words);
        let total: f32 = nearest.iter().map(|n| n.1.powi(POWER)).sum();
        let mut votes: Vec<(u32, f32)> = Vec::new();
        for (document, similarity) in nearest {
            let document = document as usize;
            let range = self.label_offsets[document]..self.label_offsets[document + 1];
            let share = similarity.powi(POWER) / total;
            votes.extend(self.labels[range].iter().map(|&label| (label, share)));
        }
        // Stable: the shares of a label are added nearest first, on every machine.
        votes.sort_by_key(|vote| vote.0);
        votes.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        votes
    }
}

/// Sorts by similarity, keeps [`COUNT`] and answers the least similarity that still gets in.
fn keep_nearest(found: &mut Vec<(u32, f32)>) -> f32 {
    found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.truncate(COUNT);
    if found.len() < COUNT {
        0.0
    } else {
        found[COUNT - 1].1
    }
}

/// A label's vote among sorted `votes`.
pub fn vote_of(votes: &[(u32, f32)], label: u32) -> f32 {
    votes
        .binary_search_by_key(&label, |vote| vote.0)
        .map_or(0.0, |at| votes[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(entries: &[(u32, f32)]) -> SparseVector {
        let (indices, values) = entries.iter().copied().unzip();
        SparseVector { indices, values }
    }

    fn three() -> Vec<Remembered> {
        [
            (vec![(0, 0.6), (1, 0.8)], vec![5]),
            (vec![(1, 1.0)], vec![5, 7]),
            (vec![(2, 1.0)], vec![9]),
        ]
        .map(|(entries, labels)| Remembered::new(&words(&entries), &labels, 8))
        .to_vec()
    }

    #[test]
    fn votes_are_shares_of_cubed_similarity() {
        let neighbours = Neighbours::new(&three(), 3);
        let votes = neighbours.votes(&words(&[(0, 0.6), (1, 0.8)]));
        // Similarities 1 and 0.8; the third document shares no word.
        let (first, second) = (1.0, 0.512);
        assert_eq!(votes.iter().map(|v| v.0).collect::<Vec<_>>(), [5, 7]);
        assert!((votes[0].1 - 1.0).abs() < 1e-3, "{votes:?}");
        assert!((votes[1].1 - second / (first + second)).abs() < 5e-3, "{votes:?}");
        assert_eq!(vote_of(&votes, 9), 0.0);
    }

    #[test]
    fn a_text_without_a_known_word_has_no_votes() {
        let neighbours = Neighbours::new(&three(), 3);
        assert!(neighbours.votes(&words(&[(8, 1.0)])).is_empty());
        assert!(neighbours.votes(&SparseVector::default()).is_empty());
        assert!(Neighbours::default().votes(&words(&[(0, 1.0)])).is_empty());
    }

    #[test]
    fn documents_come_back_as_they_went_in() {
        let documents = three();
        assert_eq!(Neighbours::new(&documents, 3).documents(), documents);
    }

    #[test]
    fn only_the_strongest_words_are_kept() {
        let kept = Remembered::new(&words(&[(1, 0.1), (4, 0.9), (6, 0.5)]), &[], 2);
        assert_eq!(kept.words.indices, [4, 6]);
    }

    #[test]
    fn weights_are_exact_multiples_of_a_step_that_can_be_told_from_them() {
        for n in 1..200 {
            let heaviest = (n as f32 * 0.37).sin().abs() + 0.01;
            let weights: Vec<(u32, f32)> = (0..40).map(|w| (w, heaviest * (w + 1) as f32 / 40.0)).collect();
            let kept = Remembered::new(&words(&weights), &[], 64);
            let step = kept.step();
            for &weight in &kept.words.values {
                let code = (weight / step).round();
                assert!(
                    (1.0..=STEPS).contains(&code) && code * step == weight,
                    "{weight} in steps of {step}"
                );
            }
        }
    }

    #[test]
    fn no_more_than_the_nearest_vote() {
        let many: Vec<Remembered> = (0..100)
            .map(|n| Remembered::new(&words(&[(0, 0.1 + n as f32 / 200.0)]), &[n], 4))
            .collect();
        let nearest = Neighbours::new(&many, 1).nearest(&words(&[(0, 1.0)]));
        let expected: Vec<u32> = (0..COUNT as u32).map(|n| 99 - n).collect();
        assert_eq!(nearest.iter().map(|n| n.0).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_vote_lifts_from_nothing_and_never_falls() {
        assert_eq!(lift(0.0), 0.0);
        assert!(lift(0.1) < lift(0.2) && lift(1.0) < 4.0);
    }
}
