//! Every kernel against the operation it stands for, on whatever adapter there is.

mod bert;
mod graph;
mod layers;
mod matcher;
mod shaders;

pub(crate) use bert::random_encoder;
pub(crate) use matcher::{random_graph, random_matcher};

use std::sync::{Arc, OnceLock};

use gnnxml_shared::model::encoder::VectorTable;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::Gpu;
use crate::matcher::words_of;
use crate::narrow::{Narrow, Precision};
use crate::recording::{Recording, View};
use crate::weights::Matrix;

const PRECISIONS: [Precision; 3] = [Precision::Eight, Precision::Half, Precision::Single];

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

/// A random table of numbers with eleven bits: signed bytes, halves and singles all hold them as they are.
fn exact_table(rng: &mut ChaCha8Rng, rows: usize, columns: usize) -> VectorTable {
    let scales = (0..rows)
        .map(|_| f32::from(rng.random_range(1_u8..16)) / 1024.0)
        .collect();
    let codes = (0..rows * columns)
        .map(|_| rng.random_range(-127..=127))
        .collect();
    VectorTable::from_parts(columns, scales, codes).unwrap()
}

/// The numbers that a table's codes stand for.
fn plain(table: &VectorTable) -> Vec<f32> {
    (table.codes().chunks_exact(table.dims()).zip(table.scales()))
        .flat_map(|(codes, &scale)| codes.iter().map(move |&code| scale * f32::from(code)))
        .collect()
}

/// The table's numbers in one precision, and the scales of its rows.
fn stored(gpu: &Gpu, table: &VectorTable, precision: Precision) -> (Matrix, Vec<f32>) {
    let narrow = match precision {
        Precision::Eight => Narrow::of_table(table),
        Precision::Half => Narrow::halves(&plain(table), table.dims()).unwrap(),
        Precision::Single => {
            let matrix = Matrix::store_floats(gpu, "table", &plain(table), table.dims()).unwrap();
            return (matrix, vec![1.0]);
        }
    };
    let matrix = Matrix::store_narrow(gpu, "table", &narrow).unwrap();
    (matrix, narrow.scales)
}

/// The nearest number of eleven bits, the even one of two: what is left of a number in half precision.
fn halved(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0xfff + (bits >> 13 & 1)) & !0x1fff)
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
