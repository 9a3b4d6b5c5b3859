//! Matrices in fewer bits than single precision: rows packed into words, one scale each.

use gnnxml_shared::model::encoder::VectorTable;
use half::f16;

/// Rounding to eight bits may move a weight by this share of its row's largest, and still count as nothing lost.
const EXACT: f32 = 1e-6;
/// A row's largest number as a half: at least this, less than twice as much. Half precision ends at 65,504 and thins
/// out below 2⁻¹⁴, which leaves 28 binary places for smaller ones.
const LARGEST_HALF: f32 = 16_384.0;

/// How a matrix holds its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Signed bytes; number = byte · scale of the row.
    Eight,
    /// Half-precision numbers; number = half · scale of the row.
    Half,
    Single,
}

impl Precision {
    /// Bits of one number, as the shaders ask for them.
    pub(crate) const fn bits(self) -> usize {
        match self {
            Self::Eight => 8,
            Self::Half => 16,
            Self::Single => 32,
        }
    }

    /// Words of a row.
    pub(crate) fn row_words(self, columns: usize) -> usize {
        columns.div_ceil(32 / self.bits())
    }
}

/// A matrix as it is sent to the GPU.
#[derive(Clone, Debug)]
pub(crate) struct Narrow {
    pub(crate) precision: Precision,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) words: Vec<u8>,
    /// One a row.
    pub(crate) scales: Vec<f32>,
}

impl Narrow {
    /// The narrowest form that all the matrices can take; nothing where one of them asks for single precision.
    pub(crate) fn all(matrices: &[&[f32]], columns: usize) -> Option<Vec<Self>> {
        let all = |form: fn(&[f32], usize) -> Option<Self>| -> Option<Vec<Self>> {
            matrices.iter().map(|data| form(data, columns)).collect()
        };
        all(Self::eight_bits).or_else(|| all(Self::halves))
    }

    pub(crate) fn of_table(table: &VectorTable) -> Self {
        Self {
            precision: Precision::Eight,
            rows: table.rows(),
            columns: table.dims(),
            words: pack_rows(table.codes(), table.dims()),
            scales: table.scales().to_vec(),
        }
    }

    /// The matrix in eight bits, when that is what it was made from.
    fn eight_bits(data: &[f32], columns: usize) -> Option<Self> {
        let table = VectorTable::quantise(data, columns).ok()?;
        let rows = data
            .chunks_exact(columns)
            .zip(table.codes().chunks_exact(columns));
        let mut rows = rows.zip(table.scales());
        let same = rows.all(|((row, codes), &scale)| {
            let allowed = 127.0 * scale * EXACT;
            row.iter()
                .zip(codes)
                .all(|(value, &code)| (value - scale * f32::from(code)).abs() <= allowed)
        });
        same.then(|| Self::of_table(&table))
    }

    /// The matrix in halves: every number within 2⁻¹¹ of itself or 2⁻²⁸ of its row's largest, even on a GPU that takes
    /// the smallest halves for zero. Nothing where a row is not finite or too small to have a scale.
    pub(crate) fn halves(data: &[f32], columns: usize) -> Option<Self> {
        if columns == 0 {
            return None;
        }
        let rows = data.chunks_exact(columns);
        let scales: Vec<f32> = rows.clone().map(half_scale).collect::<Option<_>>()?;
        let halves: Vec<u16> = (rows.zip(&scales))
            .flat_map(|(row, scale)| row.iter().map(move |x| f16::from_f32(x / scale).to_bits()))
            .collect();
        Some(Self {
            precision: Precision::Half,
            rows: scales.len(),
            columns,
            words: pack_rows(&halves, columns),
            scales,
        })
    }
}

/// The power of two that a row is divided by, so that nothing but the rounding to halves changes a number.
fn half_scale(row: &[f32]) -> Option<f32> {
    const EXPONENT: u32 = 0x7f80_0000;
    let largest = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let scale = if largest == 0.0 {
        1.0
    } else {
        f32::from_bits(largest.to_bits() & EXPONENT) / LARGEST_HALF
    };
    (scale.is_normal() && row.iter().all(|x| x.is_finite())).then_some(scale)
}

