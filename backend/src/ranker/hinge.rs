//! Squared hinge by dual coordinate descent with shrinking.
//!
//! Primal: min_w ½‖w‖² + Σ C_i max(0, 1 − y_i w·x_i)².
//! Dual: min_α ½ αᵀ(Q + D)α − eᵀα with α ≥ 0, Q_ij = y_i y_j x_i·x_j, D_ii = 1/(2C_i), and w = Σ α_i y_i x_i.
//!
//! One step takes document i, reads its gradient G = y_i w·x_i − 1 + D_ii α_i, and moves α_i to max(0, α_i − G/(Q_ii + D_ii)).
//! A document that rests at α = 0 with a gradient above the last pass's largest violation is left out (shrinking) until
//! the rest has converged; then everything is looked at once more.

use super::solve::Order;
use super::{Dual, Problem, SolverOptions};

/// max(0, 1 − m)², for [`Problem::objective`].
pub fn loss(margin: f64) -> f64 {
    (1.0 - margin).max(0.0).powi(2)
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
    let rows = problem.rows;
    let signs = problem.signs();
    let ridge = [
        (0.5 / problem.costs.negative) as f32,
        (0.5 / problem.costs.positive) as f32,
    ];
    let ridge_of = |sign: f32| ridge[usize::from(sign > 0.0)];
    let mut alphas = problem.warm(start);
    for ((&document, &sign), &alpha) in problem.documents.iter().zip(&signs).zip(&alphas) {
        if alpha > 0.0 {
            rows.add(document as usize, alpha * sign, weights);
        }
    }

    let tolerance = options.tolerance as f32;
    // A step that moves the gradient by less than a hundredth of what the stopping rule sees is not worth its write.
    let idle = 0.01 * tolerance;
    let mut order = Order::new(options.seed);
    let mut active: Vec<u32> = (0..problem.documents.len() as u32).collect();
    let mut shrunk: Vec<u32> = Vec::new();
    let (mut upper, mut iterations) = (f32::INFINITY, 0);
    while iterations < options.max_iterations {
        iterations += 1;
        order.shuffle(&mut active);
        let (mut largest, mut smallest) = (f32::NEG_INFINITY, f32::INFINITY);
        let mut at = 0;
        while at < active.len() {
            let i = active[at] as usize;
            let (document, sign, alpha) = (problem.documents[i] as usize, signs[i], alphas[i]);
            let ridge = ridge_of(sign);
            let gradient = sign * rows.dot(document, weights) - 1.0 + alpha * ridge;
            if alpha == 0.0 && gradient > upper {
                shrunk.push(active.swap_remove(at));
                continue;
            }
            let projected = if alpha == 0.0 { gradient.min(0.0) } else { gradient };
            largest = largest.max(projected);
            smallest = smallest.min(projected);
            if projected.abs() > idle {
                let moved = (alpha - gradient / (rows.squared(document) + ridge)).max(0.0);
                alphas[i] = moved;
                rows.add(document, (moved - alpha) * sign, weights);
            }
            at += 1;
        }
        if largest - smallest <= tolerance || active.is_empty() {
            if shrunk.is_empty() {
                break;
            }
            active.append(&mut shrunk);
            active.sort_unstable();
            upper = f32::INFINITY;
        } else {
            upper = if largest <= 0.0 { f32::INFINITY } else { largest };
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
