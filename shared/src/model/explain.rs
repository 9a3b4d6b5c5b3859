//! Why a tag was given: its log-score taken apart, exactly.
//!
//! s = a·ln p(z) + ln σ(b·t) + γ·ln(1/p_ℓ), and t is a sum over words and neighbours. The sum goes through ln σ, so a word's share is
//! the chord's: with t₀ the log-odds of the label before any word is read, each term counts
//! (ln σ(b·t) − ln σ(b·t₀)) / (t − t₀) times itself. The shares then add up to s without a remainder, and a word's sign is its own.
//!
//! Sentences regroup the words by where they stand. Vertices are another question: how the cluster's log-odds change when a
//! keyword is left out of the graph (graph network) or its words out of the text (linear matcher).

use super::matcher::LEFT_OVER;
use super::neighbours;
use super::ranker::ClusterRankers;
use super::score::log_sigmoid;
use super::tagger::{Candidate, Prepared, Tagger};
use crate::api::{Evidence, SentenceEvidence, VertexEvidence, WordEvidence};
use crate::features::words_of_term;
use crate::keygraph::KeyGraph;
use crate::text::Span;

/// Words that are listed one by one.
const LISTED_WORDS: usize = 24;
/// Vertices that are listed.
const LISTED_VERTICES: usize = 24;

/// What the graph network says of a text without each of its vertices: computed once, asked by every tag.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    /// The KeyGraph vertex, and by how much every cluster's logit falls without it.
    falls: Vec<(u32, Vec<f32>)>,
}

impl LeftOut {
    /// Leaves out one vertex after the other; nothing where no graph network looked at the text.
    pub fn of(tagger: &Tagger, prepared: &Prepared) -> Self {
        let (Some(matcher), Some(input)) = (tagger.matcher.graph(), &prepared.graph) else {
            return Self::default();
        };
        let (Ok(whole), Ok(without)) = (matcher.forward(input), matcher.forward_without_each(input)) else {
            return Self::default();
        };
        let falls = without
            .into_iter()
            .zip(input.origin.iter())
            .filter(|&(_, &origin)| origin != LEFT_OVER)
            .map(|(logits, &origin)| {
                let fall = whole.iter().zip(logits).map(|(all, less)| all - less);
                (origin, fall.collect())
            });
        Self {
            falls: falls.collect(),
        }
    }
}

/// The evidence for one candidate.
pub fn evidence(
    tagger: &Tagger,
    prepared: &Prepared,
    left_out: &LeftOut,
    rankers: &ClusterRankers,
    candidate: &Candidate,
) -> Evidence {
    let score = &tagger.score;
    let reading = &prepared.reading;
    let terms = rankers.terms(candidate.position as usize, &reading.words, &prepared.embedding);
    let prior = tagger.labels[candidate.label as usize].log_inverse_propensity;
    let (slope, b) = (score.margin.slope, score.label_exponent);

    let read: f32 = terms.embedding + terms.words.iter().map(|w| w.1).sum::<f32>();
    let t0 = score.margin.log_odds(terms.bias) + score.lift * prior;
    let near = score.neighbours * neighbours::lift(neighbours::vote_of(&prepared.votes, candidate.label));
    let t = t0 + slope * read + near;
    let chord = if (t - t0).abs() > 1e-6 {
        (log_sigmoid(b * t) - log_sigmoid(b * t0)) / (t - t0)
    } else {
        0.0
    };
    let share = chord * slope;

    let mut words: Vec<WordEvidence> = terms
        .words
        .iter()
        .map(|&(nth, weight)| WordEvidence {
            text: words_of_term(tagger.tfidf.term(reading.words.indices[nth])).to_owned(),
            spans: reading
                .spans
                .get(nth)
                .into_iter()
                .flatten()
                .map(|s| [s.start, s.end])
                .collect(),
            weight: share * weight,
        })
        .collect();
    let sentences = by_sentence(reading.keygraph.as_ref(), &words);
    join_leads(&mut words);
    words.sort_by(|a, b| {
        b.weight
            .abs()
            .total_cmp(&a.weight.abs())
            .then_with(|| a.text.cmp(&b.text))
    });
    let other_words = words.iter().skip(LISTED_WORDS).map(|w| w.weight).sum();
    words.truncate(LISTED_WORDS);
    words.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.text.cmp(&b.text)));

    let cluster = score.cluster_exponent * log_sigmoid(prepared.cluster_log_odds[candidate.cluster as usize]);
    let bias = log_sigmoid(b * t0) + score.gamma * prior;
    let embedding = share * terms.embedding;
    let listed: f32 = words.iter().map(|w| w.weight).sum();
    Evidence {
        total: bias + cluster + embedding + chord * near + listed + other_words,
        bias,
        cluster,
        embedding,
        neighbours: chord * near,
        words,
        other_words,
        sentences,
        vertices: by_vertex(tagger, prepared, left_out, candidate.cluster),
    }
}

