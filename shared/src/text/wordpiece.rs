//! WordPiece, BERT's tokenizer: clean, split at spaces and punctuation, then the longest known piece first.
//!
//! It agrees with the reference tokenizer on every text but one kind: a special token spelled out in the text
//! (`[SEP]`) stays text here, since a document must not be able to steer the model.
//!
//! Every piece is found by hash: the hash of a prefix is the hash of the shorter prefix and one more byte, so one
//! pass over a word gives all of its prefixes.

use unicode_categories::UnicodeCategories;

use super::unicode::nfd;

/// Why a vocabulary cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordPieceError {
    #[error("not JSON: {0}")]
    Json(String),
    #[error("the tokenizer's model is {0}, expected WordPiece")]
    NotWordPiece(String),
    #[error("the vocabulary has no {0}")]
    MissingToken(&'static str),
    #[error("the vocabulary gives number {id} to {first:?} and to {second:?}")]
    TwiceTaken { id: u32, first: String, second: String },
    #[error("the vocabulary has {entries} entries but {token:?} has number {id}")]
    Gap { token: String, id: u64, entries: usize },
    #[error("the vocabulary is empty")]
    Empty,
}

/// What is done to a text before it is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cleaning {
    /// Control characters go, every space becomes a plain one.
    pub clean: bool,
    /// Each Chinese character is a word of its own.
    pub space_chinese: bool,
    /// Accents go (NFD without non-spacing marks).
    pub strip_accents: bool,
    /// Capitals go.
    pub lowercase: bool,
}

impl Cleaning {
    /// As `bert-base-uncased` does it.
    pub const UNCASED: Self = Self {
        clean: true,
        space_chinese: true,
        strip_accents: true,
        lowercase: true,
    };
    /// As `bert-base-cased` does it.
    pub const CASED: Self = Self {
        clean: true,
        space_chinese: true,
        strip_accents: false,
        lowercase: false,
    };
}

/// Numbers of the tokens with a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialTokens {
    pub padding: u32,
    pub unknown: u32,
    /// Opens a sentence.
    pub class: u32,
    /// Closes a sentence.
    pub separator: u32,
}

/// A word of more characters is one unknown token.
const LONGEST_WORD: usize = 100;

/// The tokenizer.
///
/// ```
/// use gnnxml_shared::text::wordpiece::{Cleaning, WordPiece};
/// let tokenizer = WordPiece::from_vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\nfish\n##ing\n.", Cleaning::UNCASED).unwrap();
/// let mut ids = Vec::new();
/// tokenizer.encode_into("Fishing.", &mut ids);
/// assert_eq!(ids, [4, 5, 6]);
/// ```
#[derive(Clone, Debug)]
pub struct WordPiece {
    cleaning: Cleaning,
    special: SpecialTokens,
    /// All tokens one after another, and where each begins.
    text: String,
    starts: Vec<u32>,
    /// Pieces that begin a word, and pieces that go on (`##`).
    first: PieceTable,
    going_on: PieceTable,
}

impl WordPiece {
    /// From the lines of a vocab.txt: line number = token number.
    pub fn from_vocabulary(lines: &str, cleaning: Cleaning) -> Result<Self, WordPieceError> {
        Self::build(lines.lines().map(str::trim_end), cleaning)
    }

    /// From the contents of a tokenizer.json.
    pub fn from_tokenizer_json(json: &str) -> Result<Self, WordPieceError> {
        let json: serde_json::Value =
            serde_json::from_str(json).map_err(|error| WordPieceError::Json(error.to_string()))?;
        let model = &json["model"];
        let vocabulary = match (model["type"].as_str(), model["vocab"].as_object()) {
            // Older files leave the type out; a WordPiece vocabulary is a map.
            (Some("WordPiece") | None, Some(vocabulary)) if model["merges"].is_null() => vocabulary,
            (kind, _) => {
                return Err(WordPieceError::NotWordPiece(
                    kind.unwrap_or("of no known type").into(),
                ));
            }
        };
        let mut tokens: Vec<Option<&str>> = vec![None; vocabulary.len()];
        for (token, id) in vocabulary {
            let id = id.as_u64().unwrap_or(u64::MAX);
            let gap = || WordPieceError::Gap {
                token: token.clone(),
                id,
                entries: vocabulary.len(),
            };
            let slot = usize::try_from(id)
                .ok()
                .and_then(|id| tokens.get_mut(id))
                .ok_or_else(gap)?;
            if let Some(first) = slot {
                return Err(WordPieceError::TwiceTaken {
                    id: id as u32,
                    first: (*first).into(),
                    second: token.clone(),
                });
            }
            *slot = Some(token);
        }
        let normaliser = &json["normalizer"];
        let lowercase = normaliser["lowercase"].as_bool().unwrap_or(true);
        let cleaning = Cleaning {
            clean: normaliser["clean_text"].as_bool().unwrap_or(true),
            space_chinese: normaliser["handle_chinese_chars"].as_bool().unwrap_or(true),
            strip_accents: normaliser["strip_accents"].as_bool().unwrap_or(lowercase),
            lowercase,
        };
        // As many slots as tokens, none taken twice: every slot is filled.
        Self::build(tokens.into_iter().flatten(), cleaning)
    }

