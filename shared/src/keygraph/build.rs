//! From a text to its KeyGraph.

use serde::{Deserialize, Serialize};

use super::entities::{TokenMention, find};
use super::interner::Interner;
use super::phrases::{Phrase, merge_adjacent};
use super::textrank::CoOccurrence;
use super::tokens::{Token, Tokens};
use super::{EntityLexicon, KeyGraph, Vertex, VertexKind};
use crate::text::{Language, Stemmer};

/// No KeyGraph has more vertices, whatever the options say: a text that is one long sentence would link
/// every two of them.
pub const MAX_VERTICES: usize = 2_000;

/// TextRank weighs at most this many distinct words and names of a text, the most frequent ones. No text of
/// ordinary length has so many; it keeps the time linear in a text of megabytes.
pub const MAX_CANDIDATES: usize = 20_000;

/// How a KeyGraph is built.
///
/// The original TextRank uses windows of 2 to 10 words and keeps a third of them; the paper is silent on both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Words at most `window − 1` content words apart are neighbours.
    pub window: usize,
    /// TextRank's d.
    pub damping: f64,
    /// TextRank stops when no score moves by more.
    pub tolerance: f64,
    /// Share of the distinct content words that become keywords.
    pub keep: f64,
    /// Distinct words and names that are weighed at all; [`MAX_CANDIDATES`] at most.
    pub max_candidates: usize,
    /// Keep only the strongest vertices, the empty one included; [`MAX_VERTICES`] if not given.
    pub max_vertices: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: 4,
            damping: 0.85,
            tolerance: 1e-4,
            keep: 1.0 / 3.0,
            max_candidates: MAX_CANDIDATES,
            max_vertices: None,
        }
    }
}

impl Options {
    /// Every value inside the range where it means something.
    fn sane(&self) -> Self {
        let finite = |value: f64, otherwise: f64| if value.is_finite() { value } else { otherwise };
        Self {
            window: self.window.clamp(2, 10),
            damping: finite(self.damping, 0.85).clamp(0.0, 0.99),
            tolerance: finite(self.tolerance, 1e-4).max(1e-12),
            keep: finite(self.keep, 1.0 / 3.0).clamp(0.0, 1.0),
            max_candidates: self.max_candidates.clamp(1, MAX_CANDIDATES),
            max_vertices: Some(self.max_vertices.unwrap_or(MAX_VERTICES).clamp(1, MAX_VERTICES)),
        }
    }
}

impl KeyGraph {
    /// The KeyGraph of a text. For many texts keep a [`KeyGraphBuilder`].
    pub fn build(text: &str, language: Language, lexicon: &EntityLexicon, options: &Options) -> Self {
        KeyGraphBuilder::new(language, lexicon, options).build(text)
    }
}

/// Builds KeyGraphs one after the other, keeping its memory in between.
#[derive(Debug)]
pub struct KeyGraphBuilder<'a> {
    language: Language,
    lexicon: &'a EntityLexicon,
    options: Options,
    stemmer: Stemmer,
    tokens: Tokens,
    mentions: Vec<TokenMention>,
    keys: Interner,
    key: String,
}

/// A word or name as TextRank sees it, at one place.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) node: u32,
    pub(super) first: u32,
    /// One past its last token.
    pub(super) end: u32,
    pub(super) start_byte: usize,
    pub(super) end_byte: usize,
    pub(super) sentence: u32,
    pub(super) is_entity: bool,
}

/// What is counted of a node over the text; nodes are numbered by first appearance.
#[derive(Clone, Copy, Default)]
pub(super) struct Node {
    pub(super) count: u32,
    entity_count: u32,
}

impl Node {
    /// A name that is written as a common word more often than not is a common word.
    fn is_entity(self) -> bool {
        self.entity_count * 2 >= self.count && self.entity_count > 0
    }
}

/// A vertex in the making; numbered by first appearance.
struct Draft {
    kind: VertexKind,
    rank: f64,
    sentences: Vec<usize>,
    spans: Vec<[usize; 2]>,
}

impl<'a> KeyGraphBuilder<'a> {
    /// A builder for texts of one language.
    pub fn new(language: Language, lexicon: &'a EntityLexicon, options: &Options) -> Self {
        Self {
            language,
            lexicon,
            options: options.sane(),
            stemmer: Stemmer::new(language),
            tokens: Tokens::default(),
            mentions: Vec::new(),
            keys: Interner::default(),
            key: String::new(),
        }
    }

