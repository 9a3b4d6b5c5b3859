//! Label clustering: the whole vocabulary, grouped by meaning and by company kept.
//!
//! From which documents carry which labels, and from label vectors, to K clusters with names, neighbours
//! and a 2-D map. Sparse algebra only; this room never trains a network, never reads a corpus, and never
//! forms a dense L × L matrix. Start reading at [`cluster_labels`], which calls the steps in the paper's
//! order: [`CorrelationMatrix`], [`LabelGraph`], [`low_pass_filter`] (or [`SampledFilter`]), k-means, map.

mod centres;
mod clusters;
mod correlation;
mod error;
mod filter;
pub mod generate;
mod graph;
mod incidence;
mod kmeans;
mod map;
mod names;
mod nmi;
mod options;
mod product;
mod projection;
mod rows;
mod sampled;
mod seeding;
mod store;
mod two_level;
mod vectors;

#[cfg(test)]
mod tests;

pub use clusters::{Cluster, ClusterParts, ClusterReport, LabelClusters};
pub use correlation::CorrelationMatrix;
pub use error::LabelError;
pub use filter::low_pass_filter;
pub use graph::LabelGraph;
pub use incidence::{DocumentLabels, LabelDocuments};
pub use names::LabelTerms;
pub use nmi::normalised_mutual_information;
pub use options::{ClusterOptions, FilterOrder, Partition, Sampling};
pub use rows::{DenseRows, LabelVectors};
pub use sampled::SampledFilter;
pub use vectors::{NameVector, SparseNameVector, label_vectors_dense, label_vectors_sparse};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::collective::{Collective, SingleProcess};
use centres::Centres;
use kmeans::{Clustering, KMeansOptions, mini_batch};
use rows::{RowSource, WeightedRows};
use two_level::two_level;

/// Sparse rows: u32 columns, f32 values.
pub type SparseRows = sprs::CsMatI<f32, u32, usize>;

/// Neighbours kept for each label to be shown.
const NEIGHBOURS_SHOWN: usize = 12;
/// Full passes at most after the mini-batches.
const PASSES: usize = 4;

/// Clusters labels on this machine alone.
///
/// ```
/// use gnnxml_backend::labels::{ClusterOptions, DenseRows, DocumentLabels, LabelVectors, cluster_labels};
/// let documents = DocumentLabels::collect([vec![0, 1], vec![0, 1], vec![2, 3]], 4)?;
/// let vectors = vec![1.0, 0.0, 0.9, 0.1, 0.0, 1.0, 0.1, 0.9];
/// let vectors = LabelVectors::Dense(DenseRows::new(vectors, 2, "label vector")?);
/// let clusters = cluster_labels(&documents, vectors, &ClusterOptions::default())?;
/// assert_eq!(clusters.cluster_of(0), clusters.cluster_of(1));
/// assert_ne!(clusters.cluster_of(0), clusters.cluster_of(2));
/// # Ok::<(), gnnxml_backend::labels::LabelError>(())
/// ```
pub fn cluster_labels(
    documents: &DocumentLabels,
    vectors: LabelVectors,
    options: &ClusterOptions,
) -> Result<LabelClusters, LabelError> {
    cluster_labels_with(documents, vectors, options, &SingleProcess, &mut |_| {})
}

