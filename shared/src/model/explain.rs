//! Why a tag was given: its log-score taken apart, exactly.
//!
//! s = a·ln p(z) + ln σ(b·t) + γ·π, and t is a sum over the margin's words, neighbours and the label's name. The sum goes through ln σ, so a
//! term's share is the chord's: with t₀ the log-odds of the label before any word is read, each term counts
//! (ln σ(b·t) − ln σ(b·t₀)) / (t − t₀) times itself; and a word counts by the chord of the margin's curve between the margins without and with the
//! words. Neither curve ever falls, so the shares add up to s without a remainder and a word's sign is its own.
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
/// Sentences that are listed.
const LISTED_SENTENCES: usize = 48;
/// Vertices that are listed.
const LISTED_VERTICES: usize = 24;

/// Explains the tags of one text. What several of them ask is worked out once.
#[derive(Debug)]
pub struct Explainer<'t> {
    tagger: &'t Tagger,
    prepared: &'t Prepared,
    /// Per word of the reading: the vertices it stands in, and how often.
    standing: Vec<Vec<(usize, f32)>>,
    /// The network's logits with each vertex left out, by the vertex; and with none left out.
    without: Vec<(usize, Vec<f32>)>,
    whole: Vec<f32>,
    by_cluster: Vec<(u32, Vec<VertexEvidence>)>,
}

/// A word's part of a label's margin.
struct Share<'t> {
    text: &'t str,
    spans: &'t [Span],
    weight: f32,
}

impl<'t> Explainer<'t> {
    pub fn new(tagger: &'t Tagger, prepared: &'t Prepared) -> Self {
        let (mut without, mut whole) = (Vec::new(), Vec::new());
        if let (Some(matcher), Some(input)) = (tagger.matcher.graph(), &prepared.graph)
            && let (Ok(logits), Ok(each)) = (matcher.forward(input), matcher.forward_without_each(input))
        {
            let of_text = |&(_, origin): &(Vec<f32>, u32)| origin != LEFT_OVER;
            let each = each.into_iter().zip(input.origin.iter().copied());
            without = each
                .filter(of_text)
                .map(|(logits, origin)| (origin as usize, logits))
                .collect();
            whole = logits;
        }
        Self {
            tagger,
            prepared,
            standing: standing(prepared),
            without,
            whole,
            by_cluster: Vec::new(),
        }
    }

    /// The evidence for one candidate.
    pub fn evidence(&mut self, rankers: &ClusterRankers, candidate: &Candidate) -> Evidence {
        let (tagger, prepared) = (self.tagger, self.prepared);
        let score = &tagger.score;
        let reading = &prepared.reading;
        let terms = rankers.terms(candidate.position as usize, &reading.words, &prepared.embedding);
        let prior = tagger.labels[candidate.label as usize].log_inverse_propensity;
        let b = score.label_exponent;

        let read: f32 = terms.embedding + terms.words.iter().map(|w| w.1).sum::<f32>();
        let unread = score.margin.log_odds(terms.bias, prior);
        let learned = score.margin.log_odds(terms.bias + read, prior) - unread;
        let slope = quotient(learned, read);
        let t0 = unread + score.lift * prior;
        let near = score.neighbours.at(prior)
            * neighbours::lift(neighbours::vote_of(&prepared.votes, candidate.label));
        let named = score.names.at(prior) * tagger.name_sign(prepared, candidate.label);
        let t = t0 + learned + near + named;
        let chord = quotient(log_sigmoid(b * t) - log_sigmoid(b * t0), t - t0);
        let share = chord * slope;

        let shares = terms.words.iter().map(|&(nth, weight)| Share {
            text: words_of_term(tagger.tfidf.term(reading.words.indices[nth])),
            spans: reading.spans.get(nth).map_or(&[], Vec::as_slice),
            weight: share * weight,
        });
        let mut shares: Vec<Share<'_>> = shares.collect();
        let sentences = by_sentence(reading.keygraph.as_ref(), &shares);
        join_leads(&mut shares);
        let (words, other_words) = listed(shares);

        let cluster =
            score.cluster_exponent * log_sigmoid(prepared.cluster_log_odds[candidate.cluster as usize]);
        let bias = log_sigmoid(b * t0) + score.gamma * prior;
        let embedding = share * terms.embedding;
        let known: f32 = words.iter().map(|w| w.weight).sum();
        Evidence {
            total: bias + cluster + embedding + chord * (near + named) + known + other_words,
            bias,
            cluster,
            embedding,
            neighbours: chord * near,
            name: chord * named,
            words,
            other_words,
            sentences,
            vertices: self.by_vertex(candidate.cluster),
        }
    }