/// Numbers of one or two bytes with every row padded to whole words.
pub(crate) fn pack_rows<T: bytemuck::NoUninit>(numbers: &[T], columns: usize) -> Vec<u8> {
    let bytes: &[u8] = bytemuck::cast_slice(numbers);
    let row_bytes = columns * size_of::<T>();
    let padded = row_bytes.next_multiple_of(4);
    let mut packed = vec![0; numbers.len() / columns * padded];
    for (row, out) in bytes.chunks_exact(row_bytes).zip(packed.chunks_exact_mut(padded)) {
        out[..row_bytes].copy_from_slice(row);
    }
    packed
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The numbers that a matrix of halves stands for, to a GPU that keeps the smallest ones or takes them for zero.
    fn unpacked(matrix: &Narrow, keeps: bool) -> Vec<f32> {
        let row_bytes = 4 * matrix.precision.row_words(matrix.columns);
        (matrix.words.chunks_exact(row_bytes).zip(&matrix.scales))
            .flat_map(|(row, scale)| {
                let halves = row.chunks_exact(2).take(matrix.columns);
                let halves = halves.map(|half| f16::from_le_bytes([half[0], half[1]]));
                halves.map(move |half| {
                    if keeps || half.is_normal() {
                        half.to_f32() * scale
                    } else {
                        0.0
                    }
                })
            })
            .collect()
    }

    #[test]
    fn halves_give_back_what_they_took_whatever_its_size() {
        let mut rng = ChaCha8Rng::seed_from_u64(61);
        for columns in [1, 2, 3, 8, 129] {
            let rows = 40;
            let mut data = Vec::new();
            for row in 0..rows {
                // From 1e-33 to 1e37; within a row, numbers a trillion times smaller than others.
                let size = 10_f32.powf(row as f32 * 1.8 - 33.0);
                data.push(size);
                for _ in 1..columns {
                    let number = size * 10_f32.powf(-rng.random_range(0.0..12.0));
                    data.push(if rng.random() { number } else { -number });
                }
            }
            let halves = Narrow::halves(&data, columns).unwrap();
            assert_eq!((halves.rows, halves.columns), (rows, columns));
            assert_eq!(halves.words.len(), rows * columns.next_multiple_of(2) * 2);
            for keeps in [true, false] {
                let back = unpacked(&halves, keeps);
                for (row, back) in data.chunks_exact(columns).zip(back.chunks_exact(columns)) {
                    let largest = row[0];
                    for (x, y) in row.iter().zip(back) {
                        let allowed = (x.abs() / 2048.0).max(largest / 2_f32.powi(28));
                        assert!((x - y).abs() <= allowed, "{x} came back as {y} beside {largest}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_without_a_scale_have_no_halves() {
        let smallest = 2_f32.powi(-112);
        for (number, holds) in [
            (0.0, true),
            (-0.0, true),
            (f32::MAX, true),
            (smallest, true),
            (smallest * 0.99, false),
            (1e-40, false),
            (f32::INFINITY, false),
            (f32::NAN, false),
        ] {
            let found = Narrow::halves(&[1.0, 0.5, number, number], 2);
            assert_eq!(found.is_some(), holds, "{number}");
        }
        let beside = Narrow::halves(&[1.0, f32::NAN], 2);
        assert!(beside.is_none(), "a row's other numbers do not hide one");
        assert!(Narrow::halves(&[], 0).is_none());
        assert_eq!(Narrow::halves(&[], 3).unwrap().rows, 0);
    }

    #[test]
    fn the_narrowest_form_that_all_can_take_is_taken() {
        let published = [1.0, -127.0, 3.0, 0.0];
        let trained = [0.1, 0.7, -0.35, 1e9];
        let extreme = [0.1, 0.7, -1e-38, 3e-38];
        let form = |matrices: &[&[f32]]| Narrow::all(matrices, 2).map(|all| all[0].precision);
        assert_eq!(form(&[&published]), Some(Precision::Eight));
        assert_eq!(form(&[&published, &trained]), Some(Precision::Half));
        assert_eq!(form(&[&trained, &extreme]), None);
    }
}
