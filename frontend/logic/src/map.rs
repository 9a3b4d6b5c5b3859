//! The label map: which dots and which names a frame shows.
//!
//! The map lies in the square −1 … 1. A [`View`] says which part of it is on the screen, and [`Scene::prepare`] lists the
//! dots and the names to draw. Budget: 30,000 labels in 4 ms (`cargo bench -p gnnxml-page-logic`).

use crate::names::NamePlacer;

/// Which part of the map is on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Map coordinates of the screen's middle.
    pub center: [f32; 2],
    /// Pixels a map unit takes.
    pub scale: f32,
    /// Screen size in pixels.
    pub size: [f32; 2],
}

impl View {
    /// Shows the whole map with a margin.
    pub fn whole(size: [f32; 2]) -> Self {
        Self {
            center: [0.0, 0.0],
            scale: Self::fitting(size),
            size,
        }
    }

    /// The scale at which the whole map just fits.
    fn fitting(size: [f32; 2]) -> f32 {
        (size[0].min(size[1]) * 0.46).max(1.0)
    }

    /// How many times larger than the whole map this is.
    pub fn zoom(&self) -> f32 {
        self.scale / Self::fitting(self.size)
    }

    pub fn to_screen(&self, at: [f32; 2]) -> [f32; 2] {
        [
            (at[0] - self.center[0]) * self.scale + self.size[0] * 0.5,
            (at[1] - self.center[1]) * self.scale + self.size[1] * 0.5,
        ]
    }

    pub fn to_map(&self, at: [f32; 2]) -> [f32; 2] {
        [
            (at[0] - self.size[0] * 0.5) / self.scale + self.center[0],
            (at[1] - self.size[1] * 0.5) / self.scale + self.center[1],
        ]
    }

    /// Moves the picture by so many pixels; the middle never leaves the map.
    pub fn pan(&mut self, by: [f32; 2]) {
        for axis in 0..2 {
            self.center[axis] = (self.center[axis] - by[axis] / self.scale).clamp(-1.0, 1.0);
        }
    }

    /// Zooms by `factor`, keeping what lies under the pixel `at` where it is.
    pub fn zoom_at(&mut self, at: [f32; 2], factor: f32) {
        let fixed = self.to_map(at);
        let fitting = Self::fitting(self.size);
        self.scale = (self.scale * factor).clamp(fitting * 0.5, fitting * 400.0);
        let moved = self.to_map(at);
        for axis in 0..2 {
            self.center[axis] = (self.center[axis] + fixed[axis] - moved[axis]).clamp(-1.0, 1.0);
        }
    }

    /// The view of the same zoom after the window changed its size.
    pub fn resized(&self, size: [f32; 2]) -> Self {
        let zoom = self.zoom();
        Self {
            center: self.center,
            scale: Self::fitting(size) * zoom,
            size,
        }
    }
}

/// A label or a cluster on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub at: [f32; 2],
    /// Training documents.
    pub count: u32,
    pub cluster: u32,
    /// Width of its name at a font size of one pixel.
    pub name_width: f32,
}

/// A dot to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Number of the label.
    pub label: u32,
    pub at: [f32; 2],
    pub radius: f32,
    pub cluster: u32,
}

/// What a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    Cluster(u32),
    Label(u32),
}

/// A name to draw: its middle and its font size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Name {
    pub owner: Owner,
    pub at: [f32; 2],
    pub font: f32,
}

/// What one frame shows. Kept and refilled, so that panning allocates nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Grouped by cluster, so that a painter changes its colour seldom.
    pub dots: Vec<Dot>,
    pub names: Vec<Name>,
}

/// All labels and clusters, in drawing order.
#[derive(Clone, Debug)]
pub struct Scene {
    labels: Vec<Place>,
    clusters: Vec<Place>,
    /// Label numbers, most frequent first; ties by number.
    by_count: Vec<u32>,
    cluster_order: Vec<u32>,
    /// [`Scene::weight`] of every label: a logarithm a label and frame would be felt.
    weights: Vec<f32>,
    placer: NamePlacer,
    covered: Vec<u64>,
    counts_per_cluster: Vec<u32>,
    sorted: Vec<Dot>,
    frame: Frame,
}

