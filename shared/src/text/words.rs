//! Words with their byte spans, and the form under which two spellings are the same word.
//!
//! Words are those of UAX #29. European text takes a table-driven path; a stretch between blanks that
//! holds any other script goes through `unicode-segmentation`. A test holds the two together.

use std::borrow::Cow;

use unicode_segmentation::{UnicodeSegmentation, UnicodeWordIndices};

use super::Span;
use super::unicode::nfkc;

/// The words of a text, in order, without overlap.
///
/// ```
/// use gnnxml_shared::text::words;
/// let text = "Naïve agents don't pay 1,750.50 dlrs – U.S. ones do.";
/// let found: Vec<&str> = words(text).map(|word| &text[word.range()]).collect();
/// assert_eq!(found, ["Naïve", "agents", "don't", "pay", "1,750.50", "dlrs", "U.S", "ones", "do"]);
/// ```
pub fn words(text: &str) -> Words<'_> {
    Words {
        text,
        at: 0,
        foreign: None,
    }
}

/// Iterator of [`words`].
#[derive(Debug)]
pub struct Words<'a> {
    text: &'a str,
    at: usize,
    /// A stretch outside the quick alphabets: its words, where it starts and where it ends.
    foreign: Option<(UnicodeWordIndices<'a>, usize, usize)>,
}

/// What a character does at a word's edge (the Word_Break property, as far as the quick path needs it).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    /// Joins letters, digits and itself: `_`.
    Extend,
    /// Stands inside a word between two letters: `:`.
    MidLetter,
    /// Stands inside a number between two digits: `,` `;`.
    MidDigit,
    /// Does both: `.` `'` `’`.
    MidBoth,
    Blank,
    Other,
    /// Not known here: let UAX #29 decide.
    Foreign,
}

const ASCII: [Class; 128] = {
    let mut table = [Class::Other; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'_' => Class::Extend,
            b':' => Class::MidLetter,
            b',' | b';' => Class::MidDigit,
            b'.' | b'\'' => Class::MidBoth,
            b' ' | b'\t' | b'\n' | b'\r' => Class::Blank,
            _ => Class::Other,
        };
        byte += 1;
    }
    table
};

/// The class of the character that starts at `at`, and its length in bytes.
#[inline]
fn class_at(text: &str, at: usize) -> (Class, usize) {
    let byte = text.as_bytes()[at];
    if byte < 128 {
        return (ASCII[byte as usize], 1);
    }
    let Some(c) = text[at..].chars().next() else {
        return (Class::Blank, 1);
    };
    let class = match c {
        'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ʯ' | 'Ά' | 'Έ'..='ώ' | 'Ѐ'..='ҁ' | 'Ҋ'..='ԯ' | 'Ḁ'..='ỿ' => {
            if c.is_alphabetic() {
                Class::Letter
            } else {
                Class::Foreign
            }
        }
        '’' => Class::MidBoth,
        '–' | '—' | '“' | '”' | '„' | '«' | '»' | '…' | '•' | '€' | '£' | '§' | '°' | '×' => {
            Class::Other
        }
        _ => Class::Foreign,
    };
    (class, c.len_utf8())
}

impl Iterator for Words<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        loop {
            if let Some((words, start, end)) = &mut self.foreign {
                if let Some((at, word)) = words.next() {
                    return Some(Span::new(*start + at, *start + at + word.len()));
                }
                self.at = *end;
                self.foreign = None;
            }
            match self.quick() {
                Quick::Word(span) => return Some(span),
                Quick::End => return None,
                Quick::Foreign(start) => {
                    let end = self.text.as_bytes()[self.at..]
                        .iter()
                        .position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
                        .map_or(self.text.len(), |blank| self.at + blank);
                    self.foreign = Some((self.text[start..end].unicode_word_indices(), start, end));
                }
            }
        }
    }
}

enum Quick {
    Word(Span),
    /// From here up to the next blank the quick path does not know the rules.
    Foreign(usize),
    End,
}