/// A word and the same word in the lead are one to whoever reads the text.
fn join_leads(words: &mut Vec<WordEvidence>) {
    words.sort_by(|a, b| a.text.cmp(&b.text).then(b.spans.len().cmp(&a.spans.len())));
    words.dedup_by(|lead, word| {
        let same = lead.text == word.text;
        if same {
            word.weight += lead.weight;
        }
        same
    });
}

/// Each word's weight spread evenly over the places where it stands, summed by sentence, strongest first.
fn by_sentence(graph: Option<&KeyGraph>, words: &[WordEvidence]) -> Vec<SentenceEvidence> {
    let Some(graph) = graph else { return Vec::new() };
    let sentences = graph.sentences();
    let mut weights = vec![0.0f32; sentences.len()];
    for word in words {
        let each = word.weight / word.spans.len().max(1) as f32;
        for span in &word.spans {
            let after = sentences.partition_point(|s| s.start <= span[0]);
            if let Some(sentence) = after.checked_sub(1) {
                weights[sentence] += each;
            }
        }
    }
    let mut found: Vec<SentenceEvidence> = (weights.into_iter().enumerate())
        .filter(|(_, weight)| *weight != 0.0)
        .map(|(sentence, weight)| SentenceEvidence { sentence, weight })
        .collect();
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.sentence.cmp(&b.sentence)));
    found
}

/// By how much the cluster's log-odds fall when a vertex is left out, strongest first.
fn by_vertex(tagger: &Tagger, prepared: &Prepared, left_out: &LeftOut, cluster: u32) -> Vec<VertexEvidence> {
    let Some(graph) = &prepared.reading.keygraph else {
        return Vec::new();
    };
    let mut weights = vec![0.0f32; graph.vertices().len()];
    let share = tagger.matcher.graph_share();
    for (vertex, fall) in &left_out.falls {
        if let Some(weight) = weights.get_mut(*vertex as usize) {
            *weight += share * fall[cluster as usize];
        }
    }
    if let Some(linear) = tagger.matcher.linear() {
        let words = &prepared.reading.words;
        for (nth, contribution) in linear.terms(cluster as usize, words, &[]).words {
            let spans = prepared.reading.spans.get(nth).map_or(&[][..], Vec::as_slice);
            let each = (1.0 - share) * contribution / spans.len().max(1) as f32;
            for (vertex, weight) in graph.vertices().iter().zip(&mut weights) {
                *weight += each * spans.iter().filter(|span| holds(&vertex.spans, **span)).count() as f32;
            }
        }
    }
    let mut found: Vec<VertexEvidence> = (weights.into_iter().enumerate())
        .filter(|(_, weight)| *weight != 0.0)
        .map(|(vertex, weight)| VertexEvidence { vertex, weight })
        .collect();
    found.sort_by(|a, b| {
        b.weight
            .abs()
            .total_cmp(&a.weight.abs())
            .then(a.vertex.cmp(&b.vertex))
    });
    found.truncate(LISTED_VERTICES);
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.vertex.cmp(&b.vertex)));
    found
}

fn holds(spans: &[[usize; 2]], word: Span) -> bool {
    spans
        .iter()
        .any(|span| span[0] <= word.start && word.end <= span[1])
}