/// Side of the cells that let only one small dot through.
const CELL: f32 = 2.0;
const CLUSTER_FONT: f32 = 15.0;
const LABEL_FONT: f32 = 12.0;
/// One name for so many square pixels, however much room there is.
const AREA_PER_NAME: f32 = 5200.0;

/// Half the room that the buttons take in the upper right corner, and the note in the lower left one.
const TOOLS: [f32; 2] = [68.0, 26.0];
const NOTE: [f32; 2] = [145.0, 15.0];

impl Scene {
    pub fn new(labels: Vec<Place>, clusters: Vec<Place>) -> Self {
        let by_count = order_by_count(&labels);
        let cluster_order = order_by_count(&clusters);
        let groups = labels.iter().map(|label| label.cluster + 1).max().unwrap_or(0) as usize;
        let weights = labels.iter().map(|label| Self::weight(label.count)).collect();
        Self {
            labels,
            clusters,
            weights,
            by_count,
            cluster_order,
            placer: NamePlacer::default(),
            covered: Vec::new(),
            counts_per_cluster: vec![0; groups + 1],
            sorted: Vec::new(),
            frame: Frame::default(),
        }
    }

    pub fn labels(&self) -> &[Place] {
        &self.labels
    }

    /// Most frequent first.
    pub fn labels_by_count(&self) -> impl Iterator<Item = &Place> {
        self.by_count.iter().map(|&label| &self.labels[label as usize])
    }

    pub fn clusters(&self) -> &[Place] {
        &self.clusters
    }

    /// The last frame that was prepared.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Radius of a label's dot on the whole map: it grows with the logarithm of its count.
    pub fn weight(count: u32) -> f32 {
        0.9 + 0.42 * (1.0 + count as f32).ln()
    }

    /// How much dots grow with the zoom: gently.
    pub fn growth(zoom: f32) -> f32 {
        zoom.clamp(0.5, 40.0).powf(0.3)
    }

    /// Lists the dots and names that `view` shows. `focus` is always named, and so are its neighbours if there is room.
    pub fn prepare(&mut self, view: &View, focus: &[Owner]) -> &Frame {
        self.prepare_dots(view);
        self.prepare_names(view, focus);
        &self.frame
    }

    fn prepare_dots(&mut self, view: &View) {
        let growth = Self::growth(view.zoom());
        let columns = (view.size[0] / CELL).ceil().max(1.0) as usize;
        let rows = (view.size[1] / CELL).ceil().max(1.0) as usize;
        self.covered.clear();
        self.covered.resize((columns * rows).div_ceil(64), 0);
        self.frame.dots.clear();
        for &label in &self.by_count {
            let place = &self.labels[label as usize];
            let at = view.to_screen(place.at);
            let radius = self.weights[label as usize] * growth;
            if at[0] < -radius
                || at[1] < -radius
                || at[0] > view.size[0] + radius
                || at[1] > view.size[1] + radius
            {
                continue;
            }
            // Where dots pile up, the most frequent label of each cell stands for all of them.
            if at[0] >= 0.0 && at[1] >= 0.0 && at[0] < view.size[0] && at[1] < view.size[1] {
                let cell = (at[1] / CELL) as usize * columns + (at[0] / CELL) as usize;
                let bit = 1u64 << (cell % 64);
                let word = &mut self.covered[cell / 64];
                if *word & bit != 0 {
                    continue;
                }
                *word |= bit;
            }
            self.frame.dots.push(Dot {
                label,
                at,
                radius,
                cluster: place.cluster,
            });
        }
        self.group_dots();
    }

    /// Counting sort by cluster: stable, so frequent labels of a cluster still come first.
    fn group_dots(&mut self) {
        self.counts_per_cluster.fill(0);
        for dot in &self.frame.dots {
            self.counts_per_cluster[dot.cluster as usize + 1] += 1;
        }
        for group in 1..self.counts_per_cluster.len() {
            self.counts_per_cluster[group] += self.counts_per_cluster[group - 1];
        }
        self.sorted.clone_from(&self.frame.dots);
        for dot in &self.sorted {
            let slot = &mut self.counts_per_cluster[dot.cluster as usize];
            self.frame.dots[*slot as usize] = *dot;
            *slot += 1;
        }
    }

