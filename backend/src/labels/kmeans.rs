//! Mini-batch k-means: k-means++ start, per-centre rates 1/count, a few full passes to settle.
//!
//! Sums go through [`Collective`]; every rank draws the same batches from the same seed and takes its share
//! of each. Rows come from a [`RowSource`], so that the sampled filter never holds all of them.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::LabelError;
use super::centres::Centres;
use super::rows::RowSource;
use super::seeding::plus_plus;
use crate::collective::Collective;

/// Rows gathered at a time in a full pass.
pub(super) const ROWS_A_PASS: usize = 8192;

/// What decides a k-means besides the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KMeansOptions {
    pub(super) k: usize,
    pub(super) batch: usize,
    /// Epochs of mini-batches at most.
    pub(super) epochs: usize,
    /// Full passes at most after the mini-batches.
    pub(super) passes: usize,
    pub(super) seed: u64,
}

/// A partition of the rows.
#[derive(Clone, Debug)]
pub(super) struct Clustering {
    pub(super) centres: Centres,
    pub(super) assignment: Vec<u32>,
    /// Squared distance of each row to its centre.
    pub(super) distances: Vec<f32>,
}

impl Clustering {
    /// Σ squared distances to the centres, every row counted once.
    pub(super) fn inertia(&self) -> f64 {
        self.distances.iter().map(|&d| f64::from(d)).sum()
    }
}

/// Weighted sums of the rows of each cluster.
struct Sums {
    width: usize,
    totals: Vec<f64>,
    weights: Vec<f64>,
    inertia: f64,
}

impl Sums {
    fn new(k: usize, width: usize) -> Self {
        Self {
            width,
            totals: vec![0.0; k * width],
            weights: vec![0.0; k],
            inertia: 0.0,
        }
    }

    /// Adds the rows named by `which`, whose values are `x`.
    fn add(&mut self, rows: &dyn RowSource, which: &[u32], x: &[f32], found: &[u32], distances: &[f32]) {
        let each = which
            .iter()
            .zip(x.chunks_exact(self.width))
            .zip(found.iter().zip(distances));
        for ((&name, row), (&cluster, &distance)) in each {
            let (cluster, weight) = (cluster as usize, f64::from(rows.weight(name)));
            let totals = &mut self.totals[cluster * self.width..(cluster + 1) * self.width];
            for (total, &value) in totals.iter_mut().zip(row) {
                *total += weight * f64::from(value);
            }
            self.weights[cluster] += weight;
            self.inertia += weight * f64::from(distance);
        }
    }

    fn clear(&mut self) {
        self.totals.fill(0.0);
        self.weights.fill(0.0);
        self.inertia = 0.0;
    }

    fn reduce(&mut self, collective: &dyn Collective) -> Result<(), LabelError> {
        collective.all_reduce(self.totals.as_mut_slice().into())?;
        collective.all_reduce(self.weights.as_mut_slice().into())?;
        let mut inertia = [self.inertia];
        collective.all_reduce(inertia.as_mut_slice().into())?;
        self.inertia = inertia[0];
        Ok(())
    }
}

/// Mini-batch k-means over all rows.
pub(super) fn mini_batch(
    rows: &dyn RowSource,
    options: KMeansOptions,
    collective: &dyn Collective,
) -> Result<Clustering, LabelError> {
    let (n, width, k) = (rows.rows(), rows.width(), options.k);
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.shuffle(&mut rng);

    let start = &order[..n.min((3 * options.batch).max(3 * k))];
    let mut sample = vec![0f32; start.len() * width];
    rows.gather(start, &mut sample);
    let weights: Vec<f32> = start.iter().map(|&row| rows.weight(row)).collect();
    let mut centres = Centres::new(plus_plus(&sample, &weights, width, k, &mut rng), width);
    drop(sample);

    descend(rows, &mut centres, &mut order, options, &mut rng, collective)?;

    let mut before = f64::INFINITY;
    let mut settled = false;
    let mut passes = 0;
    loop {
        let last = settled || passes >= options.passes;
        let (assignment, distances, sums) = pass(rows, &centres, collective)?;
        if last {
            let mut clustering = Clustering {
                centres,
                assignment,
                distances,
            };
            fill_empty(rows, &mut clustering);
            return Ok(clustering);
        }
        settled = sums.inertia >= before * (1.0 - SETTLED);
        before = sums.inertia;
        recentre(&mut centres, &sums);
        passes += 1;
    }
}

/// A full pass that lowers the inertia by less than this share is the last.
const SETTLED: f64 = 1e-2;
/// Mini-batches without a better running inertia before they stop.
const PATIENCE: usize = 6;

