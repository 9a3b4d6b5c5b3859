//! Squared hinge by dual coordinate descent with shrinking.
//!
//! Primal: min_w ½‖w‖² + Σ C_i max(0, 1 − y_i w·x_i)².
//! Dual: min_α ½ αᵀ(Q + D)α − eᵀα with α ≥ 0, Q_ij = y_i y_j x_i·x_j, D_ii = 1/(2C_i), and w = Σ α_i y_i x_i.
//!
//! One step takes document i, reads its gradient G = y_i w·x_i − 1 + D_ii α_i, and moves α_i to max(0, α_i − G/(Q_ii + D_ii)).
//! A document that rests at α = 0 with a gradient above the last pass's largest violation is left out (shrinking) until
//! the rest has converged; then everything is looked at once more.

use super::lanes::Instructions;
use super::solve::Order;
use super::{Costs, Dual, Problem, SolverOptions};

/// max(0, 1 − m)², for [`Problem::objective`].
pub fn loss(margin: f64) -> f64 {
    (1.0 - margin).max(0.0).powi(2)
}

/// Documents that a label learns from, by their place.
pub(super) trait Documents {
    /// w·x.
    fn dot(&self, at: usize, weights: &[f32]) -> f32;
    /// w ← w + step·x.
    fn add(&self, at: usize, step: f32, weights: &mut [f32]);
    /// ‖x‖².
    fn squared(&self, at: usize) -> f32;
}

impl Documents for Problem<'_> {
    #[inline]
    fn dot(&self, at: usize, weights: &[f32]) -> f32 {
        self.rows.dot(self.documents[at] as usize, weights)
    }

    #[inline]
    fn add(&self, at: usize, step: f32, weights: &mut [f32]) {
        self.rows.add(self.documents[at] as usize, step, weights);
    }

    #[inline]
    fn squared(&self, at: usize) -> f32 {
        self.rows.squared(self.documents[at] as usize)
    }
}

/// The descent of one label over the documents that are still active.
pub(super) struct Descent<'a, D> {
    pub documents: &'a D,
    /// +1 or −1 of each document.
    pub signs: &'a [f32],
    pub costs: Costs,
    pub tolerance: f32,
    /// Above it the gradient of a document at α = 0 sends it away: the largest violation of the last pass.
    upper: f32,
}

impl<'a, D: Documents> Descent<'a, D> {
    pub(super) fn new(documents: &'a D, signs: &'a [f32], costs: Costs, tolerance: f32) -> Self {
        Self {
            documents,
            signs,
            costs,
            tolerance,
            upper: f32::INFINITY,
        }
    }

    /// Visits the active documents once, in their order; those that rest go over to `shrunk`. Answers whether the others have converged.
    /// Called through [`super::lanes::Instructions::descend`], which compiles it for the machine.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        active: &mut Vec<u32>,
        shrunk: &mut Vec<u32>,
        alphas: &mut [f32],
        weights: &mut [f32],
    ) -> bool {
        let ridge = [self.costs.negative, self.costs.positive].map(|cost| (0.5 / cost) as f32);
        let idle = idle(self.tolerance);
        let (mut largest, mut smallest) = (f32::NEG_INFINITY, f32::INFINITY);
        let mut next = 0;
        while next < active.len() {
            let at = active[next] as usize;
            let (sign, alpha) = (self.signs[at], alphas[at]);
            let ridge = ridge[usize::from(sign > 0.0)];
            let gradient = sign * self.documents.dot(at, weights) - 1.0 + alpha * ridge;
            if alpha == 0.0 && gradient > self.upper {
                shrunk.push(active.swap_remove(next));
                continue;
            }
            let projected = if alpha == 0.0 { gradient.min(0.0) } else { gradient };
            largest = largest.max(projected);
            smallest = smallest.min(projected);
            if projected.abs() > idle {
                let moved = (alpha - gradient / (self.documents.squared(at) + ridge)).max(0.0);
                alphas[at] = moved;
                self.documents.add(at, (moved - alpha) * sign, weights);
            }
            next += 1;
        }
        self.upper = if largest <= 0.0 { f32::INFINITY } else { largest };
        largest - smallest <= self.tolerance || active.is_empty()
    }
}

/// A step that moves the gradient by less than a hundredth of what the stopping rule sees is not worth its write.
pub(super) fn idle(tolerance: f32) -> f32 {
    0.01 * tolerance
}

/// Solves in `weights` (length [`super::Rows::width`]) and returns the dual variables.
///
/// On entry `weights` are the w₀ that the solution is held to: ½‖w − w₀‖² instead of ½‖w‖². Zeros for a fresh label; what a
/// label has learned before, for one that learns on.
pub fn solve(
    problem: &Problem<'_>,
    options: &SolverOptions,
    start: Option<&Dual>,
    weights: &mut [f32],
) -> Dual {
    let signs = problem.signs();
    let mut alphas = problem.warm(start);
    for (at, (&sign, &alpha)) in signs.iter().zip(&alphas).enumerate() {
        if alpha > 0.0 {
            problem.add(at, alpha * sign, weights);
        }
    }

    let instructions = Instructions::of_this_machine();
    let mut descent = Descent::new(problem, &signs, problem.costs, options.tolerance as f32);
    let mut order = Order::new(options.seed);
    let mut active: Vec<u32> = (0..problem.documents.len() as u32).collect();
    let mut shrunk: Vec<u32> = Vec::new();
    let mut iterations = 0;
    while iterations < options.max_iterations {
        iterations += 1;
        order.shuffle(&mut active);
        if instructions.descend(&mut descent, &mut active, &mut shrunk, &mut alphas, weights) {
            if shrunk.is_empty() {
                break;
            }
            active.append(&mut shrunk);
            active.sort_unstable();
            descent.upper = f32::INFINITY;
        }
    }
    let support = problem
        .documents
        .iter()
        .zip(&alphas)
        .filter(|(_, alpha)| **alpha > 0.0);
    Dual {
        alphas: support.map(|(&document, &alpha)| (document, alpha)).collect(),
        iterations,
    }
}
