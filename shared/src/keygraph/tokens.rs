//! A text as numbered words: what entities and TextRank both read.

use super::EntityLexicon;
use super::interner::Interner;
use super::roles::Roles;
use crate::text::{Language, Span, Stemmer, fold_into, is_stop_word, sentences, words};

/// How a word is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// "milk"
    Lower,
    /// "Milk"
    Capital,
    /// "MILK", "U.S"
    Upper,
    /// "A": one capital letter.
    Initial,
    /// "mRNA", "iPhone", "EurLex", "B12", "HTTP2"
    Mixed,
    /// "1,750.50"
    Number,
    /// "5mg", "3rd": digits first, then letters.
    Measure,
    /// A script without case.
    Caseless,
}

impl Shape {
    fn of(word: &str) -> Self {
        let (mut upper, mut lower, mut digits, mut others) = (0usize, 0usize, 0usize, 0usize);
        let mut first = None;
        for c in word.chars() {
            if c.is_lowercase() {
                lower += 1;
            } else if c.is_uppercase() {
                upper += 1;
            } else if c.is_numeric() {
                digits += 1;
            } else if c.is_alphabetic() {
                others += 1;
            }
            first = first.or(Some(c));
        }
        let first = first.unwrap_or(' ');
        match (upper, lower, digits) {
            _ if others > 0 => Self::Caseless,
            (0, 0, _) => Self::Number,
            _ if first.is_numeric() => Self::Measure,
            (0, _, 0) => Self::Lower,
            (1, 0, 0) => Self::Initial,
            (_, 0, 0) => Self::Upper,
            (1, _, 0) if first.is_uppercase() => Self::Capital,
            (0, _, _) => Self::Lower,
            _ => Self::Mixed,
        }
    }

    /// Whether the word is written as names are.
    pub(super) fn is_capital(self) -> bool {
        matches!(self, Self::Capital | Self::Upper | Self::Initial | Self::Mixed)
    }
}

/// One word of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) span: Span,
    /// Number of the folded word.
    pub(super) word: u32,
    pub(super) sentence: u32,
    pub(super) shape: Shape,
}

/// What is known of a folded word, found once a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) stop: bool,
    /// May be a keyword: not a function word, not a number, not a lone letter.
    pub(super) content: bool,
    /// Number of its stem.
    pub(super) stem: u32,
    /// The parts it can play in names, dates and quantities.
    pub(super) roles: Roles,
    /// Its number in the lexicon.
    pub(super) lexicon: Option<u32>,
    /// Stands somewhere in lower case.
    pub(super) seen_lower: bool,
    /// Stands somewhere with a capital that no sentence start explains.
    pub(super) seen_capital: bool,
}

/// A text as numbered words. Kept between documents for its memory.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) sentences: Vec<Span>,
    pub(super) tokens: Vec<Token>,
    /// Where each sentence's tokens start; one more entry than sentences.
    pub(super) offsets: Vec<usize>,
    /// Whether a sentence is written so that capitals say nothing.
    pub(super) shouted: Vec<bool>,
    pub(super) words: Vec<Word>,
    pub(super) folded: Interner,
    pub(super) stems: Interner,
    buffer: String,
}

impl Tokens {
    /// Reads a text.
    pub(super) fn read(
        &mut self,
        text: &str,
        language: Language,
        stemmer: &Stemmer,
        lexicon: &EntityLexicon,
    ) {
        self.sentences = sentences(text, language);
        self.tokens.clear();
        self.offsets.clear();
        self.shouted.clear();
        self.words.clear();
        self.folded.clear();
        self.stems.clear();
        for s in 0..self.sentences.len() {
            self.offsets.push(self.tokens.len());
            self.read_sentence(text, s, language);
        }
        self.offsets.push(self.tokens.len());
        self.judge_words(language, stemmer, lexicon);
        self.judge_capitals();
    }

    /// The tokens of a sentence.
    pub(super) fn of(&self, sentence: usize) -> &[Token] {
        &self.tokens[self.offsets[sentence]..self.offsets[sentence + 1]]
    }

    pub(super) fn word(&self, token: &Token) -> &Word {
        &self.words[token.word as usize]
    }

    pub(super) fn folded(&self, token: &Token) -> &str {
        self.folded.get(token.word)
    }

    fn read_sentence(&mut self, text: &str, s: usize, language: Language) {
        let sentence = self.sentences[s];
        for word in words(&text[sentence.range()]) {
            let whole = Span::new(sentence.start + word.start, sentence.start + word.end);
            let span = bare(text, whole, language);
            let shape = Shape::of(&text[span.range()]);
            self.buffer.clear();
            fold_into(&text[span.range()], &mut self.buffer);
            let word = self.folded.intern(&self.buffer);
            self.tokens.push(Token {
                span,
                word,
                sentence: s as u32,
                shape,
            });
        }
    }

