//! Logistic regression by dual coordinate descent (Yu, Huang and Lin, 2011, algorithm 5).
//!
//! Primal: min_w ½‖w‖² + Σ C_i log(1 + exp(−y_i w·x_i)).
//! Dual: min_α ½ αᵀQα + Σ [α_i log α_i + (C_i − α_i) log(C_i − α_i)] with 0 < α_i < C_i, and w = Σ α_i y_i x_i.
//!
//! One step fixes all but α_i and minimises
//! g(z) = z log z + (C−z) log(C−z) + (a/2)(z−α_i)² ± b(z−α_i), a = ‖x_i‖², b = y_i w·x_i,
//! by a few Newton steps in whichever of z = α_i and z = C − α_i lies below C/2, so that a value near a bound keeps its digits.
//! There is no shrinking: the optimum is strictly inside the bounds, so no document ever rests.

use super::solve::Order;
use super::{Dual, Problem, SolverOptions};

/// log(1 + e^−m), for [`Problem::objective`].
pub fn loss(margin: f64) -> f64 {
    if margin > 0.0 {
        (-margin).exp().ln_1p()
    } else {
        margin.exp().ln_1p() - margin
    }
}

/// Newton steps in one coordinate at most; in practice one or two.
const MAX_NEWTON: usize = 100;
/// How far a Newton step that left the bounds is cut back.
const CUT_BACK: f64 = 0.1;

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
    let cost_of = |sign: f32| {
        if sign > 0.0 {
            problem.costs.positive
        } else {
            problem.costs.negative
        }
    };
    // α and C − α are both kept: near a bound one of the two has no digits left in the other.
    let mut pairs: Vec<[f64; 2]> = (problem.warm(start).iter().zip(&signs))
        .map(|(&alpha, &sign)| {
            let cost = cost_of(sign);
            let inside = (1e-3 * cost).min(1e-8);
            let alpha = f64::from(alpha).clamp(inside, cost - inside);
            [alpha, cost - alpha]
        })
        .collect();
    for ((&document, &sign), pair) in problem.documents.iter().zip(&signs).zip(&pairs) {
        rows.add(document as usize, pair[0] as f32 * sign, weights);
    }

    let mut order = Order::new(options.seed);
    let mut visit: Vec<u32> = (0..problem.documents.len() as u32).collect();
    let (mut inner_tolerance, mut iterations) = (1e-2, 0);
    while iterations < options.max_iterations {
        iterations += 1;
        order.shuffle(&mut visit);
        let (mut steepest, mut newton_steps) = (0.0f64, 0);
        for &i in &visit {
            let i = i as usize;
            let (document, sign) = (problem.documents[i] as usize, signs[i]);
            let cost = cost_of(sign);
            let a = f64::from(rows.squared(document));
            let b = f64::from(sign * rows.dot(document, weights));
            let [alpha, complement] = pairs[i];
            let lower_half = 0.5 * a * (complement - alpha) + b >= 0.0;
            let (side, direction) = if lower_half { (0, 1.0) } else { (1, -1.0) };
            let old = pairs[i][side];
            let mut z = if cost - old < 0.5 * cost {
                CUT_BACK * old
            } else {
                old
            };
            let slope_at = |z: f64| a * (z - old) + direction * b + (z / (cost - z)).ln();
            let mut slope = slope_at(z);
            steepest = steepest.max(slope.abs());
            let mut steps = 0;
            while slope.abs() >= inner_tolerance && steps <= MAX_NEWTON {
                let curvature = a + cost / (cost - z) / z;
                let newton = z - slope / curvature;
                z = if newton <= 0.0 { z * CUT_BACK } else { newton };
                slope = slope_at(z);
                steps += 1;
            }
            if steps > 0 {
                pairs[i][side] = z;
                pairs[i][1 - side] = cost - z;
                rows.add(document, (direction * (z - old)) as f32 * sign, weights);
                newton_steps += steps;
            }
        }
        if steepest < options.tolerance {
            break;
        }
        if newton_steps <= visit.len() / 10 {
            inner_tolerance = (0.1 * inner_tolerance).max(options.tolerance.min(1e-8));
        }
    }
    let alphas = problem
        .documents
        .iter()
        .zip(&pairs)
        .map(|(&d, pair)| (d, pair[0] as f32));
    Dual {
        alphas: alphas.collect(),
        iterations,
    }
}
