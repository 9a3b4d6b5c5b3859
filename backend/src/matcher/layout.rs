//! Where each dense weight lies in the one flat vector that the optimiser, the all-reduce and the checkpoint see.

use gnnxml_shared::model::matcher::{MatcherConfig, NamedTensor};
use rand::Rng;

use super::sampler::generator;
use super::sgemm::Matrix;

/// A weight's place in the flat vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Slot {
    pub(super) fn of<'a>(&self, flat: &'a [f32]) -> &'a [f32] {
        &flat[self.start..self.start + self.len]
    }

    pub(super) fn of_mut<'a>(&self, flat: &'a mut [f32]) -> &'a mut [f32] {
        &mut flat[self.start..self.start + self.len]
    }
}

/// The weights of one GIN layer.
#[derive(Clone, Debug)]
pub(super) struct LayerSlots {
    pub(super) inputs: usize,
    pub(super) w1: Slot,
    pub(super) gain1: Slot,
    pub(super) shift1: Slot,
    pub(super) w2: Slot,
    pub(super) gain2: Slot,
    pub(super) shift2: Slot,
    pub(super) epsilon: Slot,
}

impl LayerSlots {
    /// W₁.
    pub(super) fn first<'a>(&self, config: &MatcherConfig, dense: &'a [f32]) -> Matrix<'a> {
        Matrix::new(self.w1.of(dense), config.hidden, self.inputs)
    }

    /// W₂.
    pub(super) fn second<'a>(&self, config: &MatcherConfig, dense: &'a [f32]) -> Matrix<'a> {
        Matrix::new(self.w2.of(dense), config.hidden, config.hidden)
    }
}

/// The weights of one branch; shared layers stand in both with the same slots.
#[derive(Clone, Debug)]
pub(super) struct BranchSlots {
    pub(super) layers: Vec<LayerSlots>,
    pub(super) head: Slot,
    pub(super) bias: Slot,
}

/// The whole flat vector.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) slots: Vec<Slot>,
    pub(super) branches: Vec<BranchSlots>,
    pub(super) len: usize,
}

impl Layout {
    pub(super) fn new(config: &MatcherConfig) -> Self {
        let mut start = 0;
        let mut slots = Vec::new();
        for tensor in config.dense_tensors() {
            let len = tensor.len();
            slots.push(Slot {
                name: tensor.name,
                shape: tensor.shape,
                start,
                len,
            });
            start += len;
        }
        let find = |name: &str| {
            slots
                .iter()
                .find(|s| s.name == name)
                .expect("the configuration names all its weights")
                .clone()
        };
        let branches = (0..config.branches())
            .map(|branch| {
                let layers = (1..=config.depth()).map(|layer| {
                    let prefix = config.layer_prefix(branch, layer);
                    let part = |suffix: &str| find(&format!("{prefix}.{suffix}"));
                    LayerSlots {
                        inputs: config.layer_width(layer - 1),
                        w1: part("w1"),
                        gain1: part("gain1"),
                        shift1: part("shift1"),
                        w2: part("w2"),
                        gain2: part("gain2"),
                        shift2: part("shift2"),
                        epsilon: part("epsilon"),
                    }
                });
                let name = config.branch_names()[branch];
                BranchSlots {
                    layers: layers.collect(),
                    head: find(&format!("{name}.head.w")),
                    bias: find(&format!("{name}.head.b")),
                }
            })
            .collect();
        Self {
            slots,
            branches,
            len: start,
        }
    }

    /// Everything but the classifiers.
    pub(super) fn layers(&self) -> Vec<std::ops::Range<usize>> {
        let mut ranges = Vec::new();
        let mut start = 0;
        for branch in &self.branches {
            ranges.push(start..branch.head.start);
            start = branch.bias.start + branch.bias.len;
        }
        ranges.push(start..self.len);
        ranges
    }

    /// The weights a run starts from: matrices uniform in ±√(3/inputs) (variance 1/inputs; heads a tenth of that), gains 1, the rest 0.
    pub(super) fn initial(&self, seed: u64) -> Vec<f32> {
        let mut flat = vec![0.0; self.len];
        for (number, slot) in self.slots.iter().enumerate() {
            let values = slot.of_mut(&mut flat);
            if let [_, inputs] = slot.shape[..] {
                let mut random = generator(seed, u64::MAX, number as u64);
                let mut bound = (3.0 / inputs as f32).sqrt();
                if slot.name.ends_with("head.w") {
                    bound *= 0.1f32.sqrt();
                }
                values.fill_with(|| random.random_range(-bound..bound));
            } else if slot.name.contains(".gain") {
                values.fill(1.0);
            }
        }
        flat
    }

    /// Each weight's learning rate, as a multiple: `deep` for the layers and for what the classifiers make of their read-outs, 1 for what
    /// they make of the inputs themselves and for their biases.
    pub(super) fn rates(&self, config: &MatcherConfig, deep: f32) -> Vec<f32> {
        let mut rates = vec![1.0; self.len];
        for range in self.layers() {
            rates[range].fill(deep);
        }
        let shallow = if config.reads_all_layers() || config.depth() == 0 {
            config.input_width()
        } else {
            0
        };
        for branch in &self.branches {
            for row in branch
                .head
                .of_mut(&mut rates)
                .chunks_exact_mut(config.readout_width())
            {
                row[shallow..].fill(deep);
            }
        }
        rates
    }

    /// The flat vector as named weights.
    pub(super) fn named(&self, flat: &[f32]) -> Vec<NamedTensor> {
        let tensor = |slot: &Slot| NamedTensor {
            name: slot.name.clone(),
            shape: slot.shape.clone(),
            data: slot.of(flat).to_vec(),
        };
        self.slots.iter().map(tensor).collect()
    }
}
