//! The numeric primitives of the encoders: matrix products, layer-norm, GELU, softmax.
//!
//! Each is written once in plain Rust and compiled for what the machine has: AVX-512 or AVX2 with FMA (asked at run time), wasm
//! simd128 (decided when the page is built), or whatever the compiler makes of it. Integer sums are exact and floats are
//! added in one order everywhere; only where a multiply and its add round once (FMA) and where twice (the page) do page and server differ,
//! in the last bits. No threads, no allocation inside.

mod dense;
mod int8;
mod kernel;
pub mod rows;
#[cfg(test)]
mod tests;

pub use dense::{DenseLinear, PackedColumns};
pub use int8::{Int8Linear, QuantisedRows};

/// Why a layer cannot be built from the given numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("{found} weights and {bias} biases do not make a layer of {outputs} × {inputs}")]
    Layer {
        outputs: usize,
        inputs: usize,
        found: usize,
        bias: usize,
    },
    #[error("a layer of {outputs} × {inputs} is empty or too wide for exact integer sums")]
    Size { outputs: usize, inputs: usize },
    #[error("the weights of output {output} hold a number that is not finite")]
    NotFinite { output: usize },
}

pub(crate) fn check_layer(
    weights: usize,
    bias: usize,
    outputs: usize,
    inputs: usize,
) -> Result<(), ShapeError> {
    if outputs == 0 || inputs == 0 || inputs > int8::WIDEST {
        return Err(ShapeError::Size { outputs, inputs });
    }
    if outputs.checked_mul(inputs) != Some(weights) || bias != outputs {
        return Err(ShapeError::Layer {
            outputs,
            inputs,
            found: weights,
            bias,
        });
    }
    Ok(())
}

/// A linear layer, y = W x + b, in one of two precisions.
#[derive(Clone, Debug)]
pub enum Linear {
    F32(DenseLinear),
    Int8(Int8Linear),
}

/// Buffers a layer needs while it runs; keep one a thread and nothing is allocated again.
#[derive(Clone, Debug, Default)]
pub struct LinearScratch {
    quantised: QuantisedRows,
    panel: Vec<i16>,
}

impl Linear {
    /// Width of y.
    pub fn outputs(&self) -> usize {
        match self {
            Self::F32(layer) => layer.outputs(),
            Self::Int8(layer) => layer.outputs(),
        }
    }

    /// Width of x.
    pub fn inputs(&self) -> usize {
        match self {
            Self::F32(layer) => layer.inputs(),
            Self::Int8(layer) => layer.inputs(),
        }
    }

    /// `out` (rows × outputs) = x (rows × inputs) Wᵀ + b.
    pub fn apply(&self, x: &[f32], out: &mut [f32], scratch: &mut LinearScratch) {
        self.apply_then::<false>(x, out, scratch);
    }

    /// `out` = GELU(x Wᵀ + b), each tile while it is at hand.
    pub fn apply_gelu(&self, x: &[f32], out: &mut [f32], scratch: &mut LinearScratch) {
        self.apply_then::<true>(x, out, scratch);
    }

    fn apply_then<const GELU: bool>(&self, x: &[f32], out: &mut [f32], scratch: &mut LinearScratch) {
        match self {
            Self::F32(layer) => layer.apply_then::<GELU>(x, out),
            Self::Int8(layer) => {
                layer.quantise(x, &mut scratch.quantised);
                layer.apply::<GELU>(&scratch.quantised, out, &mut scratch.panel);
            }
        }
    }
}
