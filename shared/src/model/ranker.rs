//! The labels of one cluster and their linear classifiers, laid out for scoring one document at a time.

use serde::{Deserialize, Serialize};

use crate::features::SparseVector;

/// One label's classifier as training leaves it: m(x) = bias + Σ words·x + embedding·e.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelRanker {
    /// The label's number in the model.
    pub label: u32,
    pub bias: f32,
    /// Feature and weight, features ascending.
    pub words: Vec<(u32, f32)>,
    /// One weight a dimension of the document vector; empty when the model ranks by words alone.
    pub embedding: Vec<f32>,
}

/// The classifiers of a cluster, transposed: feature → (label, weight).
///
/// A law has some 200 different words, a cluster's sixty labels know some thousands. Feature-major, a document touches
/// only the weights it needs: one binary search a word and a run of additions a hit, instead of sixty sparse products.
///
/// ```
/// use gnnxml_shared::features::SparseVector;
/// use gnnxml_shared::model::ranker::{ClusterRankers, LabelRanker};
/// let rankers = ClusterRankers::new(
///     vec![
///         LabelRanker { label: 4, bias: -1.0, words: vec![(0, 2.0), (7, 1.0)], embedding: vec![] },
///         LabelRanker { label: 9, bias: 0.5, words: vec![(7, -1.0)], embedding: vec![] },
///     ],
///     0,
/// );
/// let words = SparseVector { indices: vec![3, 7], values: vec![1.0, 0.5] };
/// assert_eq!(rankers.margins(&words, &[]), [-0.5, 0.0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRankers {
    labels: Vec<u32>,
    bias: Vec<f32>,
    /// Features with at least one weight, ascending.
    features: Vec<u32>,
    /// Where each feature's entries begin; one more than features.
    offsets: Vec<u32>,
    /// Position in `labels`, then weight.
    entries: Vec<(u32, f32)>,
    /// labels × dims, row-major.
    embedding: Vec<f32>,
    dims: usize,
}

/// With fewer weights than one in so many features, weights are sorted instead of counted into their places.
const SPARSEST: usize = 16;

impl ClusterRankers {
    /// Transposes `rankers`; every embedding must have `dims` numbers (a shorter one is read as zeros beyond its end).
    pub fn new(rankers: Vec<LabelRanker>, dims: usize) -> Self {
        let mut embeddings = Vec::with_capacity(rankers.len() * dims);
        for ranker in &rankers {
            let embedding = ranker.embedding.iter().copied();
            embeddings.extend(embedding.chain(std::iter::repeat(0.0)).take(dims));
        }
        let positions = rankers.iter().zip(0_u32..);
        let entries = positions
            .flat_map(|(ranker, position)| ranker.words.iter().map(move |&(f, w)| (f, (position, w))));
        let entries = entries.collect();
        let (labels, bias) = rankers.iter().map(|ranker| (ranker.label, ranker.bias)).unzip();
        Self::from_entries(labels, bias, entries, embeddings, dims)
    }

    /// The same from what lies together already: `entries` are feature, position of the label and weight, label after label; `embedding` is
    /// labels × dims, row-major.
    pub(crate) fn from_entries(
        labels: Vec<u32>,
        bias: Vec<f32>,
        entries: Vec<(u32, (u32, f32))>,
        embedding: Vec<f32>,
        dims: usize,
    ) -> Self {
        let mut made = Self {
            labels,
            bias,
            embedding,
            dims,
            ..Self::default()
        };
        let last = entries.iter().map(|(feature, _)| *feature as usize + 1).max();
        let width = last.unwrap_or(0);
        if width <= SPARSEST * entries.len() {
            made.count_in(&entries, width);
        } else {
            made.sort_in(entries);
        }
        made
    }

