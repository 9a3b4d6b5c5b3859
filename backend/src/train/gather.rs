//! Stage `read`: a corpus becomes numbered labels, word vectors and an entity lexicon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gnnxml_shared::features::{SparseVector, TfIdf, TfIdfBuilder, TfIdfOptions, TransformScratch};
use gnnxml_shared::keygraph::{EntityLexicon, EntityLexiconBuilder};
use gnnxml_shared::text::{Language, LanguageGuess};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::codec::{PartError, PartReader, PartWriter};
use super::examples::{Examples, Shown, beginning};
use super::{Progress, TrainConfig, TrainError};
use crate::data::{CorpusSource, for_each_document};

/// Bytes of text kept in memory between the two passes; a larger corpus is read twice.
const TEXT_BUDGET: usize = 256 << 20;

/// A corpus as the later stages see it. Documents without a label are left out and counted.
#[derive(Debug)]
pub struct Gathered {
    /// Sorted; a label's number is its place.
    pub label_names: Vec<String>,
    /// Label numbers of each document, ascending.
    pub labels: Vec<Vec<u32>>,
    /// TF-IDF of each document.
    pub words: Vec<SparseVector>,
    /// A number drawn from each document's id: decides who is held out, whatever the order of the corpus.
    pub draws: Vec<u32>,
    pub tfidf: Arc<TfIdf>,
    pub lexicon: EntityLexicon,
    pub examples: Examples,
    pub without_labels: usize,
}

/// Documents whose length says how long the corpus' texts are.
const LENGTH_SAMPLE: usize = 1000;
/// Those of them whose words say in which language the texts are.
const LANGUAGE_SAMPLE: usize = 300;

/// How the texts of a corpus are read: its first documents tell.
pub(crate) fn reading_of(
    source: &CorpusSource,
    config: &TrainConfig,
) -> Result<(TfIdfOptions, Language), TrainError> {
    let (mut words, mut bytes, mut documents) = (0, 0, 0);
    let mut guess = LanguageGuess::default();
    for document in source.open()?.take(LENGTH_SAMPLE) {
        let text = document?.text;
        words += text.split_whitespace().count();
        bytes += text.len();
        if documents < LANGUAGE_SAMPLE {
            guess.add(&text);
        }
        documents += 1;
    }
    let documents = documents.max(1);
    let language = config.text_language().unwrap_or_else(|| guess.language());
    let mut options = config.words.clone();
    options.bigrams = options.bigrams || words < config.pair_words_below * documents;
    if options.lead == 0 {
        let share = (bytes as f64 / documents as f64 * config.lead_share) as usize;
        options.lead = share.min(config.lead_at_most);
    }
    Ok((options, language))
}

/// Reads the corpus.
pub fn gather(
    source: &CorpusSource,
    config: &TrainConfig,
    threads: usize,
    progress: &Progress<'_>,
) -> Result<Gathered, TrainError> {
    let (seen, kept_bytes, too_large) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let (terms, language) = reading_of(source, config)?;
    let mut reader = source.open()?;
    let states = for_each_document(
        &mut reader,
        threads,
        || FirstPass {
            words: TfIdfBuilder::new(terms.clone(), language),
            lexicon: EntityLexiconBuilder::default(),
            documents: Vec::new(),
        },
        |state, place, document| {
            if progress.stopped() {
                return;
            }
            if !document.labels.is_empty() {
                state.words.add(&document.text);
                state.lexicon.add(&document.text, language);
            }
            let bytes = document.text.len();
            let keep = kept_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= TEXT_BUDGET;
            if !keep {
                too_large.store(true, Ordering::Relaxed);
            }
            state.documents.push(Found {
                place,
                draw: draw(config.seed, &document.id),
                id: document.id,
                labels: document.labels,
                // Too large to keep: enough for an example, whichever document was one too many for this thread.
                text: if keep {
                    document.text
                } else {
                    beginning(&document.text).to_owned()
                },
            });
            progress.done(seen.fetch_add(1, Ordering::Relaxed) as u64 + 1, None);
        },
    )?;
    progress.check()?;
    progress.tell_left_out(&reader);

    let mut states = states.into_iter();
    let mut all = states.next().unwrap_or_else(|| FirstPass {
        words: TfIdfBuilder::new(terms, language),
        lexicon: EntityLexiconBuilder::default(),
        documents: Vec::new(),
    });
    for state in states {
        all.words.merge(state.words);
        all.lexicon.merge(state.lexicon);
        all.documents.extend(state.documents);
    }
    all.documents.sort_unstable_by_key(|d| d.place);
    let total = all.documents.len();
    let labelled = all.documents.iter().filter(|d| !d.labels.is_empty()).count();
    if labelled == 0 {
        return Err(TrainError::Nothing {
            path: source.path().to_owned(),
            documents: total,
        });
    }
    let tfidf = Arc::new(all.words.finish());
    let lexicon = all.lexicon.finish();
    let label_names = sorted_names(&all.documents);

    let mut words: Vec<SparseVector> = if too_large.load(Ordering::Relaxed) {
        second_pass(source, &tfidf, threads, total)?
    } else {
        all.documents
            .par_iter()
            .map_init(TransformScratch::default, |scratch, d| {
                tfidf.transform_with(&d.text, scratch)
            })
            .collect()
    };
    let (mut labels, mut draws, mut kept_words) = (Vec::new(), Vec::new(), Vec::new());
    for (document, words) in all.documents.iter().zip(&mut words) {
        if document.labels.is_empty() {
            continue;
        }
        let mut numbers: Vec<u32> = (document.labels.iter())
            .filter_map(|name| label_names.binary_search(name).ok())
            .map(|number| number as u32)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        labels.push(numbers);
        draws.push(document.draw);
        kept_words.push(std::mem::take(words));
    }
    let shown: Vec<Shown<'_>> = (all.documents.iter().filter(|d| !d.labels.is_empty()))
        .zip(&labels)
        .filter(|(document, _)| !document.text.is_empty())
        .map(|(document, labels)| Shown {
            id: &document.id,
            text: &document.text,
            labels,
        })
        .collect();
    let examples = Examples::choose(&shown, label_names.len(), config.examples);
    Ok(Gathered {
        label_names,
        examples,
        labels,
        words: kept_words,
        draws,
        tfidf,
        lexicon,
        without_labels: total - labelled,
    })
}

