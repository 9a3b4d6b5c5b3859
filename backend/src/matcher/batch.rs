//! Mini-batches, laid out for the network: every document's vertices in one matrix, every sum as a sparse list.

use gnnxml_shared::model::matcher::{GraphInput, MatcherConfig};

/// A sparse matrix by rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Sparse {
    pub(super) offsets: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<f32>,
}

impl Sparse {
    fn new() -> Self {
        Self {
            offsets: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
        }
    }

    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.range(row);
        self.columns[range.clone()]
            .iter()
            .map(|&c| c as usize)
            .zip(self.values[range].iter().copied())
    }

    /// Some rows alone, columns counted from `first_column`.
    fn part(&self, rows: std::ops::Range<usize>, first_column: u32) -> Self {
        let start = self.offsets[rows.start];
        let entries = start as usize..self.offsets[rows.end] as usize;
        Self {
            offsets: self.offsets[rows.start..=rows.end]
                .iter()
                .map(|o| o - start)
                .collect(),
            columns: self.columns[entries.clone()]
                .iter()
                .map(|c| c - first_column)
                .collect(),
            values: self.values[entries].to_vec(),
        }
    }

    /// Adds the transpose of the square block of `of` that starts at row and column `first`; senders come in ascending order.
    fn append_transposed(&mut self, of: &Self, first: usize) {
        let end = of.offsets.len() - 1;
        let base = self.columns.len();
        let mut next = vec![0u32; end - first + 1];
        for &column in &of.columns[of.offsets[first] as usize..] {
            next[column as usize - first + 1] += 1;
        }
        for row in 1..next.len() {
            next[row] += next[row - 1];
            self.offsets.push(base as u32 + next[row]);
        }
        let total = next[end - first] as usize;
        self.columns.resize(base + total, 0);
        self.values.resize(base + total, 0.0);
        for row in first..end {
            for (column, value) in of.row(row) {
                let slot = &mut next[column - first];
                self.columns[base + *slot as usize] = row as u32;
                self.values[base + *slot as usize] = value;
                *slot += 1;
            }
        }
    }

    fn end_row(&mut self) {
        self.offsets.push(self.columns.len() as u32);
    }

    fn push(&mut self, column: u32, value: f32) {
        self.columns.push(column);
        self.values.push(value);
    }
}

/// The documents one branch sees of a shard.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// Number of documents.
    pub(super) documents: usize,
    /// f: what sentences say, a row for every set of sentences that vertices of a document have. Keywords of the same sentences share it.
    pub(super) features: Vec<f32>,
    /// Each vertex's row of `features`, text vertices included.
    pub(super) feature_of: Vec<u32>,
    /// The read-out of `features`: document × row.
    pub(super) feature_readout: Sparse,
    /// Which vertices' messages reach a vertex, and how strongly; its own (1+ε) is not in it.
    pub(super) messages: Sparse,
    /// The same by sender: which vertices a vertex's message reaches. The gradient flows along these.
    pub(super) reached: Sparse,
    /// The words of a vertex: columns are places in [`Batch::words`].
    pub(super) bag: Sparse,
    /// The read-out: document × vertex.
    pub(super) readout: Sparse,
    /// Positive clusters: document × cluster; values are 1.
    pub(super) positives: Sparse,
}

impl Side {
    fn new() -> Self {
        Self {
            documents: 0,
            features: Vec::new(),
            feature_of: Vec::new(),
            feature_readout: Sparse::new(),
            messages: Sparse::new(),
            reached: Sparse::new(),
            bag: Sparse::new(),
            readout: Sparse::new(),
            positives: Sparse::new(),
        }
    }

    /// Number of vertices.
    pub(super) fn rows(&self) -> usize {
        self.messages.offsets.len() - 1
    }

    /// Number of rows of `features`: each has one entry in its read-out.
    pub(super) fn feature_rows(&self) -> usize {
        self.feature_readout.columns.len()
    }

