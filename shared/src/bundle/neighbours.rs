//! The remembered documents, coded word by word.
//!
//! ```text
//! documents   one step each
//! labels      of every document: how many, gaps
//! words       of the vocabulary: how many documents, gaps between them, weights in steps
//! ```
//!
//! A common word's documents lie close together and a rare one's far apart, so gaps and weights are told apart by how many documents a word
//! has, in octaves: ten bits a word of a document, where its number and weight as they stand take twenty-four.

use super::BundleError;
use super::entropy::{Decoder, Encoder, Tables};
use super::wire::{Reader, Writer};
use crate::features::SparseVector;
use crate::model::neighbours::{MOST_WORDS, Neighbours, Remembered, STEPS};

const NEIGHBOURS: [u8; 4] = *b"NEAR";

/// Kinds of numbers: labels of a document and gaps between them, documents of a word, gaps between those, weights.
const LABELS: usize = 0;
const LABEL_GAPS: usize = 1;
const DOCUMENTS: usize = 2;
const GAPS: usize = 3;
const OCTAVES: usize = 24;
const WEIGHTS: usize = GAPS + OCTAVES;
const KINDS: usize = WEIGHTS + OCTAVES;

/// Labels and words of documents that a byte of the part may unfold to at most.
const ENTRIES_A_BYTE: usize = 8;

/// Which octave a word with so many documents lies in.
fn octave(documents: usize) -> usize {
    (documents.max(1).ilog2() as usize).min(OCTAVES - 1)
}

/// Documents over a vocabulary of `terms` words; one with more words than a reader takes keeps its heaviest.
pub(super) fn write_neighbours(neighbours: &Neighbours, terms: usize) -> Vec<u8> {
    let mut documents = neighbours.documents();
    for document in &mut documents {
        if document.words.len() > MOST_WORDS {
            *document = Remembered::new(&document.words, &document.labels, MOST_WORDS);
        }
    }
    code(&documents, terms)
}

fn code(documents: &[Remembered], terms: usize) -> Vec<u8> {
    let mut encoder = Encoder::default();
    let mut steps = Vec::with_capacity(documents.len());
    let mut documents_of: Vec<Vec<(u32, u32)>> = vec![Vec::new(); terms];
    let mut entries = 0;
    for (number, document) in documents.iter().enumerate() {
        let step = document.step();
        steps.push(step);
        for (word, weight) in document.words.iter() {
            let weight = (weight / step).round() as u32;
            if weight > 0 {
                documents_of[word as usize].push((number as u32, weight));
                entries += 1;
            }
        }
        entries += document.labels.len();
        encoder.number(LABELS, document.labels.len() as u32);
        let mut next = 0;
        for &label in &document.labels {
            encoder.number(LABEL_GAPS, label - next);
            next = label + 1;
        }
    }
    for documents in documents_of {
        let octave = octave(documents.len());
        encoder.number(DOCUMENTS, documents.len() as u32);
        let mut next = 0;
        for (document, weight) in documents {
            encoder.number(GAPS + octave, document - next);
            encoder.number(WEIGHTS + octave, weight - 1);
            next = document + 1;
        }
    }
    let tables = Tables::of(KINDS, [&encoder]);
    let mut part = Writer::new(NEIGHBOURS);
    part.f32s(&steps);
    part.count(entries);
    tables.write(&mut part);
    encoder.write(&tables, &mut part);
    // So that a reader may hold the part to what its bytes can bring.
    part.fill(entries.div_ceil(ENTRIES_A_BYTE));
    part.finish()
}

