//! What to call a cluster: its most telling label, and the terms that set it apart.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::clusters::{ClusterParts, LabelClusters};
use super::graph::row;
use super::{LabelError, SparseRows};

/// Terms a cluster is described by.
const TERMS: usize = 6;

/// TF-IDF label vectors and the words of their columns.
#[derive(Clone, Copy, Debug)]
pub struct LabelTerms<'a> {
    /// One row a label.
    pub rows: &'a SparseRows,
    /// One word a column.
    pub vocabulary: &'a [String],
}

impl LabelClusters {
    /// Names labels and clusters.
    ///
    /// The most telling label of a cluster is close to its centre and known to many documents: the highest
    /// cos(z̄_ℓ, c)²·ln(1 + n_ℓ). Terms are the words whose share in the cluster stands out most against their
    /// share over all clusters, t·ln(1 + t/mean) for the mean TF-IDF t of the cluster's labels; without `terms` they come from
    /// the words of the label names.
    pub fn name(self, names: &[String], terms: Option<LabelTerms<'_>>) -> Result<Self, LabelError> {
        let labels = self.labels();
        if names.len() != labels {
            return Err(LabelError::Shape {
                what: "label names",
                found: names.len(),
                expected: labels,
            });
        }
        if let Some(LabelTerms { rows, vocabulary }) = terms
            && (rows.rows() != labels || rows.cols() != vocabulary.len())
        {
            return Err(LabelError::Shape {
                what: "rows of the label terms (or words for their columns)",
                found: rows.rows(),
                expected: labels,
            });
        }
        let telling: Vec<u32> = (0..self.len() as u32).map(|c| self.most_telling(c)).collect();
        let described = match terms {
            Some(terms) => self.standing_out(terms.rows, &|term| terms.vocabulary[term as usize].clone()),
            None => {
                let (rows, words) = words_of_names(names);
                self.standing_out(&rows, &|term| words[term as usize].clone())
            }
        };
        let mut parts: ClusterParts = self.into_parts();
        for ((cluster, label), terms) in parts.clusters.iter_mut().zip(telling).zip(described) {
            cluster.name.clone_from(&names[label as usize]);
            cluster.terms = terms;
        }
        parts.names = names.to_vec();
        Self::new(parts)
    }

    fn most_telling(&self, cluster: u32) -> u32 {
        let score = |label: u32| {
            let near = self.parts().closeness[label as usize].max(0.0);
            near * near * (1.0 + self.parts().counts[label as usize] as f32).ln()
        };
        let mut best = self.members(cluster)[0];
        for &label in &self.members(cluster)[1..] {
            if score(label) > score(best) {
                best = label;
            }
        }
        best
    }

    /// The columns that stand out in each cluster, as words.
    fn standing_out(&self, rows: &SparseRows, word: &(dyn Fn(u32) -> String + Sync)) -> Vec<Vec<String>> {
        let means: Vec<Vec<(u32, f32)>> = (0..self.len() as u32)
            .into_par_iter()
            .map(|cluster| {
                let members = self.members(cluster);
                let mut sum: BTreeMap<u32, f32> = BTreeMap::new();
                for &label in members {
                    let (columns, values) = row(rows, label as usize);
                    for (&column, &value) in columns.iter().zip(values) {
                        *sum.entry(column).or_default() += value;
                    }
                }
                let size = members.len() as f32;
                sum.into_iter()
                    .map(|(column, total)| (column, total / size))
                    .collect()
            })
            .collect();
        let mut everywhere = vec![0f32; rows.cols()];
        for mean in &means {
            for &(column, value) in mean {
                everywhere[column as usize] += value / means.len() as f32;
            }
        }
        means
            .into_par_iter()
            .map(|mean| {
                let mut scored: Vec<(f32, u32)> = mean
                    .into_iter()
                    .map(|(column, value)| {
                        let usual = everywhere[column as usize].max(f32::MIN_POSITIVE);
                        (value * (1.0 + value / usual).ln(), column)
                    })
                    .collect();
                scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                let mut words: Vec<String> = Vec::with_capacity(TERMS);
                for word in scored.iter().map(|&(_, column)| word(column)) {
                    // A word of the lead stands out in the rest of the text, too.
                    if !words.contains(&word) {
                        words.push(word);
                    }
                    if words.len() == TERMS {
                        break;
                    }
                }
                words
            })
            .collect()
    }
}

/// Label names as rows of words: lower case, at least three letters, each worth its share of the name.
fn words_of_names(names: &[String]) -> (SparseRows, Vec<String>) {
    let words = |name: &str| -> Vec<String> {
        let mut words: Vec<String> = name
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.chars().count() >= 3)
            .map(str::to_lowercase)
            .collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    for name in names {
        for word in words(name) {
            known.entry(word).or_insert(0);
        }
    }
    for (at, column) in known.values_mut().enumerate() {
        *column = at as u32;
    }
    let (mut starts, mut columns, mut values) = (vec![0usize], Vec::new(), Vec::new());
    for name in names {
        let words = words(name);
        for word in &words {
            columns.push(known[word]);
            values.push(1.0 / words.len() as f32);
        }
        starts.push(columns.len());
    }
    let rows = SparseRows::new((names.len(), known.len()), starts, columns, values);
    (rows, known.into_keys().collect())
}