    /// The KeyGraph of one text.
    pub fn build(&mut self, text: &str) -> KeyGraph {
        self.tokens.read(text, self.language, &self.stemmer, self.lexicon);
        self.mentions.clear();
        find(
            text,
            &self.tokens,
            self.language,
            self.lexicon,
            &mut self.mentions,
        );
        let (places, nodes) = self.places();
        let (ranks, kept) = self.keywords(&places, &nodes);
        let phrases = merge_adjacent(text, &places, &nodes, &kept);
        let drafts = self.drafts(&places, &nodes, &ranks, &phrases);
        self.assemble(text, drafts)
    }

    /// Names and content words in the order of the text. Places of the same stems are one node.
    fn places(&mut self) -> (Vec<Place>, Vec<Node>) {
        self.keys.clear();
        let mut places = Vec::with_capacity(self.tokens.tokens.len());
        let mut nodes: Vec<Node> = Vec::new();
        let mut mentions = self.mentions.iter().peekable();
        let mut i = 0;
        while i < self.tokens.tokens.len() {
            let mention = mentions.next_if(|mention| mention.first == i);
            let end = mention.map_or(i + 1, |mention| mention.end);
            let tokens = &self.tokens.tokens[i..end];
            if mention.is_some() || self.tokens.word(&tokens[0]).content {
                let node = node_key(&self.tokens, tokens, &mut self.key, &mut self.keys);
                if node as usize == nodes.len() {
                    nodes.push(Node::default());
                }
                nodes[node as usize].count += 1;
                nodes[node as usize].entity_count += u32::from(mention.is_some());
                let (start_byte, end_byte) = mention
                    .map_or((tokens[0].span.start, tokens[0].span.end), |mention| {
                        (mention.mention.span.start, mention.mention.span.end)
                    });
                places.push(Place {
                    node,
                    first: i as u32,
                    end: end as u32,
                    start_byte,
                    end_byte,
                    sentence: tokens[0].sentence,
                    is_entity: mention.is_some(),
                });
            }
            i = end;
        }
        (places, nodes)
    }

    /// TextRank: the score of every node, and which nodes are kept: all names, and the best share of the words.
    fn keywords(&self, places: &[Place], nodes: &[Node]) -> (Vec<f64>, Vec<bool>) {
        let mut kept = vec![true; nodes.len()];
        if nodes.len() > self.options.max_candidates {
            let mut order: Vec<usize> = (0..nodes.len()).collect();
            order.sort_by_key(|i| (std::cmp::Reverse(nodes[*i].count), *i));
            order[self.options.max_candidates..]
                .iter()
                .for_each(|i| kept[*i] = false);
        }
        let mut run = Vec::with_capacity(places.len());
        let mut ends = Vec::new();
        for (i, place) in places.iter().enumerate() {
            if kept[place.node as usize] {
                run.push(place.node);
            }
            if places
                .get(i + 1)
                .is_none_or(|next| next.sentence != place.sentence)
            {
                ends.push(run.len());
            }
        }
        let mut start = 0;
        let runs = ends
            .iter()
            .map(|end| &run[std::mem::replace(&mut start, *end)..*end]);
        let graph = CoOccurrence::new(nodes.len(), runs, self.options.window);
        let ranks = graph.rank(self.options.damping, self.options.tolerance);

        let mut words: Vec<usize> = (0..nodes.len())
            .filter(|i| kept[*i] && !nodes[*i].is_entity())
            .collect();
        words.sort_by(|a, b| ranks[*b].total_cmp(&ranks[*a]).then(a.cmp(b)));
        let share = (words.len() as f64 * self.options.keep).ceil() as usize;
        words[share.min(words.len())..]
            .iter()
            .for_each(|i| kept[*i] = false);
        (ranks, kept)
    }

