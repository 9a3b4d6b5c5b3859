//! The same tags whatever computes: CPU and GPU, trained weights and published ones.

use anyhow::{Context as _, Result};
use gnnxml_kernels::{Engine, GpuError, Preference, Processor, Work};
use gnnxml_shared::bundle::Bundle;
use gnnxml_shared::model::tagger::{FinishOptions, ReadOptions};
use gnnxml_tests::{Agreement, GraphModel, Scored, compare};

/// Scores may differ by this much.
const SCORE: f64 = 5e-3;

fn gpu_demanded() -> bool {
    std::env::var("GNNXML_REQUIRE_GPU").as_deref() == Ok("1")
}

/// An engine on a GPU; nothing when there is none and none is demanded.
fn gpu_engine(bundle: &Bundle) -> Result<Option<Engine>> {
    let work = Work::of(bundle.tagger());
    let begun = std::time::Instant::now();
    let clock = || begun.elapsed().as_secs_f64() * 1e3;
    match pollster::block_on(Engine::new(work, Preference::Gpu, None, clock)) {
        Err(error @ GpuError::NoAdapter { .. }) if !gpu_demanded() => {
            println!("nothing was compared: {error}");
            Ok(None)
        }
        opened => Ok(Some(opened?)),
    }
}

/// The ten best tags of every document from the published bundle, and the clusters they were looked for in.
struct Tagged {
    tags: Vec<Vec<Scored>>,
    clusters: Vec<Vec<Scored>>,
}

fn tag_all(model: &GraphModel, bundle: &Bundle, engine: &Engine) -> Result<Tagged> {
    let tagger = bundle.tagger();
    let options = FinishOptions {
        top: 10,
        ..FinishOptions::default()
    };
    let mut found = Tagged {
        tags: Vec::new(),
        clusters: Vec::new(),
    };
    for (_, text) in &model.documents {
        let reading = tagger.read(text, ReadOptions::default());
        let vectors = tagger.sentence_vectors(text, &reading);
        let prepared = tagger.prepare_with_network(reading, &vectors, |matcher, graph| {
            let ran = pollster::block_on(engine.logits(graph, |graph| matcher.forward(graph)))?;
            assert_eq!(ran.processor, engine.processor());
            Ok(ran.logits)
        })?;
        let answer = bundle.finish(&prepared, options);
        let tags = answer.tags.into_iter();
        found
            .tags
            .push(tags.map(|tag| (tag.name, f64::from(tag.score))).collect());
        let clusters = answer.clusters.into_iter();
        let clusters = clusters.map(|c| (c.cluster.to_string(), f64::from(c.probability)));
        found.clusters.push(clusters.collect());
    }
    Ok(found)
}

#[track_caller]
fn assert_same(agreement: Agreement, what: &str) {
    println!("{what}: {agreement:?}");
    assert_eq!(agreement.documents, 200, "{what}");
    assert_eq!(agreement.differing, 0, "{what}: {agreement:?}");
    assert!(agreement.largest <= SCORE, "{what}: {agreement:?}");
}

#[test]
fn cpu_and_gpu_give_the_same_tags_from_trained_and_from_published_weights() -> Result<()> {
    let model = GraphModel::train()?;
    let bundle = model.open_bundle()?;
    let matcher = bundle.tagger().matcher.graph().context("a graph network")?;
    assert!(matcher.config().has_embedding());

    let (trained, _) = model.predict("cpu")?;
    let published = tag_all(&model, &bundle, &Engine::cpu())?;
    assert_same(
        compare(&published.tags, &trained),
        "eight bits against single precision, both on the CPU, tags",
    );

    let Some(engine) = gpu_engine(&bundle)? else {
        return Ok(());
    };
    assert_eq!(engine.processor(), Processor::Gpu);
    println!("on {}", engine.choice().context("a choice")?.adapter);
    let on_gpu = tag_all(&model, &bundle, &engine)?;
    assert_same(
        compare(&on_gpu.tags, &published.tags),
        "published weights, GPU against CPU, tags",
    );
    // A fitted score may weigh clusters lightly; their probabilities show what the network itself answered.
    assert_same(
        compare(&on_gpu.clusters, &published.clusters),
        "published weights, GPU against CPU, clusters",
    );
    assert_eq!(engine.processor(), Processor::Gpu, "{:?}", engine.trouble());

    let (on_gpu, said) = model.predict("gpu")?;
    assert!(said.contains("engine: GPU"), "{said}");
    assert!(!said.contains("on the CPU:"), "{said}");
    assert_same(
        compare(&on_gpu, &trained),
        "trained weights, GPU against CPU (gnnxml predict)",
    );
    Ok(())
}

#[test]
fn a_model_without_a_graph_network_says_that_a_gpu_is_of_no_use() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let corpus = folder.path().join("small.jsonl");
    std::fs::write(&corpus, gnnxml_tests::small_corpus(80))?;
    let model = folder.path().join("model");
    let program = gnnxml_tests::program();
    let trained = std::process::Command::new(program)
        .args(["train", "--corpus"])
        .arg(&corpus)
        .arg("--out")
        .arg(&model)
        .output()?;
    assert!(trained.status.success());
    let predict = |engine: &str| {
        std::process::Command::new(program)
            .args(["predict", "--engine", engine, "--model"])
            .arg(&model)
            .arg(&corpus)
            .output()
    };
    let refused = predict("gpu")?;
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("no graph network"), "{said}");
    let (auto, cpu) = (predict("auto")?, predict("cpu")?);
    assert!(auto.status.success() && cpu.status.success());
    assert_eq!(auto.stdout, cpu.stdout);
    Ok(())
}
