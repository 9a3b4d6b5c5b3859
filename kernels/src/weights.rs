//! Matrices on the GPU: rows of packed signed bytes with one scale each, or of single-precision numbers.

use gnnxml_shared::model::encoder::VectorTable;
use gnnxml_shared::model::ops::Int8Linear;

use crate::recording::View;
use crate::{Gpu, GpuError};

/// Rounding to eight bits may move a weight by this share of its row's largest, and still count as nothing lost.
const EXACT: f32 = 1e-6;

/// A matrix, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) quantised: bool,
    pub(crate) words: View,
    /// One a row; of no meaning in single precision.
    pub(crate) scales: View,
}

impl Matrix {
    /// Words of one row.
    pub(crate) fn row_words(&self) -> usize {
        if self.quantised {
            self.columns.div_ceil(4)
        } else {
            self.columns
        }
    }

    /// Stores a matrix in eight bits if that loses nothing (it came from eight bits), in single precision otherwise.
    pub(crate) fn store(
        gpu: &Gpu,
        what: &'static str,
        data: &[f32],
        columns: usize,
    ) -> Result<Self, GpuError> {
        match lossless(data, columns) {
            Some(table) => Self::store_table(gpu, what, &table),
            None => Self::store_floats(gpu, what, data, columns),
        }
    }

    pub(crate) fn store_table(gpu: &Gpu, what: &'static str, table: &VectorTable) -> Result<Self, GpuError> {
        let packed = pack_rows(table.codes(), table.dims());
        Ok(Self {
            rows: table.rows(),
            columns: table.dims(),
            quantised: true,
            words: View::Stored(gpu.store(what, &packed)?),
            scales: View::Stored(gpu.store(what, bytemuck::cast_slice(table.scales()))?),
        })
    }

    pub(crate) fn store_floats(
        gpu: &Gpu,
        what: &'static str,
        data: &[f32],
        columns: usize,
    ) -> Result<Self, GpuError> {
        let words = View::Stored(gpu.store(what, bytemuck::cast_slice(data))?);
        Ok(Self::of_floats(words, data.len() / columns.max(1), columns))
    }

    /// Numbers that are on the GPU already.
    pub(crate) fn of_floats(words: View, rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            quantised: false,
            scales: words.clone(),
            words,
        }
    }
}

/// The matrix in eight bits, when that is what it was made from.
pub(crate) fn lossless(data: &[f32], columns: usize) -> Option<VectorTable> {
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
    same.then_some(table)
}

/// Signed bytes with every row padded to whole words.
fn pack_rows(codes: &[i8], columns: usize) -> Vec<u8> {
    let padded = columns.next_multiple_of(4);
    let mut packed = vec![0; codes.len() / columns * padded];
    for (row, out) in codes.chunks_exact(columns).zip(packed.chunks_exact_mut(padded)) {
        out[..columns].copy_from_slice(bytemuck::cast_slice(row));
    }
    packed
}

/// An eight-bit layer of the encoders: packed dot products over rounded activations.
#[derive(Clone, Debug)]
pub(crate) struct DotLayer {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) levels: f32,
    pub(crate) weights: View,
    pub(crate) scales: View,
    pub(crate) bias: View,
    pub(crate) shrink: View,
}

impl DotLayer {
    pub(crate) fn store(gpu: &Gpu, what: &'static str, layer: &Int8Linear) -> Result<Self, GpuError> {
        let floats = |numbers: &[f32]| gpu.store(what, bytemuck::cast_slice(numbers)).map(View::Stored);
        let packed = pack_rows(&layer.codes(), layer.inputs());
        Ok(Self {
            inputs: layer.inputs(),
            outputs: layer.outputs(),
            levels: layer.levels(),
            weights: View::Stored(gpu.store(what, &packed)?),
            scales: floats(layer.scales())?,
            bias: floats(layer.bias())?,
            shrink: floats(layer.shrink())?,
        })
    }

    /// Words of one row of weights, and of a row's high bytes.
    pub(crate) fn row_words(&self) -> usize {
        self.inputs.div_ceil(4)
    }
}
