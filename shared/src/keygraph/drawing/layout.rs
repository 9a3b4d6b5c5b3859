//! Where vertices stand in the picture: springs first, then room for the names.
//!
//! Every sentence links all its keywords, so all edges together pull everything into one ball. The springs
//! are therefore only each vertex' strongest edges, the backbone; then the boxes of vertex and name are
//! pushed apart until none covers another.

use crate::keygraph::KeyGraph;

/// A vertex and its name as one box: the vertex above, the name below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Centre of the vertex.
    pub x: f32,
    pub y: f32,
    /// Radius of the vertex.
    pub radius: f32,
    /// Size of the name under it.
    pub label_width: f32,
    pub label_height: f32,
}

impl Placed {
    /// Left, top, right, bottom of vertex and name together.
    pub fn bounds(&self) -> [f32; 4] {
        let half = self.radius.max(self.label_width / 2.0);
        [
            self.x - half,
            self.y - self.radius,
            self.x + half,
            self.y + self.radius + self.label_height,
        ]
    }
}

/// The rectangle that holds a layout: left, top, width, height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    pub left: f32,
    pub top: f32,
    pub width: f32,
    pub height: f32,
}

/// Edges of the backbone each vertex asks for.
const BACKBONE: usize = 3;
const SPRING_LENGTH: f32 = 95.0;
const ROUNDS: usize = 400;
/// Free space kept around every box.
const MARGIN: f32 = 5.0;

/// Places the first `boxes.len()` vertices; `boxes` says how large each vertex and its name are.
pub fn layout(graph: &KeyGraph, boxes: &[Placed]) -> (Vec<Placed>, Frame) {
    let mut placed = boxes.to_vec();
    spiral(&mut placed);
    springs(&mut placed, &backbone(graph, boxes.len()));
    make_room(&mut placed);
    let frame = frame(&placed);
    (placed, frame)
}

/// A sunflower's seeds: even, without symmetry that springs could not break.
fn spiral(placed: &mut [Placed]) {
    const GOLDEN_ANGLE: f32 = 2.399_963;
    for (i, place) in placed.iter_mut().enumerate() {
        let (angle, distance) = (i as f32 * GOLDEN_ANGLE, SPRING_LENGTH * (i as f32 + 0.5).sqrt());
        place.x = distance * angle.cos() * 1.3;
        place.y = distance * angle.sin() * 0.8;
    }
}

/// The strongest edges of every vertex, ties by the neighbour's rank.
fn backbone(graph: &KeyGraph, count: usize) -> Vec<(usize, usize, f32)> {
    let mut near: Vec<Vec<(u32, usize)>> = vec![Vec::new(); count];
    for edge in graph.edges().iter().filter(|edge| edge.target < count) {
        near[edge.source].push((edge.weight, edge.target));
        near[edge.target].push((edge.weight, edge.source));
    }
    let mut kept = std::collections::BTreeMap::new();
    for (a, mut edges) in near.into_iter().enumerate() {
        edges.sort_by_key(|(weight, b)| (std::cmp::Reverse(*weight), *b));
        for (weight, b) in edges.into_iter().take(BACKBONE) {
            kept.insert((a.min(b), a.max(b)), weight as f32);
        }
    }
    kept.into_iter().map(|((a, b), weight)| (a, b, weight)).collect()
}

/// Fruchterman and Reingold: all repel (k²/d), backbone edges attract (d²/k · (1 + ln w)), a light pull to the
/// middle, and steps that cool down.
fn springs(placed: &mut [Placed], edges: &[(usize, usize, f32)]) {
    let mut force = vec![(0.0f32, 0.0f32); placed.len()];
    // What nothing holds is held nearer to the middle, or repulsion would carry it off the sheet.
    let mut gravity = vec![6.0f32; placed.len()];
    for (a, b, _) in edges {
        gravity[*a] = 1.0;
        gravity[*b] = 1.0;
    }
    for round in 0..ROUNDS {
        let heat = 40.0 * (1.0 - round as f32 / ROUNDS as f32) + 0.5;
        force.fill((0.0, 0.0));
        for i in 0..placed.len() {
            for j in i + 1..placed.len() {
                let (dx, dy, distance) = apart(placed, i, j);
                let push = SPRING_LENGTH * SPRING_LENGTH / distance;
                force[i].0 += dx * push;
                force[i].1 += dy * push;
                force[j].0 -= dx * push;
                force[j].1 -= dy * push;
            }
        }
        for (a, b, weight) in edges {
            let (dx, dy, distance) = apart(placed, *a, *b);
            let pull = distance * distance / SPRING_LENGTH * (1.0 + weight.ln()) * 0.6;
            force[*a].0 -= dx * pull;
            force[*a].1 -= dy * pull;
            force[*b].0 += dx * pull;
            force[*b].1 += dy * pull;
        }
        for ((place, (fx, fy)), gravity) in placed.iter_mut().zip(&force).zip(&gravity) {
            // A slide is wider than high.
            let (fx, fy) = (fx - 0.4 * gravity * place.x, fy - 0.9 * gravity * place.y);
            let length = fx.hypot(fy).max(1e-6);
            let step = length.min(heat) / length;
            place.x += fx * step;
            place.y += fy * step;
        }
    }
}

