//! Rankers of clusters, coded against what the page knows before they come.
//!
//! A label's classifier has weights for the words of its own training documents, most of them positive, and for some common words of
//! others, most of them negative. The core of a bundle has the documents' strongest words for the neighbours' vote ([`Hints`]), so a
//! word's presence, sign and size are coded given
//!
//! ```text
//! S_w    = Σ weight of w in the remembered documents of the label           in half octaves
//! label    words with S_w > 0, largest class first, as gaps;  then the others, commonest first, as gaps
//! weight   sign and ⌊(|w| − start) / step⌋, given S_w and the number of the label's weights
//! ```
//!
//! which takes a third of the bits off. The same works without documents, as for the linear matcher: all S_w are 0 then.
//! Weights are steps of one size, because it is the absolute error of a margin that a probability feels, and come back at the mean place of
//! weights in their step, so that errors of many words cancel.

use super::BundleError;
use super::entropy::{Decoder, Encoder, Tables};
use super::matrix::{Bits, read_table, write_table};
use super::wire::{Reader, Writer};
use crate::features::TfIdf;
use crate::model::encoder::VectorTable;
use crate::model::neighbours::Remembered;
use crate::model::ranker::ClusterRankers;

const RANKERS: [u8; 4] = *b"RNKS";
const CODES: [u8; 4] = *b"CODE";

/// Classes of S_w > 0: half octaves, from 1/16.
const SUMS: usize = 12;
const FIRST_SUM: usize = 8;
/// Classes of (rarity of a word) − (number of a label's weights), an octave each.
const DENSITIES: usize = 24;
/// Classes of S_w and of label sizes that weights are told apart by.
const WEIGHT_SUMS: usize = 1 + SUMS / 2;
const SIZES: usize = 6;
/// Kinds of numbers: weights of known and of other words, gaps, weights.
const KNOWN: usize = 0;
const OTHERS: usize = 1;
const KNOWN_GAPS: usize = 2;
const OTHER_GAPS: usize = KNOWN_GAPS + SUMS;
const WEIGHTS: usize = OTHER_GAPS + DENSITIES;
const KINDS: usize = WEIGHTS + WEIGHT_SUMS * SIZES;

/// Weights that a byte of a part may unfold to at most.
const WEIGHTS_A_BYTE: usize = 8;

/// What rankers are coded against. Both sides make it from the same bytes.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    /// Terms, commonest first.
    order: Vec<u32>,
    /// Place of each term in `order`.
    places: Vec<u32>,
    /// Half octaves by which the term at a place is rarer than the commonest.
    rarity: Vec<u8>,
    /// Where each document's words begin, and where the last one's end.
    word_offsets: Vec<u32>,
    /// Place of a word, its weight in 256ths.
    words: Vec<(u32, u32)>,
    /// Where each label's documents begin, and where the last one's end.
    label_offsets: Vec<u32>,
    documents: Vec<u32>,
}

/// Twice the logarithm to base two, rounded down to 0, 1.17, 2, 3.17 …
fn half_octaves(number: u32) -> usize {
    let number = number.max(1);
    let octaves = number.ilog2();
    let upper = octaves > 0 && number >> (octaves - 1) & 1 == 1;
    2 * octaves as usize + usize::from(upper)
}

impl Hints {
    /// For a vocabulary and documents of labels below `labels`; what lies beyond either is passed over.
    pub(super) fn new(tfidf: &TfIdf, documents: &[Remembered], labels: usize) -> Self {
        let idf = tfidf.idf();
        let mut order: Vec<u32> = (0..idf.len() as u32).collect();
        order.sort_by(|&a, &b| idf[a as usize].total_cmp(&idf[b as usize]));
        let mut places = vec![0; order.len()];
        for (place, &term) in order.iter().enumerate() {
            places[term as usize] = place as u32;
        }
        let least = order.first().map_or(0.0, |&term| idf[term as usize]);
        let rarity =
            |&term: &u32| ((idf[term as usize] - least) * 2.0 / std::f32::consts::LN_2).round() as u8;
        let rarity = order.iter().map(rarity).collect();
        let (mut word_offsets, mut words) = (vec![0], Vec::new());
        let mut label_offsets = vec![0_u32; labels + 1];
        for document in documents {
            let known = document
                .words
                .iter()
                .filter(|word| (word.0 as usize) < places.len());
            words.extend(known.map(|(term, weight)| {
                (
                    places[term as usize],
                    ((weight * 256.0).round() as u32).clamp(1, 256),
                )
            }));
            word_offsets.push(words.len() as u32);
            for &label in document.labels.iter().filter(|label| (**label as usize) < labels) {
                label_offsets[label as usize + 1] += 1;
            }
        }
        for label in 0..labels {
            label_offsets[label + 1] += label_offsets[label];
        }
        let mut next = label_offsets.clone();
        let mut of_labels = vec![0; label_offsets[labels] as usize];
        for (number, document) in documents.iter().enumerate() {
            for &label in document.labels.iter().filter(|label| (**label as usize) < labels) {
                of_labels[next[label as usize] as usize] = number as u32;
                next[label as usize] += 1;
            }
        }
        Self {
            order,
            places,
            rarity,
            word_offsets,
            words,
            label_offsets,
            documents: of_labels,
        }
    }

