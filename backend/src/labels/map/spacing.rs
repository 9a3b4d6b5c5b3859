//! Room on the map: discs that do not overlap, labels inside them, no two on one spot.

use std::collections::HashMap;

/// The golden angle: successive points on a spiral never line up.
const GOLDEN_ANGLE: f32 = 2.399_963_1;

/// A radius for every cluster, ∝ √labels, so that the discs together fill about half of the map.
pub(super) fn radii(places: &[[f32; 2]], sizes: &[usize]) -> Vec<f32> {
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    for place in places {
        for axis in 0..2 {
            low[axis] = low[axis].min(place[axis]);
            high[axis] = high[axis].max(place[axis]);
        }
    }
    let area = (0..2)
        .map(|axis| (high[axis] - low[axis]).max(1.0))
        .product::<f32>();
    let labels: usize = sizes.iter().sum();
    let unit = (0.5 * area / (std::f32::consts::PI * labels.max(1) as f32)).sqrt();
    sizes.iter().map(|&size| unit * (size as f32).sqrt()).collect()
}

/// Pushes overlapping discs apart, pair by pair on a grid, until few overlap.
pub(super) fn push_apart(places: &mut [[f32; 2]], radii: &[f32]) {
    let mut by_size = radii.to_vec();
    by_size.sort_by(f32::total_cmp);
    let Some(&largest) = by_size.last() else { return };
    let cell = (2.2 * largest).max(1e-6);
    for _ in 0..120 {
        let grid = Grid::new(places, cell);
        let mut overlap = false;
        for at in 0..places.len() {
            for other in grid.around(places[at]) {
                if other <= at {
                    continue;
                }
                let (dx, dy) = (places[other][0] - places[at][0], places[other][1] - places[at][1]);
                let distance = (dx * dx + dy * dy).sqrt();
                let need = 1.08 * (radii[at] + radii[other]);
                if distance < need {
                    overlap = true;
                    let turn = (at + other) as f32 * GOLDEN_ANGLE;
                    let (ux, uy) = if distance > 1e-6 {
                        (dx / distance, dy / distance)
                    } else {
                        (turn.cos(), turn.sin())
                    };
                    let push = 0.5 * (need - distance);
                    // The smaller disc gives way.
                    let mine = radii[other] / (radii[at] + radii[other]).max(1e-12);
                    for (axis, unit) in [ux, uy].into_iter().enumerate() {
                        places[at][axis] -= push * mine * unit;
                        places[other][axis] += push * (1.0 - mine) * unit;
                    }
                }
            }
        }
        if !overlap {
            break;
        }
    }
}

/// Every label on a sunflower spiral in its cluster's disc, those closest to the centre in the middle.
pub(super) fn fill_discs(
    places: &[[f32; 2]],
    radii: &[f32],
    assignment: &[u32],
    closeness: &[f32],
) -> Vec<[f32; 2]> {
    let mut members = vec![Vec::new(); places.len()];
    for (label, &cluster) in assignment.iter().enumerate() {
        members[cluster as usize].push(label);
    }
    let mut labels = vec![[0f32; 2]; assignment.len()];
    for (cluster, members) in members.iter_mut().enumerate() {
        members.sort_by(|&a, &b| closeness[b].total_cmp(&closeness[a]).then(a.cmp(&b)));
        let count = members.len() as f32;
        for (rank, &label) in members.iter().enumerate() {
            let reach = radii[cluster] * ((rank as f32 + 0.5) / count).sqrt();
            let turn = rank as f32 * GOLDEN_ANGLE + cluster as f32;
            labels[label] = [
                places[cluster][0] + reach * turn.cos(),
                places[cluster][1] + reach * turn.sin(),
            ];
        }
    }
    labels
}

/// Loosens knots: points closer than a fraction of the mean spacing push each other away.
pub(super) fn spread(places: &mut [[f32; 2]]) {
    if places.len() < 2 {
        return;
    }
    let least = 0.12 * super::embedding::unit_spacing(places);
    let radii = vec![least; places.len()];
    push_apart(places, &radii);
}

/// The middle of each cluster's labels, by the median of each axis: a straggler does not move it.
pub(super) fn medians(labels: &[[f32; 2]], assignment: &[u32], clusters: usize) -> Vec<[f32; 2]> {
    let mut members = vec![Vec::new(); clusters];
    for (place, &cluster) in labels.iter().zip(assignment) {
        members[cluster as usize].push(*place);
    }
    members
        .into_iter()
        .map(|mut places| {
            let mut middle = [0f32; 2];
            for (axis, middle) in middle.iter_mut().enumerate() {
                places.sort_by(|a, b| a[axis].total_cmp(&b[axis]));
                *middle = places.get(places.len() / 2).map_or(0.0, |place| place[axis]);
            }
            middle
        })
        .collect()
}

/// Scales labels and clusters together into −1 to 1, keeping proportions.
pub(super) fn fit(labels: &mut [[f32; 2]], clusters: &mut [[f32; 2]]) {
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    for place in labels.iter().chain(clusters.iter()) {
        for axis in 0..2 {
            low[axis] = low[axis].min(place[axis]);
            high[axis] = high[axis].max(place[axis]);
        }
    }
    let reach = (0..2).map(|axis| high[axis] - low[axis]).fold(1e-9f32, f32::max) / 2.0;
    for place in labels.iter_mut().chain(clusters.iter_mut()) {
        for axis in 0..2 {
            let middle = 0.5 * (low[axis] + high[axis]);
            place[axis] = ((place[axis] - middle) / reach).clamp(-1.0, 1.0);
        }
    }
}

/// Moves labels that share a spot along a tiny spiral until every spot is one label's.
pub(super) fn tell_apart(labels: &mut [[f32; 2]]) {
    let mut taken = std::collections::HashSet::with_capacity(labels.len());
    for (label, place) in labels.iter_mut().enumerate() {
        let home = *place;
        let mut step = 0u32;
        while !taken.insert([place[0].to_bits(), place[1].to_bits()]) {
            step += 1;
            let turn = (label as f32 + step as f32) * GOLDEN_ANGLE;
            let reach = 2e-6 * (step as f32).sqrt();
            *place = [
                (home[0] + reach * turn.cos()).clamp(-1.0, 1.0),
                (home[1] + reach * turn.sin()).clamp(-1.0, 1.0),
            ];
        }
    }
}

/// Points by square cell.
struct Grid {
    cell: f32,
    /// Looked up by cell only, never walked.
    unsorted: HashMap<(i32, i32), Vec<usize>>,
}

impl Grid {
    fn new(places: &[[f32; 2]], cell: f32) -> Self {
        let mut unsorted: HashMap<(i32, i32), Vec<usize>> = HashMap::new();
        for (at, place) in places.iter().enumerate() {
            unsorted.entry(Self::key(*place, cell)).or_default().push(at);
        }
        Self { cell, unsorted }
    }

    fn key(place: [f32; 2], cell: f32) -> (i32, i32) {
        ((place[0] / cell).floor() as i32, (place[1] / cell).floor() as i32)
    }

    /// Points in the cell of `place` and its eight neighbours, in a fixed order.
    fn around(&self, place: [f32; 2]) -> Vec<usize> {
        let (x, y) = Self::key(place, self.cell);
        let mut found = Vec::new();
        for dx in -1..=1 {
            for dy in -1..=1 {
                if let Some(here) = self.unsorted.get(&(x + dx, y + dy)) {
                    found.extend_from_slice(here);
                }
            }
        }
        found
    }
}
