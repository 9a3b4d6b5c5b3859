//! From single precision to eight bits.
//!
//! The layers' inputs have a few channels far larger than the rest. c_j = √(max|x_j| / max|W_·j|) shares that range
//! between the rounded weights and the activations (Xiao et al. 2023, SmoothQuant, with α = ½); max|x_j| is read off a
//! forward pass in single precision over sample sentences.

use super::{Bert, BertError, BertScratch, BertShape, BertWeights, Site, Words};
use crate::model::encoder::VectorTable;
use crate::model::ops::{Int8Linear, Linear};

/// Tokens that pass at a time while the samples are read.
const BATCH: usize = 256;

/// Largest |x_j| seen at each linear map of each layer.
struct Ranges {
    layers: Vec<[Vec<f32>; 4]>,
}

impl Bert {
    /// The model in eight bits. `samples` are token sequences of the kind the model will see, each no longer than its
    /// positions; a few dozen are enough.
    pub fn int8(weights: &BertWeights, samples: &[Vec<u32>]) -> Result<Self, BertError> {
        let ranges = Ranges::observe(&Self::dense(weights)?, samples);
        let mut layers = Vec::with_capacity(weights.layers.len());
        for (index, layer) in weights.layers.iter().enumerate() {
            layers.push(layer.build(index, |affine, site| {
                let balance = balance(&affine.weights, &ranges.layers[index][site as usize]);
                Int8Linear::quantise_weights(&affine.weights, &affine.bias, &balance).map(Linear::Int8)
            })?);
        }
        let words = Words::Int8(VectorTable::quantise(&weights.words, weights.shape.width)?);
        Self::new(
            weights.shape,
            words,
            weights.positions.clone(),
            weights.norm.clone(),
            layers,
        )
    }
}

impl Ranges {
    fn observe(model: &Bert, samples: &[Vec<u32>]) -> Self {
        let BertShape {
            width,
            inner,
            layers,
            positions,
            ..
        } = *model.shape();
        let empty = || {
            [
                vec![0.0; width],
                vec![0.0; width],
                vec![0.0; width],
                vec![0.0; inner],
            ]
        };
        let mut ranges = Self {
            layers: (0..layers).map(|_| empty()).collect(),
        };
        let mut scratch = BertScratch::default();
        let fitting: Vec<&Vec<u32>> = samples
            .iter()
            .filter(|sample| !sample.is_empty() && sample.len() <= positions)
            .collect();
        let mut rest = &fitting[..];
        while !rest.is_empty() {
            let mut tokens = 0;
            let count = rest
                .iter()
                .take_while(|s| {
                    tokens += s.len();
                    tokens <= BATCH
                })
                .count()
                .max(1);
            let (batch, later) = rest.split_at(count);
            rest = later;
            let ids: Vec<u32> = batch.iter().flat_map(|sample| sample.iter().copied()).collect();
            let lengths: Vec<usize> = batch.iter().map(|sample| sample.len()).collect();
            model.forward_watched(&ids, &lengths, &mut scratch, |layer, site, x| {
                let largest = &mut ranges.layers[layer][site as usize];
                for row in x.chunks_exact(largest.len()) {
                    for (most, x) in largest.iter_mut().zip(row) {
                        *most = most.max(x.abs());
                    }
                }
            });
        }
        ranges
    }
}

/// c_j, its geometric mean one. Without samples, or for an input that never moved, the input is left as it is.
fn balance(weights: &[f32], ranges: &[f32]) -> Vec<f32> {
    let mut largest = vec![0.0_f32; ranges.len()];
    for row in weights.chunks_exact(ranges.len()) {
        for (most, w) in largest.iter_mut().zip(row) {
            *most = most.max(w.abs());
        }
    }
    let mut factors: Vec<f32> = ranges
        .iter()
        .zip(&largest)
        .map(|(&x, &w)| if x > 0.0 && w > 0.0 { (x / w).sqrt() } else { 0.0 })
        .collect();
    let moved: Vec<f64> = factors
        .iter()
        .filter(|c| **c > 0.0)
        .map(|c| f64::from(c.ln()))
        .collect();
    let mean = if moved.is_empty() {
        1.0
    } else {
        (moved.iter().sum::<f64>() / moved.len() as f64).exp() as f32
    };
    for c in &mut factors {
        *c = if *c > 0.0 {
            (*c / mean).clamp(1e-3, 1e3)
        } else {
            1.0
        };
    }
    factors
}

/// The index of a site in [`Ranges`].
const _: () = assert!(Site::Attention as usize == 0 && Site::Outer as usize == 3);