    fn prepare_names(&mut self, view: &View, focus: &[Owner]) {
        self.frame.names.clear();
        self.placer.clear(view.size);
        // The buttons and the note of the map lie on top of it.
        self.placer.take([view.size[0] - TOOLS[0], TOOLS[1]], TOOLS, true);
        self.placer.take([NOTE[0], view.size[1] - NOTE[1]], NOTE, true);
        let most = (view.size[0] * view.size[1] / AREA_PER_NAME) as usize;
        let zoom = view.zoom();
        let growth = Self::growth(zoom);
        for &owner in focus {
            self.place(view, growth, owner, true);
        }
        for index in 0..self.cluster_order.len() {
            if self.frame.names.len() >= most {
                return;
            }
            self.place(view, growth, Owner::Cluster(self.cluster_order[index]), false);
        }
        // From afar the clusters speak for their labels; a little closer and the frequent labels join in.
        if zoom < 1.3 && self.cluster_order.len() > 12 {
            return;
        }
        for index in 0..self.by_count.len() {
            if self.frame.names.len() >= most {
                return;
            }
            self.place(view, growth, Owner::Label(self.by_count[index]), false);
        }
    }

    fn place(&mut self, view: &View, growth: f32, owner: Owner, must: bool) {
        let (place, font, lift) = match owner {
            Owner::Cluster(id) => match self.clusters.get(id as usize) {
                Some(place) => (place, CLUSTER_FONT, 0.0),
                None => return,
            },
            Owner::Label(id) => match self.labels.get(id as usize) {
                Some(place) => (
                    place,
                    LABEL_FONT,
                    self.weights[id as usize] * growth + LABEL_FONT * 0.75,
                ),
                None => return,
            },
        };
        let at = view.to_screen(place.at);
        let half = [place.name_width * font * 0.5, font * 0.6];
        // A name that would be cut off at the side is not looked at further; most labels of a close view are far away.
        if !must && (at[0] < half[0] || at[0] > view.size[0] - half[0]) {
            return;
        }
        if self.frame.names.iter().take(8).any(|name| name.owner == owner) {
            return;
        }
        // A cluster's name may move up or down a line where its middle is taken; a label's stays above its dot.
        let shifts: &[f32] = match owner {
            Owner::Cluster(_) if !must => &[0.0, -1.5, 1.5],
            _ => &[0.0],
        };
        for shift in shifts {
            let middle = [at[0], at[1] - lift + shift * font];
            let inside = middle[0] - half[0] >= 0.0
                && middle[0] + half[0] <= view.size[0]
                && middle[1] - half[1] >= 0.0
                && middle[1] + half[1] <= view.size[1];
            if (inside || must) && self.placer.take(middle, half, must) {
                self.frame.names.push(Name {
                    owner,
                    at: middle,
                    font,
                });
                return;
            }
        }
    }

    /// The label under a pixel: the nearest dot that is close enough, the smaller one when they overlap.
    pub fn label_at(&self, at: [f32; 2]) -> Option<u32> {
        let mut best: Option<(f32, u32)> = None;
        for dot in &self.frame.dots {
            let distance = (dot.at[0] - at[0]).hypot(dot.at[1] - at[1]);
            if distance <= dot.radius + 4.0 && best.is_none_or(|(nearest, _)| distance < nearest) {
                best = Some((distance, dot.label));
            }
        }
        best.map(|(_, label)| label)
    }

    /// The name under a pixel.
    pub fn name_at(&self, at: [f32; 2]) -> Option<Owner> {
        self.frame
            .names
            .iter()
            .find(|name| {
                let width = match name.owner {
                    Owner::Cluster(id) => self.clusters[id as usize].name_width,
                    Owner::Label(id) => self.labels[id as usize].name_width,
                };
                (at[0] - name.at[0]).abs() <= width * name.font * 0.5
                    && (at[1] - name.at[1]).abs() <= name.font * 0.65
            })
            .map(|name| name.owner)
    }
}

