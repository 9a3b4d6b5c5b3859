//! Matrices on the GPU: rows of packed signed bytes or halves with one scale each, or of single-precision numbers.

use gnnxml_shared::model::encoder::VectorTable;
use gnnxml_shared::model::ops::Int8Linear;

use crate::narrow::{Narrow, Precision, pack_rows};
use crate::recording::View;
use crate::{Gpu, GpuError};

/// A matrix, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) precision: Precision,
    pub(crate) words: View,
    /// One a row; of no meaning in single precision.
    pub(crate) scales: View,
}

impl Matrix {
    /// Words of one row.
    pub(crate) fn row_words(&self) -> usize {
        self.precision.row_words(self.columns)
    }

    /// Stores a matrix in eight bits if that loses nothing (it came from eight bits), in halves if these can hold its
    /// numbers, in single precision otherwise.
    pub(crate) fn store(
        gpu: &Gpu,
        what: &'static str,
        data: &[f32],
        columns: usize,
    ) -> Result<Self, GpuError> {
        match Narrow::all(&[data], columns).as_deref() {
            Some([narrow]) => Self::store_narrow(gpu, what, narrow),
            _ => Self::store_floats(gpu, what, data, columns),
        }
    }

    pub(crate) fn store_table(gpu: &Gpu, what: &'static str, table: &VectorTable) -> Result<Self, GpuError> {
        Self::store_narrow(gpu, what, &Narrow::of_table(table))
    }

    pub(crate) fn store_narrow(gpu: &Gpu, what: &'static str, narrow: &Narrow) -> Result<Self, GpuError> {
        Ok(Self {
            rows: narrow.rows,
            columns: narrow.columns,
            precision: narrow.precision,
            words: View::Stored(gpu.store(what, &narrow.words)?),
            scales: View::Stored(gpu.store(what, bytemuck::cast_slice(&narrow.scales))?),
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
            precision: Precision::Single,
            scales: words.clone(),
            words,
        }
    }
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