/// Mini-batch descent. For a batch assigned with the centres before it, updating centre c by each of its m
/// rows in turn at the rate 1/count comes to c ← (v·c + Σx)/(v + m), v being the rows it has seen; with weights, v and m add those up.
fn descend(
    rows: &dyn RowSource,
    centres: &mut Centres,
    order: &mut [u32],
    options: KMeansOptions,
    rng: &mut ChaCha8Rng,
    collective: &dyn Collective,
) -> Result<(), LabelError> {
    let (width, k) = (rows.width(), options.k);
    let batch = options.batch.max(k).min(order.len());
    let share = collective.share(batch);
    let mut x = vec![0f32; share.len() * width];
    let (mut found, mut distances) = (vec![0u32; share.len()], vec![0f32; share.len()]);
    let mut sums = Sums::new(k, width);
    let mut seen = vec![0f64; k];
    let mut seen_this_epoch = vec![false; k];
    let (mut running, mut best, mut stale) = (None::<f64>, f64::INFINITY, 0);
    // The running inertia forgets as fast as the epoch turns over.
    let forget = (2.0 * batch as f64 / (order.len() + 1) as f64).min(1.0);
    for _epoch in 0..options.epochs {
        order.shuffle(rng);
        seen_this_epoch.fill(false);
        for picked in order.chunks_exact(batch) {
            let mine = &picked[share.clone()];
            rows.gather(mine, &mut x);
            centres.nearest(&x, &mut found, &mut distances);
            sums.clear();
            sums.add(rows, mine, &x, &found, &distances);
            sums.reduce(collective)?;
            for cluster in 0..k {
                let m = sums.weights[cluster];
                if m == 0.0 {
                    continue;
                }
                seen[cluster] += m;
                seen_this_epoch[cluster] = true;
                let rate = 1.0 / seen[cluster];
                let totals = &sums.totals[cluster * width..(cluster + 1) * width];
                centres.change(cluster, |centre| {
                    for (value, &total) in centre.iter_mut().zip(totals) {
                        *value += (rate * (total - m * f64::from(*value))) as f32;
                    }
                });
            }
            let now = sums.inertia / batch as f64;
            let smooth = running.map_or(now, |before| before + forget * (now - before));
            running = Some(smooth);
            if smooth < best {
                best = smooth;
                stale = 0;
            } else {
                stale += 1;
                if stale >= PATIENCE {
                    return Ok(());
                }
            }
        }
        reseed(rows, centres, order, &seen_this_epoch, &mut seen);
    }
    Ok(())
}

/// Gives centres that no row chose in a whole epoch a new place: the rows farthest from their centres,
/// among the first of the shuffled order.
fn reseed(rows: &dyn RowSource, centres: &mut Centres, order: &[u32], used: &[bool], seen: &mut [f64]) {
    let empty: Vec<usize> = (0..used.len()).filter(|&cluster| !used[cluster]).collect();
    if empty.is_empty() {
        return;
    }
    let width = rows.width();
    let sample = &order[..order.len().min((4 * empty.len()).max(1024))];
    let mut x = vec![0f32; sample.len() * width];
    rows.gather(sample, &mut x);
    let (mut found, mut distances) = (vec![0u32; sample.len()], vec![0f32; sample.len()]);
    centres.nearest(&x, &mut found, &mut distances);
    let mut farthest: Vec<usize> = (0..sample.len()).collect();
    farthest.sort_by(|&a, &b| distances[b].total_cmp(&distances[a]).then(a.cmp(&b)));
    for (&cluster, &row) in empty.iter().zip(&farthest) {
        if distances[row] > 0.0 {
            centres.change(cluster, |centre| {
                centre.copy_from_slice(&x[row * width..(row + 1) * width]);
            });
            seen[cluster] = f64::from(rows.weight(sample[row]));
        }
    }
}

/// Assigns every row; also the sums that the next centres come from.
fn pass(
    rows: &dyn RowSource,
    centres: &Centres,
    collective: &dyn Collective,
) -> Result<(Vec<u32>, Vec<f32>, Sums), LabelError> {
    let (n, width) = (rows.rows(), rows.width());
    let share = collective.share(n);
    let (mut assignment, mut distances) = (vec![0u32; n], vec![0f32; n]);
    let mut sums = Sums::new(centres.len(), width);
    let mut x = vec![0f32; ROWS_A_PASS.min(n) * width];
    let mut at = share.start;
    while at < share.end {
        let block = at..share.end.min(at + ROWS_A_PASS);
        let which: Vec<u32> = (block.start as u32..block.end as u32).collect();
        let x = &mut x[..block.len() * width];
        rows.gather(&which, x);
        centres.nearest(x, &mut assignment[block.clone()], &mut distances[block.clone()]);
        sums.add(
            rows,
            &which,
            x,
            &assignment[block.clone()],
            &distances[block.clone()],
        );
        at = block.end;
    }
    sums.reduce(collective)?;
    if collective.size() > 1 {
        let mut wide: Vec<u64> = assignment.iter().map(|&cluster| u64::from(cluster)).collect();
        collective.all_reduce(wide.as_mut_slice().into())?;
        assignment = wide.into_iter().map(|cluster| cluster as u32).collect();
        collective.all_reduce(distances.as_mut_slice().into())?;
    }
    Ok((assignment, distances, sums))
}

