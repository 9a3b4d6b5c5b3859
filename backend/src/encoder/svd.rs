//! Randomised truncated SVD of a sparse matrix (Halko, Martinsson, Tropp 2011, algorithms 4.4 and 5.1).
//!
//! With A (documents × terms) we only need the right singular vectors V and the singular values:
//!
//! 1. Q ← orth(Ω), Ω Gaussian, terms × l, l = d + oversampling
//! 2. repeat q times: Q ← orth(Aᵀ(A Q))
//! 3. B = A Q, BᵀB = W Σ² Wᵀ (l × l, Jacobi), V ≈ Q W
//!
//! Every sum runs in an order fixed by the data, never by the threads, so the result is the same on any number
//! of cores.

use gnnxml_shared::features::SparseVector;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Columns beyond the asked ones that are computed and thrown away; they buy accuracy of the last kept ones.
const OVERSAMPLING: usize = 16;
/// Rounds of subspace iteration. Text spectra fall slowly; four rounds bring the kept subspace to 1e-3.
const ITERATIONS: usize = 4;
/// Rows summed together before partial sums are added up in order.
const BLOCK: usize = 512;

/// The leading right singular vectors of a matrix.
#[derive(Clone, Debug)]
pub struct RightSingular {
    /// V, row-major `columns × dims`.
    pub vectors: Vec<f32>,
    /// σ₁ ≥ σ₂ ≥ …, zero beyond the rank.
    pub values: Vec<f32>,
}

