//! Numbers with units, amounts of money, percentages, dates.

use super::entities::EntityKind;
use super::roles::Roles;
use super::tokens::{Shape, Token, Tokens};
use crate::text::{Language, Span};

/// A date or quantity found in a sentence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) kind: EntityKind,
    pub(super) span: Span,
    /// How many tokens it takes.
    pub(super) tokens: usize,
}

/// Reads one sentence.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) all: &'a Tokens,
    pub(super) tokens: &'a [Token],
}

impl<'a> Reader<'a> {
    pub(super) fn folded(&self, i: usize) -> &'a str {
        self.tokens.get(i).map_or("", |token| self.all.folded(token))
    }

    /// Whether token `i` can play a part.
    pub(super) fn plays(&self, i: usize, role: Roles) -> bool {
        self.tokens
            .get(i)
            .is_some_and(|token| self.all.word(token).roles.has(role))
    }

    /// What stands between token `i` and the next.
    pub(super) fn gap(&self, i: usize) -> &'a str {
        match (self.tokens.get(i), self.tokens.get(i + 1)) {
            (Some(a), Some(b)) => &self.text[a.span.end..b.span.start],
            _ => "\0",
        }
    }

    fn shape(&self, i: usize) -> Option<Shape> {
        self.tokens.get(i).map(|token| token.shape)
    }

    /// The date or quantity that starts at token `i`.
    pub(super) fn quantity_at(&self, i: usize) -> Option<Found> {
        let token = self.tokens[i];
        match token.shape {
            Shape::Number => self
                .date_from_number(i)
                .or_else(|| self.measured(i))
                .or_else(|| self.lone_year(i)),
            Shape::Measure => self.glued(i),
            Shape::Capital | Shape::Lower => self.date_from_month(i).or_else(|| self.weekday(i)),
            Shape::Upper if self.shape(i + 1) == Some(Shape::Number) && self.gap(i) == " " => {
                if !self.plays(i, Roles::CURRENCY) {
                    return None;
                }
                let amount = self.measured(i + 1);
                let (end, tokens) = amount.map_or((self.tokens[i + 1].span.end, 1), |found| {
                    (found.span.end, found.tokens)
                });
                Some(Found {
                    kind: EntityKind::Quantity,
                    span: Span::new(token.span.start, end),
                    tokens: tokens + 1,
                })
            }
            _ => None,
        }
    }

    fn date(&self, i: usize, tokens: usize) -> Option<Found> {
        let span = Span::new(self.tokens[i].span.start, self.tokens[i + tokens - 1].span.end);
        Some(Found {
            kind: EntityKind::Date,
            span,
            tokens,
        })
    }

    /// "13 June 1985", "13 June", "2024-05-01", "28.11.1973", "12/05/2020".
    fn date_from_number(&self, i: usize) -> Option<Found> {
        let number = self.folded(i);
        if is_day(number) && self.is_month(i + 1) && matches!(self.gap(i), " " | ". " | "-") {
            let year = is_year(self.folded(i + 2)) && matches!(self.gap(i + 1), " " | ", " | "-" | ". ");
            return self.date(i, if year { 3 } else { 2 });
        }
        let parts = number.split('.');
        if parts.clone().count() == 3 && parts.clone().all(|part| (1..=4).contains(&part.len())) {
            let mut parts = parts;
            let (first, second, last) = (parts.next()?, parts.next()?, parts.next()?);
            let plausible = is_day(first) && is_day(second) && (is_year(last) || last.len() == 2)
                || is_year(first) && is_day(second) && is_day(last);
            return plausible.then(|| self.date(i, 1)).flatten();
        }
        let separator = self.gap(i);
        if matches!(separator, "-" | "/") && separator == self.gap(i + 1) {
            let (second, last) = (self.folded(i + 1), self.folded(i + 2));
            let plausible = is_year(number) && is_day(second) && is_day(last)
                || is_day(number) && is_day(second) && (is_year(last) || last.len() == 2);
            if plausible && self.shape(i + 2) == Some(Shape::Number) {
                return self.date(i, 3);
            }
        }
        None
    }

    fn is_month(&self, i: usize) -> bool {
        self.tokens.get(i).is_some_and(|token| {
            matches!(token.shape, Shape::Capital | Shape::Lower | Shape::Upper)
                && token.span.len() >= 3
                && self.all.word(token).roles.has(Roles::MONTH)
        })
    }

    /// "June 13, 1985", "June 13", "June 1985", and "June" inside a sentence.
    fn date_from_month(&self, i: usize) -> Option<Found> {
        if self.shape(i) != Some(Shape::Capital) || !self.is_month(i) {
            return None;
        }
        let gap = self.gap(i);
        let next = self.folded(i + 1);
        if matches!(gap, " " | ". ") && is_year(next) {
            return self.date(i, 2);
        }
        if matches!(gap, " " | ". ") && is_day(next.trim_end_matches(|c: char| c.is_alphabetic())) {
            let year = is_year(self.folded(i + 2)) && matches!(self.gap(i + 1), ", " | " ");
            return self.date(i, if year { 3 } else { 2 });
        }
        // "May" opens sentences as another word, and names people.
        let plain = !matches!(self.folded(i), "may" | "mai" | "jan" | "mar" | "mars");
        (i > 0 && (plain || self.all.word(&self.tokens[i - 1]).stop))
            .then(|| self.date(i, 1))
            .flatten()
    }

    fn weekday(&self, i: usize) -> Option<Found> {
        (self.shape(i) == Some(Shape::Capital) && self.plays(i, Roles::WEEKDAY))
            .then(|| self.date(i, 1))
            .flatten()
    }

    fn lone_year(&self, i: usize) -> Option<Found> {
        let after = self.text[self.tokens[i].span.end..].chars().next();
        (i > 0
            && is_year(self.folded(i))
            && self.gap(i - 1) == " "
            && self.plays(i - 1, Roles::BEFORE_A_YEAR)
            && !matches!(after, Some('/' | '-' | '%')))
        .then(|| self.date(i, 1))
        .flatten()
    }

    /// "5mg", "10kWh", "1.5GB"; and "1990s".
    fn glued(&self, i: usize) -> Option<Found> {
        let folded = self.folded(i);
        if folded
            .strip_suffix("0s")
            .is_some_and(|decade| decade.len() == 3 && decade.parse::<u16>().is_ok())
        {
            return self.date(i, 1);
        }
        let unit = folded.trim_start_matches(|c: char| c.is_numeric() || matches!(c, '.' | ','));
        // The number hides the unit from the table of the document's words.
        let roles = Roles::of(unit, Language::Neutral);
        (roles.has(Roles::UNIT) || roles.has(Roles::MAGNITUDE) || matches!(unit, "c" | "v" | "w")).then(
            || {
                let (start, _) = self.currency_before(self.tokens[i].span.start);
                Found {
                    kind: EntityKind::Quantity,
                    span: Span::new(start, self.tokens[i].span.end),
                    tokens: 1,
                }
            },
        )
    }

    /// Where an amount starts when a currency sign stands right before it.
    fn currency_before(&self, start: usize) -> (usize, bool) {
        let before = &self.text[..start];
        let tight = before.strip_suffix(' ').unwrap_or(before);
        match before.chars().next_back() {
            Some(sign @ ('$' | '€' | '£' | '¥' | '₹')) => (start - sign.len_utf8(), true),
            Some(' ') => match tight.chars().next_back() {
                Some(sign @ ('€' | '£' | '¥')) => (start - 1 - sign.len_utf8(), true),
                _ => (start, false),
            },
            _ => (start, false),
        }
    }

    /// A number and what it counts: "5 mg", "40 %", "$3 million", "5–10 years", "20 °C".
    fn measured(&self, i: usize) -> Option<Found> {
        let (start, mut counted) = self.currency_before(self.tokens[i].span.start);
        let mut last = i;
        let mut end = self.tokens[i].span.end;
        if matches!(self.gap(last), "-" | "–") && self.shape(last + 1) == Some(Shape::Number) {
            last += 1;
            end = self.tokens[last].span.end;
        }
        let rest = &self.text[end..];
        if let Some(sign) = ["%", " %", "‰", " ‰"]
            .into_iter()
            .find(|sign| rest.starts_with(sign))
        {
            return Some(Found {
                kind: EntityKind::Quantity,
                span: Span::new(start, end + sign.len()),
                tokens: last - i + 1,
            });
        }
        let joined = |gap: &str| matches!(gap, " " | "-" | "\u{a0}");
        if joined(self.gap(last)) && self.plays(last + 1, Roles::MAGNITUDE) {
            counted |= self.folded(last + 1).len() > 1;
            if counted {
                last += 1;
                end = self.tokens[last].span.end;
            }
        }
        let next = self.folded(last + 1);
        if matches!(self.gap(last), "°" | " °") && matches!(next, "c" | "f") {
            counted = true;
            last += 1;
        } else if joined(self.gap(last)) && next == "per" && self.folded(last + 2) == "cent" {
            counted = true;
            last += 2;
        } else if joined(self.gap(last)) && self.plays(last + 1, Roles::UNIT) {
            counted = true;
            last += 1;
        }
        counted.then(|| Found {
            kind: EntityKind::Quantity,
            span: Span::new(start, self.tokens[last].span.end.max(end)),
            tokens: last - i + 1,
        })
    }
}

fn is_day(number: &str) -> bool {
    (1..=2).contains(&number.len()) && number.parse::<u8>().is_ok_and(|day| (1..=31).contains(&day))
}

pub(super) fn is_year(number: &str) -> bool {
    number.len() == 4
        && number
            .parse::<u16>()
            .is_ok_and(|year| (1500..2100).contains(&year))
}
