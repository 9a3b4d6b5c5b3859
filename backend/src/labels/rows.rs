//! Label vectors: a dense row-major matrix, checked once, and where rows may come from.

use rayon::prelude::*;

use super::{LabelError, SparseRows};

/// A dense row-major matrix of finite numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseRows {
    rows: usize,
    width: usize,
    values: Vec<f32>,
}

impl DenseRows {
    /// Checks shape and every entry; `what` names a row in the error ("label vector").
    pub fn new(values: Vec<f32>, width: usize, what: &'static str) -> Result<Self, LabelError> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(LabelError::Shape {
                what: "numbers in a matrix of whole rows",
                found: values.len(),
                expected: width * (values.len() / width.max(1)),
            });
        }
        check_finite(&values, width, what)?;
        Ok(Self {
            rows: values.len() / width,
            width,
            values,
        })
    }

    /// Without the check, for numbers this room computed itself from checked ones.
    pub(super) fn trusted(values: Vec<f32>, width: usize) -> Self {
        Self {
            rows: values.len() / width.max(1),
            width,
            values,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn row(&self, at: usize) -> &[f32] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    pub fn values(&self) -> &[f32] {
        &self.values
    }

    pub(super) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Takes the mean row from every row that is not zero.
    ///
    /// Sums of document vectors all lean the same way (every text shares words with every other); k-means
    /// would spend its centres on how much they lean. The paper is silent; what it gains and what it costs is in
    /// `docs/results/labels.md`.
    pub(super) fn centre(&mut self) {
        let width = self.width;
        let mut mean = vec![0f64; width];
        let mut count = 0usize;
        for row in self.values.chunks_exact(width) {
            if row.iter().any(|&value| value != 0.0) {
                count += 1;
                for (mean, &value) in mean.iter_mut().zip(row) {
                    *mean += f64::from(value);
                }
            }
        }
        let scale = 1.0 / count.max(1) as f64;
        self.values.par_chunks_mut(width).for_each(|row| {
            if row.iter().any(|&value| value != 0.0) {
                for (value, &mean) in row.iter_mut().zip(&mean) {
                    *value = (f64::from(*value) - scale * mean) as f32;
                }
            }
        });
    }

    /// Scales every row to length 1; a zero row stays zero.
    pub fn normalise(&mut self) {
        let width = self.width;
        self.values.par_chunks_mut(width).for_each(normalise);
    }
}

/// Scales a vector to length 1; a zero vector stays zero.
pub(super) fn normalise(vector: &mut [f32]) {
    let length = vector
        .iter()
        .map(|&v| f64::from(v) * f64::from(v))
        .sum::<f64>()
        .sqrt();
    if length > 0.0 {
        for value in vector {
            *value = (f64::from(*value) / length) as f32;
        }
    }
}

/// The first entry that is not finite, as an error.
pub(super) fn check_finite(values: &[f32], width: usize, what: &'static str) -> Result<(), LabelError> {
    match values.par_iter().position_first(|value| !value.is_finite()) {
        None => Ok(()),
        Some(at) => Err(LabelError::NotFinite {
            what,
            row: at / width,
            column: at % width,
            value: values[at],
        }),
    }
}

/// Label vectors Z, one row a label.
#[derive(Clone, Debug)]
pub enum LabelVectors {
    /// Sums of document embeddings.
    Dense(DenseRows),
    /// Sums of TF-IDF vectors; projected before they are filtered.
    Sparse(SparseRows),
}

impl LabelVectors {
    /// How many labels have a row.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.rows(),
            Self::Sparse(rows) => rows.rows(),
        }
    }
}

/// Rows by number: held in memory, or computed when asked for.
pub(super) trait RowSource: Sync {
    fn rows(&self) -> usize;
    fn width(&self) -> usize;
    /// Writes the rows named by `which`, one after the other, into `out`.
    fn gather(&self, which: &[u32], out: &mut [f32]);
    /// How much a row counts for its centre.
    fn weight(&self, _row: u32) -> f32 {
        1.0
    }
}

/// Rows that do not all count the same.
pub(super) struct WeightedRows<'a> {
    pub(super) rows: &'a dyn RowSource,
    /// One a row, positive.
    pub(super) weights: &'a [f32],
}

impl RowSource for WeightedRows<'_> {
    fn rows(&self) -> usize {
        self.rows.rows()
    }

    fn width(&self) -> usize {
        self.rows.width()
    }

    fn gather(&self, which: &[u32], out: &mut [f32]) {
        self.rows.gather(which, out);
    }

    fn weight(&self, row: u32) -> f32 {
        self.weights[row as usize]
    }
}

impl RowSource for DenseRows {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.width
    }

    fn gather(&self, which: &[u32], out: &mut [f32]) {
        for (&row, out) in which.iter().zip(out.chunks_exact_mut(self.width)) {
            out.copy_from_slice(self.row(row as usize));
        }
    }
}
