//! Terms: how words become them, and the table that finds one without allocating.

use crate::text::{Language, Span, Stemmer, fold_into, is_stop_word, words};

use super::tfidf::TfIdfOptions;

/// Words longer than this many bytes are no terms: sequences, encodings, noise.
const LONGEST_WORD: usize = 128;

/// What a term of the lead begins with; no word does.
pub(super) const LEAD: char = '^';

/// The word or the words of a term: those of a lead term without its mark.
pub fn words_of_term(term: &str) -> &str {
    term.strip_prefix(LEAD).unwrap_or(term)
}

/// Whether a term is one of the lead.
pub fn is_lead_term(term: &str) -> bool {
    term.starts_with(LEAD)
}

/// Turns a text into terms, the same way while learning and while tagging.
#[derive(Debug)]
pub(super) struct Analyzer {
    language: Language,
    stop_words: bool,
    bigrams: bool,
    /// Bytes of the text's lead.
    lead: usize,
    lead_bigrams: bool,
    stemmer: Option<Stemmer>,
}

/// Buffers an analysis needs; kept from text to text.
#[derive(Debug, Default)]
pub(super) struct TermBuffers {
    word: String,
    /// `previous current`, with a blank between.
    pair: String,
    /// [`LEAD`] and a term of the lead.
    lead: String,
}

impl Analyzer {
    pub(super) fn new(options: &TfIdfOptions, language: Language) -> Self {
        Self {
            language,
            stop_words: options.stop_words,
            bigrams: options.bigrams,
            lead: options.lead,
            lead_bigrams: options.lead_bigrams,
            stemmer: options.stem.then(|| Stemmer::new(language)),
        }
    }

    /// Calls `each` with every term and the bytes it stands on.
    pub(super) fn terms(&self, text: &str, buffers: &mut TermBuffers, each: impl FnMut(&str, Span)) {
        self.terms_of_words(text, words(text), buffers, each);
    }

    /// [`terms`](Self::terms) of a sentence or keyword that was cut out of its text: it has no lead.
    pub(super) fn terms_of_part(&self, part: &str, buffers: &mut TermBuffers, each: impl FnMut(&str, Span)) {
        self.analyse(part, words(part), 0, buffers, each);
    }

    /// [`terms`](Self::terms) over words that were found before.
    ///
    /// Words of one character are no terms. Stop words are left out first, so that a bigram may span them.
    pub(super) fn terms_of_words(
        &self,
        text: &str,
        words: impl IntoIterator<Item = Span>,
        buffers: &mut TermBuffers,
        each: impl FnMut(&str, Span),
    ) {
        self.analyse(text, words, self.lead, buffers, each);
    }

    fn analyse(
        &self,
        text: &str,
        words: impl IntoIterator<Item = Span>,
        lead: usize,
        buffers: &mut TermBuffers,
        mut each: impl FnMut(&str, Span),
    ) {
        buffers.pair.clear();
        let mut previous_start = 0;
        for span in words {
            let word = &text[span.range()];
            if word.len() > LONGEST_WORD {
                continue;
            }
            // Most words are plain lower case: those are looked up where they stand.
            let folded = if word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            {
                word
            } else {
                buffers.word.clear();
                fold_into(word, &mut buffers.word);
                buffers.word.as_str()
            };
            if is_one_character(folded) || (self.stop_words && is_stop_word(folded, self.language)) {
                continue;
            }
            let stem;
            let term = match &self.stemmer {
                Some(stemmer) => {
                    stem = stemmer.stem(folded);
                    stem.as_ref()
                }
                None => folded,
            };
            each(term, span);
            let leads = span.start < lead;
            if leads {
                buffers.lead.clear();
                buffers.lead.push(LEAD);
                buffers.lead.push_str(term);
                each(&buffers.lead, span);
            }
            if self.bigrams || (leads && self.lead_bigrams) {
                if buffers.pair.is_empty() {
                    buffers.pair.push_str(term);
                } else {
                    let first = buffers.pair.len();
                    buffers.pair.push(' ');
                    buffers.pair.push_str(term);
                    each(&buffers.pair, Span::new(previous_start, span.end));
                    buffers.pair.drain(..=first);
                }
                previous_start = span.start;
            }
        }
    }
}

/// One character, unless it is a script where one character is a word.
fn is_one_character(folded: &str) -> bool {
    let mut characters = folded.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => (only as u32) < 0x2e80,
        (first, _) => first.is_none(),
    }
}

/// Where each term is, found by its bytes: open addressing over one string that holds all terms.
#[derive(Clone, Debug, Default)]
pub(super) struct TermTable {
    text: String,
    /// `ends[i]` is where term i ends in `text`; it begins where the one before ends.
    ends: Vec<u32>,
    /// (upper half of the hash, term number + 1); (_, 0) is free. A power of two long, at most half full.
    slots: Vec<(u32, u32)>,
}

impl TermTable {
    /// A table of distinct terms; `Err(i)` if term `i` stands a second time.
    pub(super) fn new<'t>(terms: impl ExactSizeIterator<Item = &'t str>) -> Result<Self, usize> {
        let mut table = Self {
            text: String::new(),
            ends: Vec::with_capacity(terms.len()),
            slots: vec![(0, 0); (terms.len() * 2).next_power_of_two().max(2)],
        };
        for (number, term) in terms.enumerate() {
            if let Err(free) = table.find(term) {
                table.slots[free] = ((hash(term.as_bytes()) >> 32) as u32, number as u32 + 1);
                table.text.push_str(term);
                table.ends.push(table.text.len() as u32);
            } else {
                return Err(number);
            }
        }
        Ok(table)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn term(&self, number: usize) -> &str {
        let start = if number == 0 {
            0
        } else {
            self.ends[number - 1] as usize
        };
        &self.text[start..self.ends[number] as usize]
    }

    /// The number of a term.
    pub(super) fn get(&self, term: &str) -> Option<u32> {
        if self.ends.is_empty() {
            return None;
        }
        self.find(term).ok()
    }

    /// The term's number, or the slot where it would go.
    fn find(&self, term: &str) -> Result<u32, usize> {
        let hash = hash(term.as_bytes());
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                (_, 0) => return Err(slot),
                (upper, number) if upper == (hash >> 32) as u32 && self.term(number as usize - 1) == term => {
                    return Ok(number - 1);
                }
                _ => slot = (slot + 1) & mask,
            }
        }
    }
}

/// A quick hash of a short string: eight bytes at a time, multiplied and folded.
fn hash(term: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, piece: u64| {
        let product = u128::from(state ^ piece) * u128::from(K);
        (product as u64) ^ (product >> 64) as u64
    };
    let mut state = K ^ (term.len() as u64);
    let mut pieces = term.chunks_exact(8);
    for piece in &mut pieces {
        state = mix(
            state,
            u64::from_le_bytes(piece.try_into().expect("pieces of eight")),
        );
    }
    let mut last = [0; 8];
    let rest = pieces.remainder();
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(state, u64::from_le_bytes(last)), K)
}

/// The same hash for the standard maps of strings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TermHasher(u64);

impl std::hash::Hasher for TermHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.rotate_left(5) ^ hash(bytes);
    }

    /// A string's length is in its hash already: the byte that ends it adds nothing.
    fn write_u8(&mut self, _end: u8) {}
}
