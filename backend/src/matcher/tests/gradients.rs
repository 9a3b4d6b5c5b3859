use std::sync::Arc;

use candle_core::{DType, Device, Tensor, Var};
use gnnxml_shared::model::matcher::{GraphInput, Matcher, MatcherConfig};
use rand::Rng;

use super::*;
use crate::matcher::MatcherError;
use crate::matcher::batch::Shard;
use crate::matcher::composed::{self, Place};
use crate::matcher::engine::{DeviceChoice, Engine, Gradient, Precision, split_when_out_of_memory};
use crate::matcher::layout::Layout;
use crate::matcher::predict::predict;

fn double() -> Place {
    Place {
        device: Device::Cpu,
        dtype: DType::F64,
    }
}

fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut generator = generator(seed, 7, 7);
    let values: Vec<f64> = (0..shape.iter().product())
        .map(|_| generator.random_range(-1.0..1.0))
        .collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// Compares the gradient of `f` at `at` with central differences in every coordinate (or every `stride`-th).
fn check(what: &str, at: &Tensor, stride: usize, f: impl Fn(&Tensor) -> Tensor) {
    let var = Var::from_tensor(at).unwrap();
    let gradients = f(var.as_tensor()).backward().unwrap();
    let gradient = gradients
        .get(var.as_tensor())
        .unwrap_or_else(|| panic!("{what}: no gradient at all"));
    let gradient = gradient.flatten_all().unwrap().to_vec1::<f64>().unwrap();
    let values = at.flatten_all().unwrap().to_vec1::<f64>().unwrap();
    let step = 1e-6;
    for i in (0..values.len()).step_by(stride) {
        let moved = |by: f64| {
            let mut values = values.clone();
            values[i] += by;
            let at = Tensor::from_vec(values, at.shape(), &Device::Cpu).unwrap();
            f(&at).to_scalar::<f64>().unwrap()
        };
        let numeric = (moved(step) - moved(-step)) / (2.0 * step);
        let error = (numeric - gradient[i]).abs() / (1.0 + numeric.abs());
        assert!(
            error < 1e-6,
            "{what}, coordinate {i}: {} against {numeric}",
            gradient[i]
        );
    }
}

/// A scalar that sees every element of a tensor differently.
fn probe(x: &Tensor) -> Tensor {
    let weights = random(x.dims(), 99);
    (x * weights).unwrap().sum_all().unwrap()
}

#[test]
fn the_norm_passes_finite_differences() {
    let (x, gain, shift) = (random(&[3, 5], 1), random(&[5], 2), random(&[5], 3));
    check("x", &x, 1, |x| probe(&composed::norm(x, &gain, &shift).unwrap()));
    check("gain", &gain, 1, |gain| {
        probe(&composed::norm(&x, gain, &shift).unwrap())
    });
    check("shift", &shift, 1, |shift| {
        probe(&composed::norm(&x, &gain, shift).unwrap())
    });
}

#[test]
fn the_cross_entropy_passes_finite_differences_and_does_not_overflow() {
    let batch = batch(&config());
    let side = &batch.shards[0].sides[0];
    let z = random(&[2, 4], 4);
    check("z", &z, 1, |z| {
        composed::weighted_cross_entropy(z, side, 4, 2.5).unwrap()
    });
    for extreme in [-500.0, 500.0] {
        let z = Var::from_tensor(&Tensor::full(extreme, (2, 4), &Device::Cpu).unwrap()).unwrap();
        let loss = composed::weighted_cross_entropy(&z, side, 4, 1.0).unwrap();
        assert!(loss.to_scalar::<f64>().unwrap().is_finite());
        let gradients = loss.backward().unwrap();
        let gradient = gradients
            .get(&z)
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1::<f64>()
            .unwrap();
        assert!(gradient.iter().all(|g| g.is_finite()));
    }
}

#[test]
fn a_gin_layer_passes_finite_differences() {
    let config = MatcherConfig {
        dropout: 0.0,
        ..config()
    };
    let layout = Layout::new(&config);
    let batch = batch(&config);
    let side = &batch.shards[0].sides[0];
    let dense = random(&[layout.len], 5);
    let slots = &layout.branches[0].layers[1];
    let h = random(&[side.rows(), config.hidden], 6);
    check("h", &h, 1, |h| {
        probe(&composed::gin_layer(&double(), slots, &dense, side, h).unwrap())
    });
    check("weights", &dense, 1, |dense| {
        probe(&composed::gin_layer(&double(), slots, dense, side, &h).unwrap())
    });
}