    /// Each distinct phrase or name becomes one vertex; `phrases` says how places go together.
    ///
    /// Its rank is Σ S(word) / √words: more than its strongest word if all are strong, less if one is
    /// weak. The paper is silent.
    fn drafts(&mut self, places: &[Place], nodes: &[Node], ranks: &[f64], phrases: &[Phrase]) -> Vec<Draft> {
        let mut drafts: Vec<Draft> = Vec::new();
        let mut numbers: Vec<u32> = Vec::new();
        for phrase in phrases {
            let members = &places[phrase.first..phrase.first + phrase.words];
            let (first, last) = (members[0], members[members.len() - 1]);
            if numbers.len() <= phrase.id as usize {
                numbers.resize(phrase.id as usize + 1, u32::MAX);
            }
            let number = &mut numbers[phrase.id as usize];
            if *number == u32::MAX {
                *number = drafts.len() as u32;
                let sum: f64 = members.iter().map(|place| ranks[place.node as usize]).sum();
                let entity = phrase.words == 1 && nodes[first.node as usize].is_entity();
                drafts.push(Draft {
                    kind: if entity {
                        VertexKind::Entity
                    } else {
                        VertexKind::Keyword
                    },
                    rank: sum / (phrase.words as f64).sqrt(),
                    sentences: Vec::new(),
                    spans: Vec::new(),
                });
            }
            let draft = &mut drafts[*number as usize];
            let sentence = first.sentence as usize;
            if draft.sentences.last() != Some(&sentence) {
                draft.sentences.push(sentence);
            }
            draft.spans.push([first.start_byte, last.end_byte]);
        }
        drafts
    }

    /// The strongest drafts as vertices, ties by first position, then the empty vertex if it is needed.
    fn assemble(&mut self, text: &str, mut drafts: Vec<Draft>) -> KeyGraph {
        let sentences = std::mem::take(&mut self.tokens.sentences);
        let limit = self.options.max_vertices.unwrap_or(MAX_VERTICES);
        // Drafts stand in order of first position, and the sort is stable.
        drafts.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        drafts.truncate(limit);
        let mut bare = uncovered(&drafts, sentences.len());
        if !bare.is_empty() && drafts.len() == limit {
            drafts.pop();
            bare = uncovered(&drafts, sentences.len());
        }
        let mut vertices: Vec<Vertex> = drafts
            .into_iter()
            .enumerate()
            .map(|(id, draft)| Vertex {
                id,
                text: surface(text, &draft.spans),
                kind: draft.kind,
                rank: draft.rank as f32,
                sentences: draft.sentences,
                spans: draft.spans,
            })
            .collect();
        if !bare.is_empty() {
            vertices.push(Vertex {
                id: vertices.len(),
                text: String::new(),
                kind: VertexKind::Empty,
                rank: 0.0,
                sentences: bare,
                spans: Vec::new(),
            });
        }
        KeyGraph::new(sentences, vertices).expect("what the builder assembles is a KeyGraph")
    }
}

/// The number of a run of tokens by its stems.
fn node_key(all: &Tokens, tokens: &[Token], key: &mut String, keys: &mut Interner) -> u32 {
    key.clear();
    for (i, token) in tokens.iter().enumerate() {
        if i > 0 {
            key.push(' ');
        }
        key.push_str(all.stems.get(all.word(token).stem));
    }
    keys.intern(key)
}

/// The sentences that no draft holds.
fn uncovered(drafts: &[Draft], sentences: usize) -> Vec<usize> {
    let mut covered = vec![false; sentences];
    for sentence in drafts.iter().flat_map(|draft| &draft.sentences) {
        covered[*sentence] = true;
    }
    (0..sentences).filter(|sentence| !covered[*sentence]).collect()
}

/// The most frequent spelling, ties by first position, with plain blanks and no longer than a label can be.
fn surface(text: &str, spans: &[[usize; 2]]) -> String {
    const LONGEST: usize = 200;
    const LOOKED_AT: usize = 64;
    let mut spellings: Vec<(&str, usize)> = Vec::new();
    for [start, end] in spans.iter().take(LOOKED_AT) {
        let spelling = &text[*start..*end];
        match spellings.iter_mut().find(|(known, _)| *known == spelling) {
            Some((_, count)) => *count += 1,
            None => spellings.push((spelling, 1)),
        }
    }
    let mut best = spellings.first().copied().unwrap_or(("", 0));
    for candidate in &spellings {
        if candidate.1 > best.1 {
            best = *candidate;
        }
    }
    let mut label: String = best.0.split_whitespace().collect::<Vec<_>>().join(" ");
    if label.len() > LONGEST {
        let mut cut = LONGEST;
        while !label.is_char_boundary(cut) {
            cut -= 1;
        }
        label.truncate(cut);
        label.push('…');
    }
    label
}
