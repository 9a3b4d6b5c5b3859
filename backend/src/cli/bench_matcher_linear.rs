//! The yardstick: one linear classifier a cluster, squared hinge, by dual coordinate descent (Hsieh et al. 2008).

use gnnxml_shared::features::SparseVector;
use rayon::prelude::*;

use crate::matcher::Lists;

/// One weight vector and bias a cluster.
#[derive(Debug)]
pub(super) struct LinearBaseline {
    weights: Vec<Vec<f32>>,
}

/// Passes over the documents; the objective has settled long before.
const PASSES: usize = 12;
/// The usual cost of an error.
const COST: f64 = 1.0;

impl LinearBaseline {
    pub(super) fn fit(rows: &[SparseVector], width: usize, positives: &Lists, clusters: usize) -> Self {
        let documents = positives.transposed(clusters);
        let fit = |cluster: usize| {
            let mut sign = vec![-1.0f64; rows.len()];
            for &document in documents.row(cluster) {
                sign[document as usize] = 1.0;
            }
            classifier(rows, width, &sign, cluster as u64)
        };
        Self {
            weights: (0..clusters).into_par_iter().map(fit).collect(),
        }
    }

    /// The clusters of highest score.
    pub(super) fn top(&self, row: &SparseVector, top: usize) -> Vec<u32> {
        let scores: Vec<f32> = self.weights.iter().map(|w| score(w, row)).collect();
        let top = gnnxml_shared::model::matcher::top_clusters(&scores, top);
        top.into_iter().map(|(cluster, _)| cluster).collect()
    }
}

/// w·x + b, the bias behind the weights.
fn score(w: &[f32], row: &SparseVector) -> f32 {
    row.iter().map(|(i, x)| w[i as usize] * x).sum::<f32>() + w[w.len() - 1]
}

fn classifier(rows: &[SparseVector], width: usize, sign: &[f64], seed: u64) -> Vec<f32> {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut w = vec![0.0f32; width + 1];
    let diagonal = 0.5 / COST;
    let square = |row: &SparseVector| 1.0 + row.values.iter().map(|x| f64::from(x * x)).sum::<f64>();
    let lengths: Vec<f64> = rows.iter().map(|row| square(row) + diagonal).collect();
    let mut alpha = vec![0.0f64; rows.len()];
    let mut order: Vec<usize> = (0..rows.len()).collect();
    for _ in 0..PASSES {
        order.shuffle(&mut random);
        for &i in &order {
            let gradient = sign[i] * f64::from(score(&w, &rows[i])) - 1.0 + diagonal * alpha[i];
            let new = (alpha[i] - gradient / lengths[i]).max(0.0);
            let change = ((new - alpha[i]) * sign[i]) as f32;
            if change != 0.0 {
                alpha[i] = new;
                for (t, x) in rows[i].iter() {
                    w[t as usize] += change * x;
                }
                w[width] += change;
            }
        }
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_separates_what_is_separable() {
        let rows: Vec<SparseVector> = (0..20)
            .map(|i| SparseVector {
                indices: vec![i % 2, 2],
                values: vec![1.0, 0.3],
            })
            .collect();
        let positives: Vec<Vec<u32>> = (0..20).map(|i| vec![i % 2]).collect();
        let baseline = LinearBaseline::fit(&rows, 3, &Lists::from_rows(&positives), 2);
        assert!(
            rows.iter()
                .enumerate()
                .all(|(i, row)| baseline.top(row, 1) == [i as u32 % 2])
        );
    }
}