#[test]
fn the_readout_passes_finite_differences_in_the_words() {
    let config = config();
    let layout = Layout::new(&config);
    let batch = batch(&config);
    let side = &batch.shards[0].sides[0];
    let dense = random(&[layout.len], 8);
    let words = random(&[batch.words.len(), config.embedding], 9);
    check("words", &words, 1, |words| {
        probe(&composed::branch_readout(&config, &layout, &double(), (&dense, words), 0, side).unwrap())
    });
}

#[test]
fn the_whole_loss_passes_finite_differences_for_every_switch() {
    for config in every_switch() {
        let layout = Layout::new(&config);
        let batch = batch(&config);
        let dense = random(&[layout.len], 10);
        let words = random(&[batch.words.len().max(1), config.embedding.max(1)], 11);
        let loss = |dense: &Tensor, words: &Tensor| {
            let mut first = 0;
            let mut sum = Tensor::new(0.0f64, &Device::Cpu).unwrap();
            for shard in &batch.shards {
                let place = double();
                let part =
                    composed::shard_loss(&config, &layout, &place, (dense, words), shard, first, moment());
                sum = (sum + part.unwrap().0).unwrap();
                first += shard.pairs();
            }
            sum
        };
        // Every 13th weight: all kinds of weights are met, and the test stays quick.
        check(&format!("dense {config:?}"), &dense, 13, |dense| {
            loss(dense, &words)
        });
        if config.has_embedding() {
            check(&format!("words {config:?}"), &words, 3, |words| {
                loss(&dense, words)
            });
        }
    }
}

fn weights(config: &MatcherConfig, batch: &Batch) -> (Vec<f32>, Vec<f32>) {
    let mut random = generator(12, 0, 0);
    let dense = (0..Layout::new(config).len)
        .map(|_| random.random_range(-1.0..1.0))
        .collect();
    let words = (0..batch.words.len() * config.embedding_width())
        .map(|_| random.random_range(-1.0..1.0))
        .collect();
    (dense, words)
}

fn gradient(engine: &Engine, config: &MatcherConfig) -> Gradient {
    let batch = Arc::new(batch(config));
    let (dense, words) = weights(config, &batch);
    let layout = Arc::new(Layout::new(config));
    engine
        .gradient(
            &Arc::new(config.clone()),
            &layout,
            (&dense, words),
            &batch,
            moment(),
        )
        .unwrap()
}

fn assert_close(what: &str, a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    let length = b.iter().map(|x| x * x).sum::<f32>().sqrt();
    let error = a
        .iter()
        .zip(b)
        .map(|(x, y)| (x - y) * (x - y))
        .sum::<f32>()
        .sqrt();
    assert!(error <= 2e-5 * length.max(1e-3), "{what}: {error} of {length}");
}

#[test]
fn the_fused_gradient_is_candles_for_every_switch() {
    let fused = Engine::open(DeviceChoice::Cpu, Precision::F32, false).unwrap();
    let reference = Engine::open(DeviceChoice::Cpu, Precision::F64, false).unwrap();
    for config in every_switch() {
        let (a, b) = (gradient(&fused, &config), gradient(&reference, &config));
        assert!(
            (a.losses.total - b.losses.total).abs() < 1e-5 * b.losses.total,
            "{:?} {:?}",
            a.losses,
            b.losses
        );
        assert!((a.losses.sides[0] - b.losses.sides[0]).abs() < 1e-5 * b.losses.sides[0]);
        assert_close("dense", &a.dense, &b.dense);
        assert_close("words", &a.words, &b.words);
    }
}