/// Unit vector from `j` to `i`, and their distance.
fn apart(placed: &[Placed], i: usize, j: usize) -> (f32, f32, f32) {
    let (dx, dy) = (placed[i].x - placed[j].x, placed[i].y - placed[j].y);
    let distance = dx.hypot(dy);
    if distance < 1e-3 {
        // Two on one spot part along a direction of their own.
        let angle = (i * 31 + j) as f32;
        return (angle.cos(), angle.sin(), 1.0);
    }
    (dx / distance, dy / distance, distance.max(1.0))
}

/// Pushes overlapping boxes apart along the shorter way until none overlap.
fn make_room(placed: &mut [Placed]) {
    for _ in 0..1_000 {
        let mut moved = false;
        for i in 0..placed.len() {
            for j in i + 1..placed.len() {
                moved |= part(placed, i, j);
            }
        }
        if !moved {
            return;
        }
    }
}

/// Parts two boxes if they overlap.
fn part(placed: &mut [Placed], i: usize, j: usize) -> bool {
    let (a, b) = (placed[i].bounds(), placed[j].bounds());
    let overlap_x = a[2].min(b[2]) - a[0].max(b[0]) + MARGIN;
    let overlap_y = a[3].min(b[3]) - a[1].max(b[1]) + MARGIN;
    if overlap_x <= 0.0 || overlap_y <= 0.0 {
        return false;
    }
    // Half each and a little more, so that rounding cannot leave a hair of overlap.
    if overlap_x < overlap_y {
        let sign = if placed[i].x < placed[j].x { -1.0 } else { 1.0 };
        placed[i].x += sign * (overlap_x / 2.0 + 0.25);
        placed[j].x -= sign * (overlap_x / 2.0 + 0.25);
    } else {
        let sign = if placed[i].y < placed[j].y { -1.0 } else { 1.0 };
        placed[i].y += sign * (overlap_y / 2.0 + 0.25);
        placed[j].y -= sign * (overlap_y / 2.0 + 0.25);
    }
    true
}

fn frame(placed: &[Placed]) -> Frame {
    let Some(first) = placed.first() else {
        return Frame {
            left: 0.0,
            top: 0.0,
            width: 0.0,
            height: 0.0,
        };
    };
    let all = placed
        .iter()
        .map(Placed::bounds)
        .fold(first.bounds(), |all, own| {
            [
                all[0].min(own[0]),
                all[1].min(own[1]),
                all[2].max(own[2]),
                all[3].max(own[3]),
            ]
        });
    Frame {
        left: all[0],
        top: all[1],
        width: all[2] - all[0],
        height: all[3] - all[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keygraph::{EntityLexicon, KeyGraph, Options};
    use crate::text::Language;

    #[test]
    fn no_name_covers_another_and_the_layout_is_the_same_twice() {
        let text = (0..40)
            .map(|i| format!("Vessel{i} met trawler{} near Port{}. ", i % 7, i % 5))
            .collect::<String>();
        let graph = KeyGraph::build(
            &text,
            Language::English,
            &EntityLexicon::default(),
            &Options::default(),
        );
        let boxes: Vec<Placed> = (0..graph.vertices().len().min(60))
            .map(|i| Placed {
                x: 0.0,
                y: 0.0,
                radius: 8.0 + (i % 5) as f32,
                label_width: 70.0,
                label_height: 16.0,
            })
            .collect();
        assert!(boxes.len() > 30);
        let (placed, frame) = layout(&graph, &boxes);
        assert_eq!((placed.clone(), frame), layout(&graph, &boxes));
        for i in 0..placed.len() {
            for j in i + 1..placed.len() {
                let (a, b) = (placed[i].bounds(), placed[j].bounds());
                let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                assert!(apart, "{i} {a:?} covers {j} {b:?}");
            }
        }
    }
}
