//! The English stemmer: the Snowball algorithm "English" (Porter 2), written for the words this program stems.
//!
//! It stands here by itself so that a page which reads English alone carries the tables of no other language. A test
//! holds it to the stemmer of the crate that serves the others. Start reading at [`stem`].

use std::borrow::Cow;

/// A longer word is not stemmed.
pub(super) const LONGEST: usize = 64;

/// Words that no rule gets right.
const EXCEPTIONS: [(&str, &str); 15] = [
    ("skis", "ski"),
    ("skies", "sky"),
    ("idly", "idl"),
    ("gently", "gentl"),
    ("ugly", "ugli"),
    ("early", "earli"),
    ("only", "onli"),
    ("singly", "singl"),
    ("sky", "sky"),
    ("news", "news"),
    ("howe", "howe"),
    ("atlas", "atlas"),
    ("cosmos", "cosmos"),
    ("bias", "bias"),
    ("andes", "andes"),
];

/// Beginnings after which the first region starts, whatever their vowels say.
const FIRST_REGIONS: [&[u8]; 9] = [
    b"gener", b"commun", b"arsen", b"past", b"univers", b"later", b"emerg", b"organ", b"inter",
];

/// A suffix, and what takes its place.
type Rule = (&'static [u8], &'static [u8]);

/// Longer suffixes stand before the shorter ones they end with.
const SECOND_STEP: [Rule; 24] = [
    (b"ational", b"ate"),
    (b"fulness", b"ful"),
    (b"iveness", b"ive"),
    (b"ization", b"ize"),
    (b"ousness", b"ous"),
    (b"biliti", b"ble"),
    (b"lessli", b"less"),
    (b"tional", b"tion"),
    (b"alism", b"al"),
    (b"aliti", b"al"),
    (b"ation", b"ate"),
    (b"entli", b"ent"),
    (b"fulli", b"ful"),
    (b"iviti", b"ive"),
    (b"ogist", b"og"),
    (b"ousli", b"ous"),
    (b"abli", b"able"),
    (b"alli", b"al"),
    (b"anci", b"ance"),
    (b"ator", b"ate"),
    (b"enci", b"ence"),
    (b"izer", b"ize"),
    (b"bli", b"ble"),
    (b"ogi", b"og"),
];

const THIRD_STEP: [Rule; 9] = [
    (b"ational", b"ate"),
    (b"tional", b"tion"),
    (b"alize", b"al"),
    (b"ative", b""),
    (b"icate", b"ic"),
    (b"iciti", b"ic"),
    (b"ical", b"ic"),
    (b"ness", b""),
    (b"ful", b""),
];

const FOURTH_STEP: [&[u8]; 18] = [
    b"ement", b"able", b"ance", b"ence", b"ible", b"ment", b"ant", b"ate", b"ent", b"ion", b"ism", b"iti",
    b"ive", b"ize", b"ous", b"al", b"er", b"ic",
];

/// The stem of a word of small Latin letters and apostrophes, at most [`LONGEST`] of them; any other word is its own.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte == b'\'';
    if word.len() < 3 || word.len() > LONGEST || !word.bytes().all(is_known) {
        return Cow::Borrowed(word);
    }
    if let Some((_, stem)) = EXCEPTIONS.iter().find(|(exception, _)| *exception == word) {
        return Cow::Borrowed(stem);
    }
    let mut stemmed = Word::new(word.as_bytes());
    stemmed.drop_plural();
    stemmed.drop_past_and_participle();
    stemmed.soften_final_y();
    stemmed.second_step();
    stemmed.third_step();
    stemmed.fourth_step();
    stemmed.drop_final_e_and_l();
    stemmed.letters.make_ascii_lowercase();
    let stem = stemmed.letters();
    if word.as_bytes().starts_with(stem) {
        Cow::Borrowed(&word[..stem.len()])
    } else {
        Cow::Owned(stem.iter().map(|&letter| char::from(letter)).collect())
    }
}

/// A word on its way to its stem. A `y` that sounds as a consonant is written `Y`.
struct Word {
    letters: [u8; LONGEST],
    len: usize,
    /// Where the regions start in which suffixes may be cut.
    first_region: usize,
    second_region: usize,
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// What lies behind the first consonant that follows a vowel, from `start` on.
fn region(letters: &[u8], start: usize) -> Option<usize> {
    let vowel = start + letters[start..].iter().position(|&letter| is_vowel(letter))?;
    let consonant = letters[vowel..].iter().position(|&letter| !is_vowel(letter))?;
    Some(vowel + consonant + 1)
}

impl Word {
    fn new(word: &[u8]) -> Self {
        let word = word.strip_prefix(b"'").unwrap_or(word);
        let mut letters = [0; LONGEST];
        let len = word.len();
        letters[..len].copy_from_slice(word);
        for at in 0..len {
            if letters[at] == b'y' && (at == 0 || is_vowel(letters[at - 1])) {
                letters[at] = b'Y';
            }
        }
        let seen = &letters[..len];
        let first_region = (FIRST_REGIONS.iter())
            .find(|start| seen.starts_with(start))
            .map(|start| start.len())
            .or_else(|| region(seen, 0));
        let second_region = first_region.and_then(|first| region(seen, first));
        Self {
            letters,
            len,
            first_region: first_region.unwrap_or(len),
            second_region: second_region.unwrap_or(len),
        }
    }

