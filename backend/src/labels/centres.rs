//! Cluster centres and the nearest of them, by blocked products.

use rayon::prelude::*;

use super::product::products;

/// Rows a thread compares at a time.
pub(super) const ROWS_A_BLOCK: usize = 256;
/// Centres compared at a time: block × panel products stay in the second-level cache.
const CENTRES_A_PANEL: usize = 512;

/// K centres, row-major, with their squared lengths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Centres {
    width: usize,
    values: Vec<f32>,
    squared: Vec<f32>,
}

impl Centres {
    pub(super) fn new(values: Vec<f32>, width: usize) -> Self {
        let mut centres = Self {
            width,
            squared: vec![0.0; values.len() / width],
            values,
        };
        for at in 0..centres.len() {
            centres.measure(at);
        }
        centres
    }

    pub(super) fn len(&self) -> usize {
        self.squared.len()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn values(&self) -> &[f32] {
        &self.values
    }

    pub(super) fn into_values(self) -> Vec<f32> {
        self.values
    }

    pub(super) fn centre(&self, at: usize) -> &[f32] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    /// Changes one centre.
    pub(super) fn change(&mut self, at: usize, change: impl FnOnce(&mut [f32])) {
        change(&mut self.values[at * self.width..(at + 1) * self.width]);
        self.measure(at);
    }

    fn measure(&mut self, at: usize) {
        self.squared[at] = self.centre(at).iter().map(|value| value * value).sum();
    }

    /// For every row of `x` the nearest centre and the squared distance to it; ties go to the lower
    /// number. ‖x − c‖² = ‖x‖² − 2x·c + ‖c‖², the products in blocks.
    pub(super) fn nearest(&self, x: &[f32], found: &mut [u32], distances: &mut [f32]) {
        let width = self.width;
        x.par_chunks(ROWS_A_BLOCK * width)
            .zip(found.par_chunks_mut(ROWS_A_BLOCK))
            .zip(distances.par_chunks_mut(ROWS_A_BLOCK))
            .for_each_init(Vec::new, |scratch, ((x, found), distances)| {
                self.nearest_in_block(x, found, distances, scratch);
            });
    }

    /// [`Self::nearest`] on the calling thread.
    pub(super) fn nearest_in_block(
        &self,
        x: &[f32],
        found: &mut [u32],
        distances: &mut [f32],
        scratch: &mut Vec<f32>,
    ) {
        let width = self.width;
        distances.fill(f32::INFINITY);
        for (panel, centres) in self.values.chunks(CENTRES_A_PANEL * width).enumerate() {
            let first = panel * CENTRES_A_PANEL;
            let count = centres.len() / width;
            scratch.resize(found.len() * count, 0.0);
            products(x, centres, width, scratch);
            let squared = &self.squared[first..first + count];
            for (row, products) in scratch.chunks_exact_mut(count).enumerate() {
                let best = to_scores(products, squared);
                if best < distances[row] {
                    let at = products.iter().position(|&score| score <= best).unwrap_or(0);
                    distances[row] = best;
                    found[row] = (first + at) as u32;
                }
            }
        }
        for (x, distance) in x.chunks_exact(width).zip(distances) {
            let own: f32 = x.iter().map(|value| value * value).sum();
            *distance = (*distance + own).max(0.0);
        }
    }

    /// For every row of `x` the `several` nearest centres (all of them if there are fewer), nearest first,
    /// one row's after the other's.
    pub(super) fn nearest_several(&self, x: &[f32], several: usize) -> Vec<u32> {
        let (width, k) = (self.width, self.len());
        let several = several.min(k);
        let mut found = vec![0u32; x.len() / width * several];
        x.par_chunks(ROWS_A_BLOCK * width)
            .zip(found.par_chunks_mut(ROWS_A_BLOCK * several))
            .for_each_init(Vec::new, |scratch, (x, found)| {
                scratch.resize(x.len() / width * k, 0.0);
                products(x, &self.values, width, scratch);
                for (scores, found) in scratch.chunks_exact_mut(k).zip(found.chunks_exact_mut(several)) {
                    let mut best = to_scores(scores, &self.squared);
                    for slot in found {
                        let at = scores.iter().position(|&score| score <= best).unwrap_or(0);
                        *slot = at as u32;
                        scores[at] = f32::INFINITY;
                        best = scores.iter().copied().fold(f32::INFINITY, f32::min);
                    }
                }
            });
        found
    }
}

/// Turns products x·c into ‖c‖² − 2x·c, which orders centres as their distances do; returns the lowest.
fn to_scores(products: &mut [f32], squared: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut lanes = [f32::INFINITY; LANES];
    let whole = products.len() / LANES * LANES;
    for (products, squared) in products[..whole]
        .chunks_exact_mut(LANES)
        .zip(squared[..whole].chunks_exact(LANES))
    {
        for lane in 0..LANES {
            let score = squared[lane] - 2.0 * products[lane];
            products[lane] = score;
            lanes[lane] = if score < lanes[lane] { score } else { lanes[lane] };
        }
    }
    let mut best = lanes.iter().copied().fold(f32::INFINITY, f32::min);
    for at in whole..products.len() {
        products[at] = squared[at] - 2.0 * products[at];
        best = best.min(products[at]);
    }
    best
}
