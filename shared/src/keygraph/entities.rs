//! Named entities without a neural model: capitalised runs, acronyms, numbers with units, dates, and the
//! names that a corpus taught.
//!
//! A capital is evidence only where grammar does not demand it: at a sentence start, in a shouted heading
//! and (in German) on every noun, other evidence is needed: the same word capitalised elsewhere in
//! the text, a second capitalised word beside it, or the lexicon.

use serde::{Deserialize, Serialize};

use super::EntityLexicon;
use super::quantities::Reader;
use super::roles::Roles;
use super::tokens::{Shape, Tokens};
use crate::text::{Language, Span, Stemmer};

/// What kind of thing a mention names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    /// A capitalised run: "Court of Justice".
    Name,
    /// "NATO", "mRNA".
    Acronym,
    /// "5 mg", "$3 million", "40 %".
    Quantity,
    /// "13 June 1985".
    Date,
    /// Known from the corpus.
    Lexicon,
}

/// One place where a text names something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    pub span: Span,
    pub kind: EntityKind,
}

/// A mention with the tokens it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenMention {
    pub(super) mention: Mention,
    pub(super) first: usize,
    /// One past the last.
    pub(super) end: usize,
}

/// No name has more words than this.
const MAX_NAME_WORDS: usize = 14;

/// The entities of a text, ascending, without overlap.
///
/// ```
/// use gnnxml_shared::keygraph::{EntityLexicon, entities};
/// use gnnxml_shared::text::Language;
/// let text = "On 3 May 1999 the Bank of England lent NASA $2 million.";
/// let found: Vec<&str> = entities(text, Language::English, &EntityLexicon::default())
///     .iter().map(|mention| &text[mention.span.range()]).collect();
/// assert_eq!(found, ["3 May 1999", "Bank of England", "NASA", "$2 million"]);
/// ```
pub fn entities(text: &str, language: Language, lexicon: &EntityLexicon) -> Vec<Mention> {
    let mut tokens = Tokens::default();
    tokens.read(text, language, &Stemmer::new(language), lexicon);
    let mut found = Vec::new();
    find(text, &tokens, language, lexicon, &mut found);
    found.into_iter().map(|found| found.mention).collect()
}

/// Finds all mentions of a text that has been read.
pub(super) fn find(
    text: &str,
    tokens: &Tokens,
    language: Language,
    lexicon: &EntityLexicon,
    found: &mut Vec<TokenMention>,
) {
    for s in 0..tokens.sentences.len() {
        let sentence = Sentence {
            reader: Reader {
                text,
                all: tokens,
                tokens: tokens.of(s),
            },
            language,
            lexicon,
            shouted: tokens.shouted[s],
        };
        let offset = tokens.offsets[s];
        let mut i = 0;
        while i < sentence.reader.tokens.len() {
            let Some((mention, count)) = sentence.mention_at(i) else {
                i += 1;
                continue;
            };
            found.push(TokenMention {
                mention,
                first: offset + i,
                end: offset + i + count,
            });
            i += count;
        }
    }
}

struct Sentence<'a> {
    reader: Reader<'a>,
    language: Language,
    lexicon: &'a EntityLexicon,
    shouted: bool,
}

