//! Sentences.
//!
//! Lines first ([`lines`](super::lines)): paragraphs, headings, list items. Then, inside a block, full stops, question and
//! exclamation marks and ellipses, each weighed by the word before it and the word after it. Then, for
//! legal prose whose sentences run over pages, semicolons before a capital. Last, a cap.

use super::abbreviations::{Stop, stop_after};
use super::lines::{blocks, trimmed};
use super::unicode::is_combining_mark;
use super::{Language, Span, fold, is_stop_word};

/// A longer sentence is cut at its last comma, colon or semicolon before this, or at a blank. Only a
/// single unbroken run of characters may be longer.
pub const MAX_SENTENCE_BYTES: usize = 2_048;

/// From this length on a semicolon before a capital ends a sentence.
const LONG_ENOUGH_FOR_A_SEMICOLON: usize = 120;

/// How many characters ahead the next word is looked for; more punctuation than this is decoration.
const FAR_AHEAD: usize = 64;

/// The sentences of a text: trimmed, ascending, without overlap; each holds at least one letter or digit,
/// and every letter and digit of the text lies in exactly one of them. Linear in the text.
///
/// ```
/// use gnnxml_shared::text::{Language, sentences};
/// let text = "Prices rose 3.5% to $2.10, Mr. J. Doe said. \"Why?\" asked the U.S. envoy. 他走了。我没走。";
/// let found: Vec<&str> = sentences(text, Language::English).iter().map(|s| &text[s.range()]).collect();
/// assert_eq!(found, [
///     "Prices rose 3.5% to $2.10, Mr. J. Doe said.",
///     "\"Why?\" asked the U.S. envoy.",
///     "他走了。",
///     "我没走。",
/// ]);
/// ```
pub fn sentences(text: &str, language: Language) -> Vec<Span> {
    let mut found = Vec::new();
    blocks(text, |block| split(text, block, language, &mut found));
    found
}

/// Splits one block at its full stops.
fn split(text: &str, block: Span, language: Language, found: &mut Vec<Span>) {
    let mut start = block.start;
    let mut at = block.start;
    while let Some(mark) = next_mark(text, at, block.end) {
        let end = mark_end(text, mark, block.end);
        at = end;
        if ends_here(text, Span::new(start, block.end), mark, end, language) {
            push(text, start, end, found);
            start = end;
        }
    }
    push(text, start, block.end, found);
}

/// Where a sentence might end.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    sign: char,
}

/// The next terminator at or after `from`.
fn next_mark(text: &str, from: usize, end: usize) -> Option<Mark> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < end {
        let byte = bytes[at];
        let sign = match byte {
            b'.' | b'!' | b'?' | b';' => byte as char,
            // Lead bytes of … ‼ 。 ！ ？ ｡ ؟ ۔ । and their neighbours.
            0xd8 | 0xdb | 0xe0 | 0xe2 | 0xe3 | 0xef => text[at..]
                .chars()
                .next()
                .filter(|c| is_foreign_stop(*c))
                .unwrap_or(' '),
            _ => ' ',
        };
        if sign != ' ' {
            return Some(Mark { at, sign });
        }
        at += 1;
    }
    None
}

fn is_foreign_stop(c: char) -> bool {
    matches!(c, '…' | '‼' | '⁇' | '⁈' | '⁉' | '؟' | '۔' | '।' | '॥') || is_cjk_stop(c)
}

/// Ends a sentence even when no blank follows.
fn is_cjk_stop(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '｡')
}

/// The end of a terminator with everything that clings to it: more terminators, closing quotes and brackets.
fn mark_end(text: &str, mark: Mark, end: usize) -> usize {
    text[mark.at..end]
        .char_indices()
        .find(|(i, c)| {
            *i > 0
                && !matches!(
                    c,
                    '.' | '!'
                        | '?'
                        | '"'
                        | '\''
                        | '”'
                        | '’'
                        | '»'
                        | '›'
                        | ')'
                        | ']'
                        | '}'
                        | '」'
                        | '』'
                        | '）'
                        | '】'
                        | '》'
                )
                && !is_foreign_stop(*c)
        })
        .map_or(end, |(i, _)| mark.at + i)
}

/// Whether the sentence that runs from `open.start` ends at `end`, the end of `mark`.
fn ends_here(text: &str, open: Span, mark: Mark, end: usize, language: Language) -> bool {
    let rest = &text[end..open.end];
    let Some(follower) = rest.chars().next() else {
        return false;
    };
    if is_cjk_stop(mark.sign) || text[mark.at..end].chars().any(is_cjk_stop) {
        // A mark over the full stop belongs to it.
        return !is_combining_mark(follower);
    }
    if !follower.is_whitespace() {
        return false;
    }
    let Some((skip, next)) = rest
        .char_indices()
        .take(FAR_AHEAD)
        .find(|(_, c)| c.is_alphanumeric())
    else {
        return false;
    };
    let after = &rest[skip..];
    match mark.sign {
        ';' => next.is_uppercase() && mark.at - open.start >= LONG_ENOUGH_FOR_A_SEMICOLON,
        _ if next.is_lowercase() => false,
        '.' if text[mark.at + 1..end].starts_with(['.', '!', '?']) => true,
        '.' => full_stop_ends(text, open.start, mark.at, after, language),
        _ => true,
    }
}

