//! What preparing one frame of a map of 30,000 labels costs, from afar and from near.

use gnnxml_page_logic::map::{Place, Scene, View};

fn main() {
    divan::main();
}

fn scene() -> Scene {
    let clusters = 500;
    let place = |index: u32| {
        let cluster = index % clusters;
        let angle = cluster as f32 * 2.399_963;
        let reach = (cluster as f32 / clusters as f32).sqrt() * 0.9;
        let hash = index.wrapping_mul(2_654_435_761);
        Place {
            at: [
                reach * angle.cos() + (hash % 1000) as f32 / 1000.0 * 0.1,
                reach * angle.sin() + (hash / 1000 % 1000) as f32 / 1000.0 * 0.1,
            ],
            count: 1 + 100_000 / (index + 1),
            cluster,
            name_width: 4.0 + (index % 12) as f32,
        }
    };
    Scene::new(
        (0..30_000).map(place).collect(),
        (0..clusters).map(place).collect(),
    )
}

#[divan::bench(args = [1.0, 1.5, 4.0, 20.0])]
fn prepare_30_000_labels(bencher: divan::Bencher<'_, '_>, zoom: f32) {
    let mut scene = scene();
    let mut view = View::whole([1440.0, 900.0]);
    view.zoom_at([720.0, 450.0], zoom);
    bencher.bench_local(|| scene.prepare(&view, &[]).dots.len());
}