    fn build<'a>(tokens: impl Iterator<Item = &'a str>, cleaning: Cleaning) -> Result<Self, WordPieceError> {
        let mut text = String::new();
        let mut starts = vec![0];
        for token in tokens {
            text.push_str(token);
            starts.push(text.len() as u32);
        }
        if starts.len() == 1 {
            return Err(WordPieceError::Empty);
        }
        let mut built = Self {
            cleaning,
            special: SpecialTokens {
                padding: 0,
                unknown: 0,
                class: 0,
                separator: 0,
            },
            first: PieceTable::new(starts.len(), FIRST),
            going_on: PieceTable::new(starts.len(), GOING_ON),
            text,
            starts,
        };
        for id in 0..built.len() as u32 {
            let token =
                &built.text[built.starts[id as usize] as usize..built.starts[id as usize + 1] as usize];
            // A lone "##" begins a word; it continues nothing.
            if let Some(rest) = token.strip_prefix("##").filter(|rest| !rest.is_empty()) {
                built.going_on.insert(rest.as_bytes(), id);
            }
            built.first.insert(token.as_bytes(), id);
        }
        let find = |name| built.id(name).ok_or(WordPieceError::MissingToken(name));
        built.special = SpecialTokens {
            padding: find("[PAD]")?,
            unknown: find("[UNK]")?,
            class: find("[CLS]")?,
            separator: find("[SEP]")?,
        };
        Ok(built)
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no token at all; never so for a built tokenizer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is done to a text before it is split.
    pub fn cleaning(&self) -> Cleaning {
        self.cleaning
    }

    /// Numbers of the tokens with a role.
    pub fn special(&self) -> SpecialTokens {
        self.special
    }

    /// A token's spelling.
    pub fn token(&self, id: u32) -> Option<&str> {
        let end = *self.starts.get(id as usize + 1)?;
        Some(&self.text[self.starts[id as usize] as usize..end as usize])
    }

    /// A token's number.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.first
            .find(hash(FIRST, token.as_bytes()), |id| self.token(id) == Some(token))
    }

    /// The vocabulary as vocab.txt has it.
    pub fn vocabulary(&self) -> String {
        (0..self.len() as u32)
            .filter_map(|id| self.token(id))
            .flat_map(|token| [token, "\n"])
            .collect()
    }

    /// Appends the token numbers of a text, without opening and closing token.
    pub fn encode_into(&self, text: &str, ids: &mut Vec<u32>) {
        let mut words = Words {
            tokenizer: self,
            word: String::new(),
            ids,
        };
        if text.is_ascii() {
            words.read_ascii(text);
        } else {
            words.read_any(text);
        }
        words.end_word();
    }

    /// The pieces of one clean word.
    fn split_word(&self, word: &str, ids: &mut Vec<u32>) {
        let bytes = word.as_bytes();
        let before = ids.len();
        let mut start = 0;
        let mut hashes = [0_u64; LONGEST_WORD * 4];
        if bytes.len() > hashes.len() || (bytes.len() > LONGEST_WORD && word.chars().count() > LONGEST_WORD) {
            ids.push(self.special.unknown);
            return;
        }
        while start < bytes.len() {
            let (table, skip) = if start == 0 {
                (&self.first, 0)
            } else {
                (&self.going_on, 2)
            };
            let rest = &bytes[start..];
            let reach = rest.len().min(table.longest);
            let mut h = table.seed;
            for (slot, &byte) in hashes.iter_mut().zip(&rest[..reach]) {
                h = step(h, byte);
                *slot = h;
            }
            let piece = (1..=reach).rev().find_map(|length| {
                table
                    .find(hashes[length - 1], |id| {
                        self.token(id)
                            .is_some_and(|token| token.as_bytes()[skip..] == rest[..length])
                    })
                    .map(|id| (id, length))
            });
            let Some((id, length)) = piece else {
                ids.truncate(before);
                ids.push(self.special.unknown);
                return;
            };
            ids.push(id);
            start += length;
        }
    }
}