/// Remembered documents whose words lie below `terms` and whose labels lie below `labels`.
pub(super) fn read_neighbours(
    name: &str,
    bytes: &[u8],
    terms: usize,
    labels: usize,
) -> Result<Vec<Remembered>, BundleError> {
    let mut part = Reader::new(name, bytes, NEIGHBOURS)?;
    let steps = part.f32s("steps")?;
    if let Some(step) = steps.iter().find(|step| **step < 0.0) {
        return Err(part.bad("step", step, "a number from 0"));
    }
    let entries = part.varint("entries")?;
    if entries > (ENTRIES_A_BYTE * bytes.len()) as u64 {
        return Err(part.bad("entries", entries, &format!("at most {ENTRIES_A_BYTE} a byte")));
    }
    let mut left = entries as usize;
    let mut take = |part: &Reader<'_>, count: u32, what: &'static str| {
        let room = left.checked_sub(count as usize);
        left = room.ok_or_else(|| part.bad(what, count, &format!("{left}, as many as are left")))?;
        Ok(())
    };
    let tables = Tables::read(&mut part, KINDS)?;
    let mut decoder = Decoder::new(&mut part, &tables)?;

    let mut documents = Vec::with_capacity(steps.len());
    for _ in &steps {
        let count = decoder.number(LABELS);
        take(&part, count, "labels of a document")?;
        let mut carried = Vec::with_capacity(count as usize);
        let mut next = 0_u32;
        for _ in 0..count {
            let label = next.saturating_add(decoder.number(LABEL_GAPS));
            if label as usize >= labels {
                return Err(part.bad("label", label, &format!("below {labels}")));
            }
            carried.push(label);
            next = label + 1;
        }
        documents.push(Remembered {
            words: SparseVector::default(),
            labels: carried,
        });
    }
    for word in 0..terms {
        let count = decoder.number(DOCUMENTS);
        take(&part, count, "documents of a word")?;
        let octave = octave(count as usize);
        let mut next = 0_usize;
        for _ in 0..count {
            let at = next.saturating_add(decoder.number(GAPS + octave) as usize);
            let weight = decoder.number(WEIGHTS + octave);
            let Some(document) = documents.get_mut(at) else {
                return Err(part.bad("document", at, &format!("below {}", steps.len())));
            };
            if weight >= STEPS as u32 {
                return Err(part.bad("weight", weight, &format!("below {STEPS}")));
            }
            // A label's words are gathered from all of its documents: labels times words of each would be quadratic in the part.
            if document.words.len() == MOST_WORDS {
                return Err(part.bad(
                    "words of a document",
                    MOST_WORDS + 1,
                    &format!("at most {MOST_WORDS}"),
                ));
            }
            document.words.indices.push(word as u32);
            document.words.values.push((weight + 1) as f32 * steps[at]);
            next = at + 1;
        }
    }
    decoder.finish(&part)?;
    if left > 0 {
        return Err(part.bad("entries", entries, &(entries as usize - left).to_string()));
    }
    part.fill()?;
    part.finish()?;
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TERMS: usize = 3000;

    fn document(words: impl IntoIterator<Item = (u32, f32)>, labels: &[u32], most: usize) -> Remembered {
        let (indices, values) = words.into_iter().unzip();
        Remembered::new(&SparseVector { indices, values }, labels, most)
    }

    fn read(part: &[u8]) -> Result<Vec<Remembered>, BundleError> {
        read_neighbours("near", part, TERMS, 50)
    }

    proptest! {
        #[test]
        fn documents_come_back(
            documents in prop::collection::vec(
                (
                    prop::collection::btree_map(0..TERMS as u32, 0.001_f32..1.0, 0..80),
                    prop::collection::btree_set(0_u32..50, 0..8),
                ),
                0..40,
            ),
        ) {
            let documents: Vec<Remembered> = documents
                .into_iter()
                .map(|(words, labels)| document(words, &labels.into_iter().collect::<Vec<_>>(), 64))
                .collect();
            let back = read(&code(&documents, TERMS)).unwrap();
            prop_assert_eq!(back, documents);
        }
    }

    #[test]
    fn a_word_of_a_document_takes_less_than_it_would_as_it_stands() {
        // Word w in every (w + 1)th document, weights of many sizes.
        let words = |number: u32| {
            (0..200_u32)
                .filter(move |word| number.is_multiple_of(word + 1))
                .map(move |word| (word, 0.1 + (word * 7 + number) as f32 % 31.0 / 40.0))
        };
        let documents: Vec<Remembered> = (0..2000)
            .map(|number| document(words(number), &[number % 50], 64))
            .collect();
        let entries: usize = documents.iter().map(|document| document.words.len()).sum();
        let bytes = code(&documents, TERMS).len() - 4 * documents.len();
        assert!(bytes < 2 * entries, "{bytes} bytes for {entries} words");
    }

    #[test]
    fn a_document_is_remembered_by_a_thousand_words_at_most() {
        let most = MOST_WORDS as u32;
        let long = Remembered {
            words: SparseVector {
                indices: (0..most + 5).collect(),
                values: (0..most + 5).map(|word| 0.5 + word as f32 / 1e4).collect(),
            },
            labels: vec![0],
        };
        assert_eq!(Remembered::new(&long.words, &[], 5000).words.len(), MOST_WORDS);
        // What is written is clipped to the heaviest.
        let written = write_neighbours(&Neighbours::new(std::slice::from_ref(&long), TERMS), TERMS);
        assert_eq!(
            read(&written).unwrap()[0].words.indices,
            (5..most + 5).collect::<Vec<_>>()
        );
        // What is read is refused.
        let fault = read(&code(&[long], TERMS)).unwrap_err();
        assert!(fault.to_string().contains("at most 1024"), "{fault}");
    }

    #[test]
    fn more_than_the_bytes_can_bring_is_refused() {
        let mut part = Writer::new(NEIGHBOURS);
        part.f32s(&[0.01]);
        part.count(1_000_000);
        let fault = read(&part.finish()).unwrap_err();
        assert!(fault.to_string().contains("at most 8 a byte"), "{fault}");
    }
}