    /// Takes entries in feature by feature, in the order of their labels: counted, then put in their places.
    fn count_in(&mut self, words: &[(u32, (u32, f32))], width: usize) {
        let mut next = vec![0_u32; width];
        for (feature, _) in words {
            next[*feature as usize] += 1;
        }
        let mut total = 0;
        for (feature, count) in next.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            self.features.push(feature as u32);
            self.offsets.push(total);
            (*count, total) = (total, total + *count);
        }
        self.offsets.push(total);
        self.entries = vec![(0, 0.0); total as usize];
        for (feature, entry) in words {
            let place = &mut next[*feature as usize];
            self.entries[*place as usize] = *entry;
            *place += 1;
        }
    }

    /// The same where features are too far apart to count through them.
    fn sort_in(&mut self, mut words: Vec<(u32, (u32, f32))>) {
        words.sort_unstable_by_key(|&(feature, (position, _))| (feature, position));
        for (feature, entry) in words {
            if self.features.last() != Some(&feature) {
                self.features.push(feature);
                self.offsets.push(self.entries.len() as u32);
            }
            self.entries.push(entry);
        }
        self.offsets.push(self.entries.len() as u32);
    }

    /// The labels, ascending; a position in this list is a label's position in [`Self::margins`].
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Width of the document vector these rankers expect; 0 when they rank by words alone.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Number of stored word weights.
    pub fn weight_count(&self) -> usize {
        self.entries.len()
    }

    /// m_ℓ(x) of every label. `embedding` has [`Self::dims`] numbers.
    pub fn margins(&self, words: &SparseVector, embedding: &[f32]) -> Vec<f32> {
        let mut margins = self.bias.clone();
        if self.dims > 0 {
            for (margin, weights) in margins.iter_mut().zip(self.embedding.chunks_exact(self.dims)) {
                *margin += dot(weights, embedding);
            }
        }
        let mut from = 0;
        for (feature, value) in words.iter() {
            from += self.features[from..].partition_point(|&f| f < feature);
            if from == self.features.len() {
                break;
            }
            if self.features[from] == feature {
                for &(position, weight) in self.entries_at(from) {
                    margins[position as usize] += weight * value;
                }
            }
        }
        margins
    }

    /// What one label's margin is made of.
    pub fn terms(&self, position: usize, words: &SparseVector, embedding: &[f32]) -> MarginTerms {
        let mut terms = MarginTerms {
            bias: self.bias[position],
            ..MarginTerms::default()
        };
        if self.dims > 0 {
            let weights = &self.embedding[position * self.dims..(position + 1) * self.dims];
            terms.embedding = dot(weights, embedding);
        }
        for (nth, (feature, value)) in words.iter().enumerate() {
            if let Ok(at) = self.features.binary_search(&feature) {
                let entries = self.entries_at(at);
                if let Ok(found) = entries.binary_search_by_key(&(position as u32), |e| e.0) {
                    terms.words.push((nth, entries[found].1 * value));
                }
            }
        }
        terms
    }

    /// The classifiers as training left them, in the order of [`Self::labels`].
    pub fn to_labels(&self) -> Vec<LabelRanker> {
        let mut rankers: Vec<LabelRanker> = (self.labels.iter().zip(&self.bias).enumerate())
            .map(|(position, (&label, &bias))| LabelRanker {
                label,
                bias,
                words: Vec::new(),
                embedding: self.embedding[position * self.dims..(position + 1) * self.dims].to_vec(),
            })
            .collect();
        for (at, &feature) in self.features.iter().enumerate() {
            for &(position, weight) in self.entries_at(at) {
                rankers[position as usize].words.push((feature, weight));
            }
        }
        rankers
    }

    fn entries_at(&self, feature: usize) -> &[(u32, f32)] {
        &self.entries[self.offsets[feature] as usize..self.offsets[feature + 1] as usize]
    }
}

/// A margin taken apart: `bias + embedding + Σ words`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarginTerms {
    pub bias: f32,
    pub embedding: f32,
    /// Position in the document's sparse vector, and that word's contribution.
    pub words: Vec<(usize, f32)>,
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<LabelRanker> {
        vec![
            LabelRanker {
                label: 2,
                bias: 0.1,
                words: vec![(1, 1.0), (5, -2.0)],
                embedding: vec![1.0, 0.0],
            },
            LabelRanker {
                label: 3,
                bias: 0.2,
                words: vec![],
                embedding: vec![0.0, 1.0],
            },
            LabelRanker {
                label: 8,
                bias: 0.3,
                words: vec![(5, 4.0), (9, 1.5)],
                embedding: vec![2.0, 2.0],
            },
        ]
    }

    #[test]
    fn counted_or_sorted_the_weights_lie_in_the_same_places() {
        let rankers = |apart: u32| -> Vec<LabelRanker> {
            let words = |label: u32| (0..20_u32).filter(move |f| !(f * 7 + label).is_multiple_of(3));
            let ranker = |label| LabelRanker {
                label,
                bias: 0.0,
                words: words(label)
                    .map(|f| (f * apart, (label * 100 + f) as f32))
                    .collect(),
                embedding: Vec::new(),
            };
            (0..5).map(ranker).collect()
        };
        let (near, far) = (
            ClusterRankers::new(rankers(1), 0),
            ClusterRankers::new(rankers(1_000), 0),
        );
        assert_eq!(
            far.features,
            near.features.iter().map(|f| f * 1_000).collect::<Vec<_>>()
        );
        assert_eq!(
            (far.offsets, far.entries),
            (near.offsets.clone(), near.entries.clone())
        );
        assert_eq!(near.to_labels(), rankers(1));
    }

    #[test]
    fn margins_equal_the_label_by_label_products() {
        let rankers = ClusterRankers::new(three(), 2);
        let words = SparseVector {
            indices: vec![0, 5, 9, 12],
            values: vec![1.0, 0.5, 2.0, 1.0],
        };
        let margins = rankers.margins(&words, &[0.5, -1.0]);
        for (found, expected) in margins
            .iter()
            .zip([0.1 - 1.0 + 0.5, 0.2 - 1.0, 0.3 + 2.0 + 3.0 - 1.0])
        {
            assert!((found - expected).abs() < 1e-6, "{margins:?}");
        }
    }

    #[test]
    fn terms_add_up_to_the_margin() {
        let rankers = ClusterRankers::new(three(), 2);
        let words = SparseVector {
            indices: vec![1, 5, 9],
            values: vec![0.3, 0.5, 2.0],
        };
        let embedding = [0.5, -1.0];
        for (position, margin) in rankers.margins(&words, &embedding).into_iter().enumerate() {
            let terms = rankers.terms(position, &words, &embedding);
            let sum = terms.bias + terms.embedding + terms.words.iter().map(|w| w.1).sum::<f32>();
            assert!((sum - margin).abs() < 1e-6);
        }
    }

    #[test]
    fn transposing_twice_gives_the_labels_back() {
        assert_eq!(ClusterRankers::new(three(), 2).to_labels(), three());
        assert_eq!(ClusterRankers::new(vec![], 2).to_labels(), vec![]);
    }
}