/// Whether a single full stop at `at` ends the sentence from `start`, with `after` the words to come.
fn full_stop_ends(text: &str, start: usize, at: usize, after: &str, language: Language) -> bool {
    let before = &text[start..at];
    let token_start = before.rfind(char::is_whitespace).map_or(0, |blank| {
        blank + before[blank..].chars().next().map_or(1, char::len_utf8)
    });
    let token = before[token_start..].trim_start_matches(|c: char| !c.is_alphanumeric());
    let Some(first) = token.chars().next() else {
        return true;
    };
    // Long tokens are no abbreviations; do not read them again and again.
    if token.len() > 24 {
        return true;
    }
    let next_is_number = after.starts_with(|c: char| c.is_numeric());
    if token.bytes().all(|byte| byte.is_ascii_digit()) {
        return !is_enumerator(before, token_start, token, after, language);
    }
    let folded = fold(token);
    let letters = token.chars().count();
    let dotted = token.contains('.') && token.split('.').all(|part| part.chars().count() <= 2);
    match stop_after(&folded, language) {
        Stop::Never => false,
        Stop::BeforeNumber => !next_is_number && !is_short_code(after),
        Stop::Perhaps => starts_with_a_function_word(after, language),
        Stop::Ends if letters == 1 && first.is_uppercase() || dotted => {
            starts_with_a_function_word(after, language)
        }
        Stop::Ends => true,
    }
}

/// "1. In Article 4": a number that opens a sentence or follows a colon counts items. "am 3. Oktober": an ordinal.
fn is_enumerator(before: &str, token_start: usize, token: &str, after: &str, language: Language) -> bool {
    if token.len() > 3 {
        return false;
    }
    let opener = before[..token_start].trim_end();
    if opener.is_empty() || opener.ends_with([':', ';']) {
        return true;
    }
    language.writes_ordinals_with_a_stop()
        && token.len() <= 2
        && !starts_with_a_function_word(after, language)
}

/// "No. A5", "Fig. B": a lone capital, or capital and digits.
fn is_short_code(after: &str) -> bool {
    let word = &after[..after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len())];
    word.len() <= 8
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && (word.len() == 1
            || word.bytes().any(|byte| byte.is_ascii_digit())
            || word.bytes().all(|byte| matches!(byte, b'I' | b'V' | b'X')))
}

/// After an initial or "Inc.", a capitalised "The" or "He" opens a new sentence; a name does not.
fn starts_with_a_function_word(after: &str, language: Language) -> bool {
    let word = &after[..after
        .find(|c: char| !c.is_alphanumeric() && c != '\'')
        .unwrap_or(after.len())];
    word.len() <= 24 && word.chars().count() > 1 && is_stop_word(&fold(word), language)
}

/// Adds a sentence, trimmed and cut to the cap; nothing if it holds no word.
fn push(text: &str, start: usize, end: usize, found: &mut Vec<Span>) {
    let mut rest = trimmed(text, start, end);
    while let Some(span) = rest {
        let cut = if span.len() > MAX_SENTENCE_BYTES {
            cut(text, span)
        } else {
            span.end
        };
        if let Some(piece) = trimmed(text, span.start, cut)
            && text[piece.range()].chars().any(char::is_alphanumeric)
        {
            found.push(piece);
        }
        rest = trimmed(text, cut, span.end);
    }
}