    fn documents_of(&self, label: u32) -> &[u32] {
        let label = label as usize;
        &self.documents[self.label_offsets[label] as usize..self.label_offsets[label + 1] as usize]
    }

    fn words_of(&self, document: u32) -> &[(u32, u32)] {
        let document = document as usize;
        &self.words[self.word_offsets[document] as usize..self.word_offsets[document + 1] as usize]
    }

    /// The kind of a gap that begins at this place, for a label with so many weights of other words.
    fn other_gap(&self, place: u32, size: usize) -> usize {
        let rarity = self.rarity.get(place as usize).or(self.rarity.last());
        let sparse = rarity.map_or(0, |rarity| usize::from(*rarity)) + 2 * DENSITIES;
        OTHER_GAPS
            + (sparse.saturating_sub(half_octaves(size as u32)) / 2)
                .saturating_sub(DENSITIES / 2)
                .min(DENSITIES - 1)
    }
}

/// S_w of one label after another, over places.
#[derive(Debug)]
struct Sums {
    sums: Vec<u32>,
    /// Places of the words with S_w > 0, as the documents name them.
    met: Vec<u32>,
    /// The same with the class of S_w, largest first: the order they are coded in.
    known: Vec<(u8, u32)>,
}

impl Sums {
    fn new(hints: &Hints) -> Self {
        Self {
            sums: vec![0; hints.order.len()],
            met: Vec::new(),
            known: Vec::new(),
        }
    }

    fn of(&mut self, hints: &Hints, label: u32) -> &[(u8, u32)] {
        self.met.clear();
        for &document in hints.documents_of(label) {
            for &(place, weight) in hints.words_of(document) {
                let sum = &mut self.sums[place as usize];
                if *sum == 0 {
                    self.met.push(place);
                }
                *sum = sum.saturating_add(weight);
            }
        }
        // Counted into their classes: sorting would take longer than all the rest.
        let mut next = [0_usize; SUMS];
        for &place in &self.met {
            let sum = &mut self.sums[place as usize];
            *sum = (SUMS - 1 - half_octaves(*sum).saturating_sub(FIRST_SUM).min(SUMS - 1)) as u32;
            next[*sum as usize] += 1;
        }
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        self.known.resize(self.met.len(), (0, 0));
        for &place in &self.met {
            let class = std::mem::take(&mut self.sums[place as usize]);
            self.known[next[class as usize]] = (class as u8, place);
            next[class as usize] += 1;
        }
        &self.known
    }
}

/// The kind of a known word's weight; `None`: of another word's.
fn weight_kind(class: Option<u8>, size: usize) -> usize {
    let sum = class.map_or(0, |class| 1 + usize::from(class) / 2);
    let size = (size.max(8).ilog2() as usize - 3) / 2;
    WEIGHTS + sum * SIZES + size.min(SIZES - 1)
}

/// The rankers of one part on their way into it: all that is known before the tables are.
#[derive(Debug)]
pub(super) struct Coded {
    head: Writer,
    encoder: Encoder,
    weights: usize,
}

