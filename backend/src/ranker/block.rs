//! Dual coordinate descent for all labels of a cluster at once.
//!
//! The labels of a cluster learn from the same documents. Solved one by one, each pass reads every document again for
//! every label, and every word of it is a jump into another place of a long weight vector. Here one visit of a document
//! serves up to 64 labels: weights lie feature-major, the coordinates α_{i,l} of all labels l take their step together,
//! and each step is exactly the one that [`super::hinge`] or [`super::logistic`] takes. Labels that have converged leave,
//! and the block closes ranks.
//!
//! Under the squared hinge most documents soon rest for most labels, and no document rests for all of them. So after a pass or two ([`together`])
//! each label goes on alone, with the few documents that may still move it, until these have converged; then all labels look at all
//! documents together again. Only what such a pass finds at rest has converged.
#![allow(unsafe_code)] // One label alone reads and writes its weights without a check a number; a row's indices are checked once.

use std::ops::Range;

use super::hinge::{self, Descent, Documents};
use super::lanes::{HingeTurn, Instructions};
use super::rows::dot_dense;
use super::solve::Order;
use super::{Costs, Dual, Loss, Rows, SolverOptions};

/// Most labels solved together: eight AVX registers, and a weight row of four cache lines.
pub const LANES: usize = 64;

/// Passes of all labels before each goes on alone for the first time: from nothing the first leaves too much unsettled to tell who rests, from
/// an earlier solution it does not.
const fn together(warm: bool) -> usize {
    if warm { 1 } else { 2 }
}
/// Passes of one label alone at most before all look again.
const ALONE: usize = 20;
/// Lanes whose weights are copied out at once: one cache line holds two.
const TILE: usize = 8;

/// The documents of one cluster with the features they use numbered from 0.
#[derive(Clone, Debug)]
pub struct LocalRows {
    documents: Vec<u32>,
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    squared: Vec<f32>,
    /// Position in a full weight vector of each local feature.
    columns: Vec<u32>,
    /// The run of local features that every row has in full: the document's vector.
    dense: Range<usize>,
    /// Stored numbers of a row behind its words: the vector, and the intercept.
    tail: usize,
    instructions: Instructions,
}

impl LocalRows {
    /// Copies `documents` (ascending) out of `rows`, keeping only the columns they use.
    pub fn new(rows: &Rows, documents: &[u32]) -> Self {
        let mut local_of = vec![u32::MAX; rows.width()];
        for &document in documents {
            rows.for_each(document as usize, |column, _| local_of[column] = 0);
        }
        let columns: Vec<u32> = (0..rows.width() as u32)
            .filter(|&c| local_of[c as usize] == 0)
            .collect();
        for (local, &column) in columns.iter().enumerate() {
            local_of[column as usize] = local as u32;
        }
        let words = columns.partition_point(|&column| (column as usize) < rows.columns());
        let dims = if documents.is_empty() { 0 } else { rows.dims() };
        let mut made = Self {
            documents: documents.to_vec(),
            offsets: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
            squared: documents.iter().map(|&d| rows.squared(d as usize)).collect(),
            dense: words..words + dims,
            tail: columns.len() - words,
            columns,
            instructions: Instructions::of_this_machine(),
        };
        for &document in documents {
            rows.for_each(document as usize, |column, value| {
                made.indices.push(local_of[column]);
                made.values.push(value);
            });
            made.offsets.push(made.indices.len());
        }
        let features = made.columns.len();
        assert!(
            i32::try_from(features).is_ok(),
            "a cluster uses fewer than 2³¹ features"
        );
        assert!(made.indices.iter().all(|&index| (index as usize) < features));
        made
    }

