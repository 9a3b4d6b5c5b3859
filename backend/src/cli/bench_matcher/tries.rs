//! Settings changed by name on the command line.

use gnnxml_shared::model::matcher::{EdgeWeights, ReadoutNorm, Variant};

use crate::cli::WrongInput;
use crate::matcher::TrainOptions;

/// `base` with settings changed by name.
pub(super) fn changed(base: &TrainOptions, changes: &str) -> anyhow::Result<TrainOptions> {
    let mut options = base.clone();
    for change in changes.split(',').filter(|c| !c.is_empty()) {
        let wrong = || {
            WrongInput(format!(
                "--try: found {change:?}, expected name=value with a known name"
            ))
        };
        let (name, value) = change.split_once('=').ok_or_else(wrong)?;
        let number = || value.parse::<f32>().map_err(|_| wrong());
        let whole = || value.parse::<usize>().map_err(|_| wrong());
        let model = &mut options.model;
        match name {
            "epochs" => options.epochs = whole()? as u32,
            "batch" => options.batch = whole()?,
            "shard" => options.shard = whole()?,
            "rate" => options.learning_rate = number()?,
            "final_rate" => options.final_rate = number()?,
            "embedding_rate" => options.embedding_rate = number()?,
            "layer_rate" => options.layer_rate = number()?,
            "decay" => options.weight_decay = number()?,
            "clip" => options.clip = number()?,
            "positive_weight" => options.positive_weight = number()?,
            "seed" => options.seed = whole()? as u64,
            "word_dropout" => options.word_dropout = number()?,
            "dropout" => model.dropout = number()?,
            "hidden" => model.hidden = whole()?,
            "layers" => model.layers = whole()?,
            "embedding" => {
                model.embedding = whole()?;
                model.vocabulary = if model.embedding == 0 {
                    0
                } else {
                    base.model.vocabulary
                };
            }
            "shared_lower" => model.shared_lower = whole()? != 0,
            "learn_epsilon" => model.learn_epsilon = whole()? != 0,
            "text_vertex" => model.text_vertex = whole()? != 0,
            "edge_weights" => {
                model.edge_weights = match value {
                    "off" => EdgeWeights::Off,
                    "shared" => EdgeWeights::Shared,
                    "normalised" => EdgeWeights::Normalised,
                    _ => return Err(wrong().into()),
                }
            }
            "readout" => {
                model.readout = match value {
                    "sum" => ReadoutNorm::Sum,
                    "root" => ReadoutNorm::Root,
                    "mean" => ReadoutNorm::Mean,
                    _ => return Err(wrong().into()),
                }
            }
            "variant" => {
                model.variant = match value {
                    "v1" => Variant::V1,
                    "v2" => Variant::V2,
                    "v3" => Variant::V3,
                    "v4" => Variant::V4,
                    _ => return Err(wrong().into()),
                }
            }
            _ => return Err(wrong().into()),
        }
    }
    Ok(options)
}
