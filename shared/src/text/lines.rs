//! What line breaks say: paragraphs, headings without a full stop, list items, or merely the width of a page.

use super::Span;

/// Nobody wraps running text narrower than this.
const NARROWEST_PAGE: usize = 40;
/// A longer line was not wrapped by hand: its end is a paragraph's end.
const WIDEST_PAGE: usize = 120;

#[derive(Clone, Copy)]
struct Line {
    /// Trimmed.
    span: Span,
    is_item: bool,
}

/// Cuts a text into blocks within which a line break is only a blank.
///
/// A break between two lines stands when one of them is empty, when the next is a list item, when this
/// one is too long to have been wrapped, or when the next starts like a sentence although its first word
/// would have fitted here (so it was not wrapping that broke the line: this is a heading).
pub(super) fn blocks(text: &str, mut each: impl FnMut(Span)) {
    let mut block: Option<Span> = None;
    let mut last: Option<Line> = None;
    let mut start = 0;
    while start < text.len() {
        let (end, next) = line_end(text, start);
        let line = trimmed(text, start, end).map(|span| Line {
            span,
            is_item: is_item(&text[span.range()]),
        });
        start = next;
        match (line, last, &mut block) {
            (None, _, _) => block.take().into_iter().for_each(&mut each),
            (Some(line), Some(above), Some(open)) if !breaks(text, above, line) => open.end = line.span.end,
            (Some(line), _, _) => {
                block.take().into_iter().for_each(&mut each);
                block = Some(line.span);
            }
        }
        last = line;
    }
    block.into_iter().for_each(&mut each);
}

/// Where the line that starts at `start` ends, and where the next one starts.
fn line_end(text: &str, start: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' | 0x0b | 0x0c => return (at, at + 1),
            b'\r' => return (at, at + 1 + usize::from(bytes.get(at + 1) == Some(&b'\n'))),
            0xc2 if bytes.get(at + 1) == Some(&0x85) => return (at, at + 2),
            0xe2 if bytes.get(at + 1) == Some(&0x80) && matches!(bytes.get(at + 2), Some(0xa8 | 0xa9)) => {
                return (at, at + 3);
            }
            _ => at += 1,
        }
    }
    (at, at)
}

/// A span without blanks, control characters and byte-order marks at its ends; nothing if nothing is left.
pub(super) fn trimmed(text: &str, start: usize, end: usize) -> Option<Span> {
    let empty = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{feff}' | '\u{200b}');
    let slice = &text[start..end];
    let front = slice.trim_start_matches(empty);
    let start = end - front.len();
    let kept = front.trim_end_matches(empty);
    (!kept.is_empty()).then(|| Span::new(start, start + kept.len()))
}

fn breaks(text: &str, above: Line, below: Line) -> bool {
    if below.is_item {
        return true;
    }
    let (upper, lower) = (&text[above.span.range()], &text[below.span.range()]);
    if upper.starts_with('#') || upper.starts_with('|') || above.span.len() > WIDEST_PAGE {
        return true;
    }
    let starts_a_sentence = lower
        .chars()
        .find(|c| c.is_alphanumeric())
        .is_some_and(|c| !c.is_lowercase());
    if !starts_a_sentence || upper.ends_with([',', '-', '–', '(']) {
        return false;
    }
    let page = above.span.len().max(below.span.len());
    let first_word = lower.find(char::is_whitespace).unwrap_or(lower.len());
    page < NARROWEST_PAGE || above.span.len() + 1 + first_word <= page
}

/// "- x", "* x", "• x", "3. x", "(a) x", "iv) x", "# x".
fn is_item(line: &str) -> bool {
    let mut chars = line.chars();
    let Some(first) = chars.next() else { return false };
    if matches!(first, '•' | '‣' | '◦' | '▪' | '●' | '#' | '|') {
        return true;
    }
    if matches!(first, '-' | '*' | '+' | '–' | '—') {
        return chars.next().is_some_and(char::is_whitespace);
    }
    let label = line.strip_prefix('(').unwrap_or(line);
    let size = label
        .bytes()
        .take(5)
        .take_while(u8::is_ascii_alphanumeric)
        .count();
    let (marker, rest) = label.split_at(size);
    let plausible = match marker.len() {
        0 => false,
        1 => true,
        2..=4 => {
            marker.bytes().all(|byte| byte.is_ascii_digit())
                || marker
                    .bytes()
                    .all(|byte| matches!(byte.to_ascii_lowercase(), b'i' | b'v' | b'x'))
        }
        _ => false,
    };
    let mut rest = rest.chars();
    let closed = match rest.next() {
        Some(')') => true,
        Some('.') => {
            label.len() == line.len() && (size > 1 || marker.bytes().all(|byte| byte.is_ascii_digit()))
        }
        _ => false,
    };
    plausible && closed && rest.next().is_none_or(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        blocks(text, |block| found.push(&text[block.range()]));
        found
    }

    #[test]
    fn wrapped_lines_belong_together() {
        let text = "The Commission shall keep the register of vessels that fish in the\n\
                    North Sea and shall send it every year to the Member States of the\n\
                    Union.";
        assert_eq!(of(text).len(), 1);
    }

    #[test]
    fn headings_stand_alone() {
        let text = "Fishing quotas\nThe Commission shall keep the register of vessels that fish in the sea.";
        assert_eq!(of(text)[0], "Fishing quotas");
    }

    #[test]
    fn blank_lines_and_list_items_break() {
        assert_eq!(of("one\n\ntwo\r\n\r\nthree").len(), 3);
        assert_eq!(
            of("we need\n- milk\n- eggs\n2. flour\n(b) salt\niv) oil").len(),
            6
        );
    }

    #[test]
    fn names_at_a_line_start_are_not_list_items() {
        assert!(!is_item("J. Smith went"));
        assert!(!is_item("-5 degrees"));
        assert!(is_item("12. In Article 4"));
    }
}