impl Coded {
    /// Rounds to steps; what is less than half of one is left out.
    pub(super) fn new(hints: &Hints, clusters: &[&ClusterRankers], step: f32, bits: Bits) -> Self {
        let labels: Vec<_> = clusters.iter().map(|cluster| cluster.to_labels()).collect();
        let heard = |word: &&(u32, f32)| word.1.abs() >= step / 2.0;
        let sizes = labels
            .iter()
            .flatten()
            .flat_map(|ranker| ranker.words.iter().filter(heard));
        let sizes = sizes.map(|word| word.1.abs());
        let weights = sizes.clone().count();
        // Steps begin at the smallest weight: training cuts off below it, and a step across the cut would shift all of its weights one way.
        let start = sizes.clone().reduce(f32::min).unwrap_or(0.0);
        let steps = |weight: f32| ((weight.abs() - start) / step) as u32;
        let rests = sizes.map(|size| f64::from((size - start) / step).fract());
        let centre = (rests.sum::<f64>() / weights.max(1) as f64) as f32;
        let mut head = Writer::new(RANKERS);
        head.f32s(&[step, start, centre]);
        head.count(weights);
        head.count(clusters.len());
        let mut encoder = Encoder::default();
        let mut sums = Sums::new(hints);
        let mut class_at = vec![None; hints.order.len()];
        for (cluster, rankers) in clusters.iter().zip(labels) {
            head.ascending(cluster.labels());
            head.f32s(&rankers.iter().map(|ranker| ranker.bias).collect::<Vec<_>>());
            head.count(cluster.dims());
            if cluster.dims() > 0 {
                let rows: Vec<f32> = rankers
                    .iter()
                    .flat_map(|ranker| ranker.embedding.iter().copied())
                    .collect();
                let table = VectorTable::quantise(&rows, cluster.dims()).expect("trained weights are finite");
                write_table(&mut head, &table, bits);
            }
            for ranker in rankers {
                let known = sums.of(hints, ranker.label);
                for (at, &(class, place)) in known.iter().enumerate() {
                    class_at[place as usize] = Some((class, at as u32));
                }
                let words = ranker.words.iter().filter(heard);
                let words = words.map(|&(term, weight)| (hints.places[term as usize], weight));
                let (mut inside, mut outside): (Vec<_>, Vec<_>) =
                    words.partition(|word| class_at[word.0 as usize].is_some());
                inside.sort_unstable_by_key(|word| class_at[word.0 as usize]);
                outside.sort_unstable_by_key(|word| word.0);
                encoder.number(KNOWN, inside.len() as u32);
                encoder.number(OTHERS, outside.len() as u32);
                let size = inside.len() + outside.len();
                let mut next = 0;
                for (place, weight) in inside {
                    let (class, at) = class_at[place as usize].expect("it is inside");
                    encoder.number(KNOWN_GAPS + usize::from(known[next as usize].0), at - next);
                    encoder.signed(weight_kind(Some(class), size), steps(weight), weight < 0.0);
                    next = at + 1;
                }
                next = 0;
                let others = outside.len();
                for (place, weight) in outside {
                    encoder.number(hints.other_gap(next, others), place - next);
                    encoder.signed(weight_kind(None, size), steps(weight), weight < 0.0);
                    next = place + 1;
                }
                for &(_, place) in known {
                    class_at[place as usize] = None;
                }
            }
        }
        Self {
            head,
            encoder,
            weights,
        }
    }

    /// The tables that suit all these parts best.
    pub(super) fn tables<'c>(parts: impl IntoIterator<Item = &'c Self>) -> Tables {
        Tables::of(KINDS, parts.into_iter().map(|part| &part.encoder))
    }

    /// The part, for a reader that has the tables.
    pub(super) fn finish(mut self, tables: &Tables) -> Vec<u8> {
        self.encoder.write(tables, &mut self.head);
        // So that a reader may hold a part to what its bytes can bring; numbers never cost that little.
        self.head.fill(self.weights.div_ceil(WEIGHTS_A_BYTE));
        self.head.finish()
    }
}

/// The tables of all shards.
pub(super) fn write_tables(tables: &Tables) -> Vec<u8> {
    let mut part = Writer::new(CODES);
    tables.write(&mut part);
    part.finish()
}

pub(super) fn read_tables(name: &str, bytes: &[u8]) -> Result<Tables, BundleError> {
    let mut part = Reader::new(name, bytes, CODES)?;
    let tables = Tables::read(&mut part, KINDS)?;
    part.finish()?;
    Ok(tables)
}

