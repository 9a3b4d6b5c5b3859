//! Matrices of signed bytes with one scale a row (value = code · scale), in eight bits or in four.
//!
//! In four bits a row falls into groups of [`GROUP`] codes. A group keeps its largest code g and one of fifteen levels a code,
//! q = round(7·code / g), which comes back as round(q·g / 7). What is read is a matrix of bytes again, so everything that runs one runs both.

use super::BundleError;
use super::wire::{Reader, Writer};
use crate::model::encoder::VectorTable;

/// Codes that share a largest one.
const GROUP: usize = 32;
/// No vector of a bundle has more dimensions: what is computed with one is as wide, also where there is no row to pay for it.
pub(super) const WIDEST: usize = 8192;
/// Levels of a code to either side of zero.
const LEVELS: i32 = 7;

/// How many bits a weight of a matrix takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bits {
    Four,
    #[default]
    Eight,
}

impl Bits {
    const ALL: [Self; 2] = [Self::Four, Self::Eight];

    /// What the manifest calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Four => "int4",
            Self::Eight => "int8",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bits| bits.name() == name)
    }
}

/// `scales.len()` rows of codes.
pub(super) fn write_codes(part: &mut Writer, scales: &[f32], codes: &[i8], bits: Bits) {
    part.f32s(scales);
    match bits {
        Bits::Eight => {
            part.u8(8);
            part.i8s(codes);
        }
        Bits::Four => {
            part.u8(4);
            let width = codes.len() / scales.len().max(1);
            let (mut largest, mut levels) = (Vec::new(), Vec::with_capacity(codes.len()));
            for row in codes.chunks_exact(width.max(1)) {
                for group in row.chunks(GROUP) {
                    let most = group.iter().map(|code| i32::from(*code).abs()).max().unwrap_or(0);
                    largest.push(most.min(127) as u8);
                    levels.extend(group.iter().map(|&code| level(i32::from(code), most)));
                }
            }
            part.u8s(&largest);
            // The first of two in the low half.
            let pair = |two: &[i32]| {
                two.iter()
                    .rev()
                    .fold(0, |byte, level| byte << 4 | (level + LEVELS) as u8)
            };
            part.u8s(&levels.chunks(2).map(pair).collect::<Vec<_>>());
        }
    }
}

/// Rows of `width` codes and their scales; every length is checked before anything is unfolded.
pub(super) fn read_codes(part: &mut Reader<'_>, width: usize) -> Result<(Vec<f32>, Vec<i8>), BundleError> {
    let scales = part.f32s("scales")?;
    let rows = scales.len();
    let count = rows.checked_mul(width);
    let unfit = |part: &Reader<'_>, found: usize| {
        part.bad("codes", found, &format!("those of {rows} rows of {width}"))
    };
    let codes = match part.u8("bits of a code")? {
        8 => {
            let codes = part.i8s("codes")?;
            if count != Some(codes.len()) {
                return Err(unfit(part, codes.len()));
            }
            codes.to_vec()
        }
        4 => {
            let largest = part.u8s("largest codes")?;
            let pairs = part.u8s("codes")?;
            let count = match count {
                Some(count) if count.div_ceil(2) == pairs.len() => count,
                _ => return Err(unfit(part, pairs.len())),
            };
            // Not above `count`, which is there.
            if largest.len() != rows * width.div_ceil(GROUP) {
                return Err(unfit(part, largest.len()));
            }
            if let Some(most) = largest.iter().find(|most| **most > 127) {
                return Err(part.bad("largest code", most, "at most 127"));
            }
            let mut codes = Vec::with_capacity(count);
            let mut largest = largest.iter();
            let mut most = 0;
            for place in 0..count {
                if (place % width).is_multiple_of(GROUP) {
                    most = largest.next().map_or(0, |&most| i32::from(most));
                }
                let half = pairs[place / 2] >> (4 * (place % 2)) & 0xf;
                if i32::from(half) > 2 * LEVELS {
                    return Err(part.bad("code", half, "one of fifteen levels"));
                }
                codes.push(rounded(most * (i32::from(half) - LEVELS), LEVELS) as i8);
            }
            codes
        }
        other => return Err(part.bad("bits of a code", other, "4 or 8")),
    };
    Ok((scales, codes))
}