    fn row(&self, at: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[at]..self.offsets[at + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// A row's words, its vector, and its intercept: the vector needs no indices.
    #[inline(always)]
    fn parts(&self, at: usize) -> (Stored<'_>, &[f32], Stored<'_>) {
        let (indices, values) = self.row(at);
        let words = indices.len() - self.tail;
        let last = words + self.dense.len();
        (
            (&indices[..words], &values[..words]),
            &values[words..last],
            (&indices[last..], &values[last..]),
        )
    }
}

/// Local features and their values.
type Stored<'a> = (&'a [u32], &'a [f32]);

impl Documents for LocalRows {
    #[inline(always)]
    fn dot(&self, at: usize, weights: &[f32]) -> f32 {
        let ((indices, values), vector, (last_indices, last_values)) = self.parts(at);
        assert_eq!(weights.len(), self.columns.len());
        // SAFETY: a row's indices number the local features, of which there are as many as weights; a full weight vector has 32-bit places.
        let mut read = unsafe { self.instructions.gathered_dot(weights, indices, values) };
        for (&index, value) in last_indices.iter().zip(last_values) {
            read += weights[index as usize] * value;
        }
        if vector.is_empty() {
            return read;
        }
        read + dot_dense(&weights[self.dense.clone()], vector)
    }

    #[inline(always)]
    fn add(&self, at: usize, step: f32, weights: &mut [f32]) {
        let (words, vector, last) = self.parts(at);
        assert_eq!(weights.len(), self.columns.len());
        for (indices, values) in [words, last] {
            for (&index, &value) in indices.iter().zip(values) {
                // SAFETY: as for the product.
                *unsafe { weights.get_unchecked_mut(index as usize) } += step * value;
            }
        }
        (self.instructions).dense_step(&mut weights[self.dense.clone()], vector, step);
    }

    #[inline]
    fn squared(&self, at: usize) -> f32 {
        self.squared[at]
    }
}

/// One label's place in a block.
#[derive(Clone, Copy, Debug)]
pub struct LabelProblem<'a> {
    /// The documents that hold the label, ascending; those outside the block's documents are ignored.
    pub positives: &'a [u32],
    pub costs: Costs,
    pub start: Option<&'a Dual>,
}

/// A solved label: its weights by position in a full weight vector, ascending, zeros left out.
#[derive(Clone, Debug)]
pub struct Solution {
    pub weights: Vec<(u32, f32)>,
    pub dual: Dual,
}

/// Solves up to [`LANES`] labels over the same documents; one solution a label, in order.
pub fn solve(
    rows: &LocalRows,
    labels: &[LabelProblem<'_>],
    loss: Loss,
    options: &SolverOptions,
) -> Vec<Solution> {
    assert!(
        labels.len() <= LANES,
        "a block has at most {LANES} labels, found {}",
        labels.len()
    );
    let mut block = Block::new(rows, labels, loss, options);
    block.start(labels);
    let together = together(labels.iter().any(|label| label.start.is_some()));
    while block.iterations < options.max_iterations && !block.lanes.is_empty() {
        match block.width {
            64 => block.pass::<64>(),
            32 => block.pass::<32>(),
            16 => block.pass::<16>(),
            _ => block.pass::<8>(),
        }
        block.let_converged_leave();
        if loss == Loss::SquaredHinge && block.iterations >= together {
            block.go_on_alone();
        }
    }
    block.finish()
}

struct Block<'a> {
    rows: &'a LocalRows,
    loss: Loss,
    tolerance: f32,
    inner_tolerance: f32,
    order: Order,
    visit: Vec<u32>,
    iterations: usize,
    /// Numbers in a row of `weights` and `alphas`: 8, 16, 32 or 64.
    width: usize,
    /// The label behind each lane.
    lanes: Vec<Lane>,
    /// features × width
    weights: Vec<f32>,
    /// documents × width
    alphas: Vec<f32>,
    /// C − α, kept apart by the logistic loss because near a bound one has no digits left in the other.
    complements: Vec<f32>,
    /// Which lanes each document is positive for.
    positive: Vec<u64>,
    /// The documents that moved each lane in the last pass, of the squared hinge only.
    moved: Vec<Vec<u32>>,
    done: Vec<Option<Solution>>,
}

#[derive(Clone, Copy)]
struct Lane {
    label: usize,
    cost: [f32; 2],
    converged: bool,
}

/// The places of the ones.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}

fn width_for(lanes: usize) -> usize {
    lanes.next_power_of_two().max(8)
}

impl<'a> Block<'a> {
    fn new(rows: &'a LocalRows, labels: &[LabelProblem<'_>], loss: Loss, options: &SolverOptions) -> Self {
        let width = width_for(labels.len());
        let documents = rows.documents.len();
        let lanes = labels.iter().enumerate().map(|(label, problem)| Lane {
            label,
            cost: [problem.costs.negative as f32, problem.costs.positive as f32],
            converged: false,
        });
        let complements = if loss == Loss::Logistic {
            documents * width
        } else {
            0
        };
        Self {
            rows,
            loss,
            tolerance: options.tolerance as f32,
            inner_tolerance: 1e-2,
            order: Order::new(options.seed),
            visit: (0..documents as u32).collect(),
            iterations: 0,
            width,
            lanes: lanes.collect(),
            weights: vec![0.0; rows.columns.len() * width],
            alphas: vec![0.0; documents * width],
            complements: vec![0.0; complements],
            positive: vec![0; documents],
            moved: vec![Vec::new(); labels.len()],
            done: vec![None; labels.len()],
        }
    }