/// Clusters labels with others, telling `on_step` the name of each step as it begins.
pub fn cluster_labels_with(
    documents: &DocumentLabels,
    vectors: LabelVectors,
    options: &ClusterOptions,
    collective: &dyn Collective,
    on_step: &mut dyn FnMut(&'static str),
) -> Result<LabelClusters, LabelError> {
    options.check()?;
    let labels = documents.labels();
    let k = options.clusters(labels)?;
    if vectors.rows() != labels {
        return Err(LabelError::Shape {
            what: "label vectors",
            found: vectors.rows(),
            expected: labels,
        });
    }
    on_step("correlation matrix");
    let correlation = CorrelationMatrix::count(documents, options)?;
    let graph = LabelGraph::from_correlation(&correlation.reweight(options.tau));

    let mut z = match vectors {
        LabelVectors::Dense(rows) => rows,
        LabelVectors::Sparse(sparse) => {
            on_step("projection");
            if let Some(at) = sparse.data().iter().position(|value| !value.is_finite()) {
                return Err(LabelError::NotFinite {
                    what: "sparse label vector entry",
                    row: at,
                    column: sparse.indices()[at] as usize,
                    value: sparse.data()[at],
                });
            }
            projection::project(&sparse, options.projection, options.seed)
        }
    };

    z.normalise();
    if options.centre {
        z.centre();
        z.normalise();
    }
    let weights: Vec<f32> = (correlation.counts.iter())
        .map(|&count| (count.max(1) as f32).powf(-options.rarity))
        .collect();
    let mut run = Run {
        options,
        k,
        weights: Some(&weights),
        collective,
        on_step,
    };
    let (clustering, order, map) = match (options.method, options.sampling) {
        (Partition::Graph, Some(sampling)) => {
            let order = match options.filter_order {
                FilterOrder::Fixed(order) | FilterOrder::Adaptive { max: order } => order,
            };
            let rows = SampledFilter::new(&graph, &z, order, sampling, options.seed).unit_length();
            let clustering = run.k_means(&rows)?;
            let map = run.finish(&rows, &clustering);
            (clustering, order, map)
        }
        (Partition::Graph, None) => {
            let (rows, clustering, order) = run.filtered(&graph, z)?;
            let map = run.finish(&rows, &clustering);
            (clustering, order, map)
        }
        (Partition::KMeans, _) => {
            let clustering = run.k_means(&z)?;
            let map = run.finish(&z, &clustering);
            (clustering, 0, map)
        }
        (Partition::Random, _) => {
            let clustering = random_partition(&z, k, options.seed);
            let map = run.finish(&z, &clustering);
            (clustering, 0, map)
        }
    };
    let report = ClusterReport {
        pairs: correlation.pairs,
        pair_bound: correlation.pair_bound,
        sampled_documents: correlation.sampled_documents,
        graph_entries: graph.nonzeros(),
        isolated_labels: (0..labels).filter(|&label| graph.row(label).0.len() < 2).count(),
        filter_order: order,
        inertia: clustering.inertia(),
    };
    assemble(documents, &correlation, clustering, map, report)
}

/// Sparse label vectors as dense ones: their leading singular directions, at most `width`.
pub fn project_sparse(vectors: &SparseRows, width: usize, seed: u64) -> DenseRows {
    projection::project(vectors, width, seed)
}

/// The k-means of [`cluster_labels`] alone, on any matrix: Σ squared distances to the centres it found.
pub fn k_means_inertia(rows: &DenseRows, k: usize, options: &ClusterOptions) -> Result<f64, LabelError> {
    let mut run = Run {
        options,
        k,
        weights: None,
        collective: &SingleProcess,
        on_step: &mut |_| {},
    };
    Ok(run.k_means(rows)?.inertia())
}

/// What the steps of one run share.
struct Run<'a> {
    options: &'a ClusterOptions,
    k: usize,
    /// What each label counts for its centre; all the same if not given.
    weights: Option<&'a [f32]>,
    collective: &'a dyn Collective,
    on_step: &'a mut dyn FnMut(&'static str),
}

/// How close labels are to their centres, and where everything lies.
struct Finished {
    closeness: Vec<f32>,
    layout: map::MapLayout,
}

impl Run<'_> {
    fn k_means(&mut self, rows: &dyn RowSource) -> Result<Clustering, LabelError> {
        (self.on_step)("k-means");
        let options = KMeansOptions {
            k: self.k,
            batch: self.options.batch,
            epochs: self.options.max_iterations,
            passes: PASSES,
            seed: self.options.seed,
        };
        let weighted = self.weights.map(|weights| WeightedRows { rows, weights });
        let rows = weighted
            .as_ref()
            .map_or(rows, |weighted| weighted as &dyn RowSource);
        if self.k > self.options.flat_limit {
            two_level(rows, options, self.collective)
        } else {
            mini_batch(rows, options, self.collective)
        }
    }

    /// Filters all vectors and clusters them; the adaptive order stops at the first rise of the mean
    /// distance inside the clusters and keeps the order before it.
    fn filtered(
        &mut self,
        graph: &LabelGraph,
        mut z: DenseRows,
    ) -> Result<(DenseRows, Clustering, usize), LabelError> {
        match self.options.filter_order {
            FilterOrder::Fixed(order) => {
                (self.on_step)("low-pass filter");
                low_pass_filter(graph, &mut z, order);
                z.normalise();
                let clustering = self.k_means(&z)?;
                Ok((z, clustering, order))
            }
            FilterOrder::Adaptive { max } => {
                let unit = |z: &DenseRows| {
                    let mut rows = z.clone();
                    rows.normalise();
                    rows
                };
                let mut best = unit(&z);
                let mut clustering = self.k_means(&best)?;
                let mut distance = self.tightness(&z, &clustering);
                for order in 1..=max {
                    (self.on_step)("low-pass filter");
                    low_pass_filter(graph, &mut z, 1);
                    let rows = unit(&z);
                    let next = self.k_means(&rows)?;
                    let next_distance = self.tightness(&z, &next);
                    if next_distance > distance {
                        return Ok((best, clustering, order - 1));
                    }
                    (best, clustering, distance) = (rows, next, next_distance);
                }
                Ok((best, clustering, max))
            }
        }
    }

    /// The distance inside the clusters, of the vectors as the filter left them: before they are scaled.
    fn tightness(&self, z: &DenseRows, clustering: &Clustering) -> f64 {
        filter::intra_cluster_distance(&kmeans::around_means(z, clustering.assignment.clone(), self.k))
    }

    fn finish(&mut self, rows: &dyn RowSource, clustering: &Clustering) -> Finished {
        (self.on_step)("map");
        let closeness = closeness(rows, &clustering.centres, &clustering.assignment);
        let layout = if self.options.map {
            map::lay_out(
                rows,
                &clustering.centres,
                &clustering.assignment,
                &closeness,
                self.options.seed,
            )
        } else {
            map::MapLayout {
                labels: vec![[0.0; 2]; rows.rows()],
                clusters: vec![[0.0; 2]; self.k],
            }
        };
        Finished { closeness, layout }
    }
}

