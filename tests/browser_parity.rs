//! The same tags in a browser as outside: with WebGPU, without, and when it is lost on the way.

use anyhow::{Context as _, Result, ensure};
use gnnxml_shared::model::tagger::{FinishOptions, ReadOptions};
use gnnxml_tests::{
    Browser, BrowserOptions, GraphModel, Scored, Server, ServerOptions, compare, copy_folder,
    install_package, scored,
};
use serde_json::Value;

/// Documents a script handles at a time: a script may not take for ever.
const BATCH: usize = 20;
/// Scores may differ by this much.
const SCORE: f64 = 5e-3;

/// A site with the package, a bundle and nothing else.
fn site(model: &GraphModel, folder: &std::path::Path) -> Result<Server> {
    let web = folder.join("web");
    install_package(&web)?;
    copy_folder(&model.bundle(), &web.join("bundle"))?;
    std::fs::copy(model.corpus(), web.join("corpus.txt"))?;
    std::fs::write(
        web.join("index.html"),
        "<!doctype html><meta charset=utf-8><title>Parity</title>",
    )?;
    Server::start_with(
        &folder.join("data"),
        &ServerOptions {
            arguments: vec!["--web".into(), web.display().to_string()],
            ..ServerOptions::default()
        },
    )
}

/// Loads the tagger into the page and says which engine it took.
fn load(browser: &Browser, engine: &str) -> Result<Value> {
    browser.run_async(&format!(
        "const {{ Tagger }} = await import('/gnnxml/index.js'); \
         const lines = (await (await fetch('/corpus.txt')).text()).trim().split('\\n'); \
         window.texts = lines.map((line) => JSON.parse(line).text); \
         window.tagger = await Tagger.load(new URL('/bundle/', location.href), {{ engine: '{engine}' }}); \
         return {{ engine: tagger.engine, choice: tagger.choice, fetched: tagger.fetched, texts: texts.length }};"
    ))
}

/// The ten best tags of every document, several documents on their way at once.
fn tag_all(browser: &Browser, documents: usize) -> Result<Vec<Vec<Scored>>> {
    let mut all = Vec::new();
    for start in (0..documents).step_by(BATCH) {
        let answers = browser.run_async(&format!(
            "const batch = texts.slice({start}, {start} + {BATCH}); \
             return await Promise.all(batch.map(async (text) => \
               (await tagger.tag(text, {{ top: 10, explain: false }})).tags.map(({{ name, score }}) => ({{ name, score }}))));"
        ))?;
        for tags in answers.as_array().context("answers")? {
            all.push(scored(tags)?);
        }
    }
    Ok(all)
}

fn outside(model: &GraphModel) -> Result<Vec<Vec<Scored>>> {
    let bundle = model.open_bundle()?;
    let options = FinishOptions {
        top: 10,
        ..FinishOptions::default()
    };
    let tag = |text: &str| -> Result<Vec<Scored>> {
        let prepared = bundle.prepare(text, ReadOptions::default())?;
        let tags = bundle.finish(&prepared, options).tags.into_iter();
        Ok(tags.map(|tag| (tag.name, f64::from(tag.score))).collect())
    };
    model.documents.iter().map(|(_, text)| tag(text)).collect()
}

fn assert_same(found: &[Vec<Scored>], expected: &[Vec<Scored>], what: &str) -> Result<()> {
    let agreement = compare(found, expected);
    println!("{what}: {agreement:?}");
    ensure!(
        agreement.documents == 200 && agreement.differing == 0 && agreement.largest <= SCORE,
        "{what}: {agreement:?}"
    );
    Ok(())
}

/// Whether one answer's tags are those expected of its document.
fn assert_tags(answer: &Value, expected: &[Scored], what: &str) -> Result<()> {
    let found = [scored(&answer["tags"])?];
    let agreement = compare(&found, &[expected.to_vec()]);
    ensure!(
        agreement.differing == 0 && agreement.largest <= SCORE,
        "{what}: {agreement:?} {answer}"
    );
    Ok(())
}

#[test]
fn a_gpu_that_fails_on_the_way_costs_no_tags() -> Result<()> {
    let model = GraphModel::train()?;
    let expected = outside(&model)?;
    let folder = tempfile::tempdir()?;
    let server = site(&model, folder.path())?;
    let browser = Browser::open(BrowserOptions {
        webgpu: true,
        ..BrowserOptions::default()
    })?;
    browser.goto(&server.base)?;

    // Lost while it computes: after the work was handed over, before the answer is read back.
    ensure!(load(&browser, "gpu")?["engine"] == "WebGPU", "no GPU");
    let lost = browser.run_async(
        "const submit = GPUQueue.prototype.submit; let submitted = 0; \
         GPUQueue.prototype.submit = function (...work) { \
           submit.apply(this, work); submitted += 1; if (submitted === 1) queueMicrotask(() => tagger.loseGpu()); }; \
         const { tags } = await tagger.tag(texts[0], { top: 10, explain: false }); \
         GPUQueue.prototype.submit = submit; \
         return { tags, submitted, engine: tagger.engine };",
    )?;
    ensure!(lost["submitted"] != 0 && lost["engine"] == "WASM SIMD", "{lost}");
    assert_tags(&lost, &expected[0], "lost in mid-run")?;

    // Full while it computes, and full from the start. A buffer above every limit is what a full GPU answers with: none
    // that can be used; and the error that is caught says so.
    browser.run(
        "const { createBuffer, popErrorScope } = GPUDevice.prototype; \
         window.fill = () => { \
           GPUDevice.prototype.createBuffer = function (wanted) { return createBuffer.call(this, { ...wanted, size: 2 ** 40 }); }; \
           GPUDevice.prototype.popErrorScope = async function () { \
             return (await popErrorScope.call(this)) && new GPUOutOfMemoryError('no room is left'); }; }; \
         window.clear = () => Object.assign(GPUDevice.prototype, { createBuffer, popErrorScope });",
    )?;
    ensure!(load(&browser, "gpu")?["engine"] == "WebGPU", "no GPU");
    let full = browser.run_async(
        "fill(); const { tags } = await tagger.tag(texts[1], { top: 10, explain: false }); clear(); \
         return { tags, engine: tagger.engine, choice: tagger.choice };",
    )?;
    ensure!(
        full["engine"] == "WASM SIMD" && full["choice"].is_null(),
        "{full}"
    );
    assert_tags(&full, &expected[1], "full in mid-run")?;

    browser.run("fill()")?;
    let refused = load(&browser, "gpu");
    ensure!(
        refused
            .as_ref()
            .is_err_and(|error| error.to_string().contains("memory")),
        "{refused:?}"
    );
    ensure!(
        load(&browser, "auto")?["engine"] == "WASM SIMD",
        "a full GPU was taken"
    );
    let answer = browser.run_async("return await tagger.tag(texts[2], { top: 10, explain: false })")?;
    assert_tags(&answer, &expected[2], "full from the start")
}