    fn judge_words(&mut self, language: Language, stemmer: &Stemmer, lexicon: &EntityLexicon) {
        for id in 0..self.folded.len() as u32 {
            let folded = self.folded.get(id);
            let stop = is_stop_word(folded, language);
            let content = !stop && is_content(folded);
            let stem = if stop {
                self.stems.intern(folded)
            } else {
                self.stems.intern(&stemmer.stem(folded))
            };
            let lexicon = lexicon.word(folded);
            let roles = Roles::of(folded, language);
            let (seen_lower, seen_capital) = (false, false);
            self.words.push(Word {
                stop,
                content,
                stem,
                roles,
                lexicon,
                seen_lower,
                seen_capital,
            });
        }
    }

    fn judge_capitals(&mut self) {
        for s in 0..self.sentences.len() {
            let tokens = &self.tokens[self.offsets[s]..self.offsets[s + 1]];
            let shouted = is_shouted(tokens, &self.words);
            self.shouted.push(shouted);
            for (i, token) in tokens.iter().enumerate() {
                let word = &mut self.words[token.word as usize];
                word.seen_lower |= token.shape == Shape::Lower;
                word.seen_capital |= i > 0 && !shouted && token.shape.is_capital();
            }
        }
    }
}

/// A word without what only grammar hangs on it: "Apple's" → "Apple", "l'Italie" → "Italie".
fn bare(text: &str, span: Span, language: Language) -> Span {
    let word = &text[span.range()];
    let Some(at) = word.find(['\'', '’']) else {
        return span;
    };
    let mark = word[at..].chars().next().map_or(1, char::len_utf8);
    let after = &word[at + mark..];
    if after.eq_ignore_ascii_case("s") && at > 1 && !matches!(language, Language::French | Language::Italian)
    {
        return Span::new(span.start, span.start + at);
    }
    let elides = matches!(language, Language::French | Language::Italian | Language::Catalan);
    if elides && at <= 4 && after.chars().count() > 1 {
        return Span::new(span.start + at + mark, span.end);
    }
    span
}

/// Whether a folded word can carry meaning alone: two letters at least, or one ideograph.
fn is_content(folded: &str) -> bool {
    let mut letters = 0;
    for c in folded.chars() {
        if c.is_alphabetic() {
            letters += 1;
            if c >= '\u{2e80}' {
                return true;
            }
        }
        if letters > 1 {
            return true;
        }
    }
    false
}

/// Whether capitals say nothing: most words in capitals, or (in a heading) every word that matters capitalised.
fn is_shouted(tokens: &[Token], words: &[Word]) -> bool {
    let (mut lettered, mut upper, mut capital, mut plain) = (0, 0, 0, 0);
    for token in tokens {
        match token.shape {
            Shape::Upper => upper += 1,
            Shape::Capital => capital += 1,
            Shape::Lower if !words[token.word as usize].stop => plain += 1,
            Shape::Lower | Shape::Initial | Shape::Mixed => {}
            Shape::Number | Shape::Measure | Shape::Caseless => continue,
        }
        lettered += 1;
    }
    upper >= 3 && upper * 10 >= lettered * 6 || plain == 0 && capital >= 5 && lettered >= 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        let cases = [
            ("milk", Shape::Lower),
            ("Milk", Shape::Capital),
            ("Élan", Shape::Capital),
            ("NATO", Shape::Upper),
            ("U.S", Shape::Upper),
            ("J", Shape::Initial),
            ("mRNA", Shape::Mixed),
            ("McDonald", Shape::Mixed),
            ("B12", Shape::Mixed),
            ("1,750.50", Shape::Number),
            ("5mg", Shape::Measure),
            ("北", Shape::Caseless),
            ("سلام", Shape::Caseless),
        ];
        for (word, shape) in cases {
            assert_eq!(Shape::of(word), shape, "{word}");
        }
    }

    #[test]
    fn possessives_and_elisions_fall_away() {
        let of = |word: &'static str, language| &word[bare(word, Span::new(0, word.len()), language).range()];
        assert_eq!(of("Apple's", Language::English), "Apple");
        assert_eq!(of("Apple’s", Language::English), "Apple");
        assert_eq!(of("don't", Language::English), "don't");
        assert_eq!(of("l'Italie", Language::French), "Italie");
        assert_eq!(of("dell’arte", Language::Italian), "arte");
    }
}