    fn letters(&self) -> &[u8] {
        &self.letters[..self.len]
    }

    fn ends_with(&self, suffix: &[u8]) -> bool {
        self.letters().ends_with(suffix)
    }

    /// Where the first of these suffixes that the word has starts, and which one it is.
    fn suffix<'s>(&self, suffixes: &[&'s [u8]]) -> Option<(usize, &'s [u8])> {
        let suffix = *suffixes.iter().find(|suffix| self.ends_with(suffix))?;
        Some((self.len - suffix.len(), suffix))
    }

    /// The same among rules, with what replaces the suffix.
    fn rule(&self, rules: &[Rule]) -> Option<(usize, Rule)> {
        let rule = *rules.iter().find(|(suffix, _)| self.ends_with(suffix))?;
        Some((self.len - rule.0.len(), rule))
    }

    /// The letter before `at`.
    fn before(&self, at: usize) -> Option<u8> {
        at.checked_sub(1).map(|at| self.letters[at])
    }

    /// Replaces everything from `at` on. No rule makes a word longer than it was.
    fn replace(&mut self, at: usize, ending: &[u8]) {
        self.letters[at..at + ending.len()].copy_from_slice(ending);
        self.len = at + ending.len();
    }

    /// Whether the letters before `end` end in a short syllable.
    fn ends_in_short_syllable(&self, end: usize) -> bool {
        match self.letters[..end] {
            [.., b'p', b'a', b's', b't'] => true,
            [vowel, consonant] => is_vowel(vowel) && !is_vowel(consonant),
            [.., before, vowel, consonant] => {
                !is_vowel(before)
                    && is_vowel(vowel)
                    && !is_vowel(consonant)
                    && !matches!(consonant, b'w' | b'x' | b'Y')
            }
            _ => false,
        }
    }

    fn drop_plural(&mut self) {
        if let Some((at, _)) = self.suffix(&[b"'s'", b"'s", b"'"]) {
            self.len = at;
        }
        match self.suffix(&[b"sses", b"ied", b"ies", b"us", b"ss", b"s"]) {
            Some((at, b"sses")) => self.len = at + 2,
            Some((at, b"ied" | b"ies")) => self.len = if at >= 2 { at + 1 } else { at + 2 },
            Some((at, b"s")) if at >= 1 && self.letters[..at - 1].iter().any(|&l| is_vowel(l)) => {
                self.len = at;
            }
            _ => {}
        }
    }

    fn drop_past_and_participle(&mut self) {
        let Some((at, suffix)) = self.suffix(&[b"eedly", b"ingly", b"edly", b"eed", b"ing", b"ed"]) else {
            return;
        };
        if matches!(suffix, b"eed" | b"eedly") {
            let is_kept = matches!(&self.letters[..at], b"proc" | b"exc" | b"succ");
            if self.first_region <= at && !is_kept {
                self.replace(at, b"ee");
            }
            return;
        }
        if suffix == b"ing" {
            match self.letters[..at] {
                [consonant, b'y'] if !is_vowel(consonant) => return self.replace(at - 1, b"ie"),
                _ if matches!(
                    &self.letters[..at],
                    b"inn" | b"out" | b"cann" | b"herr" | b"earr" | b"even"
                ) =>
                {
                    return;
                }
                _ => {}
            }
        }
        if !self.letters[..at].iter().any(|&letter| is_vowel(letter)) {
            return;
        }
        self.len = at;
        match *self.letters() {
            [.., b'a', b't'] | [.., b'b', b'l'] | [.., b'i', b'z'] => self.replace(at, b"e"),
            [b'a' | b'e' | b'o', one, other] if is_double(one, other) => {}
            [.., one, other] if is_double(one, other) => self.len -= 1,
            _ if at == self.first_region && self.ends_in_short_syllable(at) => self.replace(at, b"e"),
            _ => {}
        }
    }

    fn soften_final_y(&mut self) {
        if let [_, .., consonant, b'y' | b'Y'] = *self.letters()
            && !is_vowel(consonant)
        {
            self.letters[self.len - 1] = b'i';
        }
    }

    fn second_step(&mut self) {
        if let Some((at, (suffix, ending))) = self.rule(&SECOND_STEP) {
            let fits = suffix != b"ogi" || self.before(at) == Some(b'l');
            if self.first_region <= at && fits {
                self.replace(at, ending);
            }
        } else if self.ends_with(b"li") {
            let at = self.len - 2;
            let cut = matches!(
                self.before(at),
                Some(b'c' | b'd' | b'e' | b'g' | b'h' | b'k' | b'm' | b'n' | b'r' | b't')
            );
            if self.first_region <= at && cut {
                self.len = at;
            }
        }
    }

    fn third_step(&mut self) {
        if let Some((at, (suffix, ending))) = self.rule(&THIRD_STEP) {
            let fits = suffix != b"ative" || self.second_region <= at;
            if self.first_region <= at && fits {
                self.replace(at, ending);
            }
        }
    }

    fn fourth_step(&mut self) {
        if let Some((at, suffix)) = self.suffix(&FOURTH_STEP) {
            let fits = suffix != b"ion" || matches!(self.before(at), Some(b's' | b't'));
            if self.second_region <= at && fits {
                self.len = at;
            }
        }
    }

    fn drop_final_e_and_l(&mut self) {
        let Some(at) = self.len.checked_sub(1) else { return };
        let cut = match self.letters[at] {
            b'e' => self.second_region <= at || (self.first_region <= at && !self.ends_in_short_syllable(at)),
            b'l' => self.second_region <= at && self.before(at) == Some(b'l'),
            _ => false,
        };
        if cut {
            self.len = at;
        }
    }
}