pub(super) fn write_table(part: &mut Writer, table: &VectorTable, bits: Bits) {
    part.count(table.dims());
    write_codes(part, table.scales(), table.codes(), bits);
}

pub(super) fn read_table(part: &mut Reader<'_>) -> Result<VectorTable, BundleError> {
    let dims = part.number(WIDEST, "dimensions")?;
    let (scales, codes) = read_codes(part, dims)?;
    VectorTable::from_parts(dims, scales, codes)
        .map_err(|fault| part.bad("table", fault, "one row of codes a scale"))
}

/// The level of a code in a group whose largest is `most`.
fn level(code: i32, most: i32) -> i32 {
    if most == 0 {
        0
    } else {
        rounded(code * LEVELS, most)
    }
}

/// number/by, halves away from zero.
fn rounded(number: i32, by: i32) -> i32 {
    (2 * number.abs() + by) / (2 * by) * number.signum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn there_and_back(scales: &[f32], codes: &[i8], bits: Bits) -> (usize, Vec<i8>) {
        let mut part = Writer::new(*b"TEST");
        write_codes(&mut part, scales, codes, bits);
        let bytes = part.finish();
        let mut part = Reader::new("test", &bytes, *b"TEST").unwrap();
        let (read, back) = read_codes(&mut part, codes.len() / scales.len()).unwrap();
        part.finish().unwrap();
        assert_eq!(read, scales);
        (bytes.len(), back)
    }

    proptest! {
        #[test]
        fn eight_bits_come_back_and_four_bits_within_half_a_level(
            rows in 1_usize..5,
            width in 1_usize..100,
            seed in proptest::collection::vec(-127_i8..=127, 500),
        ) {
            let codes = &seed[..rows * width];
            let scales = vec![0.5; rows];
            prop_assert_eq!(&there_and_back(&scales, codes, Bits::Eight).1, codes);
            let (_, back) = there_and_back(&scales, codes, Bits::Four);
            for (row, back) in codes.chunks(width).zip(back.chunks(width)) {
                for (group, back) in row.chunks(GROUP).zip(back.chunks(GROUP)) {
                    let most = group.iter().map(|code| i32::from(*code).abs()).max().unwrap();
                    for (&code, &back) in group.iter().zip(back) {
                        let off = (i32::from(code) - i32::from(back)).abs();
                        prop_assert!(2 * LEVELS * off <= most + LEVELS, "{code} came back as {back} of {most}");
                        if i32::from(code).abs() == most {
                            prop_assert_eq!(code, back);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn four_bits_take_about_half_the_bytes() {
        let codes: Vec<i8> = (0..64 * 128).map(|i| (i * 37 % 255 - 127) as i8).collect();
        let eight = there_and_back(&[1.0; 64], &codes, Bits::Eight).0;
        let four = there_and_back(&[1.0; 64], &codes, Bits::Four).0;
        assert!(four * 100 < eight * 58, "{four} of {eight}");
    }

    #[test]
    fn a_matrix_of_another_shape_or_level_is_refused() {
        let mut whole = Writer::new(*b"TEST");
        write_codes(&mut whole, &[1.0, 1.0], &[7, -7, 3, 127, 0, 1], Bits::Four);
        let whole = whole.finish();
        let read = |bytes: &[u8], width| read_codes(&mut Reader::new("t", bytes, *b"TEST").unwrap(), width);
        assert!(read(&whole, 3).is_ok());
        assert!(read(&whole, 4).is_err() && read(&whole, 0).is_err() && read(&whole, usize::MAX).is_err());
        for (from_end, value) in [(1, 0xff), (6, 200)] {
            let mut bad = whole.clone();
            let at = bad.len() - from_end;
            bad[at] = value;
            assert!(read(&bad, 3).is_err(), "{from_end}");
        }
    }
}