/// Compressed rows.
struct Csr {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Csr {
    fn new(rows: &[SparseVector], n_columns: usize) -> Self {
        let entries = rows.iter().map(SparseVector::len).sum();
        let mut csr = Self {
            starts: Vec::with_capacity(rows.len() + 1),
            columns: Vec::with_capacity(entries),
            values: Vec::with_capacity(entries),
        };
        csr.starts.push(0);
        for row in rows {
            for (column, value) in row.iter().filter(|&(column, _)| (column as usize) < n_columns) {
                csr.columns.push(column);
                csr.values.push(value);
            }
            csr.starts.push(csr.columns.len());
        }
        csr
    }

    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Aᵀ, its rows in ascending document order.
    fn transpose(&self, n_columns: usize) -> Self {
        let mut starts = vec![0; n_columns + 1];
        for &column in &self.columns {
            starts[column as usize + 1] += 1;
        }
        for i in 0..n_columns {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut columns = vec![0; self.columns.len()];
        let mut values = vec![0.0; self.values.len()];
        for row in 0..self.rows() {
            for entry in self.starts[row]..self.starts[row + 1] {
                let slot = &mut next[self.columns[entry] as usize];
                columns[*slot] = row as u32;
                values[*slot] = self.values[entry];
                *slot += 1;
            }
        }
        Self {
            starts,
            columns,
            values,
        }
    }

    /// self · dense, both row-major, `width` columns.
    fn times(&self, dense: &[f32], width: usize) -> Vec<f32> {
        let mut product = vec![0.0; self.rows() * width];
        product.par_chunks_mut(width).enumerate().for_each(|(row, out)| {
            for entry in self.starts[row]..self.starts[row + 1] {
                let value = self.values[entry];
                let from = self.columns[entry] as usize * width;
                for (sum, x) in out.iter_mut().zip(&dense[from..from + width]) {
                    *sum += value * x;
                }
            }
        });
        product
    }
}

/// The `dims` leading right singular vectors of the matrix whose rows are `rows` (entries at or beyond
/// `n_columns` are left out). Columns beyond the matrix' rank are zero.
pub fn right_singular(rows: &[SparseVector], n_columns: usize, dims: usize, seed: u64) -> RightSingular {
    let width = (dims + OVERSAMPLING).min(rows.len()).min(n_columns);
    if width == 0 {
        return RightSingular {
            vectors: vec![0.0; n_columns * dims],
            values: vec![0.0; dims],
        };
    }
    let a = Csr::new(rows, n_columns);
    let at = a.transpose(n_columns);
    let mut q = gaussian(n_columns * width, seed);
    orthonormalise(&mut q, width);
    for _ in 0..ITERATIONS {
        let image = a.times(&q, width);
        q = at.times(&image, width);
        drop(image);
        orthonormalise(&mut q, width);
    }
    let image = a.times(&q, width);
    let (eigenvalues, eigenvectors) = symmetric_eigen(gram(&image, width), width);
    drop(image);

    let kept = dims.min(width);
    let largest = eigenvalues[0].max(0.0);
    let mut rotation = vec![0.0_f32; width * dims];
    let mut values = vec![0.0_f32; dims];
    for column in 0..kept {
        // Below the noise of the Gram matrix a direction is arithmetic dust, not meaning.
        if eigenvalues[column] <= largest * 1e-12 {
            break;
        }
        values[column] = eigenvalues[column].sqrt() as f32;
        // The sign of a singular vector is free: make its largest rotation entry positive.
        let mut peak = 0.0_f64;
        for row in 0..width {
            let x = eigenvectors[row * width + column];
            if x.abs() > peak.abs() {
                peak = x;
            }
        }
        for row in 0..width {
            rotation[row * dims + column] = (eigenvectors[row * width + column] * peak.signum()) as f32;
        }
    }
    let mut vectors = vec![0.0; n_columns * dims];
    vectors
        .par_chunks_mut(dims)
        .zip(q.par_chunks(width))
        .for_each(|(out, row)| {
            for (&x, turned) in row.iter().zip(rotation.chunks_exact(dims)) {
                for (sum, r) in out.iter_mut().zip(turned) {
                    *sum += x * r;
                }
            }
        });
    RightSingular { vectors, values }
}

/// Rounds after which the weakest of the kept directions, which say little, are still mixed with their likes.
const ROUNDS: usize = 8;

/// An orthonormal basis of the subspace in which the rows Y are longest, row-major `width × dims`: subspace iteration with YᵀY. Which of its
/// bases it is has no meaning; columns beyond the rank are zero.
pub(crate) fn leading_subspace(rows: &[f32], width: usize, dims: usize, seed: u64) -> Vec<f32> {
    let gram: Vec<f32> = gram(rows, width).into_iter().map(|x| x as f32).collect();
    let mut q = gaussian(width * dims, seed);
    orthonormalise(&mut q, dims);
    for _ in 0..ROUNDS {
        let mut image = vec![0.0_f32; width * dims];
        (image.par_chunks_mut(dims).zip(gram.par_chunks(width))).for_each(|(out, row)| {
            for (&x, below) in row.iter().zip(q.chunks_exact(dims)) {
                for (sum, y) in out.iter_mut().zip(below) {
                    *sum += x * y;
                }
            }
        });
        q = image;
        orthonormalise(&mut q, dims);
    }
    q
}

/// Standard normal numbers by Box and Muller.
fn gaussian(count: usize, seed: u64) -> Vec<f32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut numbers = Vec::with_capacity(count + 1);
    while numbers.len() < count {
        let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * random.random::<f64>()).sin_cos();
        numbers.push((radius * cosine) as f32);
        numbers.push((radius * sine) as f32);
    }
    numbers.truncate(count);
    numbers
}

/// YᵀY in double precision (`width × width`), summed block by block in order.
pub(super) fn gram(y: &[f32], width: usize) -> Vec<f64> {
    let blocks: Vec<&[f32]> = y.chunks(BLOCK * width).collect();
    let mut total = vec![0.0_f64; width * width];
    // A few blocks at a time: memory stays at a handful of Gram matrices.
    for group in blocks.chunks(16) {
        let parts: Vec<Vec<f32>> = group.par_iter().map(|block| block_gram(block, width)).collect();
        for part in parts {
            for (sum, x) in total.iter_mut().zip(part) {
                *sum += f64::from(x);
            }
        }
    }
    for i in 0..width {
        for j in 0..i {
            total[i * width + j] = total[j * width + i];
        }
    }
    total
}

