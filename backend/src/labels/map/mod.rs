//! The 2-D map of the vocabulary: clusters as places, labels around them, neighbours near each other.
//!
//! Our own neighbour embedding in the manner of UMAP: clusters are laid out first from the nearest
//! neighbours of their centres, then every label starts near its cluster and is drawn to its nearest labels,
//! and to its cluster. Beyond [`EVERY_LABEL`] labels only clusters are embedded and labels fill their cluster's disc.
//! One thread and one seed decide every step, so the map is the same on every run and machine width.
//! It never changes which label is in which cluster.

mod embedding;
mod neighbours;
mod spacing;

use super::centres::Centres;
use super::rows::{DenseRows, RowSource};

/// Labels up to which each is embedded by its own neighbours.
pub(super) const EVERY_LABEL: usize = 20_000;
/// Neighbours a label is drawn to.
const LABEL_NEIGHBOURS: usize = 12;
/// Neighbours a cluster is drawn to.
const CLUSTER_NEIGHBOURS: usize = 6;

/// Where everything is, within −1 to 1 on both axes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MapLayout {
    pub(super) labels: Vec<[f32; 2]>,
    pub(super) clusters: Vec<[f32; 2]>,
}

/// Lays out labels and clusters.
pub(super) fn lay_out(
    rows: &dyn RowSource,
    centres: &Centres,
    assignment: &[u32],
    closeness: &[f32],
    seed: u64,
) -> MapLayout {
    let mut sizes = vec![0usize; centres.len()];
    for &cluster in assignment {
        sizes[cluster as usize] += 1;
    }
    let mut directions = DenseRows::trusted(centres.values().to_vec(), centres.width());
    directions.normalise();
    let nearest = neighbours::nearest(&directions, CLUSTER_NEIGHBOURS);
    let start = embedding::principal_plane(&directions);
    let mut places = embedding::embed(&nearest, start, None, embedding::Schedule::clusters(seed));
    let radii = spacing::radii(&places, &sizes);
    spacing::push_apart(&mut places, &radii);

    let mut labels = spacing::fill_discs(&places, &radii, assignment, closeness);
    if assignment.len() <= EVERY_LABEL {
        let mut vectors = vec![0f32; assignment.len() * rows.width()];
        let all: Vec<u32> = (0..assignment.len() as u32).collect();
        rows.gather(&all, &mut vectors);
        let mut vectors = DenseRows::trusted(vectors, rows.width());
        vectors.normalise();
        let nearest = neighbours::nearest(&vectors, LABEL_NEIGHBOURS);
        let unit = embedding::unit_spacing(&labels);
        for place in labels.iter_mut().flatten() {
            *place /= unit;
        }
        labels = embedding::embed(
            &nearest,
            labels,
            Some(assignment),
            embedding::Schedule::labels(seed),
        );
        spacing::spread(&mut labels);
        places = spacing::medians(&labels, assignment, centres.len());
    }
    spacing::fit(&mut labels, &mut places);
    spacing::tell_apart(&mut labels);
    MapLayout {
        labels,
        clusters: places,
    }
}
