//! From label counts to the re-weighted correlation matrix A, row by row, never dense.
//!
//! The steps carry the paper's symbols: N and M count, P conditions, B thresholds, A re-weights. A row of M
//! is gathered from the documents of its label, conditioned and thresholded at once, so M as a whole is
//! never held: memory is that of Y and of the kept entries.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::{ClusterOptions, DocumentLabels, LabelError, SparseRows};

/// Rows a thread takes at a time.
const ROWS_A_TASK: usize = 256;

/// P with every entry below ρ dropped, the counts it came from, and what it cost.
#[derive(Clone, Debug)]
pub struct CorrelationMatrix {
    /// N_i = Σ_n Y_ni: documents of each label.
    pub counts: Vec<u32>,
    /// P_ij = M_ij / N_i for i ≠ j, where P_ij ≥ ρ.
    pub kept: SparseRows,
    /// Label pairs that were counted.
    pub pairs: u64,
    /// What `pairs` can never exceed: `pairs_per_label` for every (document, label) pair.
    pub pair_bound: u64,
    /// Documents with so many labels that their pairs were sampled.
    pub sampled_documents: usize,
}

/// M_i·: how often each other label shares a document with label i, as weights to add up.
///
/// M_ij = Σ_n Y_ni·Y_nj. A document with m labels has m(m−1) ordered pairs; beyond `pairs_per_label` others
/// a label is paired only with the `pairs_per_label` that follow and precede it on a ring of the document's
/// shuffled labels, each weighted (m−1)/pairs. The ring keeps M symmetric, its expectation is the
/// full count, and the work is linear in the non-zeros of Y.
struct RowCounter<'a> {
    documents: &'a DocumentLabels,
    pairs: usize,
    seed: u64,
    weight: Vec<f32>,
    touched: Vec<u32>,
    ring: Vec<(u64, u32)>,
}

impl<'a> RowCounter<'a> {
    fn new(documents: &'a DocumentLabels, options: &ClusterOptions) -> Self {
        Self {
            documents,
            pairs: options.pairs_per_label & !1,
            seed: options.seed,
            weight: vec![0.0; documents.labels()],
            touched: Vec::new(),
            ring: Vec::new(),
        }
    }

    fn add(&mut self, label: u32, weight: f32) {
        let slot = &mut self.weight[label as usize];
        if *slot == 0.0 {
            self.touched.push(label);
        }
        *slot += weight;
    }

    /// Adds the pairs label i has in one document; returns how many.
    fn count_document(&mut self, label: u32, document: usize) -> u64 {
        let documents = self.documents;
        let labels = documents.of(document);
        let others = labels.len() - 1;
        if others <= self.pairs {
            for &other in labels {
                if other != label {
                    self.add(other, 1.0);
                }
            }
            return others as u64;
        }
        let key = mix(self.seed ^ (document as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.ring.clear();
        self.ring
            .extend(labels.iter().map(|&l| (mix(key ^ u64::from(l)), l)));
        self.ring.sort_unstable();
        let here = self.ring.iter().position(|&(_, l)| l == label).unwrap_or(0);
        let weight = others as f32 / self.pairs as f32;
        for step in 1..=self.pairs / 2 {
            let after = self.ring[(here + step) % self.ring.len()].1;
            let before = self.ring[(here + self.ring.len() - step) % self.ring.len()].1;
            self.add(after, weight);
            self.add(before, weight);
        }
        self.pairs as u64
    }

    /// Reads the row out in label order through `keep` and clears it.
    fn drain(&mut self, mut keep: impl FnMut(u32, f32)) {
        self.touched.sort_unstable();
        for &label in &self.touched {
            keep(label, self.weight[label as usize]);
            self.weight[label as usize] = 0.0;
        }
        self.touched.clear();
    }
}

/// A well-mixed function of 64 bits (the finaliser of SplitMix64).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// B's test: P_ij ≥ ρ, where P_ij = M_ij/N_i. At ρ = 0 every pair that was seen stays.
fn conditional(together: f32, alone: u32) -> f32 {
    (together / alone as f32).min(1.0)
}

impl CorrelationMatrix {
    /// Counts N and M over all documents and keeps P_ij ≥ ρ.
    pub fn count(documents: &DocumentLabels, options: &ClusterOptions) -> Result<Self, LabelError> {
        options.check()?;
        let labels = documents.labels();
        let by_label = documents.by_label();
        let counts = by_label.counts();
        let pairs = AtomicU64::new(0);
        let rho = options.rho;
        let blocks: Vec<(Vec<usize>, Vec<u32>, Vec<f32>)> = (0..labels.div_ceil(ROWS_A_TASK))
            .into_par_iter()
            .map_init(
                || RowCounter::new(documents, options),
                |counter, block| {
                    let rows = block * ROWS_A_TASK..labels.min((block + 1) * ROWS_A_TASK);
                    let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
                    let mut counted = 0;
                    for label in rows {
                        for &document in by_label.of(label) {
                            counted += counter.count_document(label as u32, document as usize);
                        }
                        let before = columns.len();
                        counter.drain(|other, together| {
                            let probability = conditional(together, counts[label]);
                            if probability >= rho {
                                columns.push(other);
                                values.push(probability);
                            }
                        });
                        lengths.push(columns.len() - before);
                    }
                    pairs.fetch_add(counted, Ordering::Relaxed);
                    (lengths, columns, values)
                },
            )
            .collect();
        let kept = stack(labels, blocks);
        Ok(Self {
            counts,
            kept,
            pairs: pairs.into_inner(),
            pair_bound: documents.nonzeros() as u64 * options.pairs_per_label as u64,
            sampled_documents: (0..documents.documents())
                .filter(|&n| documents.of(n).len() > options.pairs_per_label + 1)
                .count(),
        })
    }

    /// A: τ/Σ_{j≠i} B_ij off the diagonal, 1 − τ on it; a label with no kept neighbour keeps 1 there.
    pub fn reweight(&self, tau: f32) -> SparseRows {
        let labels = self.counts.len();
        let (mut starts, mut columns, mut values) = (vec![0usize], Vec::new(), Vec::new());
        columns.reserve(self.kept.nnz() + labels);
        values.reserve(self.kept.nnz() + labels);
        for (label, row) in self.kept.outer_iterator().enumerate() {
            let degree = row.nnz();
            let own = if degree == 0 { 1.0 } else { 1.0 - tau };
            let share = tau / degree.max(1) as f32;
            let mut own_is_due = true;
            for &other in row.indices() {
                if own_is_due && other as usize > label {
                    columns.push(label as u32);
                    values.push(own);
                    own_is_due = false;
                }
                columns.push(other);
                values.push(share);
            }
            if own_is_due {
                columns.push(label as u32);
                values.push(own);
            }
            starts.push(columns.len());
        }
        SparseRows::new((labels, labels), starts, columns, values)
    }
}

/// Row blocks under each other.
fn stack(labels: usize, blocks: Vec<(Vec<usize>, Vec<u32>, Vec<f32>)>) -> SparseRows {
    let total = blocks.iter().map(|block| block.1.len()).sum();
    let mut starts = Vec::with_capacity(labels + 1);
    let mut columns = Vec::with_capacity(total);
    let mut values = Vec::with_capacity(total);
    starts.push(0usize);
    for (lengths, block_columns, block_values) in blocks {
        for length in lengths {
            starts.push(starts[starts.len() - 1] + length);
        }
        columns.extend(block_columns);
        values.extend(block_values);
    }
    SparseRows::new((labels, labels), starts, columns, values)
}
