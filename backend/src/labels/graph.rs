//! The label graph: A made symmetric and normalised, ready for the low-pass filter.

use rayon::prelude::*;

use super::SparseRows;

/// D^−½·A_s·D^−½ of the symmetrised correlation matrix A_s, with the degrees it was scaled by.
///
/// A from P is not symmetric: a rare label points to a frequent one that hardly knows it. The paper writes
/// the symmetric Laplacian without a word on this; we take **A_s = max(A, Aᵀ)** entry by entry: an edge is as
/// strong as the end that needs it more says, and the diagonal stays as τ set it. Against the mean of the
/// two it tells more of EuroVoc's branches (`docs/results/labels.md`).
#[derive(Clone, Debug)]
pub struct LabelGraph {
    normalised: SparseRows,
    degrees: Vec<f32>,
}

impl LabelGraph {
    /// From the re-weighted correlation matrix A.
    pub fn from_correlation(a: &SparseRows) -> Self {
        let transposed: SparseRows = a.transpose_view().to_csr();
        let labels = a.rows();
        let mut starts = Vec::with_capacity(labels + 1);
        starts.push(0usize);
        let (mut columns, mut values) = (Vec::with_capacity(2 * a.nnz()), Vec::with_capacity(2 * a.nnz()));
        let mut degrees = Vec::with_capacity(labels);
        for label in 0..labels {
            let degree = merge_largest(row(a, label), row(&transposed, label), &mut columns, &mut values);
            degrees.push(degree);
            starts.push(columns.len());
        }
        // Every diagonal entry is 1 − τ or 1, so only τ = 1 with no incoming edge could leave a row empty.
        let scale: Vec<f32> = degrees
            .iter()
            .map(|&degree| if degree > 0.0 { 1.0 / degree.sqrt() } else { 0.0 })
            .collect();
        for label in 0..labels {
            for at in starts[label]..starts[label + 1] {
                values[at] *= scale[label] * scale[columns[at] as usize];
            }
        }
        columns.shrink_to_fit();
        values.shrink_to_fit();
        let normalised = SparseRows::new((labels, labels), starts, columns, values);
        Self { normalised, degrees }
    }

    pub fn labels(&self) -> usize {
        self.degrees.len()
    }

    /// Stored entries, the diagonal among them.
    pub fn nonzeros(&self) -> usize {
        self.normalised.nnz()
    }

    /// d_i, the row sums of A_s.
    pub fn degrees(&self) -> &[f32] {
        &self.degrees
    }

    /// D^−½·A_s·D^−½.
    pub fn normalised(&self) -> &SparseRows {
        &self.normalised
    }

    /// One row of it: columns ascending, and their weights.
    pub fn row(&self, label: usize) -> (&[u32], &[f32]) {
        row(&self.normalised, label)
    }

    /// One filter step, G·X = (I − ½L_s)·X = ½(X + D^−½·A_s·D^−½·X), into `out`.
    pub(super) fn low_pass(&self, x: &[f32], width: usize, out: &mut [f32]) {
        out.par_chunks_mut(width * ROWS_A_TASK)
            .enumerate()
            .for_each(|(task, block)| {
                for (offset, out) in block.chunks_exact_mut(width).enumerate() {
                    let label = task * ROWS_A_TASK + offset;
                    out.copy_from_slice(&x[label * width..(label + 1) * width]);
                    let (columns, weights) = self.row(label);
                    for (&column, &weight) in columns.iter().zip(weights) {
                        let other = &x[column as usize * width..(column as usize + 1) * width];
                        for (sum, value) in out.iter_mut().zip(other) {
                            *sum += weight * value;
                        }
                    }
                    for value in out {
                        *value *= 0.5;
                    }
                }
            });
    }
}

/// Rows a thread takes at a time.
const ROWS_A_TASK: usize = 64;

/// One row of a sparse matrix.
pub(super) fn row(matrix: &SparseRows, at: usize) -> (&[u32], &[f32]) {
    let range = matrix.indptr().outer_inds_sz(at);
    (&matrix.indices()[range.clone()], &matrix.data()[range])
}

/// Appends the larger of two sorted rows, entry by entry; returns the total.
fn merge_largest(
    (left, left_values): (&[u32], &[f32]),
    (right, right_values): (&[u32], &[f32]),
    columns: &mut Vec<u32>,
    values: &mut Vec<f32>,
) -> f32 {
    let (mut i, mut j, mut total) = (0, 0, 0.0);
    while i < left.len() || j < right.len() {
        let a = left.get(i).copied().unwrap_or(u32::MAX);
        let b = right.get(j).copied().unwrap_or(u32::MAX);
        let mut value = 0f32;
        if a <= b {
            value = left_values[i];
            i += 1;
        }
        if b <= a {
            value = value.max(right_values[j]);
            j += 1;
        }
        columns.push(a.min(b));
        values.push(value);
        total += value;
    }
    total
}