/// Upper triangle of YᵀY of at most [`BLOCK`] rows, in single precision.
fn block_gram(block: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0_f32; width * width];
    for row in block.chunks_exact(width) {
        for (i, &x) in row.iter().enumerate() {
            for (sum, &y) in sums[i * width + i..(i + 1) * width].iter_mut().zip(&row[i..]) {
                *sum += x * y;
            }
        }
    }
    sums
}

/// Makes the columns of Y orthonormal: Cholesky QR, three times, since each round squares away the loss of the one before.
/// A column that depends on those before it becomes zero.
fn orthonormalise(y: &mut [f32], width: usize) {
    for _ in 0..3 {
        let inverse = inverse_cholesky(gram(y, width), width);
        y.par_chunks_mut(width).for_each_init(
            || vec![0.0_f32; width],
            |out, row| {
                out.fill(0.0);
                for (j, &x) in row.iter().enumerate() {
                    for (sum, r) in out[j..].iter_mut().zip(&inverse[j * width + j..(j + 1) * width]) {
                        *sum += x * r;
                    }
                }
                row.copy_from_slice(out);
            },
        );
    }
}

/// R⁻¹ (upper triangular) of G = RᵀR; dependent columns get a zero column.
fn inverse_cholesky(mut g: Vec<f64>, n: usize) -> Vec<f32> {
    let scale = (0..n).map(|i| g[i * n + i]).fold(0.0, f64::max);
    let floor = scale * 1e-14;
    let mut alive = vec![true; n];
    // Row by row: g becomes R in its upper triangle.
    for i in 0..n {
        let pivot = g[i * n + i];
        if pivot.is_nan() || pivot <= floor {
            alive[i] = false;
            g[i * n..(i + 1) * n].fill(0.0);
            continue;
        }
        let root = pivot.sqrt();
        for j in i..n {
            g[i * n + j] /= root;
        }
        let (above, below) = g.split_at_mut((i + 1) * n);
        let row = &above[i * n..];
        for j in i + 1..n {
            let factor = row[j];
            for (x, r) in below[(j - i - 1) * n + j..(j - i) * n].iter_mut().zip(&row[j..]) {
                *x -= factor * r;
            }
        }
    }
    let mut inverse = vec![0.0_f64; n * n];
    for column in 0..n {
        if !alive[column] {
            continue;
        }
        inverse[column * n + column] = 1.0 / g[column * n + column];
        for row in (0..column).rev() {
            if !alive[row] {
                continue;
            }
            let sum: f64 = (row + 1..=column)
                .map(|k| g[row * n + k] * inverse[k * n + column])
                .sum();
            inverse[row * n + column] = -sum / g[row * n + row];
        }
    }
    inverse.into_iter().map(|x| x as f32).collect()
}

/// Eigenvalues (descending) and eigenvectors (columns) of a symmetric matrix, by cyclic Jacobi rotations.
pub(super) fn symmetric_eigen(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    // Vectors are kept as rows while rotating (contiguous), turned at the end.
    let mut v = vec![0.0; n * n];
    for i in 0..n {
        v[i * n + i] = 1.0;
    }
    for _ in 0..40 {
        let off: f64 = (0..n)
            .flat_map(|i| (i + 1..n).map(move |j| (i, j)))
            .map(|(i, j)| a[i * n + j].powi(2))
            .sum();
        let diagonal: f64 = (0..n).map(|i| a[i * n + i].powi(2)).sum();
        if off <= diagonal * 1e-24 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                if apq.abs() <= 1e-18 * (a[p * n + p].abs() + a[q * n + q].abs()) {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let cosine = 1.0 / (t * t + 1.0).sqrt();
                let sine = t * cosine;
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    a[k * n + p] = cosine * x - sine * y;
                    a[k * n + q] = sine * x + cosine * y;
                }
                rotate_rows(&mut a, n, p, q, cosine, sine);
                rotate_rows(&mut v, n, p, q, cosine, sine);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[j * n + j].total_cmp(&a[i * n + i]).then(i.cmp(&j)));
    let values = order.iter().map(|&i| a[i * n + i]).collect();
    let mut vectors = vec![0.0; n * n];
    for (column, &i) in order.iter().enumerate() {
        for k in 0..n {
            vectors[k * n + column] = v[i * n + k];
        }
    }
    (values, vectors)
}