#[test]
fn a_batch_that_does_not_fit_is_split_and_gives_the_same_loss() {
    let config = config();
    let layout = Layout::new(&config);
    let whole = batch(&config);
    let (dense, words) = weights(&config, &whole);
    let place = double();
    let dense = place.tensor(&dense, dense.len()).unwrap();
    let words = place
        .tensor(&words, (whole.words.len(), config.embedding))
        .unwrap();
    let run = |limit: usize| {
        let (mut sum, mut passes) = (0.0, 0);
        let mut first = 0;
        for shard in &whole.shards {
            let mut pass = |shard: &Shard, first: usize| {
                if shard.pairs() > limit {
                    return Err(candle_core::Error::Msg("CUDA_ERROR_OUT_OF_MEMORY".to_owned()));
                }
                passes += 1;
                let loss =
                    composed::shard_loss(&config, &layout, &place, (&dense, &words), shard, first, moment())?;
                sum += loss.0.to_scalar::<f64>()?;
                Ok(())
            };
            split_when_out_of_memory(shard, first, &mut pass)?;
            first += shard.pairs();
        }
        Ok::<_, MatcherError>((sum, passes))
    };
    let (unsplit, passes) = run(100).unwrap();
    assert_eq!(passes, 3);
    let (split, passes) = run(1).unwrap();
    assert_eq!(passes, 5);
    assert!((unsplit - split).abs() < 1e-12 * unsplit);
    assert!(matches!(run(0), Err(MatcherError::OutOfMemory(_))));
}

#[test]
fn the_reference_forward_is_candles_and_the_batch_prediction_to_1e_5() {
    let directory = tempfile::tempdir().unwrap();
    for (number, config) in every_switch().into_iter().enumerate() {
        let config = MatcherConfig {
            dropout: 0.0,
            ..config
        };
        let layout = Layout::new(&config);
        let mut random = generator(13, 0, 0);
        let mut tensors =
            config
                .tensors()
                .into_iter()
                .map(|spec| gnnxml_shared::model::matcher::NamedTensor {
                    data: (0..spec.len()).map(|_| random.random_range(-1.0..1.0)).collect(),
                    name: spec.name,
                    shape: spec.shape,
                });
        let matcher = Matcher::new(config.clone(), tensors.by_ref().collect()).unwrap();
        let (embedding, dense) = crate::matcher::predict::flat_weights(&matcher);
        let mut writer =
            PreparedWriter::create(&directory.path().join(number.to_string()), config.width).unwrap();
        for n in 0..6 {
            writer.push(&graph(&config, n, n as u64)).unwrap();
        }
        let graphs = writer.finish().unwrap();
        let batched = predict(&matcher, &graphs, config.clusters).unwrap();
        let place = Place {
            device: Device::Cpu,
            dtype: DType::F32,
        };
        let dense = place.tensor(&dense, dense.len()).unwrap();
        let embedding = if embedding.is_empty() {
            vec![0.0]
        } else {
            embedding
        };
        let rows = embedding.len() / config.embedding_width().max(1);
        let words = place
            .tensor(&embedding, (rows, config.embedding_width().max(1)))
            .unwrap();
        for document in 0..graphs.len() {
            let input = graphs.get(document);
            let z = matcher.forward(&input).unwrap();
            let shard = Shard::to_score(&config, std::iter::once(input));
            let mut candle = vec![0.0; config.clusters];
            for (b, side) in shard.sides.iter().enumerate() {
                let readout =
                    composed::branch_readout(&config, &layout, &place, (&dense, &words), b, side).unwrap();
                let branch = &layout.branches[b];
                let slice = |slot: &crate::matcher::layout::Slot| {
                    dense
                        .narrow(0, slot.start, slot.len)
                        .unwrap()
                        .reshape(&slot.shape[..])
                        .unwrap()
                };
                let logits = readout.matmul(&slice(&branch.head).t().unwrap()).unwrap();
                let logits = logits
                    .broadcast_add(&slice(&branch.bias))
                    .unwrap()
                    .flatten_all()
                    .unwrap();
                for (sum, z) in candle.iter_mut().zip(logits.to_vec1::<f32>().unwrap()) {
                    *sum += z / config.branches() as f32;
                }
            }
            for (k, probability) in &batched[document] {
                let z = z[*k as usize];
                assert!(
                    (z - candle[*k as usize]).abs() < 1e-5 * z.abs().max(1.0),
                    "{z} {}",
                    candle[*k as usize]
                );
                assert!((probability - 1.0 / (1.0 + (-z).exp())).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn a_graph_of_five_thousand_vertices_and_an_empty_one_are_scored() {
    let config = config();
    let matcher = Matcher::zeros(config.clone()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut writer = PreparedWriter::create(&directory.path().join("graphs"), config.width).unwrap();
    writer.push(&graph(&config, 5000, 1)).unwrap();
    writer.push(&GraphInput::empty(config.width)).unwrap();
    let graphs = writer.finish().unwrap();
    assert_eq!(
        predict(&matcher, &graphs, 2).unwrap(),
        vec![vec![(0, 0.5), (1, 0.5)]; 2]
    );
}