    /// The documents of `range` alone. Every vertex has one entry in the read-out, in order, so a document's entries count its vertices.
    fn part(&self, range: std::ops::Range<usize>) -> Self {
        let rows = self.readout.offsets[range.start] as usize..self.readout.offsets[range.end] as usize;
        let first = rows.start as u32;
        // A document's first vertex has its first row of features.
        let width = self.features.len() / self.feature_rows().max(1);
        let feature =
            |vertex: usize| (self.feature_of.get(vertex)).map_or(self.feature_rows(), |&row| row as usize);
        let features = feature(rows.start)..feature(rows.end);
        let first_feature = features.start as u32;
        Self {
            documents: range.len(),
            features: self.features[features.start * width..features.end * width].to_vec(),
            feature_of: (self.feature_of[rows.clone()].iter())
                .map(|row| row - first_feature)
                .collect(),
            feature_readout: self.feature_readout.part(range.clone(), first_feature),
            messages: self.messages.part(rows.clone(), first),
            reached: self.reached.part(rows.clone(), first),
            bag: self.bag.part(rows, 0),
            readout: self.readout.part(range.clone(), first),
            positives: self.positives.part(range, 0),
        }
    }

    /// Adds a document's features, equal rows once; `factor` is a vertex's part in the read-out.
    fn push_features(&mut self, features: &[f32], width: usize, factor: impl Fn(usize) -> f32) {
        let first = self.feature_rows();
        for (vertex, row) in features.chunks_exact(width).enumerate() {
            let mut of_document = self.features[first * width..].chunks_exact(width);
            let at = if let Some(nth) = of_document.position(|other| other == row) {
                self.feature_readout.values[first + nth] += factor(vertex);
                first + nth
            } else {
                self.features.extend_from_slice(row);
                self.feature_readout
                    .push(self.feature_rows() as u32, factor(vertex));
                self.feature_rows() - 1
            };
            self.feature_of.push(at as u32);
        }
        self.feature_readout.end_row();
    }

    /// Adds a document. `place` gives the place of a vocabulary row in the batch's word list.
    fn push(
        &mut self,
        config: &MatcherConfig,
        graph: &GraphInput<'_>,
        positives: &[u32],
        mut place: impl FnMut(u32) -> u32,
    ) {
        let (n, d) = (graph.vertices, config.width);
        let first = self.rows() as u32;
        let rows = config.rows(n);
        let factor = config.readout_factor(n);
        self.push_features(
            &graph.features[..rows * d],
            d,
            |v| if v < n { factor } else { 1.0 },
        );
        let weights = graph.message_weights(config.edge_weights);
        for v in 0..n {
            for e in graph.offsets[v] as usize..graph.offsets[v + 1] as usize {
                self.messages.push(first + graph.neighbours[e], weights[e]);
            }
            if config.text_vertex {
                self.messages.push(first + n as u32, 1.0);
            }
            self.messages.end_row();
            if config.has_embedding() {
                let range = graph.keyword_offsets[v] as usize..graph.keyword_offsets[v + 1] as usize;
                let share = 1.0 / range.len().max(1) as f32;
                for &word in &graph.keywords[range] {
                    self.bag.push(place(word), share);
                }
            }
            self.bag.end_row();
            self.readout.push(first + v as u32, factor);
        }
        if config.text_vertex {
            for v in 0..n {
                self.messages.push(first + v as u32, factor);
            }
            self.messages.end_row();
            if config.has_embedding() {
                for (&word, &weight) in graph.words.iter().zip(graph.word_weights.iter()) {
                    self.bag.push(place(word), weight);
                }
            }
            self.bag.end_row();
            self.readout.push(first + n as u32, 1.0);
        }
        self.reached.append_transposed(&self.messages, first as usize);
        self.readout.end_row();
        for &cluster in positives {
            self.positives.push(cluster, 1.0);
        }
        self.positives.end_row();
        self.documents += 1;
    }
}

/// A few pairs (c, r) that are worked on together; one side a branch.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    pub(super) sides: Vec<Side>,
}

