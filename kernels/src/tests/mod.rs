//! Every kernel against the operation it stands for, on whatever adapter there is.

mod bert;
mod graph;
mod layers;
mod matcher;
mod shaders;

pub(crate) use bert::random_encoder;
pub(crate) use matcher::{random_graph, random_matcher};

use std::sync::{Arc, OnceLock};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::Gpu;
use crate::matcher::words_of;
use crate::recording::{Recording, View};

/// The GPU under test; where there is none a test says so and ends, unless one is demanded.
pub(crate) fn gpu() -> Option<Arc<Gpu>> {
    static GPU: OnceLock<Option<Arc<Gpu>>> = OnceLock::new();
    GPU.get_or_init(|| match pollster::block_on(Gpu::open()) {
        Ok(gpu) => {
            println!("the kernels run on {}", gpu.name());
            Some(Arc::new(gpu))
        }
        Err(error) => {
            assert!(
                std::env::var("GNNXML_REQUIRE_GPU").as_deref() != Ok("1"),
                "GNNXML_REQUIRE_GPU=1, but {error} (Debian: mesa-vulkan-drivers has a software GPU)"
            );
            println!("nothing was compared: {error}");
            None
        }
    })
    .clone()
}

fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn numbers(rng: &mut ChaCha8Rng, count: usize, size: f32) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-size..=size)).collect()
}

/// Runs a recording and returns one view's numbers.
fn floats(gpu: &Gpu, mut recording: Recording, view: &View, count: usize) -> Vec<f32> {
    recording.download(view);
    let (answers, report) = pollster::block_on(gpu.run(recording)).expect("the GPU answers");
    assert!(report.bytes_down >= count as u64 * 4);
    words_of(&answers[0])
        .into_iter()
        .take(count)
        .map(f32::from_bits)
        .collect()
}

/// Largest difference, relative to the largest expected number (at least 1).
#[track_caller]
fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().fold(1.0_f32, |most, x| most.max(x.abs()));
    for (place, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f - e).abs() <= tolerance * size,
            "{what}: number {place} is {f}, expected {e} (of a size up to {size})"
        );
    }
}