/// Moves every centre to the weighted mean of its rows; one without rows stays.
fn recentre(centres: &mut Centres, sums: &Sums) {
    for cluster in 0..centres.len() {
        let weight = sums.weights[cluster];
        if weight > 0.0 {
            let totals = &sums.totals[cluster * sums.width..(cluster + 1) * sums.width];
            centres.change(cluster, |centre| {
                for (value, &total) in centre.iter_mut().zip(totals) {
                    *value = (total / weight) as f32;
                }
            });
        }
    }
}

/// Splits the loosest clusters until none is empty: the farther half of its rows goes to the empty one.
/// Where nothing is loose (all rows alike) the largest is split, so that even then none stays empty.
pub(super) fn fill_empty(rows: &dyn RowSource, clustering: &mut Clustering) {
    let k = clustering.centres.len();
    let mut members = vec![Vec::new(); k];
    for (row, &cluster) in clustering.assignment.iter().enumerate() {
        members[cluster as usize].push(row as u32);
    }
    let spread = |members: &[u32], distances: &[f32]| -> f64 {
        members
            .iter()
            .map(|&row| f64::from(distances[row as usize]))
            .sum()
    };
    let mut loose: Vec<f64> = members
        .iter()
        .map(|members| spread(members, &clustering.distances))
        .collect();
    for empty in 0..k {
        if !members[empty].is_empty() {
            continue;
        }
        let Some(donor) = (0..k)
            .filter(|&cluster| members[cluster].len() > 1)
            .max_by(|&a, &b| {
                loose[a]
                    .total_cmp(&loose[b])
                    .then(members[a].len().cmp(&members[b].len()))
                    .then(b.cmp(&a))
            })
        else {
            return;
        };
        let distances = &clustering.distances;
        members[donor].sort_by(|&a, &b| {
            distances[a as usize]
                .total_cmp(&distances[b as usize])
                .then(a.cmp(&b))
        });
        let keep = members[donor].len().div_ceil(2);
        let moved = members[donor].split_off(keep);
        members[empty] = moved;
        for cluster in [donor, empty] {
            settle(rows, clustering, cluster, &members[cluster]);
            loose[cluster] = spread(&members[cluster], &clustering.distances);
        }
    }
}

/// Makes `members` the cluster's rows: centre, assignment and distances.
fn settle(rows: &dyn RowSource, clustering: &mut Clustering, cluster: usize, members: &[u32]) {
    let width = rows.width();
    let mut x = vec![0f32; members.len() * width];
    rows.gather(members, &mut x);
    let mut mean = vec![0f64; width];
    for row in x.chunks_exact(width) {
        for (mean, &value) in mean.iter_mut().zip(row) {
            *mean += f64::from(value) / members.len() as f64;
        }
    }
    clustering.centres.change(cluster, |centre| {
        for (value, &mean) in centre.iter_mut().zip(&mean) {
            *value = mean as f32;
        }
    });
    for (&row, x) in members.iter().zip(x.chunks_exact(width)) {
        clustering.assignment[row as usize] = cluster as u32;
        clustering.distances[row as usize] = x
            .iter()
            .zip(&mean)
            .map(|(&value, &mean)| (f64::from(value) - mean).powi(2))
            .sum::<f64>() as f32;
    }
}

/// A given partition as a clustering: centres at the means.
pub(super) fn around_means(rows: &dyn RowSource, assignment: Vec<u32>, k: usize) -> Clustering {
    let mut clustering = Clustering {
        centres: Centres::new(vec![0.0; k * rows.width()], rows.width()),
        distances: vec![0.0; assignment.len()],
        assignment,
    };
    let mut members = vec![Vec::new(); k];
    for (row, &cluster) in clustering.assignment.iter().enumerate() {
        members[cluster as usize].push(row as u32);
    }
    for (cluster, members) in members.iter().enumerate() {
        settle(rows, &mut clustering, cluster, members);
    }
    clustering
}
