//! The one matrix every classifier reads: sparse words, then an optional dense block, then the bias.

use gnnxml_shared::features::SparseVector;
use rayon::prelude::*;

/// What is wrong with a matrix.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    #[error(
        "row {row} has feature {feature}, but the matrix has {columns} columns; features are numbered from 0"
    )]
    Feature {
        row: usize,
        feature: u32,
        columns: usize,
    },
    #[error("the dense block has {found} numbers, expected {rows} rows × {dims}")]
    Dense { found: usize, rows: usize, dims: usize },
}

/// Document features in compressed rows, with an optional dense block (the document embedding) beside them.
///
/// Values are f32: the words of 15,000 laws are 3.4 million numbers, and a solver reads them some twenty times a label.
#[derive(Clone, Debug)]
pub struct Rows {
    offsets: Vec<usize>,
    /// Column numbers by falling frequency: the few words most documents share lie side by side in every weight vector.
    indices: Vec<u32>,
    values: Vec<f32>,
    /// The feature behind each column.
    features: Vec<u32>,
    columns: usize,
    dense: Vec<f32>,
    dims: usize,
    bias: f32,
    /// ‖x‖² with the bias, the diagonal of the dual's Hessian.
    squared: Vec<f32>,
}

impl Rows {
    /// Lays out `documents` over `columns` word features, each followed by `dims` numbers of `dense` and one constant `bias`.
    ///
    /// `bias` 0 trains without an intercept; 1 is LIBLINEAR's `-B 1`, whose intercept is regularised like a weight.
    pub fn new<'a>(
        documents: impl IntoIterator<Item = &'a SparseVector>,
        columns: usize,
        dense: Vec<f32>,
        dims: usize,
        bias: f32,
    ) -> Result<Self, RowsError> {
        let mut offsets = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for (row, document) in documents.into_iter().enumerate() {
            for (feature, value) in document.iter() {
                if feature as usize >= columns {
                    return Err(RowsError::Feature {
                        row,
                        feature,
                        columns,
                    });
                }
                indices.push(feature);
                values.push(value);
            }
            offsets.push(indices.len());
        }
        let rows = offsets.len() - 1;
        if dense.len() != rows * dims {
            return Err(RowsError::Dense {
                found: dense.len(),
                rows,
                dims,
            });
        }
        let features = by_falling_frequency(&indices, columns);
        let mut column_of = vec![0u32; columns];
        for (column, &feature) in features.iter().enumerate() {
            column_of[feature as usize] = column as u32;
        }
        for range in offsets.windows(2).map(|w| w[0]..w[1]) {
            let mut row: Vec<(u32, f32)> = (indices[range.clone()].iter().zip(&values[range.clone()]))
                .map(|(&feature, &value)| (column_of[feature as usize], value))
                .collect();
            row.sort_unstable_by_key(|entry| entry.0);
            for (at, (column, value)) in range.zip(row) {
                (indices[at], values[at]) = (column, value);
            }
        }
        let mut made = Self {
            offsets,
            indices,
            values,
            features,
            columns,
            dense,
            dims,
            bias,
            squared: Vec::new(),
        };
        made.squared = (0..rows)
            .into_par_iter()
            .map(|row| made.norm_squared(row))
            .collect();
        Ok(made)
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of word features.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Width of the dense block.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The constant behind the intercept.
    pub fn bias(&self) -> f32 {
        self.bias
    }

    /// Length of a weight vector: words, dense block, intercept.
    pub fn width(&self) -> usize {
        self.columns + self.dims + 1
    }

    /// The feature that a position of a weight vector stands for; positions are not in the order of features.
    pub fn feature(&self, column: usize) -> u32 {
        self.features[column]
    }

    fn words(&self, row: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The embedding of one document.
    pub fn embedding(&self, row: usize) -> &[f32] {
        &self.dense[row * self.dims..(row + 1) * self.dims]
    }

    /// ‖x‖², intercept included.
    #[inline]
    pub fn squared(&self, row: usize) -> f32 {
        self.squared[row]
    }

    /// w·x over words, embedding and intercept.
    #[inline]
    pub fn dot(&self, row: usize, weights: &[f32]) -> f32 {
        let (indices, values) = self.words(row);
        // Two partial sums break the chain of dependent additions; the order is fixed, so runs agree bit for bit.
        let (mut even, mut odd) = (0.0f32, 0.0f32);
        let (index_pairs, value_pairs) = (indices.chunks_exact(2), values.chunks_exact(2));
        if let ([index], [value]) = (index_pairs.remainder(), value_pairs.remainder()) {
            even += weights[*index as usize] * value;
        }
        for (index, value) in index_pairs.zip(value_pairs) {
            even += weights[index[0] as usize] * value[0];
            odd += weights[index[1] as usize] * value[1];
        }
        let mut sum = even + odd;
        if self.dims > 0 {
            sum += dot_dense(
                &weights[self.columns..self.columns + self.dims],
                self.embedding(row),
            );
        }
        sum + weights[self.columns + self.dims] * self.bias
    }

    /// w ← w + step·x.
    #[inline]
    pub fn add(&self, row: usize, step: f32, weights: &mut [f32]) {
        let (indices, values) = self.words(row);
        for (&index, &value) in indices.iter().zip(values) {
            weights[index as usize] += step * value;
        }
        if self.dims > 0 {
            let dense = &mut weights[self.columns..self.columns + self.dims];
            for (weight, value) in dense.iter_mut().zip(self.embedding(row)) {
                *weight += step * value;
            }
        }
        weights[self.columns + self.dims] += step * self.bias;
    }

    /// Every stored number of a row with its position in a weight vector, ascending.
    pub(super) fn for_each(&self, row: usize, mut visit: impl FnMut(usize, f32)) {
        let (indices, values) = self.words(row);
        for (&index, &value) in indices.iter().zip(values) {
            visit(index as usize, value);
        }
        for (dimension, &value) in self.embedding(row).iter().enumerate() {
            visit(self.columns + dimension, value);
        }
        if self.bias != 0.0 {
            visit(self.columns + self.dims, self.bias);
        }
    }

    fn norm_squared(&self, row: usize) -> f32 {
        let words: f32 = self.words(row).1.iter().map(|v| v * v).sum();
        let dense: f32 = self.embedding(row).iter().map(|v| v * v).sum();
        words + dense + self.bias * self.bias
    }
}

/// Features from the most to the least frequent, ties by number.
fn by_falling_frequency(indices: &[u32], columns: usize) -> Vec<u32> {
    let mut counts = vec![0u32; columns];
    for &feature in indices {
        counts[feature as usize] += 1;
    }
    let mut features: Vec<u32> = (0..columns as u32).collect();
    features.sort_by_key(|&feature| std::cmp::Reverse(counts[feature as usize]));
    features
}

/// Thirty-two sums side by side: one would make every addition wait for the one before.
#[inline(always)]
pub(super) fn dot_dense(left: &[f32], right: &[f32]) -> f32 {
    const LANES: usize = 32;
    let ((a, a_rest), (b, b_rest)) = (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
    let mut lanes = [0.0f32; LANES];
    for (x, y) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0] + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(entries: &[(u32, f32)]) -> SparseVector {
        SparseVector {
            indices: entries.iter().map(|e| e.0).collect(),
            values: entries.iter().map(|e| e.1).collect(),
        }
    }

    #[test]
    fn dot_and_add_see_words_embedding_and_intercept() {
        let documents = [row(&[(0, 1.0), (2, 2.0), (3, 0.5)]), row(&[])];
        let rows = Rows::new(&documents, 4, vec![1.0, -1.0, 0.0, 3.0], 2, 1.0).unwrap();
        let mut weights = vec![0.0; rows.width()];
        rows.add(0, 2.0, &mut weights);
        let mut by_feature = [0.0; 4];
        for column in 0..4 {
            by_feature[rows.feature(column) as usize] = weights[column];
        }
        assert_eq!(by_feature, [2.0, 0.0, 4.0, 1.0]);
        assert_eq!(weights[4..], [2.0, -2.0, 2.0]);
        assert_eq!(rows.dot(0, &weights), 2.0 * rows.squared(0));
        assert_eq!(rows.dot(1, &weights), -6.0 + 2.0);
    }

    #[test]
    fn a_feature_beyond_the_columns_is_refused_with_its_row() {
        let documents = [row(&[(0, 1.0)]), row(&[(9, 1.0)])];
        let refused = Rows::new(&documents, 4, vec![], 0, 1.0).unwrap_err();
        assert_eq!(
            refused,
            RowsError::Feature {
                row: 1,
                feature: 9,
                columns: 4
            }
        );
    }

    #[test]
    fn a_dense_block_of_the_wrong_size_is_refused() {
        let documents = [row(&[(0, 1.0)])];
        assert!(matches!(
            Rows::new(&documents, 4, vec![1.0; 3], 2, 1.0),
            Err(RowsError::Dense {
                found: 3,
                rows: 1,
                dims: 2
            })
        ));
    }
}