#[test]
fn a_shard_that_is_not_there_at_once_is_asked_for_past_every_cache() -> Result<()> {
    let model = GraphModel::train()?;
    let folder = tempfile::tempdir()?;
    let server = site(&model, folder.path())?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.run(
        "window.asked = []; const fetched = window.fetch; \
         window.fetch = (address, options) => { \
           if (!String(address).includes('/rankers-')) return fetched(address, options); \
           asked.push(options?.cache ?? 'default'); \
           return asked.length === 1 ? Promise.resolve(new Response('', { status: 404 })) : fetched(address, options); };",
    )?;
    load(&browser, "cpu")?;
    let answer =
        browser.run_async("const answer = await tagger.tag(texts[0]); return { ...answer, asked }")?;
    ensure!(
        answer["asked"] == serde_json::json!(["default", "reload"]),
        "{answer}"
    );
    ensure!(answer["missing_clusters"].is_null(), "{answer}");
    assert_tags(&answer, &outside(&model)?[0], "after a 404")
}

#[test]
fn a_browser_gives_the_tags_the_program_gives() -> Result<()> {
    let model = GraphModel::train()?;
    let expected = outside(&model)?;
    let folder = tempfile::tempdir()?;
    let server = site(&model, folder.path())?;

    let with_gpu = Browser::open(BrowserOptions {
        webgpu: true,
        ..BrowserOptions::default()
    })?;
    with_gpu.goto(&server.base)?;
    let loaded = load(&with_gpu, "gpu")?;
    println!("with WebGPU: {loaded}");
    ensure!(loaded["engine"] == "WebGPU", "{loaded}");
    ensure!(loaded["choice"]["processor"] == "gpu", "{loaded}");
    let on_gpu = tag_all(&with_gpu, expected.len())?;
    assert_same(&on_gpu, &expected, "browser, WebGPU")?;
    ensure!(
        with_gpu.run("return tagger.engine")? == "WebGPU",
        "the GPU was given up on the way"
    );

    // The device goes away: the next texts are answered all the same, by the CPU.
    with_gpu.run("tagger.loseGpu()")?;
    let after = with_gpu.run_async(
        "const answers = []; for (const text of texts.slice(0, 5)) answers.push((await tagger.tag(text, {top: 10, explain: false})).tags); \
         return { answers, engine: tagger.engine, choice: tagger.choice };",
    )?;
    ensure!(after["engine"] == "WASM SIMD", "{after}");
    ensure!(
        after["choice"].is_null(),
        "a GPU that failed must not be remembered: {after}"
    );
    for (answer, expected) in (after["answers"].as_array().context("answers")?)
        .iter()
        .zip(&expected)
    {
        ensure!(scored(answer)?[0].0 == expected[0].0, "{answer}");
    }

    // The probe's answer is an answer, and believed the next time. Its times are read to the last digit but one.
    let chosen = load(&with_gpu, "auto")?;
    println!("the probe in the browser: {}", chosen["choice"]);
    let again = with_gpu.run_async(
        "const { Tagger } = await import('/gnnxml/index.js'); const before = tagger.choice; \
         const next = await Tagger.load(new URL('/bundle/', location.href), { remembered: before }); \
         const near = (a, b) => Math.abs(a / b - 1) < 1e-9; const now = next.choice; \
         return now.processor === before.processor && now.adapter === before.adapter && now.shape === before.shape \
           && near(now.cpu_milliseconds, before.cpu_milliseconds) && near(now.gpu_milliseconds, before.gpu_milliseconds);",
    )?;
    ensure!(again == true, "a remembered choice was timed again");
    drop(with_gpu);

    let without = Browser::open(BrowserOptions::default())?;
    without.goto(&server.base)?;
    let refused = load(&without, "gpu");
    ensure!(
        refused
            .as_ref()
            .is_err_and(|error| error.to_string().contains("no GPU can be used here")),
        "{refused:?}"
    );
    let loaded = load(&without, "auto")?;
    ensure!(loaded["engine"] == "WASM SIMD", "{loaded}");
    let on_cpu = tag_all(&without, expected.len())?;
    assert_same(&on_cpu, &expected, "browser, WASM SIMD")?;
    Ok(())
}
