//! Named weights: how checkpoints and bundles hand a matcher its numbers.

use super::{Matcher, MatcherConfig, MatcherError};

/// A weight as files hold it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    pub name: String,
    pub shape: Vec<usize>,
    /// Row-major.
    pub data: Vec<f32>,
}

impl NamedTensor {
    /// All zero.
    pub fn zeros(name: impl Into<String>, shape: Vec<usize>) -> Self {
        let data = vec![0.0; shape.iter().product()];
        Self {
            name: name.into(),
            shape,
            data,
        }
    }
}

/// Puts `tensors` in the configuration's order, or says which one is missing, unknown or of another shape.
pub(super) fn in_order(
    config: &MatcherConfig,
    tensors: Vec<NamedTensor>,
) -> Result<Vec<NamedTensor>, MatcherError> {
    config.validate()?;
    let mut slots: Vec<Option<NamedTensor>> = tensors.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(slots.len());
    for spec in config.tensors() {
        let found = slots
            .iter_mut()
            .find(|slot| slot.as_ref().is_some_and(|t| t.name == spec.name))
            .and_then(Option::take)
            .ok_or_else(|| MatcherError::MissingTensor {
                name: spec.name.clone(),
                expected: spec.shape.clone(),
            })?;
        if found.shape != spec.shape || found.data.len() != spec.len() {
            let shape = if found.shape == spec.shape {
                vec![found.data.len()]
            } else {
                found.shape
            };
            return Err(MatcherError::TensorShape {
                name: spec.name,
                found: shape,
                expected: spec.shape,
            });
        }
        ordered.push(found);
    }
    match slots.into_iter().flatten().next() {
        Some(extra) => Err(MatcherError::UnknownTensor { name: extra.name }),
        None => Ok(ordered),
    }
}

impl Matcher {
    /// A matcher whose weights are all zero: every cluster gets probability one half.
    pub fn zeros(config: MatcherConfig) -> Result<Self, MatcherError> {
        config.validate()?;
        let tensors = config
            .tensors()
            .into_iter()
            .map(|s| NamedTensor::zeros(s.name, s.shape))
            .collect();
        Self::new(config, tensors)
    }
}
