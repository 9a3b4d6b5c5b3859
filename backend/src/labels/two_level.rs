//! k-means for a large K in two levels: coarse groups first, then centres inside each group.
//!
//! Comparing L labels with K = L/60 centres is quadratic in L. With √K coarse groups, a label meets the
//! √K group centres and then the centres of its nearest groups only: L·√K·d a pass. The paper is silent on
//! how K that large was reached. The last pass looks into the [`PROBES`] nearest groups of every label, so
//! that a group's border is no border for its labels.

use rayon::prelude::*;

use super::LabelError;
use super::centres::Centres;
use super::kmeans::{Clustering, KMeansOptions, ROWS_A_PASS, fill_empty, mini_batch};
use super::rows::{DenseRows, RowSource, WeightedRows};
use crate::collective::{Collective, SingleProcess};

/// Nearest groups whose centres a label is compared with in the last pass.
const PROBES: usize = 4;

/// Coarse, then fine.
pub(super) fn two_level(
    rows: &dyn RowSource,
    options: KMeansOptions,
    collective: &dyn Collective,
) -> Result<Clustering, LabelError> {
    let (n, width) = (rows.rows(), rows.width());
    let groups = (options.k as f64).sqrt().ceil() as usize;
    let coarse = mini_batch(
        rows,
        KMeansOptions {
            k: groups,
            passes: 1,
            ..options
        },
        collective,
    )?;
    let mut members = vec![Vec::new(); groups];
    for (row, &group) in coarse.assignment.iter().enumerate() {
        members[group as usize].push(row as u32);
    }
    let shares = apportion(options.k, &members.iter().map(Vec::len).collect::<Vec<_>>());

    let fine: Vec<Centres> = members
        .par_iter()
        .zip(&shares)
        .enumerate()
        .map(|(group, (members, &k))| {
            let mut values = vec![0f32; members.len() * width];
            rows.gather(members, &mut values);
            let inside = KMeansOptions {
                k,
                seed: options.seed.wrapping_add(1 + group as u64),
                ..options
            };
            let weights: Vec<f32> = members.iter().map(|&row| rows.weight(row)).collect();
            let values = DenseRows::trusted(values, width);
            let group = WeightedRows {
                rows: &values,
                weights: &weights,
            };
            mini_batch(&group, inside, &SingleProcess).map(|fine| fine.centres)
        })
        .collect::<Result<_, _>>()?;

    let mut starts = vec![0usize];
    for share in &shares {
        starts.push(starts[starts.len() - 1] + share);
    }
    let (mut assignment, mut distances) = (vec![0u32; n], vec![0f32; n]);
    let mut totals = vec![0f64; options.k * width];
    let mut weights = vec![0f64; options.k];
    let mut x = vec![0f32; ROWS_A_PASS.min(n) * width];
    for from in (0..n).step_by(ROWS_A_PASS) {
        let block = from..n.min(from + ROWS_A_PASS);
        let which: Vec<u32> = (block.start as u32..block.end as u32).collect();
        let x = &mut x[..block.len() * width];
        rows.gather(&which, x);
        probe(
            x,
            &coarse.centres,
            &fine,
            &starts,
            &mut assignment[block.clone()],
            &mut distances[block.clone()],
        );
        for ((&name, row), &cluster) in which.iter().zip(x.chunks_exact(width)).zip(&assignment[block]) {
            let (cluster, weight) = (cluster as usize, f64::from(rows.weight(name)));
            weights[cluster] += weight;
            for (total, &value) in totals[cluster * width..(cluster + 1) * width].iter_mut().zip(row) {
                *total += weight * f64::from(value);
            }
        }
    }
    let centres = fine.into_iter().flat_map(Centres::into_values).collect();
    let mut centres = Centres::new(centres, width);
    for cluster in 0..options.k {
        if weights[cluster] > 0.0 {
            centres.change(cluster, |centre| {
                for (value, &total) in centre.iter_mut().zip(&totals[cluster * width..]) {
                    *value = (total / weights[cluster]) as f32;
                }
            });
        }
    }
    let mut clustering = Clustering {
        centres,
        assignment,
        distances,
    };
    fill_empty(rows, &mut clustering);
    Ok(clustering)
}

/// For every row, the nearest of all centres in its nearest groups.
fn probe(
    x: &[f32],
    coarse: &Centres,
    fine: &[Centres],
    starts: &[usize],
    assignment: &mut [u32],
    distances: &mut [f32],
) {
    let width = coarse.width();
    let groups = coarse.nearest_several(x, PROBES);
    let mut of_group = vec![Vec::new(); fine.len()];
    for (row, groups) in groups.chunks_exact(PROBES.min(fine.len())).enumerate() {
        for &group in groups {
            of_group[group as usize].push(row);
        }
    }
    let found: Vec<(Vec<u32>, Vec<f32>)> = of_group
        .par_iter()
        .zip(fine)
        .map(|(rows, centres)| {
            let mut mine = Vec::with_capacity(rows.len() * width);
            for &row in rows {
                mine.extend_from_slice(&x[row * width..(row + 1) * width]);
            }
            let (mut found, mut distances) = (vec![0u32; rows.len()], vec![0f32; rows.len()]);
            centres.nearest_in_block(&mine, &mut found, &mut distances, &mut Vec::new());
            (found, distances)
        })
        .collect();
    distances.fill(f32::INFINITY);
    for (group, (rows, (found, near))) in of_group.iter().zip(found).enumerate() {
        for ((&row, found), near) in rows.iter().zip(found).zip(near) {
            if near < distances[row] {
                distances[row] = near;
                assignment[row] = starts[group] as u32 + found;
            }
        }
    }
}

/// Shares `k` centres among groups in proportion to their sizes: at least one each, never more than a group
/// has labels, what rounding leaves over to the largest remainders.
fn apportion(k: usize, sizes: &[usize]) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    let mut shares: Vec<usize> = sizes
        .iter()
        .map(|&size| (k * size / total.max(1)).clamp(1, size.max(1)))
        .collect();
    let mut given: usize = shares.iter().sum();
    while given != k {
        let need = |group: usize| sizes[group] as f64 / shares[group] as f64;
        let change = if given < k {
            (0..sizes.len())
                .filter(|&group| shares[group] < sizes[group])
                .max_by(|&a, &b| need(a).total_cmp(&need(b)).then(b.cmp(&a)))
        } else {
            (0..sizes.len())
                .filter(|&group| shares[group] > 1)
                .min_by(|&a, &b| need(a).total_cmp(&need(b)).then(a.cmp(&b)))
        };
        match change {
            Some(group) if given < k => {
                shares[group] += 1;
                given += 1;
            }
            Some(group) => {
                shares[group] -= 1;
                given -= 1;
            }
            None => break,
        }
    }
    shares
}