    /// By how much the cluster's log-odds fall when a vertex is left out, strongest first.
    fn by_vertex(&mut self, cluster: u32) -> Vec<VertexEvidence> {
        let Some(graph) = &self.prepared.reading.keygraph else {
            return Vec::new();
        };
        if let Some((_, known)) = self.by_cluster.iter().find(|(known, _)| *known == cluster) {
            return known.clone();
        }
        let at = cluster as usize;
        let mut weights = vec![0.0f32; graph.vertices().len()];
        let share = self.tagger.matcher.graph_share();
        for (vertex, logits) in &self.without {
            if let Some(weight) = weights.get_mut(*vertex) {
                *weight += share * (self.whole[at] - logits[at]);
            }
        }
        if let Some(linear) = self.tagger.matcher.linear() {
            let reading = &self.prepared.reading;
            for (nth, contribution) in linear.terms(at, &reading.words, &[]).words {
                let places = reading.spans.get(nth).map_or(1, |spans| spans.len().max(1));
                let each = (1.0 - share) * contribution / places as f32;
                for &(vertex, times) in self.standing.get(nth).into_iter().flatten() {
                    weights[vertex] += each * times;
                }
            }
        }
        let found =
            strongest(weights, LISTED_VERTICES).map(|(vertex, weight)| VertexEvidence { vertex, weight });
        let found: Vec<VertexEvidence> = found.collect();
        self.by_cluster.push((cluster, found.clone()));
        found
    }
}

/// The slope of a chord; 0 where it has no length.
fn quotient(rise: f32, run: f32) -> f32 {
    if run.abs() > 1e-6 { rise / run } else { 0.0 }
}

/// Per word, the vertices whose places hold it. Places are short, so a word's lie just before it in their order.
fn standing(prepared: &Prepared) -> Vec<Vec<(usize, f32)>> {
    let reading = &prepared.reading;
    let Some(graph) = &reading.keygraph else {
        return Vec::new();
    };
    let vertices = graph.vertices().iter().enumerate();
    let mut places: Vec<([usize; 2], usize)> = vertices
        .flat_map(|(vertex, drawn)| drawn.spans.iter().map(move |&span| (span, vertex)))
        .collect();
    places.sort_unstable();
    let longest = places
        .iter()
        .map(|([start, end], _)| end - start)
        .max()
        .unwrap_or(0);
    let holding = |word: &Span| {
        let after = places.partition_point(|([start, _], _)| *start <= word.start);
        let near = (places[..after].iter().rev()).take_while(|([start, _], _)| start + longest >= word.end);
        // A vertex counts once for a word, however many of its places hold it.
        let mut vertices: Vec<usize> = near
            .filter(|([_, end], _)| word.end <= *end)
            .map(|&(_, vertex)| vertex)
            .collect();
        vertices.sort_unstable();
        vertices.dedup();
        vertices
    };
    let count = |spans: &Vec<Span>| {
        let mut vertices: Vec<usize> = spans.iter().flat_map(holding).collect();
        vertices.sort_unstable();
        let times = vertices.chunk_by(usize::eq);
        times.map(|same| (same[0], same.len() as f32)).collect()
    };
    reading.spans.iter().map(count).collect()
}

/// A word and the same word in the lead are one to whoever reads the text.
fn join_leads(shares: &mut Vec<Share<'_>>) {
    shares.sort_unstable_by(|a, b| a.text.cmp(b.text).then(b.spans.len().cmp(&a.spans.len())));
    shares.dedup_by(|lead, word| {
        let same = lead.text == word.text;
        if same {
            word.weight += lead.weight;
        }
        same
    });
}

/// The strongest words, and the sum of the others.
fn listed(mut shares: Vec<Share<'_>>) -> (Vec<WordEvidence>, f32) {
    shares.sort_unstable_by(|a, b| {
        b.weight
            .abs()
            .total_cmp(&a.weight.abs())
            .then_with(|| a.text.cmp(b.text))
    });
    // A sum of nothing would be −0, and print so.
    let others = (shares.iter().skip(LISTED_WORDS)).fold(0.0, |sum, share| sum + share.weight);
    shares.truncate(LISTED_WORDS);
    shares.sort_unstable_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.text.cmp(b.text)));
    let words = shares.iter().map(|share| WordEvidence {
        text: share.text.to_owned(),
        spans: share.spans.iter().map(|span| [span.start, span.end]).collect(),
        weight: share.weight,
    });
    (words.collect(), others)
}

/// Each word's weight spread evenly over the places where it stands, summed by sentence, strongest first.
fn by_sentence(graph: Option<&KeyGraph>, words: &[Share<'_>]) -> Vec<SentenceEvidence> {
    let Some(graph) = graph else { return Vec::new() };
    let sentences = graph.sentences();
    let mut weights = vec![0.0f32; sentences.len()];
    for word in words {
        let each = word.weight / word.spans.len().max(1) as f32;
        for span in word.spans {
            let after = sentences.partition_point(|s| s.start <= span.start);
            if let Some(sentence) = after.checked_sub(1) {
                weights[sentence] += each;
            }
        }
    }
    let found = strongest(weights, LISTED_SENTENCES);
    found
        .map(|(sentence, weight)| SentenceEvidence { sentence, weight })
        .collect()
}

/// The `most` weights furthest from nought with their places, largest first.
fn strongest(weights: Vec<f32>, most: usize) -> impl Iterator<Item = (usize, f32)> {
    let weights = weights.into_iter().enumerate();
    let mut found: Vec<(usize, f32)> = weights.filter(|(_, weight)| *weight != 0.0).collect();
    found.sort_unstable_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    found.truncate(most);
    found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.into_iter()
}