/// Whether two letters are a double that English writes for the sake of a short vowel.
fn is_double(one: u8, other: u8) -> bool {
    one == other && matches!(one, b'b' | b'd' | b'f' | b'g' | b'm' | b'n' | b'p' | b'r' | b't')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_share_a_stem() {
        let families = [
            (
                "consist",
                "consisted consistency consistent consistently consisting consists",
            ),
            ("generous", "generous generously"),
            ("organiz", "organize organized organizing"),
            ("hope", "hoped hoping"),
            ("hop", "hopped hopping hops"),
            ("die", "dies died dying"),
            ("proceed", "proceed proceeds"),
            ("past", "past"),
            ("paste", "pasted pasting"),
            ("children", "children children's 'children'"),
        ];
        for (expected, words) in families {
            for word in words.split(' ') {
                assert_eq!(stem(word), expected, "{word}");
            }
        }
    }

    #[test]
    fn what_is_no_english_word_stays_as_it_is() {
        let long = "s".repeat(LONGEST + 1);
        for word in ["", "a", "as", "b12s", "Häusern", "e.g", long.as_str()] {
            assert_eq!(stem(word), word);
        }
    }

    #[cfg(feature = "all-languages")]
    mod beside_the_crate {
        use proptest::prelude::*;
        use snowball_stemmers_rs::{Algorithm, Stemmer};

        /// Pieces that the rules look for, so that words made of them meet all rules.
        const PIECES: [&str; 96] = [
            "'", "'s", "'s'", "s", "ss", "us", "sses", "ied", "ies", "eed", "eedly", "ed", "edly", "ing",
            "ingly", "at", "bl", "iz", "bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt", "ll", "y", "yy",
            "ay", "by", "tional", "enci", "anci", "abli", "entli", "izer", "ization", "ational", "ation",
            "ator", "alism", "aliti", "alli", "fulness", "ousli", "ousness", "iveness", "iviti", "biliti",
            "bli", "ogist", "ogi", "logi", "fulli", "lessli", "li", "dli", "alize", "icate", "iciti", "ical",
            "ful", "ness", "ative", "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment",
            "ent", "ism", "ate", "iti", "ous", "ive", "ize", "sion", "tion", "ion", "e", "l", "past",
            "gener", "inter", "organ", "exc", "succ", "proc", "even",
        ];

        fn is_the_same(word: &str) -> Result<(), TestCaseError> {
            if word.len() <= super::LONGEST {
                let snowball = Stemmer::create(Algorithm::English);
                prop_assert_eq!(super::stem(word), snowball.stem(word), "{}", word);
            }
            Ok(())
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(20_000))]

            #[test]
            fn any_letters_have_its_stem(word in "[a-z']{0,12}") {
                is_the_same(&word)?;
            }

            #[test]
            fn any_suffixes_have_its_stem(
                start in "[a-z']{0,4}",
                pieces in proptest::collection::vec(proptest::sample::select(PIECES.as_slice()), 1..4),
            ) {
                is_the_same(&(start + &pieces.concat()))?;
            }
        }

        #[test]
        fn every_word_of_a_corpus_has_its_stem() {
            let snowball = Stemmer::create(Algorithm::English);
            let exceptions = super::EXCEPTIONS.iter().map(|(word, _)| *word);
            let corpus = include_str!("../../../README.md");
            let words = corpus.split(|c: char| !c.is_ascii_lowercase()).chain(exceptions);
            for word in words.filter(|word| word.len() <= super::LONGEST) {
                assert_eq!(super::stem(word), snowball.stem(word), "{word}");
            }
        }
    }
}
