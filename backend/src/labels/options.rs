//! The knobs of label clustering, and what each may be.

use serde::{Deserialize, Serialize};

use super::LabelError;

/// How often the low-pass filter is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterOrder {
    /// Exactly k times; 0 leaves the vectors as they are.
    Fixed(usize),
    /// One more time until the mean distance inside the clusters rises, at most `max` times.
    Adaptive { max: usize },
}

/// How labels are cut into clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partition {
    /// Mini-batch k-means on the graph-filtered vectors: the paper's way.
    Graph,
    /// The same k-means on the unfiltered vectors: for the ablation.
    KMeans,
    /// A random balanced partition: for the ablation.
    Random,
}

/// Bounds of the sampled filter for very large vocabularies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// B: labels filtered at a time.
    pub batch: usize,
    /// S: neighbours sampled for a batch in each of the k filter steps.
    pub samples: usize,
}

/// Everything that decides a label partition besides the data.
///
/// ```
/// use gnnxml_backend::labels::ClusterOptions;
/// let options = ClusterOptions { k: Some(12), ..ClusterOptions::default() };
/// assert_eq!((options.rho, options.tau), (0.2, 0.4));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterOptions {
    /// K; by default ⌊L/60⌋, at least 2 (and never more than there are labels).
    pub k: Option<usize>,
    /// ρ: a neighbour is kept when P(neighbour | label) ≥ ρ.
    pub rho: f32,
    /// τ: the weight a label gives its neighbours together; 1 − τ stays on itself.
    pub tau: f32,
    pub filter_order: FilterOrder,
    /// Whether the mean is taken off the label vectors: clusters become more even, and documents belong to more of them.
    pub centre: bool,
    /// A label of n documents counts n^−rarity for its cluster's centre; 0 counts all the same. Above 0 frequent labels join
    /// the rarer ones they occur with instead of having clusters of their own.
    pub rarity: f32,
    pub method: Partition,
    pub seed: u64,
    /// Labels a mini-batch of the k-means.
    pub batch: usize,
    /// Mini-batches at most, in epochs over the labels.
    pub max_iterations: usize,
    /// Above this K the k-means works in two levels, coarse then fine.
    pub flat_limit: usize,
    /// In a document with more labels, each is paired with only this many others.
    pub pairs_per_label: usize,
    /// Width sparse label vectors are projected to before filtering.
    pub projection: usize,
    /// Filter by sampled neighbours instead of the whole graph.
    pub sampling: Option<Sampling>,
    /// Whether to lay out the 2-D map.
    pub map: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            k: None,
            rho: 0.2,
            tau: 0.4,
            filter_order: FilterOrder::Fixed(3),
            centre: true,
            rarity: 0.0,
            method: Partition::Graph,
            seed: 0,
            batch: 1024,
            max_iterations: 20,
            flat_limit: 1024,
            pairs_per_label: 128,
            projection: 128,
            sampling: None,
            map: true,
        }
    }
}

impl ClusterOptions {
    /// Labels a cluster holds on average when K is not given. The paper is silent; large enough to give
    /// most clusters over 100 training documents, small enough for a ranker shard.
    pub const LABELS_PER_CLUSTER: usize = 60;

    /// Checks every option that does not depend on the data.
    pub fn check(&self) -> Result<(), LabelError> {
        let wrong = |option, found: String, expected| {
            Err(LabelError::Option {
                option,
                found,
                expected,
            })
        };
        if !(0.0..=1.0).contains(&self.rho) {
            return wrong("rho", self.rho.to_string(), "a share from 0 to 1");
        }
        if !(0.0..=1.0).contains(&self.tau) {
            return wrong("tau", self.tau.to_string(), "a share from 0 to 1");
        }
        if !(0.0..=2.0).contains(&self.rarity) {
            return wrong("rarity", self.rarity.to_string(), "a power from 0 to 2");
        }
        if self.k == Some(0) {
            return wrong("k", "0".into(), "at least 1 cluster");
        }
        if self.batch == 0 {
            return wrong("batch", "0".into(), "at least 1 label");
        }
        if self.max_iterations == 0 {
            return wrong("max_iterations", "0".into(), "at least 1");
        }
        if self.flat_limit < 2 {
            return wrong("flat_limit", self.flat_limit.to_string(), "at least 2 clusters");
        }
        if self.pairs_per_label < 2 {
            return wrong("pairs_per_label", self.pairs_per_label.to_string(), "at least 2");
        }
        if self.projection == 0 {
            return wrong("projection", "0".into(), "at least 1 column");
        }
        let orders = match self.filter_order {
            FilterOrder::Fixed(k) | FilterOrder::Adaptive { max: k } => k,
        };
        if orders > 100 {
            return wrong("filter_order", orders.to_string(), "at most 100 filter steps");
        }
        if let Some(Sampling { batch, samples }) = self.sampling
            && (batch == 0 || samples == 0)
        {
            return wrong(
                "sampling",
                format!("batch {batch}, samples {samples}"),
                "at least 1 each",
            );
        }
        Ok(())
    }

    /// K for `labels` labels.
    pub fn clusters(&self, labels: usize) -> Result<usize, LabelError> {
        match self.k {
            _ if labels == 0 => Err(LabelError::NoLabels),
            Some(k) if k > labels => Err(LabelError::TooManyClusters { clusters: k, labels }),
            Some(k) => Ok(k),
            None => Ok((labels / Self::LABELS_PER_CLUSTER).max(2).min(labels)),
        }
    }
}