/// (row p, row q) ← (c·p − s·q, s·p + c·q), p < q.
fn rotate_rows(m: &mut [f64], n: usize, p: usize, q: usize, cosine: f64, sine: f64) {
    let (above, below) = m.split_at_mut(q * n);
    for (x, y) in above[p * n..(p + 1) * n].iter_mut().zip(&mut below[..n]) {
        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(rows: &[&[f32]]) -> Vec<SparseVector> {
        rows.iter()
            .map(|row| {
                let mut out = SparseVector::default();
                for (i, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                    out.indices.push(i as u32);
                    out.values.push(x);
                }
                out
            })
            .collect()
    }

    #[test]
    fn singular_values_of_a_known_matrix_come_out() {
        // diag(3, 2, 1) with a turned second pair: singular values 3, 2, 1.
        let (c, s) = (0.6, 0.8);
        let rows = sparse(&[&[3.0, 0.0, 0.0], &[0.0, 2.0 * c, 2.0 * s], &[0.0, -s, c]]);
        let svd = right_singular(&rows, 3, 3, 1);
        for (found, expected) in svd.values.iter().zip([3.0, 2.0, 1.0]) {
            assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
        }
        assert!((svd.vectors[0].abs() - 1.0).abs() < 1e-5);
        assert!((svd.vectors[4].abs() - 0.6).abs() < 1e-5);
    }

    #[test]
    fn vectors_are_orthonormal_and_reconstruct_a_low_rank_matrix() {
        // 60 × 40 of rank 3.
        let dense: Vec<Vec<f32>> = (0..60)
            .map(|i| {
                (0..40)
                    .map(|j| {
                        let (x, y) = (i as f32, j as f32);
                        (x * 0.7).sin() * (y * 0.3).cos()
                            + 0.5 * (x * 0.1).cos() * (y * 1.3).sin()
                            + 0.05 * (x - 30.0) / 30.0
                    })
                    .collect()
            })
            .collect();
        let views: Vec<&[f32]> = dense.iter().map(Vec::as_slice).collect();
        let dims = 5;
        let svd = right_singular(&sparse(&views), 40, dims, 7);
        assert!(
            svd.values[3] < 1e-3 * svd.values[0],
            "rank three: {:?}",
            svd.values
        );
        let v = |row: usize, column: usize| svd.vectors[row * dims + column];
        for i in 0..3 {
            for j in 0..3 {
                let dot: f32 = (0..40).map(|t| v(t, i) * v(t, j)).sum();
                assert!((dot - f32::from(u8::from(i == j))).abs() < 1e-4);
            }
        }
        for row in &dense {
            let code: Vec<f32> = (0..3).map(|c| (0..40).map(|t| row[t] * v(t, c)).sum()).collect();
            for t in 0..40 {
                let back: f32 = (0..3).map(|c| code[c] * v(t, c)).sum();
                assert!((back - row[t]).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let rows: Vec<SparseVector> = (0..1500_u32)
            .map(|i| SparseVector {
                indices: vec![i % 97, 100 + i % 53, 200 + i % 31],
                values: vec![1.0, 0.5 + (i % 7) as f32, 0.25],
            })
            .collect();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| right_singular(&rows, 240, 8, 3))
        };
        let (one, two) = (run(1), run(2));
        assert_eq!(one.vectors, two.vectors);
        assert_eq!(one.values, two.values);
    }

    #[test]
    fn more_dimensions_than_rank_leave_zero_columns() {
        let rows = sparse(&[&[1.0, 1.0, 0.0], &[2.0, 2.0, 0.0]]);
        let svd = right_singular(&rows, 3, 6, 1);
        assert_eq!(svd.vectors.len(), 18);
        assert!(
            svd.values[0] > 3.0 && svd.values[1..].iter().all(|v| *v < 1e-3),
            "{:?}",
            svd.values
        );
        assert!(svd.vectors.iter().all(|x| x.is_finite()));
        assert_eq!(right_singular(&[], 0, 4, 1).values, [0.0; 4]);
    }
}