impl Shard {
    /// Documents to score: both branches see the same, and word places are vocabulary rows.
    pub(super) fn to_score<'g>(config: &MatcherConfig, graphs: impl Iterator<Item = GraphInput<'g>>) -> Self {
        let mut side = Side::new();
        for graph in graphs {
            side.push(config, &graph, &[], |word| word);
        }
        Self {
            sides: vec![side; config.branches()],
        }
    }

    pub(super) fn pairs(&self) -> usize {
        self.sides[0].documents
    }

    /// The pairs of `range` alone.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            sides: self.sides.iter().map(|side| side.part(range.clone())).collect(),
        }
    }
}

/// One optimiser step's documents.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) shards: Vec<Shard>,
    /// The vocabulary rows this batch touches, ascending.
    pub(super) words: Vec<u32>,
    /// For each of `words`, the vertices that hold it: columns count vertices shard by shard, side by side.
    pub(super) holders: Sparse,
}

/// Builds batches; keeps a table of the vocabulary between them.
#[derive(Debug)]
pub(super) struct Assembler<'a> {
    config: &'a MatcherConfig,
    pairs_in_shard: usize,
    place: Vec<u32>,
    seen: Vec<u32>,
}

/// A document for one side of a pair.
pub(super) type Example<'g> = (GraphInput<'g>, &'g [u32]);

impl<'a> Assembler<'a> {
    pub(super) fn new(config: &'a MatcherConfig, pairs_in_shard: usize) -> Self {
        let vocabulary = if config.has_embedding() {
            config.vocabulary
        } else {
            0
        };
        Self {
            config,
            pairs_in_shard: pairs_in_shard.max(1),
            place: vec![u32::MAX; vocabulary],
            seen: Vec::new(),
        }
    }

    /// Lays out pairs; `sides[b][i]` is pair i's document for branch b.
    pub(super) fn assemble(&mut self, sides: &[Vec<Example<'_>>]) -> Batch {
        let pairs = sides[0].len();
        let (place, seen) = (&mut self.place, &mut self.seen);
        let mut shards = Vec::new();
        for start in (0..pairs).step_by(self.pairs_in_shard) {
            let end = pairs.min(start + self.pairs_in_shard);
            let sides = sides.iter().map(|examples| {
                let mut side = Side::new();
                for (graph, positives) in &examples[start..end] {
                    side.push(self.config, graph, positives, |word| {
                        let slot = &mut place[word as usize];
                        if *slot == u32::MAX {
                            *slot = seen.len() as u32;
                            seen.push(word);
                        }
                        *slot
                    });
                }
                side
            });
            shards.push(Shard {
                sides: sides.collect(),
            });
        }
        // Ascending vocabulary rows: gathers and updates walk the table in one direction.
        let mut words = std::mem::take(seen);
        let mut order: Vec<u32> = (0..words.len() as u32).collect();
        order.sort_unstable_by_key(|&i| words[i as usize]);
        let mut rank = vec![0u32; words.len()];
        for (new, &old) in order.iter().enumerate() {
            rank[old as usize] = new as u32;
        }
        for &word in &words {
            place[word as usize] = u32::MAX;
        }
        words.sort_unstable();
        for side in shards.iter_mut().flat_map(|s| &mut s.sides) {
            for column in &mut side.bag.columns {
                *column = rank[*column as usize];
            }
        }
        let holders = holders(&shards, words.len());
        Batch {
            shards,
            words,
            holders,
        }
    }
}

/// The bags of all sides, transposed.
fn holders(shards: &[Shard], words: usize) -> Sparse {
    let sides = || shards.iter().flat_map(|s| &s.sides);
    let mut offsets = vec![0u32; words + 1];
    for side in sides() {
        for &word in &side.bag.columns {
            offsets[word as usize + 1] += 1;
        }
    }
    for w in 0..words {
        offsets[w + 1] += offsets[w];
    }
    let total = offsets[words] as usize;
    let (mut columns, mut values) = (vec![0; total], vec![0.0; total]);
    let mut next = offsets.clone();
    let mut vertex = 0;
    for side in sides() {
        for row in 0..side.rows() {
            for (word, weight) in side.bag.row(row) {
                let slot = &mut next[word];
                columns[*slot as usize] = vertex;
                values[*slot as usize] = weight;
                *slot += 1;
            }
            vertex += 1;
        }
    }
    Sparse {
        offsets,
        columns,
        values,
    }
}