/// Where to cut a sentence that is too long.
fn cut(text: &str, span: Span) -> usize {
    let mut limit = span.start + MAX_SENTENCE_BYTES;
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    let window = &text[span.start..limit];
    let half = window.len() / 2;
    let mut blank = None;
    let mut last = ' ';
    let mut pause = None;
    for (i, c) in window.char_indices() {
        if c.is_whitespace() && i > 0 {
            blank = Some(i);
            if i >= half && matches!(last, ',' | ';' | ':' | ')' | '–' | '—' | '-') {
                pause = Some(i);
            }
        }
        last = c;
    }
    match pause.or(blank) {
        Some(at) => span.start + at,
        None => text[limit..span.end]
            .find(char::is_whitespace)
            .map_or(span.end, |blank| limit + blank),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words;
    use proptest::prelude::*;

    fn of(text: &str) -> Vec<&str> {
        in_language(text, Language::English)
    }

    fn in_language(text: &str, language: Language) -> Vec<&str> {
        sentences(text, language)
            .iter()
            .map(|span| &text[span.range()])
            .collect()
    }

    #[test]
    fn abbreviations_do_not_end_sentences() {
        assert_eq!(
            of("Dr. Smith met Prof. Jones at St. Mary's. They spoke.").len(),
            2
        );
        assert_eq!(of("See Art. 5 and Fig. 3 of Vol. II. Then stop.").len(), 2);
        assert_eq!(of("Acme Inc. Chief Jane Roe resigned. It fell.").len(), 2);
        assert_eq!(of("He works for Acme Inc. The firm is old.").len(), 2);
        assert_eq!(of("Use e.g. Rust or C. It works.").len(), 2);
    }

    #[test]
    fn decimals_versions_and_addresses_stay_whole() {
        assert_eq!(
            of("It grew 3.5 per cent to 1.200,50 in v2.0.1 at example.org. Fine.").len(),
            2
        );
    }

    #[test]
    fn initials_belong_to_their_names() {
        assert_eq!(
            of("J. R. R. Tolkien and C. S. Lewis met. They talked."),
            ["J. R. R. Tolkien and C. S. Lewis met.", "They talked."]
        );
        assert_eq!(of("He took vitamin C. The cold went.").len(), 2);
    }

    #[test]
    fn quotes_and_brackets_close_with_their_sentence() {
        assert_eq!(
            of("\"Go home.\" He went. (It rained.) \"Really?\" she asked."),
            [
                "\"Go home.\"",
                "He went.",
                "(It rained.)",
                "\"Really?\" she asked."
            ]
        );
    }

    #[test]
    fn lists_and_headings_need_no_full_stop() {
        let text = "Annual report\n\nWe sell:\n- red apples\n- green pears\n1. First\n2. Second";
        assert_eq!(
            of(text),
            [
                "Annual report",
                "We sell:",
                "- red apples",
                "- green pears",
                "1. First",
                "2. Second"
            ]
        );
    }

    #[test]
    fn inline_items_keep_their_numbers() {
        assert_eq!(
            of("It is amended as follows: 1. In Article 1 the word is cut. 2. Article 3 is added.").len(),
            2
        );
    }

    #[test]
    fn cjk_full_stops_need_no_blank() {
        assert_eq!(
            in_language("今日は。元気？はい！「そう。」", Language::Neutral),
            ["今日は。", "元気？", "はい！", "「そう。」"]
        );
    }

    #[test]
    fn ellipses_end_before_a_capital_only() {
        assert_eq!(of("Well... maybe. So… it is. Wait... What?").len(), 4);
        assert_eq!(of("Well... maybe. So… it is. Wait... What?")[0], "Well... maybe.");
    }

    #[test]
    fn ordinals_of_other_languages_do_not_end_sentences() {
        assert_eq!(
            in_language("Am 3. Oktober 1990 war es so. Die Mauer fiel.", Language::German).len(),
            2
        );
        assert_eq!(of("They were 3. Oktober was next.").len(), 2);
    }

    #[test]
    fn recitals_are_sentences_of_their_own() {
        let recital = "Whereas the legislation on capital movements in force in the territories and the special economic \
                       conditions render appropriate the application of the provisions";
        assert_eq!(of(&format!("{recital}; {recital}; and so on.")).len(), 2);
    }

    #[test]
    fn carriage_returns_and_byte_order_marks_leave_no_trace() {
        assert_eq!(
            of("\u{feff}First one.\r\n\r\nSecond one.\r\n"),
            ["First one.", "Second one."]
        );
    }

    #[test]
    fn text_without_words_has_no_sentences() {
        for text in ["", " \n ", "... !!! ?", "🙂🙂", "\0\0", "\u{feff}"] {
            assert!(of(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_long_sentence_is_cut_and_a_long_word_is_not() {
        let long = "word, ".repeat(10_000);
        let found = of(&long);
        assert!(
            found.len() > 20
                && found
                    .iter()
                    .all(|s| s.len() <= MAX_SENTENCE_BYTES && s.ends_with(','))
        );
        assert_eq!(of(&"x".repeat(1 << 20)).len(), 1);
    }

    #[test]
    fn right_to_left_text_ends_at_its_own_marks() {
        assert_eq!(
            in_language("كيف حالك؟ أنا بخير. شكرا.", Language::Arabic).len(),
            3
        );
    }

    proptest! {
        #[test]
        fn every_word_lies_in_exactly_one_sentence(text in "([A-Z]?[a-z]{0,4}[.!?;,…。．'\")]{0,2}[ \\n\\r\\t]{0,2}|\\PC|[0-9]\\.|é|漢){0,60}") {
            for language in [Language::English, Language::German, Language::Neutral] {
                let found = sentences(&text, language);
                prop_assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
                for word in words(&text) {
                    let homes = found.iter().filter(|s| s.start <= word.start && word.end <= s.end).count();
                    prop_assert_eq!(homes, 1, "{:?} in {:?}", &text[word.range()], &text);
                }
                for span in found {
                    let sentence = &text[span.range()];
                    prop_assert_eq!(sentence.trim(), sentence);
                }
            }
        }
    }
}