impl Sentence<'_> {
    /// The longest mention that starts at token `i`, and how many tokens it takes.
    fn mention_at(&self, i: usize) -> Option<(Mention, usize)> {
        let learned = self.learned_at(i);
        if learned == 0
            && let Some(found) = self.reader.quantity_at(i)
        {
            // A sentence may have been cut between a number and its sign.
            let home = self.reader.all.sentences[self.reader.tokens[i].sentence as usize];
            let span = Span::new(found.span.start.max(home.start), found.span.end.min(home.end));
            return Some((
                Mention {
                    span,
                    kind: found.kind,
                },
                found.tokens,
            ));
        }
        let name = self.name_at(i);
        if name == 0 && learned == 0 {
            return None;
        }
        let count = name.max(learned);
        let (first, last) = (&self.reader.tokens[i], &self.reader.tokens[i + count - 1]);
        let kind = if name < learned {
            EntityKind::Lexicon
        } else if count == 1 && first.shape != Shape::Capital {
            EntityKind::Acronym
        } else {
            EntityKind::Name
        };
        let mut end = last.span.end;
        // "U.S." ends with its own full stop.
        let text = self.reader.text;
        if last.shape == Shape::Upper && text[last.span.range()].contains('.') && text[end..].starts_with('.')
        {
            end += 1;
        }
        Some((
            Mention {
                span: Span::new(first.span.start, end),
                kind,
            },
            count,
        ))
    }

    /// How many tokens the longest lexicon entry at `i` takes.
    fn learned_at(&self, i: usize) -> usize {
        let reader = &self.reader;
        let words = reader.tokens[i..].iter().enumerate().map_while(|(k, token)| {
            let joined = k == 0 || matches!(reader.gap(i + k - 1), " " | "-" | "\n" | "\r\n" | "\u{a0}");
            reader.all.word(token).lexicon.filter(|_| joined)
        });
        self.lexicon.longest_match(words)
    }

    fn shape(&self, i: usize) -> Option<Shape> {
        self.reader.tokens.get(i).map(|token| token.shape)
    }

    fn plays(&self, i: usize, role: Roles) -> bool {
        self.reader.plays(i, role)
    }

    fn is_stop(&self, i: usize) -> bool {
        self.reader
            .tokens
            .get(i)
            .is_some_and(|token| self.reader.all.word(token).stop)
    }

    /// How many tokens the capitalised run that starts at `i` takes; 0 if none does.
    fn name_at(&self, i: usize) -> usize {
        if self.shouted || !self.can_open(i) {
            return 0;
        }
        let mut end = i + 1;
        let mut capitals = 1;
        while end - i < MAX_NAME_WORDS {
            let step = self.step(i, end - 1);
            if step == 0 {
                break;
            }
            end += step;
            capitals += 1;
        }
        if self.stands(i, end, capitals) { end - i } else { 0 }
    }

    /// Whether token `i` may open a name.
    fn can_open(&self, i: usize) -> bool {
        let token = &self.reader.tokens[i];
        let folded = self.reader.folded(i);
        match token.shape {
            Shape::Capital => !self.is_stop(i) && !self.plays(i, Roles::TITLE),
            Shape::Mixed => true,
            Shape::Upper => {
                !self.is_part_of_shouting(i)
                    && !is_roman(folded)
                    && (!self.is_stop(i) || matches!(folded, "us" | "who"))
            }
            // "J. Smith": the initial of a name.
            Shape::Initial => self.reader.gap(i) == ". " && self.shape(i + 1).is_some_and(Shape::is_capital),
            _ => false,
        }
    }

    /// Two long words in capitals side by side are a heading inside a line, not two acronyms.
    fn is_part_of_shouting(&self, i: usize) -> bool {
        let loud = |j: usize| self.shape(j) == Some(Shape::Upper) && self.reader.tokens[j].span.len() > 3;
        let near = |j: usize| self.shape(j) == Some(Shape::Upper) && !is_roman(self.reader.folded(j));
        let before = i > 0 && self.reader.gap(i - 1) == " " && near(i - 1) && (loud(i) || loud(i - 1));
        let after = self.reader.gap(i) == " " && near(i + 1) && (loud(i) || loud(i + 1));
        before || after
    }

    /// How many tokens the name that started at `first` grows beyond token `last`.
    fn step(&self, first: usize, last: usize) -> usize {
        let reader = &self.reader;
        let gap = reader.gap(last);
        let next = last + 1;
        let Some(shape) = self.shape(next) else { return 0 };
        let word = reader.folded(last);
        let tight = matches!(gap, " " | "-" | " & " | "&" | "\n" | "\r\n" | "\u{a0}");
        let after_point =
            gap == ". " && (self.shape(last) == Some(Shape::Initial) || matches!(word, "st" | "mt" | "ft"));
        if (tight || after_point) && self.continues(first, last, next, shape, gap) {
            return 1;
        }
        if gap == "/" && shape == Shape::Number && self.shape(last) == Some(Shape::Number) {
            return 1;
        }
        // "Regulation (EEC) No 2793/77"
        if gap == " ("
            && shape == Shape::Upper
            && reader.gap(next) == ") "
            && self.plays(last, Roles::DESIGNATOR)
        {
            let after = next + 1;
            return if reader.folded(after) == "no" || self.shape(after) == Some(Shape::Number) {
                2
            } else {
                0
            };
        }
        if gap == " " && shape == Shape::Lower {
            self.across_connectors(first, last)
        } else {
            0
        }
    }

    /// Whether the next word belongs to the name, nothing but a blank or hyphen between them.
    fn continues(&self, first: usize, last: usize, next: usize, shape: Shape, gap: &str) -> bool {
        let word = self.reader.folded(last);
        let folded = self.reader.folded(next);
        match shape {
            Shape::Capital => {
                (folded == "no" && self.plays(last, Roles::DESIGNATOR) || !self.is_stop(next))
                    && !self.plays(next, Roles::TITLE)
                    && (self.reader.quantity_at(next).is_none() || gap == "-")
            }
            Shape::Mixed => true,
            Shape::Upper => !self.is_part_of_shouting(next) && (!self.is_stop(next) || gap == "-"),
            Shape::Initial => {
                self.reader.gap(next).starts_with('.')
                    || self.plays(last, Roles::DESIGNATOR)
                    || !matches!(folded, "a" | "i")
            }
            Shape::Number => {
                let plain = folded.bytes().all(|byte| byte.is_ascii_digit()) && folded.len() <= 5;
                let named = self.plays(last, Roles::DESIGNATOR) || word == "no";
                let counts_what_follows = self.shape(next + 1) == Some(Shape::Lower)
                    && !self.is_stop(next + 1)
                    && self.reader.gap(next) == " ";
                let one_name = self.shape(last) != Some(Shape::Number);
                let is_amount = gap != "-" && self.reader.quantity_at(next).is_some() && !named;
                (named || plain && one_name && !counts_what_follows && (last > 0 || first < last))
                    && !is_amount
            }
            _ => false,
        }
    }

    /// "Bank [of] England", "Court of Justice [of the] European Union", "Ludwig [van] Beethoven".
    fn across_connectors(&self, first: usize, last: usize) -> usize {
        let reader = &self.reader;
        let mut next = last + 1;
        // "Article 12 of the Treaty" is two names.
        if self.shape(last) == Some(Shape::Number) {
            return 0;
        }
        let opener = reader.folded(next);
        let follows = match opener {
            "of" => self.language == Language::English,
            "and" => {
                self.language == Language::English
                    && (first..last).any(|i| matches!(reader.folded(i), "of" | "for"))
                    && self.shape(next + 1) == Some(Shape::Capital)
            }
            "for" | "on" | "to" | "against" => {
                self.language == Language::English
                    && (first..=last).any(|i| self.plays(i, Roles::INSTITUTION))
            }
            _ => self.plays(next, Roles::CONNECTOR),
        };
        if !follows {
            return 0;
        }
        while reader.gap(next) == " "
            && matches!(
                reader.folded(next + 1),
                "the" | "la" | "der" | "den" | "los" | "las" | "les"
            )
            && next < last + 3
        {
            next += 1;
        }
        next += 1;
        let capital = matches!(
            self.shape(next),
            Some(Shape::Capital | Shape::Upper | Shape::Mixed)
        );
        let usable = capital
            && reader.gap(next - 1) == " "
            && !self.is_stop(next)
            && reader.quantity_at(next).is_none()
            && !self.is_part_of_shouting(next);
        if usable { next - last } else { 0 }
    }

    /// Whether the run of tokens `first..end` with so many capitals is evidence enough for a name.
    fn stands(&self, first: usize, end: usize, capitals: usize) -> bool {
        let token = &self.reader.tokens[first];
        let word = self.reader.all.word(token);
        if token.shape == Shape::Capital && self.language.capitalises_nouns() && capitals < 2 {
            return false;
        }
        if first > 0 && !self.opens_a_quote(first) || token.shape != Shape::Capital || word.lexicon.is_some()
        {
            return true;
        }
        if word.seen_capital && !word.seen_lower {
            return true;
        }
        let folded = self.reader.folded(first);
        let linking = self.language == Language::English && folded.ends_with("ly");
        end - first > 1 && !word.seen_lower && !linking
    }

    /// Whether token `i` follows an opening quote, where a capital is as weak as at a sentence start.
    fn opens_a_quote(&self, i: usize) -> bool {
        self.reader.gap(i - 1).ends_with(['"', '“', '„', '«']) && self.shape(i + 1) == Some(Shape::Lower)
    }
}

fn is_roman(folded: &str) -> bool {
    !folded.is_empty()
        && folded
            .bytes()
            .all(|byte| matches!(byte, b'i' | b'v' | b'x' | b'l'))
}
