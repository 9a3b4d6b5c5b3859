//! A table of vectors in eight bits, one scale a row: what `lsa` and `static` look words up in.

use super::l2_normalise;
use crate::model::ops::rows::add_codes;

/// Why a table cannot be built from the given parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    #[error("a vector table needs at least one dimension")]
    NoDimensions,
    #[error("{codes} codes do not make {rows} rows of {dims}")]
    Shape { rows: usize, dims: usize, codes: usize },
    #[error("row {row} has the scale {scale}, expected a finite number not below zero")]
    Scale { row: usize, scale: String },
}

/// Rows of `dims` signed bytes; value = code · scale of the row.
///
/// The server looks up the same bytes the page does, so both get the same sentence vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorTable {
    dims: usize,
    scales: Vec<f32>,
    codes: Vec<i8>,
}

impl VectorTable {
    /// Rounds `rows` (row-major, a multiple of `dims`) to eight bits, symmetric around zero a row.
    ///
    /// ```
    /// use gnnxml_shared::model::encoder::VectorTable;
    /// let table = VectorTable::quantise(&[1.0, -0.5, 0.0, 2.0], 2).unwrap();
    /// let mut sum = vec![0.0; 2];
    /// table.add_scaled(1, 3.0, &mut sum);
    /// assert!((sum[1] - 6.0).abs() < 1e-6 && sum[0] == 0.0);
    /// ```
    pub fn quantise(rows: &[f32], dims: usize) -> Result<Self, TableError> {
        if dims == 0 {
            return Err(TableError::NoDimensions);
        }
        if !rows.len().is_multiple_of(dims) {
            return Err(TableError::Shape {
                rows: rows.len() / dims,
                dims,
                codes: rows.len(),
            });
        }
        let mut scales = Vec::with_capacity(rows.len() / dims);
        let mut codes = Vec::with_capacity(rows.len());
        for (index, row) in rows.chunks_exact(dims).enumerate() {
            if let Some(bad) = row.iter().find(|x| !x.is_finite()) {
                return Err(TableError::Scale {
                    row: index,
                    scale: bad.to_string(),
                });
            }
            let largest = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let scale = largest / 127.0;
            scales.push(scale);
            codes.extend(row.iter().map(|x| {
                if scale > 0.0 {
                    (x / scale).round_ties_even() as i8
                } else {
                    0
                }
            }));
        }
        Ok(Self { dims, scales, codes })
    }

    /// Takes a table apart-wise, as a file holds it; every length is checked.
    pub fn from_parts(dims: usize, scales: Vec<f32>, codes: Vec<i8>) -> Result<Self, TableError> {
        if dims == 0 {
            return Err(TableError::NoDimensions);
        }
        if scales.len().checked_mul(dims) != Some(codes.len()) {
            return Err(TableError::Shape {
                rows: scales.len(),
                dims,
                codes: codes.len(),
            });
        }
        if let Some(row) = scales
            .iter()
            .position(|scale| !(scale.is_finite() && *scale >= 0.0))
        {
            return Err(TableError::Scale {
                row,
                scale: scales[row].to_string(),
            });
        }
        Ok(Self { dims, scales, codes })
    }

    /// Width of a row.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.scales.len()
    }

    /// One scale a row.
    pub fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// Row-major codes.
    pub fn codes(&self) -> &[i8] {
        &self.codes
    }

    /// Row-major values.
    pub fn to_floats(&self) -> Vec<f32> {
        let rows = self.codes.chunks_exact(self.dims).zip(&self.scales);
        rows.flat_map(|(row, &scale)| row.iter().map(move |&code| f32::from(code) * scale))
            .collect()
    }

    /// `sum += weight · row`. A row beyond the table adds nothing.
    pub fn add_scaled(&self, row: usize, weight: f32, sum: &mut [f32]) {
        let Some(&scale) = self.scales.get(row) else {
            return;
        };
        add_codes(
            &self.codes[row * self.dims..(row + 1) * self.dims],
            weight * scale,
            sum,
        );
    }

    /// The weighted sum of rows, of length one: every lookup encoder's sentence vector.
    pub fn normalised_sum(&self, rows: impl Iterator<Item = (usize, f32)>, into: &mut [f32]) {
        into.fill(0.0);
        for (row, weight) in rows {
            self.add_scaled(row, weight, into);
        }
        l2_normalise(into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_back_what_it_took_within_half_a_step() {
        let rows: Vec<f32> = (0..60).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let table = VectorTable::quantise(&rows, 6).unwrap();
        for (index, row) in rows.chunks(6).enumerate() {
            let mut back = vec![0.0; 6];
            table.add_scaled(index, 1.0, &mut back);
            for (x, y) in row.iter().zip(&back) {
                assert!(
                    (x - y).abs() <= table.scales()[index] * 0.5001,
                    "{x} came back as {y}"
                );
            }
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert_eq!(
            VectorTable::from_parts(3, vec![1.0, 1.0], vec![0; 5]),
            Err(TableError::Shape {
                rows: 2,
                dims: 3,
                codes: 5
            })
        );
        assert_eq!(
            VectorTable::from_parts(0, vec![], vec![]),
            Err(TableError::NoDimensions)
        );
        assert!(VectorTable::from_parts(1, vec![f32::NAN], vec![1]).is_err());
        assert!(VectorTable::quantise(&[1.0, f32::INFINITY], 2).is_err());
        assert!(VectorTable::quantise(&[f32::NAN, 1.0], 2).is_err());
    }

    #[test]
    fn a_sum_of_nothing_is_zero_and_of_something_has_length_one() {
        let table = VectorTable::quantise(&[3.0, 4.0, -1.0, 1.0], 2).unwrap();
        let mut out = vec![9.0; 2];
        table.normalised_sum(std::iter::empty(), &mut out);
        assert_eq!(out, [0.0, 0.0]);
        table.normalised_sum([(0, 2.0), (7, 1.0)].into_iter(), &mut out);
        assert!((out[0] - 0.6).abs() < 5e-3 && (out[1] - 0.8).abs() < 5e-3);
    }
}
