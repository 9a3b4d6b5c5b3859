//! Dual coordinate descent for all labels of a cluster at once.
//!
//! The labels of a cluster learn from the same documents. Solved one by one, each pass reads every document again for
//! every label, and every word of it is a jump into another place of a long weight vector. Here one visit of a document
//! serves up to 64 labels: weights lie feature-major, the coordinates α_{i,l} of all labels l take their step together,
//! and each step is exactly the one that [`super::hinge`] or [`super::logistic`] takes. Labels that have converged leave,
//! and the block closes ranks. There is no shrinking: skipping a document pays only when every label agrees.

use super::lanes::Instructions;
use super::solve::Order;
use super::{Costs, Dual, Loss, Rows, SolverOptions};

/// Most labels solved together: eight AVX registers, and a weight row of four cache lines.
pub const LANES: usize = 64;

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
        let mut made = Self {
            documents: documents.to_vec(),
            offsets: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
            squared: documents.iter().map(|&d| rows.squared(d as usize)).collect(),
            columns,
        };
        for &document in documents {
            rows.for_each(document as usize, |column, value| {
                made.indices.push(local_of[column]);
                made.values.push(value);
            });
            made.offsets.push(made.indices.len());
        }
        made
    }

    fn row(&self, at: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[at]..self.offsets[at + 1];
        (&self.indices[range.clone()], &self.values[range])
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
    while block.iterations < options.max_iterations && !block.lanes.is_empty() {
        match block.width {
            64 => block.pass::<64>(),
            32 => block.pass::<32>(),
            16 => block.pass::<16>(),
            _ => block.pass::<8>(),
        }
        block.let_converged_leave();
    }
    block.finish()
}

struct Block<'a> {
    rows: &'a LocalRows,
    loss: Loss,
    instructions: Instructions,
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
    done: Vec<Option<Solution>>,
}

#[derive(Clone, Copy)]
struct Lane {
    label: usize,
    cost: [f32; 2],
    converged: bool,
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
            instructions: Instructions::of_this_machine(),
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
        let ridge = cost.map(|side| side.map(|c| 0.5 / c));
        let idle = 0.01 * self.tolerance;
        let (mut largest, mut smallest) = ([f32::NEG_INFINITY; N], [f32::INFINITY; N]);
        let mut margins = [0.0f32; N];
        for &at in &self.visit {
            let at = at as usize;
            let (indices, values) = self.rows.row(at);
            self.instructions
                .margins(&self.weights, indices, values, &mut margins);
            let (mut sign, mut here) = ([-1.0f32; N], ridge[0]);
            let mut positive = self.positive[at];
            while positive != 0 {
                let lane = positive.trailing_zeros() as usize;
                (sign[lane], here[lane]) = (1.0, ridge[1][lane]);
                positive &= positive - 1;
            }
            let squared = self.rows.squared[at];
            let alphas: &mut [f32; N] = (&mut self.alphas[at * N..(at + 1) * N])
                .try_into()
                .expect("a row has N lanes");
            let mut steps = [0.0f32; N];
            let mut any = 0.0f32;
            for l in 0..N {
                let alpha = alphas[l];
                let gradient = sign[l] * margins[l] - 1.0 + alpha * here[l];
                let projected = if alpha > 0.0 { gradient } else { gradient.min(0.0) };
                largest[l] = largest[l].max(projected);
                smallest[l] = smallest[l].min(projected);
                let moved = (alpha - gradient / (squared + here[l])).max(0.0);
                let step = if projected.abs() > idle {
                    (moved - alpha) * active[l]
                } else {
                    0.0
                };
                alphas[l] = alpha + step;
                steps[l] = step * sign[l];
                any = any.max(step.abs());
            }
            if any > 0.0 {
                self.instructions.step(&mut self.weights, indices, values, &steps);
            }
        }
        std::array::from_fn(|l| largest[l] - smallest[l])
    }

    /// Steepest slope of each lane.
    fn logistic_pass<const N: usize>(&mut self, active: &[f32; N], cost: &[[f32; N]; 2]) -> [f32; N] {
        let mut steepest = [0.0f32; N];
        let mut margins = [0.0f32; N];
        let mut newton_steps = 0;
        for &at in &self.visit {
            let at = at as usize;
            let (indices, values) = self.rows.row(at);
            self.instructions
                .margins(&self.weights, indices, values, &mut margins);
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
                self.instructions.step(&mut self.weights, indices, values, &steps);
            }
        }
        if newton_steps <= self.visit.len() * self.lanes.len() / 10 {
            self.inner_tolerance = (0.1 * self.inner_tolerance).max(1e-6);
        }
        steepest
    }

    /// Takes converged labels out once half of the lanes would be idle, or none is left.
    fn let_converged_leave(&mut self) {
        let left: Vec<usize> = (0..self.lanes.len())
            .filter(|&l| !self.lanes[l].converged)
            .collect();
        if left.is_empty() || width_for(left.len()) < self.width {
            for l in (0..self.lanes.len()).filter(|l| self.lanes[*l].converged) {
                self.done[self.lanes[l].label] = Some(self.extract(l));
            }
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
            self.width = width;
        }
    }

    fn extract(&self, lane: usize) -> Solution {
        let weights = self.weights.chunks_exact(self.width).zip(&self.rows.columns);
        let alphas = self.alphas.chunks_exact(self.width).zip(&self.rows.documents);
        Solution {
            weights: weights
                .filter(|(w, _)| w[lane] != 0.0)
                .map(|(w, &c)| (c, w[lane]))
                .collect(),
            dual: Dual {
                alphas: alphas
                    .filter(|(a, _)| a[lane] > 0.0)
                    .map(|(a, &d)| (d, a[lane]))
                    .collect(),
                iterations: self.iterations,
            },
        }
    }

    fn finish(mut self) -> Vec<Solution> {
        for l in 0..self.lanes.len() {
            self.done[self.lanes[l].label] = Some(self.extract(l));
        }
        self.done
            .into_iter()
            .map(|solution| solution.expect("every lane was extracted"))
            .collect()
    }
}