fn order_by_count(places: &[Place]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..places.len() as u32).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(places[index as usize].count), index));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels in loose groups, long-tailed counts: the shape of a real vocabulary.
    fn scene(labels: u32, clusters: u32) -> Scene {
        let place = |index: u32| {
            let cluster = index % clusters;
            let angle = cluster as f32 * 2.4;
            let reach = (cluster as f32 / clusters as f32).sqrt() * 0.9;
            let spread = ((index * 37) % 101) as f32 / 101.0 * 0.2 - 0.1;
            let other = ((index * 53) % 97) as f32 / 97.0 * 0.2 - 0.1;
            Place {
                at: [reach * angle.cos() + spread, reach * angle.sin() + other],
                count: 1 + 10_000 / (index + 1),
                cluster,
                name_width: 4.0 + (index % 9) as f32,
            }
        };
        Scene::new(
            (0..labels).map(place).collect(),
            (0..clusters).map(place).collect(),
        )
    }

    fn width_of(scene: &Scene, name: &Name) -> f32 {
        match name.owner {
            Owner::Cluster(id) => scene.clusters()[id as usize].name_width * name.font,
            Owner::Label(id) => scene.labels()[id as usize].name_width * name.font,
        }
    }

    #[test]
    fn names_never_overlap_at_any_zoom() {
        let mut scene = scene(3000, 60);
        let mut view = View::whole([1000.0, 700.0]);
        for _ in 0..12 {
            let names = scene.prepare(&view, &[]).names.clone();
            for (index, one) in names.iter().enumerate() {
                for other in &names[index + 1..] {
                    let apart_x = (one.at[0] - other.at[0]).abs()
                        >= (width_of(&scene, one) + width_of(&scene, other)) * 0.5;
                    let apart_y = (one.at[1] - other.at[1]).abs() >= (one.font + other.font) * 0.5;
                    assert!(
                        apart_x || apart_y,
                        "{one:?} and {other:?} overlap at zoom {}",
                        view.zoom()
                    );
                }
            }
            view.zoom_at([400.0, 300.0], 1.5);
        }
    }

    #[test]
    fn more_labels_are_named_after_zooming_in() {
        let mut scene = scene(3000, 60);
        let mut view = View::whole([1000.0, 700.0]);
        let labels = |frame: &Frame| {
            frame
                .names
                .iter()
                .filter(|n| matches!(n.owner, Owner::Label(_)))
                .count()
        };
        let far = labels(scene.prepare(&view, &[]));
        view.zoom_at([500.0, 350.0], 3.0);
        let near = labels(scene.prepare(&view, &[]));
        assert!(near > far, "{near} names near, {far} far");
    }

    #[test]
    fn zooming_keeps_the_point_under_the_pointer() {
        let mut view = View::whole([800.0, 600.0]);
        let pointer = [300.0, 200.0];
        let before = view.to_map(pointer);
        view.zoom_at(pointer, 2.0);
        let after = view.to_map(pointer);
        assert!((before[0] - after[0]).abs() < 1e-5 && (before[1] - after[1]).abs() < 1e-5);
    }

    #[test]
    fn the_focused_label_is_named_even_where_it_is_crowded() {
        let mut scene = scene(3000, 60);
        let view = View::whole([1000.0, 700.0]);
        let frame = scene.prepare(&view, &[Owner::Label(2999)]);
        assert!(frame.names.iter().any(|name| name.owner == Owner::Label(2999)));
    }

    #[test]
    fn a_dot_is_found_under_its_own_pixel() {
        let mut scene = scene(300, 10);
        let mut view = View::whole([1000.0, 700.0]);
        view.zoom_at([500.0, 350.0], 4.0);
        let dot = *scene.prepare(&view, &[]).dots.last().unwrap();
        let found = scene.label_at(dot.at).unwrap();
        let place = scene
            .frame()
            .dots
            .iter()
            .find(|other| other.label == found)
            .unwrap();
        assert!((place.at[0] - dot.at[0]).hypot(place.at[1] - dot.at[1]) < 0.01);
    }

    #[test]
    fn dots_of_one_cluster_stand_together() {
        let mut scene = scene(3000, 60);
        let dots = &scene.prepare(&View::whole([1000.0, 700.0]), &[]).dots;
        assert!(dots.windows(2).all(|pair| pair[0].cluster <= pair[1].cluster));
    }

    #[test]
    fn an_empty_vocabulary_makes_an_empty_frame() {
        let mut scene = Scene::new(Vec::new(), Vec::new());
        let frame = scene.prepare(&View::whole([10.0, 10.0]), &[Owner::Label(4)]);
        assert!(frame.dots.is_empty() && frame.names.is_empty());
    }
}
