//! Normal forms of Unicode, out of tables a page can afford to fetch.
//!
//! The build script takes the tables from the crate `unicode-normalization`, and a test holds every character to it.
//! They are unpacked at the first character that needs them. Start reading at [`nfkc`].

use std::sync::OnceLock;

/// No character below has a decomposition, a class or is a mark.
const PLAIN: char = '\u{a0}';

/// How a decomposition is used, as `build_tables/unicode.rs` writes it.
const COMPOSES: u8 = 0;
const COMPATIBLE: u8 = 2;

/// Compatible characters are one, and what can be written as one character is.
pub(super) fn nfkc(text: &str) -> String {
    if text.chars().all(|c| c < PLAIN) {
        return text.to_owned();
    }
    compose(&decompose(text, true))
}

/// Letters and their marks apart.
pub(super) fn nfd(text: &str) -> String {
    if text.chars().all(|c| c < PLAIN) {
        return text.to_owned();
    }
    decompose(text, false).into_iter().map(|(c, _)| c).collect()
}

/// Whether a character is written over, under or around another.
pub(super) fn is_combining_mark(c: char) -> bool {
    c >= PLAIN && value_of(&tables().marks, c).is_some()
}

/// Characters with their combining classes, in canonical order.
fn decompose(text: &str, compatible: bool) -> Vec<(char, u8)> {
    let tables = tables();
    let mut parts = Vec::with_capacity(text.len());
    for c in text.chars() {
        tables.decompose(c, compatible, &mut parts);
    }
    for run in parts.split_mut(|(_, class)| *class == 0) {
        if run.len() > 1 {
            run.sort_by_key(|(_, class)| *class);
        }
    }
    parts
}

/// Joins each starter with the marks and letters after it that nothing keeps from it.
fn compose(parts: &[(char, u8)]) -> String {
    let tables = tables();
    let mut composed: Vec<(char, u8)> = Vec::with_capacity(parts.len());
    let mut starter: Option<usize> = None;
    for &(c, class) in parts {
        if let Some(at) = starter {
            // What stands between keeps a mark of its class, or of a lower one, from the starter.
            let last: (char, u8) = composed[composed.len() - 1];
            let is_free = composed.len() - 1 == at || (last.1 != 0 && last.1 < class);
            if is_free && let Some(joined) = tables.compose(composed[at].0, c) {
                composed[at].0 = joined;
                continue;
            }
        }
        if class == 0 {
            starter = Some(composed.len());
        }
        composed.push((c, class));
    }
    composed.into_iter().map(|(c, _)| c).collect()
}

/// A run of characters with one value: first, last, value.
type Run = (u32, u32, u8);

struct Decomposition {
    of: char,
    /// Where its parts start in `Tables::parts`.
    start: u32,
    /// Its length and its use.
    shape: u8,
}

struct Tables {
    decompositions: Vec<Decomposition>,
    parts: Vec<char>,
    /// Two characters and the one they make, in order.
    pairs: Vec<([char; 2], char)>,
    classes: Vec<Run>,
    marks: Vec<Run>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let gaps = include_bytes!(concat!(env!("OUT_DIR"), "/decomposition_gaps"));
        let shapes = include_bytes!(concat!(env!("OUT_DIR"), "/decomposition_shapes"));
        let parts = include_str!(concat!(env!("OUT_DIR"), "/decomposition_parts"));
        let (mut gaps, mut code, mut start) = (gaps.as_slice(), 0, 0);
        let unpacked = shapes.iter().map(|&shape| {
            code += number(&mut gaps);
            let decomposition = Decomposition {
                of: char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                start,
                shape,
            };
            start += u32::from(shape / 3);
            decomposition
        });
        let mut tables = Tables {
            decompositions: unpacked.collect(),
            parts: parts.chars().collect(),
            pairs: Vec::new(),
            classes: runs(include_bytes!(concat!(env!("OUT_DIR"), "/combining_classes"))),
            marks: runs(include_bytes!(concat!(env!("OUT_DIR"), "/marks"))),
        };
        tables.find_pairs();
        tables
    })
}

impl Tables {
    fn parts_of(&self, decomposition: &Decomposition) -> &[char] {
        let start = decomposition.start as usize;
        &self.parts[start..start + usize::from(decomposition.shape / 3)]
    }

    /// Two parts are a pair; three are a pair of what the first two make and the third, and so on.
    fn find_pairs(&mut self) {
        for length in 2..=4 {
            let mut found = Vec::new();
            for one in &self.decompositions {
                if one.shape != length * 3 + COMPOSES {
                    continue;
                }
                if let [first, between @ .., last] = self.parts_of(one) {
                    let begun = between
                        .iter()
                        .try_fold(*first, |begun, &next| self.compose(begun, next));
                    found.extend(begun.map(|begun| ([begun, *last], one.of)));
                }
            }
            self.pairs.extend(found);
            self.pairs.sort_unstable();
        }
    }

