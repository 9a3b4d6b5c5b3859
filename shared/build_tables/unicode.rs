//! Unicode's decompositions, combining classes and marks as the few bytes that `src/text/unicode.rs` reads.
//!
//! The crate that knows them all answers every question quickly and takes a quarter of a megabyte; a page asks seldom and
//! is fetched often.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{
    canonical_combining_class, decompose_canonical, decompose_compatible, is_combining_mark,
};

/// How an entry of the decompositions is used; written beside its length.
const COMPOSES: u8 = 0;
const EXCLUDED: u8 = 1;
const COMPATIBLE: u8 = 2;

/// Hangul syllables are decomposed by arithmetic.
const HANGUL: std::ops::RangeInclusive<char> = '\u{ac00}'..='\u{d7a3}';

fn decomposed(c: char, decompose: impl Fn(char, &mut dyn FnMut(char))) -> String {
    let mut parts = String::new();
    decompose(c, &mut |part| parts.push(part));
    parts
}

/// Gaps between characters, then lengths with their use, then the characters they become.
pub(crate) fn decompositions() -> (Vec<u8>, Vec<u8>, String) {
    let canonical = |c: char| decomposed(c, |c, emit| decompose_canonical(c, emit));
    let compatible = |c: char| decomposed(c, |c, emit| decompose_compatible(c, emit));
    let (mut gaps, mut shapes, mut parts) = (Vec::new(), Vec::new(), String::new());
    let mut last = 0;
    for c in ('\0'..=char::MAX).filter(|c| !HANGUL.contains(c)) {
        let (first, second) = (canonical(c), compatible(c));
        let (parted, used) = if first.chars().ne([c]) {
            let through: String = first.chars().map(compatible).collect();
            assert_eq!(
                through, second,
                "{c:?} is decomposed in a way that is not foreseen"
            );
            let composes = first.nfc().eq([c]);
            (first, if composes { COMPOSES } else { EXCLUDED })
        } else if second.chars().ne([c]) {
            (second, COMPATIBLE)
        } else {
            continue;
        };
        push_number(&mut gaps, u32::from(c) - last);
        last = u32::from(c);
        let length = u8::try_from(parted.chars().count()).expect("a decomposition is short");
        shapes.push(length * 3 + used);
        parts.push_str(&parted);
    }
    (gaps, shapes, parts)
}

/// Runs of characters of one class: the gap before, how many more, the class.
pub(crate) fn classes() -> Vec<u8> {
    runs(|c| Some(canonical_combining_class(c)).filter(|&class| class > 0))
}

/// Runs of marks, in the same form.
pub(crate) fn marks() -> Vec<u8> {
    runs(|c| is_combining_mark(c).then_some(1))
}

fn runs(value: impl Fn(char) -> Option<u8>) -> Vec<u8> {
    let mut runs: Vec<(u32, u32, u8)> = Vec::new();
    for c in '\0'..=char::MAX {
        let Some(value) = value(c) else { continue };
        let code = u32::from(c);
        match runs.last_mut() {
            Some((_, end, same)) if *end + 1 == code && *same == value => *end = code,
            _ => runs.push((code, code, value)),
        }
    }
    let mut bytes = Vec::new();
    let mut last = 0;
    for (start, end, value) in runs {
        push_number(&mut bytes, start - last);
        push_number(&mut bytes, end - start);
        bytes.push(value);
        last = end;
    }
    bytes
}

/// Seven bits a byte, the lowest first; all but the last byte have their highest bit set.
fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