/// Rankers of labels below `labels`, each `free` to stand in this part.
pub(super) fn read_rankers(
    name: &str,
    bytes: &[u8],
    hints: &Hints,
    tables: &Tables,
    labels: usize,
    free: impl Fn(u32) -> bool,
) -> Result<Vec<ClusterRankers>, BundleError> {
    let mut part = Reader::new(name, bytes, RANKERS)?;
    let scale = part.f32s("step of the weights")?;
    let &[step, start, centre] = scale.as_slice() else {
        return Err(part.bad("step of the weights", scale.len(), "step, start and centre"));
    };
    if !(step > 0.0 && start >= 0.0 && (0.0..=1.0).contains(&centre)) {
        let found = format!("{step} from {start}, centre {centre}");
        return Err(part.bad(
            "step of the weights",
            found,
            "a positive step, a start from 0, a centre from 0 to 1",
        ));
    }
    let weights = part.varint("weights")?;
    if weights > (WEIGHTS_A_BYTE * bytes.len()) as u64 {
        return Err(part.bad("weights", weights, &format!("at most {WEIGHTS_A_BYTE} a byte")));
    }
    let mut left = weights as usize;
    let count = part.count(3, "clusters")?;
    // Shapes first, all numbers behind them.
    let mut clusters = Vec::with_capacity(count);
    for _ in 0..count {
        let members = part.ascending(u32::try_from(labels).unwrap_or(u32::MAX), "labels of a cluster")?;
        let bias = part.f32s("biases")?;
        if bias.len() != members.len() {
            return Err(part.bad("biases", bias.len(), &members.len().to_string()));
        }
        let dims = part.varint("embedding width")?;
        let embedding = if dims > 0 {
            let table = read_table(&mut part)?;
            if table.dims() as u64 != dims || table.rows() != members.len() {
                let found = format!("{} rows of {}", table.rows(), table.dims());
                return Err(part.bad(
                    "embedding weights",
                    found,
                    &format!("{} rows of {dims}", members.len()),
                ));
            }
            table.to_floats()
        } else {
            Vec::new()
        };
        clusters.push((members, bias, embedding, dims as usize));
    }
    // The words of a label's documents are gathered each time it stands somewhere: once is enough.
    let mut standing: Vec<u32> = clusters.iter().flat_map(|cluster| &cluster.0).copied().collect();
    standing.sort_unstable();
    let twice = standing
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0]);
    if let Some(label) = twice.or_else(|| standing.into_iter().find(|&label| !free(label))) {
        return Err(part.bad("label", label, "one that stands in no other cluster"));
    }
    let mut decoder = Decoder::new(&mut part, tables)?;
    let mut sums = Sums::new(hints);
    let mut read = Vec::with_capacity(count);
    let terms = hints.order.len();
    for (members, bias, embedding, dims) in clusters {
        let mut entries = Vec::new();
        for (position, &label) in members.iter().enumerate() {
            let (inside, outside) = (decoder.number(KNOWN) as usize, decoder.number(OTHERS) as usize);
            let size = inside.saturating_add(outside);
            if size > left {
                return Err(part.bad(
                    "weights of a label",
                    size,
                    &format!("{left}, as many as are left"),
                ));
            }
            left -= size;
            let mut weight = |decoder: &mut Decoder<'_>, kind: usize, place: u32| {
                let (steps, negative) = decoder.signed(kind);
                let weight = start + (steps as f32 + centre) * step;
                let weight = if negative { -weight } else { weight };
                entries.push((hints.order[place as usize], (position as u32, weight)));
            };
            if inside > 0 {
                let known = sums.of(hints, label);
                let mut next = 0_usize;
                for _ in 0..inside {
                    let gap =
                        (known.get(next)).map(|known| decoder.number(KNOWN_GAPS + usize::from(known.0)));
                    let at = gap.and_then(|gap| next.checked_add(gap as usize));
                    let Some((at, &(class, place))) = at.and_then(|at| Some((at, known.get(at)?))) else {
                        return Err(part.bad("known word", "one beyond the last", &known.len().to_string()));
                    };
                    next = at + 1;
                    weight(&mut decoder, weight_kind(Some(class), size), place);
                }
            }
            let mut next = 0_u32;
            for _ in 0..outside {
                let place = next.saturating_add(decoder.number(hints.other_gap(next, outside)));
                if place as usize >= terms {
                    return Err(part.bad("word", place, &format!("below {terms}")));
                }
                next = place + 1;
                weight(&mut decoder, weight_kind(None, size), place);
            }
        }
        if entries.iter().any(|(_, (_, weight))| !weight.is_finite()) {
            return Err(part.bad("weight", "one that is not finite", "finite numbers"));
        }
        read.push(ClusterRankers::from_entries(
            members, bias, entries, embedding, dims,
        ));
    }
    decoder.finish(&part)?;
    if left > 0 {
        return Err(part.bad("weights", weights, &(weights as usize - left).to_string()));
    }
    part.fill()?;
    part.finish()?;
    Ok(read)
}