    fn decompose(&self, c: char, compatible: bool, parts: &mut Vec<(char, u8)>) {
        if c < PLAIN {
            return parts.push((c, 0));
        }
        if let Some(letters) = hangul::decompose(c) {
            return parts.extend(letters.into_iter().flatten().map(|letter| (letter, 0)));
        }
        match self.decompositions.binary_search_by_key(&c, |one| one.of) {
            Ok(at) if compatible || self.decompositions[at].shape % 3 != COMPATIBLE => {
                let one = &self.decompositions[at];
                for &part in self.parts_of(one) {
                    // What is parted canonically may have parts that are compatible with others.
                    if compatible && one.shape % 3 != COMPATIBLE && part != c {
                        self.decompose(part, true, parts);
                    } else {
                        parts.push((part, self.class(part)));
                    }
                }
            }
            _ => parts.push((c, self.class(c))),
        }
    }

    fn class(&self, c: char) -> u8 {
        if c < PLAIN {
            return 0;
        }
        value_of(&self.classes, c).unwrap_or(0)
    }

    fn compose(&self, first: char, second: char) -> Option<char> {
        if let Some(syllable) = hangul::compose(first, second) {
            return Some(syllable);
        }
        let at = (self.pairs.binary_search_by_key(&[first, second], |pair| pair.0)).ok()?;
        Some(self.pairs[at].1)
    }
}

fn value_of(runs: &[Run], c: char) -> Option<u8> {
    let code = u32::from(c);
    let after = runs.partition_point(|run| run.0 <= code);
    let run = runs[..after].last()?;
    (code <= run.1).then_some(run.2)
}

fn runs(mut bytes: &[u8]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut last = 0;
    while !bytes.is_empty() {
        let first = last + number(&mut bytes);
        last = first + number(&mut bytes);
        if let Some(&value) = bytes.split_off_first() {
            runs.push((first, last, value));
        }
    }
    runs
}

/// The number that the bytes start with: seven bits a byte, the lowest first.
fn number(bytes: &mut &[u8]) -> u32 {
    let mut number = 0;
    let mut shift = 0;
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// Korean syllables are laid out so regularly that their letters are computed.
mod hangul {
    const SYLLABLES: u32 = 0xac00;
    const LEADS: u32 = 0x1100;
    const VOWELS: u32 = 0x1161;
    /// One before the first: the syllable may end in none.
    const TRAILS: u32 = 0x11a7;
    const LEAD_COUNT: u32 = 19;
    const VOWEL_COUNT: u32 = 21;
    const TRAIL_COUNT: u32 = 28;

    pub(super) fn decompose(c: char) -> Option<[Option<char>; 3]> {
        let index = u32::from(c).checked_sub(SYLLABLES)?;
        if index >= LEAD_COUNT * VOWEL_COUNT * TRAIL_COUNT {
            return None;
        }
        let (rest, trail) = (index / TRAIL_COUNT, index % TRAIL_COUNT);
        Some([
            char::from_u32(LEADS + rest / VOWEL_COUNT),
            char::from_u32(VOWELS + rest % VOWEL_COUNT),
            char::from_u32(TRAILS + trail).filter(|_| trail > 0),
        ])
    }

    pub(super) fn compose(first: char, second: char) -> Option<char> {
        let within =
            |c: char, start: u32, count: u32| u32::from(c).checked_sub(start).filter(|&index| index < count);
        if let Some(lead) = within(first, LEADS, LEAD_COUNT) {
            let vowel = within(second, VOWELS, VOWEL_COUNT)?;
            return char::from_u32(SYLLABLES + (lead * VOWEL_COUNT + vowel) * TRAIL_COUNT);
        }
        let syllable = within(first, SYLLABLES, LEAD_COUNT * VOWEL_COUNT * TRAIL_COUNT)?;
        let trail = within(second, TRAILS, TRAIL_COUNT).filter(|&trail| trail > 0)?;
        if syllable % TRAIL_COUNT != 0 {
            return None;
        }
        char::from_u32(u32::from(first) + trail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization as _;

    #[test]
    fn every_character_is_as_the_crate_has_it() {
        for c in '\0'..=char::MAX {
            let text = String::from(c);
            assert_eq!(nfkc(&text), text.nfkc().collect::<String>(), "{c:?}");
            assert_eq!(nfd(&text), text.nfd().collect::<String>(), "{c:?}");
            assert_eq!(
                is_combining_mark(c),
                unicode_normalization::char::is_combining_mark(c),
                "{c:?}"
            );
        }
    }

    /// Starters that compose, marks of several classes, Hangul letters and syllables.
    const LIVELY: &str = "[aeuAEıſßΩωиЁक\u{93c}각가\u{1100}-\u{1112}\u{1161}-\u{1175}\u{11a7}-\u{11c2}\u{300}-\u{345}\u{1dc4}\u{5b0}\u{e38}\u{9be}\u{9c7}\u{9d7}\u{b3e}\u{b47}ﬁ½Å\u{212b}漢\u{f900}\u{115b9}\u{115af}]{0,10}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn any_text_is_as_the_crate_has_it(text in "\\PC{0,12}") {
            prop_assert_eq!(nfkc(&text), text.nfkc().collect::<String>());
            prop_assert_eq!(nfd(&text), text.nfd().collect::<String>());
        }

        #[test]
        fn marks_and_syllables_are_as_the_crate_has_them(text in LIVELY) {
            prop_assert_eq!(nfkc(&text), text.nfkc().collect::<String>());
            prop_assert_eq!(nfd(&text), text.nfd().collect::<String>());
        }
    }
}