struct FirstPass {
    words: TfIdfBuilder,
    lexicon: EntityLexiconBuilder,
    documents: Vec<Found>,
}

struct Found {
    place: usize,
    draw: u32,
    id: String,
    labels: Vec<String>,
    text: String,
}

fn sorted_names(documents: &[Found]) -> Vec<String> {
    let mut names: Vec<&String> = documents.iter().flat_map(|d| &d.labels).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().cloned().collect()
}

/// Word vectors of a corpus too large to keep, unlabelled documents included.
fn second_pass(
    source: &CorpusSource,
    tfidf: &TfIdf,
    threads: usize,
    total: usize,
) -> Result<Vec<SparseVector>, TrainError> {
    let states = for_each_document(
        &mut source.open()?,
        threads,
        || (TransformScratch::default(), Vec::new()),
        |(scratch, found), place, document| {
            found.push((place, tfidf.transform_with(&document.text, scratch)));
        },
    )?;
    let mut words = vec![SparseVector::default(); total];
    for (place, vector) in states.into_iter().flat_map(|state| state.1) {
        if let Some(slot) = words.get_mut(place) {
            *slot = vector;
        }
    }
    Ok(words)
}

/// The first four bytes of a hash over seed and id.
fn draw(seed: u64, id: &str) -> u32 {
    let hash = Sha256::new()
        .chain_update(seed.to_le_bytes())
        .chain_update(id)
        .finalize();
    u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

impl Gathered {
    /// Which documents are kept aside for fitting the score: those of the smallest draws.
    pub fn held_out(&self, config: &TrainConfig) -> Vec<bool> {
        let share = (self.labels.len() as f64 * config.score.hold_out).round() as usize;
        let count = share
            .min(config.score.hold_out_at_most)
            .min(self.labels.len().saturating_sub(1));
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        order.sort_unstable_by_key(|&document| (self.draws[document], document));
        let mut held = vec![false; self.labels.len()];
        for &document in &order[..count] {
            held[document] = true;
        }
        held
    }

    /// Each label's documents, ascending, among those that `keep`.
    pub fn label_documents(&self, keep: impl Fn(usize) -> bool) -> Vec<Vec<u32>> {
        let mut documents = vec![Vec::new(); self.label_names.len()];
        for (document, labels) in self.labels.iter().enumerate().filter(|(d, _)| keep(*d)) {
            for &label in labels {
                documents[label as usize].push(document as u32);
            }
        }
        documents
    }

    pub(super) fn save(&self, part: &mut PartWriter) {
        let json = |value: serde_json::Result<String>| value.expect("plain data is always JSON");
        part.text(&json(serde_json::to_string(&self.label_names)));
        part.text(&json(serde_json::to_string(&self.tfidf.to_parts())));
        part.text(&json(serde_json::to_string(&self.lexicon)));
        part.text(&json(serde_json::to_string(&self.examples)));
        part.u32(self.without_labels as u32);
        part.u32s(&self.draws);
        for (labels, words) in self.labels.iter().zip(&self.words) {
            part.u32s(labels);
            part.u32s(&words.indices);
            part.f32s(&words.values);
        }
    }

    pub(super) fn load(part: &mut PartReader) -> Result<Self, PartError> {
        let label_names = part.text()?;
        let label_names: Vec<String> =
            serde_json::from_str(&label_names).map_err(|e| part.wrong("label names", e, "a JSON list"))?;
        let tfidf = part.text()?;
        let tfidf: TfIdf =
            serde_json::from_str(&tfidf).map_err(|e| part.wrong("vocabulary", e, "a TF-IDF"))?;
        let lexicon = part.text()?;
        let lexicon = serde_json::from_str(&lexicon).map_err(|e| part.wrong("lexicon", e, "a JSON list"))?;
        let examples = part.text()?;
        let examples =
            serde_json::from_str(&examples).map_err(|e| part.wrong("examples", e, "example documents"))?;
        let without_labels = part.u32()? as usize;
        let draws = part.u32s()?;
        let (mut labels, mut words) = (Vec::new(), Vec::new());
        for _ in 0..draws.len() {
            labels.push(part.u32s()?);
            words.push(SparseVector {
                indices: part.u32s()?,
                values: part.f32s()?,
            });
        }
        Ok(Self {
            label_names,
            labels,
            words,
            draws,
            tfidf: Arc::new(tfidf),
            lexicon,
            examples,
            without_labels,
        })
    }
}
