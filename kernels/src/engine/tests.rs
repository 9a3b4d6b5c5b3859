//! Choosing, running, and going on when the GPU goes away.

use std::time::Instant;

use gnnxml_shared::model::matcher::{Matcher, MatcherConfig};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::probe::{agree, cosine};
use super::*;
use gnnxml_shared::model::encoder::SentenceEncoder as _;

use crate::tests::{gpu, random_encoder, random_graph, random_matcher};

fn clock() -> impl Fn() -> f64 {
    let begun = Instant::now();
    move || begun.elapsed().as_secs_f64() * 1e3
}

fn model() -> (Matcher, GraphInput<'static>) {
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let config = MatcherConfig {
        hidden: 32,
        ..MatcherConfig::fast(24, 13, 40)
    };
    let matcher = random_matcher(&mut rng, config.clone(), false);
    let graph = random_graph(&mut rng, &config, 9);
    (matcher, graph)
}

fn engine(matcher: &Matcher, preference: Preference, remembered: Option<Choice>) -> Engine {
    let work = Work {
        matcher: Some(matcher),
        encoder: None,
    };
    pollster::block_on(Engine::new(work, preference, remembered, clock())).unwrap()
}

#[test]
fn a_lost_gpu_costs_no_document() {
    if gpu().is_none() {
        return;
    }
    let (matcher, graph) = model();
    let engine = engine(&matcher, Preference::Gpu, None);
    let cpu = |graph: &GraphInput<'_>| matcher.forward(graph);
    let before = pollster::block_on(engine.logits(&graph, cpu)).unwrap();
    assert_eq!(before.processor, Processor::Gpu);
    assert!(before.report.is_some());
    assert_eq!(engine.choice().map(|c| c.processor), Some(Processor::Gpu));

    // The device goes away underneath, without a word to the engine.
    engine.on_gpu().unwrap().gpu.device.destroy();
    let after = pollster::block_on(engine.logits(&graph, cpu)).unwrap();
    assert_eq!(after.processor, Processor::Cpu);
    assert_eq!(after.logits, matcher.forward(&graph).unwrap());
    agree(&before.logits, &after.logits).unwrap();
    assert!(engine.trouble().is_some());
    assert_eq!(engine.choice(), None, "a GPU that failed is not remembered");
    assert_eq!(engine.processor(), Processor::Cpu);
    assert!(pollster::block_on(engine.logits(&graph, cpu)).is_ok());
}

#[test]
fn many_threads_share_a_gpu_and_survive_its_loss() {
    if gpu().is_none() {
        return;
    }
    let (matcher, graph) = model();
    let engine = engine(&matcher, Preference::Gpu, None);
    let expected = matcher.forward(&graph).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (engine, graph, matcher, expected) = (&engine, &graph, &matcher, &expected);
            scope.spawn(move || {
                for run in 0..20 {
                    if (thread, run) == (0, 10) {
                        engine.lose_gpu();
                    }
                    let ran = pollster::block_on(engine.logits(graph, |g| matcher.forward(g))).unwrap();
                    agree(&ran.logits, expected).unwrap();
                }
            });
        }
    });
    assert_eq!(engine.processor(), Processor::Cpu);
}

#[test]
fn the_quicker_processor_is_chosen_and_remembered() {
    if gpu().is_none() {
        return;
    }
    let (matcher, _) = model();
    let chosen = engine(&matcher, Preference::Auto, None);
    let choice = chosen.choice().expect("there was something to choose").clone();
    let quicker = choice.gpu_milliseconds < choice.cpu_milliseconds;
    assert_eq!(choice.processor == Processor::Gpu, quicker, "{choice:?}");
    let json = serde_json::to_string(&choice).unwrap();
    let back: Choice = serde_json::from_str(&json).unwrap();
    let again = engine(&matcher, Preference::Auto, Some(back.clone()));
    assert_eq!(again.choice(), Some(&back), "nothing was timed again");

    // A remembered CPU is believed without opening a GPU; another network is timed anew.
    let slow = Choice {
        processor: Processor::Cpu,
        adapter: "none of yours".into(),
        ..choice.clone()
    };
    assert_eq!(
        engine(&matcher, Preference::Auto, Some(slow.clone())).choice(),
        Some(&slow)
    );
    let other = Choice {
        shape: "another".into(),
        ..slow
    };
    let timed = engine(&matcher, Preference::Auto, Some(other));
    assert_eq!(timed.choice().unwrap().shape, choice.shape);
}

#[test]
fn sentences_are_encoded_on_the_gpu_and_on_the_cpu_when_it_is_lost() {
    if gpu().is_none() {
        return;
    }
    let encoder = random_encoder();
    let work = Work {
        matcher: None,
        encoder: Some(encoder.model()),
    };
    let engine = pollster::block_on(Engine::new(work, Preference::Gpu, None, clock())).unwrap();
    let long = "b c d ".repeat(1500);
    let sentences = ["a b c", "", long.as_str(), "d", "c c a b"];
    let tokens = encoder.tokenise(&sentences);
    let windows = pollster::block_on(engine.encode(&tokens)).expect("the GPU encodes");
    assert!(windows.batches.len() > 1, "more tokens than one submission takes");
    let found = encoder.gather(&tokens, &windows.batches, &windows.sums);
    let expected = encoder.encode(&sentences);
    let width = encoder.dims();
    for (sentence, (f, e)) in found
        .chunks_exact(width)
        .zip(expected.chunks_exact(width))
        .enumerate()
    {
        if sentences[sentence].is_empty() {
            assert_eq!(f, e);
        } else {
            assert!(cosine(f, e) > 0.9999, "sentence {sentence}: {}", cosine(f, e));
        }
    }
    engine.lose_gpu();
    assert_eq!(pollster::block_on(engine.encode(&tokens)), None);
    assert_eq!(engine.processor(), Processor::Cpu);
}

#[test]
fn the_cpu_alone_asks_nobody() {
    let (matcher, graph) = model();
    let engine = engine(&matcher, Preference::Cpu, None);
    assert_eq!(engine.choice(), None);
    let ran = pollster::block_on(engine.logits(&graph, |g| matcher.forward(g))).unwrap();
    assert_eq!(ran.processor, Processor::Cpu);
    let wrong = GraphInput::empty(3);
    assert!(pollster::block_on(engine.logits(&wrong, |g| matcher.forward(g))).is_err());
    let none = pollster::block_on(Engine::new(Work::default(), Preference::Gpu, None, clock()));
    assert!(
        none.is_err(),
        "a model without a graph network has nothing for a GPU"
    );
}