/// Cosine of every row with its centre; 0 where either has no length.
fn closeness(rows: &dyn RowSource, centres: &Centres, assignment: &[u32]) -> Vec<f32> {
    let width = rows.width();
    let mut x = vec![0f32; kmeans::ROWS_A_PASS.min(assignment.len()) * width];
    let mut all = Vec::with_capacity(assignment.len());
    for from in (0..assignment.len()).step_by(kmeans::ROWS_A_PASS) {
        let to = assignment.len().min(from + kmeans::ROWS_A_PASS);
        let which: Vec<u32> = (from as u32..to as u32).collect();
        let x = &mut x[..(to - from) * width];
        rows.gather(&which, x);
        for (x, &cluster) in x.chunks_exact(width).zip(&assignment[from..to]) {
            let centre = centres.centre(cluster as usize);
            let (mut xx, mut cc, mut xc) = (0f32, 0f32, 0f32);
            for (x, c) in x.iter().zip(centre) {
                xx += x * x;
                cc += c * c;
                xc += x * c;
            }
            let lengths = (xx * cc).sqrt();
            all.push(if lengths > 0.0 { xc / lengths } else { 0.0 });
        }
    }
    all
}

/// Labels dealt out like cards: shuffled, then one to each cluster in turn.
fn random_partition(rows: &DenseRows, k: usize, seed: u64) -> Clustering {
    let mut order: Vec<u32> = (0..rows.rows() as u32).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut assignment = vec![0u32; order.len()];
    for (card, &label) in order.iter().enumerate() {
        assignment[label as usize] = (card % k) as u32;
    }
    kmeans::around_means(rows, assignment, k)
}

/// Everything a person will see, from everything that was computed.
fn assemble(
    documents: &DocumentLabels,
    correlation: &CorrelationMatrix,
    clustering: Clustering,
    finished: Finished,
    report: ClusterReport,
) -> Result<LabelClusters, LabelError> {
    let k = clustering.centres.len();
    let mut carried = vec![0u32; k];
    let mut touched = Vec::new();
    for document in 0..documents.documents() {
        touched.clear();
        touched.extend(
            documents
                .of(document)
                .iter()
                .map(|&label| clustering.assignment[label as usize]),
        );
        touched.sort_unstable();
        touched.dedup();
        for &cluster in &touched {
            carried[cluster as usize] += 1;
        }
    }
    let lists: Vec<Vec<(u32, f32)>> = (0..documents.labels())
        .into_par_iter()
        .map(|label| {
            let (columns, values) = graph::row(&correlation.kept, label);
            let mut list: Vec<(u32, f32)> = columns.iter().copied().zip(values.iter().copied()).collect();
            list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            list.truncate(NEIGHBOURS_SHOWN);
            list
        })
        .collect();
    let mut starts = vec![0u64];
    let (mut neighbours, mut probabilities) = (Vec::new(), Vec::new());
    for list in lists {
        for (label, probability) in list {
            neighbours.push(label);
            probabilities.push(probability);
        }
        starts.push(neighbours.len() as u64);
    }
    LabelClusters::new(ClusterParts {
        assignment: clustering.assignment,
        counts: correlation.counts.clone(),
        closeness: finished.closeness,
        names: Vec::new(),
        positions: finished.layout.labels,
        clusters: carried
            .into_iter()
            .zip(finished.layout.clusters)
            .enumerate()
            .map(|(cluster, (documents, position))| Cluster {
                name: format!("cluster {cluster}"),
                terms: Vec::new(),
                documents,
                position,
            })
            .collect(),
        neighbour_starts: starts,
        neighbours,
        probabilities,
        documents: documents.documents() as u32,
        report,
    })
}