    /// Lays out signs and first α, and the weights they imply.
    fn start(&mut self, labels: &[LabelProblem<'_>]) {
        for (lane, problem) in labels.iter().enumerate() {
            for document in problem.positives {
                if let Ok(at) = self.rows.documents.binary_search(document) {
                    self.positive[at] |= 1 << lane;
                }
            }
            for &(document, alpha) in problem.start.iter().flat_map(|dual| &dual.alphas) {
                if let Ok(at) = self.rows.documents.binary_search(&document) {
                    self.alphas[at * self.width + lane] = alpha;
                }
            }
        }
        for at in 0..self.rows.documents.len() {
            let (indices, values) = self.rows.row(at);
            for (lane, problem) in labels.iter().enumerate() {
                let positive = self.positive[at] >> lane & 1;
                let cell = at * self.width + lane;
                if self.loss == Loss::Logistic {
                    let cost = self.lanes[lane].cost[positive as usize];
                    let inside = (1e-3 * cost).min(1e-8);
                    self.alphas[cell] = self.alphas[cell].clamp(inside, cost * (1.0 - 1e-6));
                    self.complements[cell] = cost - self.alphas[cell];
                }
                // From nothing every α is as good as zero: the weights need no pass.
                if problem.start.is_some() && self.alphas[cell] > 0.0 {
                    let step = if positive == 1 {
                        self.alphas[cell]
                    } else {
                        -self.alphas[cell]
                    };
                    for (&index, &value) in indices.iter().zip(values) {
                        self.weights[index as usize * self.width + lane] += step * value;
                    }
                }
            }
        }
    }

    /// Visits every document once.
    fn pass<const N: usize>(&mut self) {
        let mut order = self.order.clone();
        order.shuffle(&mut self.visit);
        self.order = order;
        self.iterations += 1;
        let mut active = [0.0f32; N];
        let mut cost = [[1.0f32; N]; 2];
        for (l, lane) in self.lanes.iter().enumerate() {
            active[l] = f32::from(!lane.converged);
            cost[0][l] = lane.cost[0];
            cost[1][l] = lane.cost[1];
        }
        let violation = match self.loss {
            Loss::SquaredHinge => self.hinge_pass::<N>(&active, &cost),
            Loss::Logistic => self.logistic_pass::<N>(&active, &cost),
        };
        for (lane, violation) in self.lanes.iter_mut().zip(violation) {
            lane.converged |= violation <= self.tolerance;
        }
    }

    /// Largest minus smallest projected gradient of each lane.
    fn hinge_pass<const N: usize>(&mut self, active: &[f32; N], cost: &[[f32; N]; 2]) -> [f32; N] {
        for moved in &mut self.moved {
            moved.clear();
        }
        let ridge = cost.map(|side| side.map(|c| 0.5 / c));
        let mut turn = HingeTurn {
            margins: [0.0; N],
            signs: [-1.0; N],
            ridge: ridge[0],
            squared: 0.0,
            active: *active,
            idle: hinge::idle(self.tolerance),
            largest: [f32::NEG_INFINITY; N],
            smallest: [f32::INFINITY; N],
            steps: [0.0; N],
        };
        for &at in &self.visit {
            let at = at as usize;
            let (indices, values) = self.rows.row(at);
            (self.rows.instructions).margins(&self.weights, indices, values, &mut turn.margins);
            (turn.signs, turn.ridge) = ([-1.0; N], ridge[0]);
            for lane in bits(self.positive[at]) {
                (turn.signs[lane], turn.ridge[lane]) = (1.0, ridge[1][lane]);
            }
            turn.squared = self.rows.squared[at];
            let alphas: &mut [f32; N] = (&mut self.alphas[at * N..(at + 1) * N])
                .try_into()
                .expect("a row has N lanes");
            let moved = self.rows.instructions.turn(&mut turn, alphas);
            if moved != 0 {
                for lane in bits(moved) {
                    self.moved[lane].push(at as u32);
                }
                (self.rows.instructions).step(&mut self.weights, indices, values, &turn.steps);
            }
        }
        std::array::from_fn(|l| turn.largest[l] - turn.smallest[l])
    }

    /// Steepest slope of each lane.
    fn logistic_pass<const N: usize>(&mut self, active: &[f32; N], cost: &[[f32; N]; 2]) -> [f32; N] {
        let mut steepest = [0.0f32; N];
        let mut margins = [0.0f32; N];
        let mut newton_steps = 0;
        for &at in &self.visit {
            let at = at as usize;
            let (indices, values) = self.rows.row(at);
            (self.rows.instructions).margins(&self.weights, indices, values, &mut margins);
            let a = self.rows.squared[at];
            let mut steps = [0.0f32; N];
            let mut any = false;
            for l in 0..self.lanes.len() {
                if active[l] == 0.0 {
                    continue;
                }
                let positive = (self.positive[at] >> l & 1) as usize;
                let sign = if positive == 1 { 1.0 } else { -1.0 };
                let c = cost[positive][l];
                let b = sign * margins[l];
                let cell = at * N + l;
                let (alpha, complement) = (self.alphas[cell], self.complements[cell]);
                let lower = 0.5 * a * (complement - alpha) + b >= 0.0;
                let (old, direction) = if lower { (alpha, 1.0) } else { (complement, -1.0) };
                let mut z = if c - old < 0.5 * c { 0.1 * old } else { old };
                let slope_at = |z: f32| a * (z - old) + direction * b + (z / (c - z)).ln();
                let mut slope = slope_at(z);
                steepest[l] = steepest[l].max(slope.abs());
                let mut tries = 0;
                while slope.abs() >= self.inner_tolerance && tries < 50 {
                    let newton = z - slope / (a + c / (c - z) / z);
                    z = if newton <= 0.0 { z * 0.1 } else { newton };
                    slope = slope_at(z);
                    tries += 1;
                }
                if tries > 0 {
                    newton_steps += tries;
                    any = true;
                    let step = direction * (z - old);
                    let (alpha, complement) = if lower { (z, c - z) } else { (c - z, z) };
                    (self.alphas[cell], self.complements[cell]) = (alpha, complement);
                    steps[l] = step * sign;
                }
            }
            if any {
                self.rows
                    .instructions
                    .step(&mut self.weights, indices, values, &steps);
            }
        }
        if newton_steps <= self.visit.len() * self.lanes.len() / 10 {
            self.inner_tolerance = (0.1 * self.inner_tolerance).max(1e-6);
        }
        steepest
    }

    /// Lets every label that has not converged descend by itself over its active documents.
    fn go_on_alone(&mut self) {
        let documents = self.rows.documents.len();
        let mut signs = vec![0.0; documents];
        let mut shrunk = Vec::new();
        let (mut weights, mut alphas) = (Columns::default(), Columns::default());
        for first in (0..self.lanes.len()).step_by(TILE) {
            if self.lanes[first..].iter().take(TILE).all(|lane| lane.converged) {
                continue;
            }
            copy_columns(&self.weights, self.width, first, &mut weights);
            copy_columns(&self.alphas, self.width, first, &mut alphas);
            for (lane, (weights, alphas)) in
                (first..self.lanes.len()).zip(weights.iter_mut().zip(&mut alphas))
            {
                let Lane { cost, converged, .. } = self.lanes[lane];
                if converged {
                    continue;
                }
                for (sign, positive) in signs.iter_mut().zip(&self.positive) {
                    *sign = if positive >> lane & 1 == 1 { 1.0 } else { -1.0 };
                }
                let costs = Costs {
                    negative: f64::from(cost[0]),
                    positive: f64::from(cost[1]),
                };
                let mut descent = Descent::new(self.rows, &signs, costs, self.tolerance);
                let active = &mut self.moved[lane];
                shrunk.clear();
                for _ in 0..ALONE {
                    self.order.shuffle(active);
                    if (self.rows.instructions).descend(&mut descent, active, &mut shrunk, alphas, weights) {
                        break;
                    }
                }
            }
            put_columns(&weights, &mut self.weights, self.width, first);
            put_columns(&alphas, &mut self.alphas, self.width, first);
        }
    }

    /// Takes converged labels out once half of the lanes would be idle, or none is left.
    fn let_converged_leave(&mut self) {
        let left: Vec<usize> = (0..self.lanes.len())
            .filter(|&l| !self.lanes[l].converged)
            .collect();
        if left.is_empty() || width_for(left.len()) < self.width {
            self.extract(|lane| lane.converged);
            let width = width_for(left.len());
            let narrow = |wide: &[f32]| -> Vec<f32> {
                let mut made = vec![0.0; wide.len() / self.width * width];
                for (new, old) in made.chunks_exact_mut(width).zip(wide.chunks_exact(self.width)) {
                    for (lane, &from) in left.iter().enumerate() {
                        new[lane] = old[from];
                    }
                }
                made
            };
            (self.weights, self.alphas, self.complements) = (
                narrow(&self.weights),
                narrow(&self.alphas),
                narrow(&self.complements),
            );
            for positive in &mut self.positive {
                let old = *positive;
                *positive = (left.iter().enumerate()).fold(0, |m, (l, &f)| m | (old >> f & 1) << l);
            }
            self.lanes = left.iter().map(|&l| self.lanes[l]).collect();
            self.moved = left.iter().map(|&l| std::mem::take(&mut self.moved[l])).collect();
            self.width = width;
        }
    }

    /// Writes down the solutions of the lanes that leave.
    fn extract(&mut self, leaves: impl Fn(&Lane) -> bool) {
        let (mut weights, mut alphas) = (Columns::default(), Columns::default());
        for first in (0..self.lanes.len()).step_by(TILE) {
            let tile = &self.lanes[first..self.lanes.len().min(first + TILE)];
            if !tile.iter().any(&leaves) {
                continue;
            }
            copy_columns(&self.weights, self.width, first, &mut weights);
            copy_columns(&self.alphas, self.width, first, &mut alphas);
            for (lane, (weights, alphas)) in tile.iter().zip(weights.iter().zip(&alphas)) {
                if leaves(lane) {
                    let weights = self.rows.columns.iter().zip(weights);
                    let alphas = self.rows.documents.iter().zip(alphas);
                    self.done[lane.label] = Some(Solution {
                        weights: weights.filter(|w| *w.1 != 0.0).map(|(&c, &w)| (c, w)).collect(),
                        dual: Dual {
                            alphas: alphas.filter(|a| *a.1 > 0.0).map(|(&d, &a)| (d, a)).collect(),
                            iterations: self.iterations,
                        },
                    });
                }
            }
        }
    }

    fn finish(mut self) -> Vec<Solution> {
        self.extract(|_| true);
        self.done
            .into_iter()
            .map(|solution| solution.expect("every lane was extracted"))
            .collect()
    }
}

/// [`TILE`] columns, each in one piece.
type Columns = [Vec<f32>; TILE];

/// Copies the [`TILE`] columns from `first` on out of rows that are `width` wide, eight rows at once.
fn copy_columns(rows: &[f32], width: usize, first: usize, columns: &mut Columns) {
    const EIGHT: usize = 8;
    for column in columns.iter_mut() {
        column.resize(rows.len() / width, 0.0);
    }
    for (nth, eight) in rows.chunks(EIGHT * width).enumerate() {
        let mut turned = [[0.0f32; EIGHT]; TILE];
        let count = eight.len() / width;
        for (at, row) in eight.chunks_exact(width).enumerate() {
            for (turned, &value) in turned.iter_mut().zip(&row[first..first + TILE]) {
                turned[at] = value;
            }
        }
        for (column, turned) in columns.iter_mut().zip(&turned) {
            column[nth * EIGHT..][..count].copy_from_slice(&turned[..count]);
        }
    }
}

fn put_columns(columns: &Columns, rows: &mut [f32], width: usize, first: usize) {
    for (at, row) in rows.chunks_exact_mut(width).enumerate() {
        for (value, column) in row[first..first + TILE].iter_mut().zip(columns) {
            *value = column[at];
        }
    }
}