impl Words<'_> {
    /// One word by the rules WB5–WB13b of UAX #29 over the quick alphabets.
    fn quick(&mut self) -> Quick {
        let text = self.text;
        let len = text.len();
        while self.at < len {
            let (class, size) = class_at(text, self.at);
            match class {
                Class::Letter | Class::Digit | Class::Extend => {}
                Class::Foreign => return Quick::Foreign(self.at),
                _ => {
                    self.at += size;
                    continue;
                }
            }
            let start = self.at;
            let mut end = start + size;
            let mut last = class;
            let mut wordy = class != Class::Extend;
            while end < len {
                let (class, size) = class_at(text, end);
                match class {
                    Class::Letter | Class::Digit | Class::Extend => {
                        wordy |= class != Class::Extend;
                        last = class;
                        end += size;
                    }
                    Class::MidLetter | Class::MidDigit | Class::MidBoth if end + size < len => {
                        let (after, after_size) = class_at(text, end + size);
                        if after == Class::Foreign {
                            return Quick::Foreign(start);
                        }
                        let joins = after == last
                            && match last {
                                Class::Letter => class != Class::MidDigit,
                                Class::Digit => class != Class::MidLetter,
                                _ => false,
                            };
                        if !joins {
                            break;
                        }
                        end += size + after_size;
                    }
                    Class::Foreign => return Quick::Foreign(start),
                    _ => break,
                }
            }
            self.at = end;
            if wordy {
                return Quick::Word(Span::new(start, end));
            }
        }
        Quick::End
    }
}

/// The form under which two spellings are one word: NFKC, lower case, plain apostrophe.
///
/// ```
/// use gnnxml_shared::text::fold;
/// assert_eq!(fold("Straße"), "straße");
/// assert_eq!(fold("ﬁne ＡＢＣ"), "fine abc");
/// assert_eq!(fold("don’t"), "don't");
/// ```
pub fn fold(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Owned(word.to_ascii_lowercase());
        }
        return Cow::Borrowed(word);
    }
    let mut folded = String::with_capacity(word.len());
    fold_into(word, &mut folded);
    Cow::Owned(folded)
}

/// [`fold`] appended to a buffer that the caller keeps.
pub fn fold_into(word: &str, buffer: &mut String) {
    if word.is_ascii() {
        let start = buffer.len();
        buffer.push_str(word);
        buffer[start..].make_ascii_lowercase();
        return;
    }
    // Lower case can undo the composition (İ), so it is composed once more.
    let lower = nfkc(word).to_lowercase();
    buffer.extend(nfkc(&lower).chars().map(|c| if c == '’' { '\'' } else { c }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Vec<&str> {
        words(text).map(|word| &text[word.range()]).collect()
    }

    #[test]
    fn numbers_keep_their_commas_and_points() {
        assert_eq!(of("1,750.50, 3. 4,x 5:6"), ["1,750.50", "3", "4", "x", "5", "6"]);
    }

    #[test]
    fn hyphens_split_and_apostrophes_join() {
        assert_eq!(
            of("state-of-the-art dog's dogs' ’tis"),
            ["state", "of", "the", "art", "dog's", "dogs", "tis"]
        );
    }

    #[test]
    fn ideographs_are_words_of_their_own() {
        assert_eq!(of("北京 is 好"), ["北", "京", "is", "好"]);
    }

    #[test]
    fn emoji_punctuation_and_lone_underscores_are_no_words() {
        assert_eq!(of("🙂 👩‍👩‍👧 ___ ... -- \0"), Vec::<&str>::new());
    }

    #[test]
    fn a_megabyte_word_is_one_word() {
        let text = "a".repeat(1 << 20);
        assert_eq!(words(&text).collect::<Vec<_>>(), [Span::new(0, 1 << 20)]);
    }

    #[test]
    fn folding_twice_is_folding_once() {
        for word in ["ΟΔΟΣ", "İstanbul", "ǅ", "Å", "ﬃ", "㎏", "don’t"] {
            let once = fold(word).into_owned();
            assert_eq!(fold(&once), once, "{word}");
        }
    }

    proptest! {
        #[test]
        fn words_are_those_of_uax_29(text in r"[a-zA-Z0-9éßñÀЖя’'.,:;_ \n–€漢\u{301}/()-]{0,40}") {
            let quick: Vec<Span> = words(&text).collect();
            let slow: Vec<Span> = text.split([' ', '\n']).scan(0, |at, chunk| {
                let start = *at;
                *at += chunk.len() + 1;
                Some(chunk.unicode_word_indices().map(move |(i, w)| Span::new(start + i, start + i + w.len())).collect::<Vec<_>>())
            }).flatten().collect();
            prop_assert_eq!(quick, slow);
        }

        #[test]
        fn spans_ascend_and_lie_on_characters(text in "\\PC*") {
            let mut last = 0;
            for word in words(&text) {
                prop_assert!(word.start >= last && word.start < word.end);
                prop_assert!(text[word.range()].chars().any(char::is_alphanumeric));
                last = word.end;
            }
        }
    }
}
