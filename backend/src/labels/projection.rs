//! Sparse label vectors made dense: the leading singular directions of the label × term matrix.
//!
//! Filtering sparse vectors fills them in at every step, and k-means on them pays for every term; we project
//! first. The projection is a truncated SVD by randomised subspace iteration (`docs/results/labels.md` has
//! the comparison with a plain random projection).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::SparseRows;
use super::graph::row;
use super::product::products;
use super::rows::DenseRows;

/// Directions beyond the wanted ones that make the subspace settle quickly.
const SPARE: usize = 10;
/// Subspace iterations.
const ITERATIONS: usize = 3;
/// Rows a thread takes at a time.
const ROWS_A_TASK: usize = 256;

/// Z·V for the leading right singular vectors V, at most `width` of them, rows scaled to length 1.
pub(super) fn project(z: &SparseRows, width: usize, seed: u64) -> DenseRows {
    let wanted = width.min(z.cols()).min(z.rows()).max(1);
    let inner = (wanted + SPARE).min(z.cols()).max(1);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut q: Vec<f32> = (0..z.cols() * inner)
        .map(|_| rng.random_range(-1.0f32..1.0))
        .collect();
    let transposed: SparseRows = z.transpose_view().to_csr();
    orthonormalise(&mut q, inner);
    for _ in 0..ITERATIONS {
        let y = sparse_dense(z, &q, inner);
        q = sparse_dense(&transposed, &y, inner);
        orthonormalise(&mut q, inner);
    }
    let y = sparse_dense(z, &q, inner);
    let (_, directions) = eigen(&gram(&y, inner), inner);
    let turn: Vec<f32> = (0..wanted)
        .flat_map(|at| directions[at * inner..(at + 1) * inner].iter().map(|&v| v as f32))
        .collect();
    let mut values = vec![0f32; z.rows() * wanted];
    values
        .par_chunks_mut(ROWS_A_TASK * wanted)
        .zip(y.par_chunks(ROWS_A_TASK * inner))
        .for_each(|(out, y)| products(y, &turn, inner, out));
    let mut rows = DenseRows::trusted(values, wanted);
    rows.normalise();
    rows
}

/// Sparse × dense, by rows.
fn sparse_dense(sparse: &SparseRows, dense: &[f32], width: usize) -> Vec<f32> {
    let mut out = vec![0f32; sparse.rows() * width];
    out.par_chunks_mut(width).enumerate().for_each(|(at, out)| {
        let (columns, values) = row(sparse, at);
        for (&column, &value) in columns.iter().zip(values) {
            let other = &dense[column as usize * width..(column as usize + 1) * width];
            for (sum, &other) in out.iter_mut().zip(other) {
                *sum += value * other;
            }
        }
    });
    out
}

/// XᵀX in f64, block by block in a fixed order.
fn gram(x: &[f32], width: usize) -> Vec<f64> {
    let blocks: Vec<Vec<f32>> = x
        .par_chunks(ROWS_A_TASK * width)
        .map(|block| {
            let count = block.len() / width;
            let mut turned = vec![0f32; block.len()];
            for (at, row) in block.chunks_exact(width).enumerate() {
                for (column, &value) in row.iter().enumerate() {
                    turned[column * count + at] = value;
                }
            }
            let mut out = vec![0f32; width * width];
            products(&turned, &turned, count, &mut out);
            out
        })
        .collect();
    let mut sum = vec![0f64; width * width];
    for block in blocks {
        for (sum, value) in sum.iter_mut().zip(block) {
            *sum += f64::from(value);
        }
    }
    sum
}

/// Makes the columns of a row-major matrix orthonormal through the eigenvectors of its Gram matrix;
/// directions without any length become zero.
fn orthonormalise(x: &mut [f32], width: usize) {
    let (values, directions) = eigen(&gram(x, width), width);
    let floor = values.first().copied().unwrap_or(0.0) * 1e-10;
    let turn: Vec<f32> = (0..width)
        .flat_map(|at| {
            let scale = if values[at] > floor {
                1.0 / values[at].sqrt()
            } else {
                0.0
            };
            directions[at * width..(at + 1) * width]
                .iter()
                .map(move |&v| (v * scale) as f32)
        })
        .collect();
    x.par_chunks_mut(ROWS_A_TASK * width)
        .for_each_init(Vec::new, |scratch: &mut Vec<f32>, block| {
            scratch.resize(block.len(), 0.0);
            products(block, &turn, width, scratch);
            block.copy_from_slice(scratch);
        });
}

/// Eigenvalues, largest first, and eigenvectors (one a row) of a symmetric matrix, by cyclic Jacobi
/// rotations.
fn eigen(matrix: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut v = vec![0f64; n * n];
    for at in 0..n {
        v[at * n + at] = 1.0;
    }
    let scale: f64 = a.iter().map(|value| value * value).sum::<f64>();
    for _sweep in 0..30 {
        let off: f64 = (0..n)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| a[i * n + j] * a[i * n + j])
            .sum();
        if off <= 1e-22 * scale {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                if apq == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let t = if theta == 0.0 { 1.0 } else { t };
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for i in 0..n {
                    let (aip, aiq) = (a[i * n + p], a[i * n + q]);
                    a[i * n + p] = c * aip - s * aiq;
                    a[i * n + q] = s * aip + c * aiq;
                }
                rotate_rows(&mut a, n, p, q, c, s);
                rotate_rows(&mut v, n, p, q, c, s);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[j * n + j].total_cmp(&a[i * n + i]).then(i.cmp(&j)));
    let values = order.iter().map(|&i| a[i * n + i]).collect();
    let vectors = order
        .iter()
        .flat_map(|&i| v[i * n..(i + 1) * n].iter().copied())
        .collect();
    (values, vectors)
}

/// Rows p and q become c·p − s·q and s·p + c·q.
fn rotate_rows(m: &mut [f64], n: usize, p: usize, q: usize, c: f64, s: f64) {
    let (head, tail) = m.split_at_mut(q * n);
    for (mp, mq) in head[p * n..(p + 1) * n].iter_mut().zip(&mut tail[..n]) {
        let (x, y) = (*mp, *mq);
        *mp = c * x - s * y;
        *mq = s * x + c * y;
    }
}
