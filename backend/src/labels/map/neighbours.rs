//! The nearest neighbours of every row by cosine, exactly, in blocks.

use rayon::prelude::*;

use crate::labels::product::products;
use crate::labels::rows::DenseRows;

const ROWS_A_BLOCK: usize = 128;
const COLUMNS_A_PANEL: usize = 1024;

/// Nearest neighbours: `of[i]` holds (row, cosine), nearest first.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    pub(super) of: Vec<Vec<(u32, f32)>>,
}

/// The `count` nearest other rows of each row of a matrix with rows of length 1 (or 0).
pub(super) fn nearest(rows: &DenseRows, count: usize) -> Neighbours {
    let (n, width) = (rows.rows(), rows.width());
    let count = count.min(n.saturating_sub(1));
    let of = (0..n.div_ceil(ROWS_A_BLOCK))
        .into_par_iter()
        .flat_map_iter(|block| {
            let first = block * ROWS_A_BLOCK;
            let last = n.min(first + ROWS_A_BLOCK);
            let mine = &rows.values()[first * width..last * width];
            let mut best = vec![Vec::with_capacity(count + 1); last - first];
            let mut scratch = Vec::new();
            for (panel, others) in rows.values().chunks(COLUMNS_A_PANEL * width).enumerate() {
                let columns = others.len() / width;
                scratch.resize((last - first) * columns, 0.0);
                products(mine, others, width, &mut scratch);
                for (offset, (cosines, best)) in scratch.chunks_exact(columns).zip(&mut best).enumerate() {
                    for (at, &cosine) in cosines.iter().enumerate() {
                        let other = panel * COLUMNS_A_PANEL + at;
                        if other != first + offset {
                            keep_best(best, count, other as u32, cosine);
                        }
                    }
                }
            }
            best
        })
        .collect();
    Neighbours { of }
}

/// Keeps a short list sorted, highest cosine first; of equals the lower number.
fn keep_best(best: &mut Vec<(u32, f32)>, count: usize, other: u32, cosine: f32) {
    if count == 0 || (best.len() == count && best[count - 1].1 >= cosine) {
        return;
    }
    let at = best.partition_point(|&(_, kept)| kept >= cosine);
    best.insert(at, (other, cosine));
    best.truncate(count);
}