/// Splits a text into clean words and those into pieces.
struct Words<'a> {
    tokenizer: &'a WordPiece,
    word: String,
    ids: &'a mut Vec<u32>,
}

impl Words<'_> {
    fn end_word(&mut self) {
        if !self.word.is_empty() {
            self.tokenizer.split_word(&self.word, self.ids);
            self.word.clear();
        }
    }

    fn read_ascii(&mut self, text: &str) {
        let Cleaning { clean, lowercase, .. } = self.tokenizer.cleaning;
        for &byte in text.as_bytes() {
            if byte.is_ascii_alphanumeric() {
                self.word.push(char::from(if lowercase {
                    byte.to_ascii_lowercase()
                } else {
                    byte
                }));
            } else if char::from(byte).is_whitespace() {
                // The vertical tab is a control character first.
                if byte != 0x0b && byte != 0x0c || !clean {
                    self.end_word();
                }
            } else if byte.is_ascii_punctuation() {
                self.end_word();
                self.word.push(char::from(byte));
                self.end_word();
            } else if !clean {
                self.word.push(char::from(byte));
            }
        }
    }

    fn read_any(&mut self, text: &str) {
        let cleaning = self.tokenizer.cleaning;
        let mut clean = String::with_capacity(text.len() + 16);
        for c in text.chars() {
            if cleaning.clean && is_dropped(c) {
                continue;
            }
            if cleaning.clean && c.is_whitespace() {
                clean.push(' ');
            } else if cleaning.space_chinese && is_chinese(c) {
                clean.extend([' ', c, ' ']);
            } else {
                clean.push(c);
            }
        }
        if cleaning.strip_accents {
            clean = nfd(&clean).chars().filter(|c| !c.is_mark_nonspacing()).collect();
        }
        for c in clean.chars() {
            if c.is_ascii() || !cleaning.lowercase {
                self.read_char(if cleaning.lowercase {
                    c.to_ascii_lowercase()
                } else {
                    c
                });
            } else {
                for lower in c.to_lowercase() {
                    self.read_char(lower);
                }
            }
        }
    }

    fn read_char(&mut self, c: char) {
        if c.is_whitespace() {
            self.end_word();
        } else if c.is_ascii_punctuation() || (!c.is_ascii() && c.is_punctuation()) {
            self.end_word();
            self.word.push(c);
            self.end_word();
        } else {
            self.word.push(c);
        }
    }
}

/// Control, format, unassigned and private characters, NUL and the replacement character; tab and line ends stay.
fn is_dropped(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\u{20}'..='\u{7e}' => false,
        '\0' | '\u{fffd}' => true,
        _ => c.is_other(),
    }
}

/// The blocks of CJK ideographs.
fn is_chinese(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

const FIRST: u64 = 0xcbf2_9ce4_8422_2325;
const GOING_ON: u64 = 0x9e37_79b9_7f4a_7c15;

/// One byte of FNV-1a.
fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |h, &byte| step(h, byte))
}

/// Open addressing: token numbers by the hash of their spelling. Spellings live elsewhere.
#[derive(Clone, Debug)]
struct PieceTable {
    /// (token + 1, or 0 for none; upper half of the hash).
    slots: Vec<(u32, u32)>,
    seed: u64,
    longest: usize,
}

impl PieceTable {
    fn new(capacity: usize, seed: u64) -> Self {
        Self {
            slots: vec![(0, 0); (capacity * 2).next_power_of_two()],
            seed,
            longest: 0,
        }
    }

    fn insert(&mut self, spelling: &[u8], id: u32) {
        let h = hash(self.seed, spelling);
        self.longest = self.longest.max(spelling.len());
        let mask = self.slots.len() - 1;
        let mut at = place(h) & mask;
        while self.slots[at].0 != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = (id + 1, (h >> 32) as u32);
    }

    fn find(&self, h: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = place(h) & mask;
        loop {
            let (taken, tag) = self.slots[at];
            if taken == 0 {
                return None;
            }
            if tag == (h >> 32) as u32 && same(taken - 1) {
                return Some(taken - 1);
            }
            at = (at + 1) & mask;
        }
    }
}

/// FNV's low bits alone are weak: fold the upper ones in.
fn place(h: u64) -> usize {
    (h ^ (h >> 29)) as usize
}
