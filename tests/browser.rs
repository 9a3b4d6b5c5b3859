//! The pages in a real browser, over a real server with a model trained on the small corpus.

use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gnnxml_tests::{
    Browser, BrowserOptions, Eavesdropper, Page as _, SECRET, Server, TEXT, page_server, serve_page,
    small_corpus,
};

/// A server with one published model, made once; tests that change nothing share it.
fn shared_server() -> MutexGuard<'static, Server> {
    static SERVER: OnceLock<Mutex<Server>> = OnceLock::new();
    SERVER
        .get_or_init(|| Mutex::new(page_server().expect("a server with a model")))
        .lock()
        // A test that failed while it held the server did not harm it.
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn a_text_is_tagged_with_evidence_and_never_leaves_the_browser() -> Result<()> {
    let server = shared_server();
    for webgpu in [false, true] {
        let line = Eavesdropper::before(&server.base)?;
        let browser = Browser::open(BrowserOptions {
            webgpu,
            ..BrowserOptions::default()
        })?;
        browser.goto(&line.base)?;
        browser.wait_for_engine()?;
        browser.paste(TEXT)?;
        browser.wait_for_tags()?;
        let tags = browser.text(".tag-list")?;
        ensure!(tags.contains("fishing"), "a text about fishing got {tags}");
        browser.until("the graph", "document.querySelectorAll('.vertex').length > 1")?;

        // Pointing at a tag lights up its words and explains it.
        browser.run("document.querySelector('.tag-name').focus()")?;
        browser.until(
            "lit words",
            "document.querySelector('.piece.for-1, .piece.for-2, .piece.for-3')",
        )?;
        browser.until(
            "the account",
            "document.querySelectorAll('.account tbody tr').length > 0",
        )?;
        browser.screenshot(if webgpu { "tag-webgpu" } else { "tag" })?;

        // Clicking a vertex lights up its sentences.
        browser.run("document.activeElement.blur()")?;
        browser.run(
            "document.querySelector('.vertex').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))",
        )?;
        browser.until("a lit sentence", "document.querySelector('.piece.sentence-2')")?;

        // The graph can be looked at from nearer, and a vertex goes where it is dragged.
        let seen_from = "document.querySelector('svg.graph').getAttribute('viewBox')";
        let whole = browser.run(&format!("return {seen_from}"))?;
        browser.click("[aria-label='Zoom in']")?;
        browser.until("a nearer view", &format!("{seen_from} !== {whole}"))?;
        let moved = browser.run_async(
            "const vertex = document.querySelector('.vertex'), svg = document.querySelector('svg.graph'); \
             const place = () => { const area = vertex.firstElementChild.getBoundingClientRect(); \
               return [area.left + area.width / 2, area.top + area.height / 2]; }; \
             const [x, y] = place(); \
             const point = (target, type, x, y) => target.dispatchEvent(new PointerEvent(type, {clientX: x, clientY: y, bubbles: true})); \
             point(vertex, 'pointerdown', x, y); point(svg, 'pointermove', x, y); \
             for (let step = 1; step <= 10; step++) { point(svg, 'pointermove', x + 6 * step, y + 4 * step); \
               await new Promise((next) => requestAnimationFrame(next)); } \
             const [endX, endY] = place(); point(svg, 'pointerup', x + 60, y + 40); \
             return Math.hypot(endX - x - 60, endY - y - 40);",
        )?;
        let off = moved.as_f64().context("a distance")?;
        ensure!(off < 8.0, "the dragged vertex lies {off} pixels from the pointer");

        // The threshold hides and shows.
        let slide = |to: &str| {
            browser.run(&format!(
                "const s = document.querySelector('#threshold'); s.value = '{to}'; s.dispatchEvent(new Event('input', {{bubbles: true}}));"
            ))
        };
        slide("0")?;
        browser.until("all tags", "document.querySelectorAll('.tag').length > 3")?;
        slide("0.99")?;
        browser.until("fewer tags", "document.querySelectorAll('.tag').length <= 3")?;
        slide("0")?;
        browser.until("all tags again", "document.querySelectorAll('.tag').length > 3")?;

        // A verdict goes out by label name, without the text.
        browser.click(".tag .verdict")?;
        browser.press("Send verdicts")?;
        browser.until(
            "the answer",
            "document.querySelector('.said').innerText.startsWith('Sent')",
        )?;
        ensure!(
            line.heard("/api/v1/feedback"),
            "the relay must hear what the page does send"
        );
        ensure!(!line.heard(SECRET), "the text went over the network");
        let errors = browser.console_errors()?;
        ensure!(errors.is_empty(), "console errors: {errors:?}");
    }
    Ok(())
}

#[test]
fn a_file_is_tagged_and_a_wrong_one_refused_with_a_reason() -> Result<()> {
    let server = shared_server();
    let folder = tempfile::tempdir()?;
    let good = folder.path().join("batch.jsonl");
    std::fs::write(
        &good,
        "{\"id\":\"a\",\"text\":\"cod and herring in the harbour\"}\nbroken\n{\"id\":\"b\",\"text\":\"wheat and barley\"}\n",
    )?;
    let binary = folder.path().join("picture.txt");
    std::fs::write(&binary, [0x89, b'P', b'N', b'G', 0, 0, 1, 2])?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    browser.choose_file("#batch-file", &binary)?;
    browser.until(
        "the refusal",
        "document.querySelector('.batch .notice')?.innerText.includes('binary')",
    )?;
    browser.choose_file("#batch-file", &good)?;
    browser.until(
        "both documents",
        "document.querySelector('#batch-progress')?.innerText.includes('2 of 2')",
    )?;
    browser.until(
        "the complaint",
        "document.querySelector('.complaints').innerText.includes('Line 2')",
    )?;
    Ok(())
}

#[test]
fn labels_are_found_on_the_map_in_the_list_and_by_address() -> Result<()> {
    let server = shared_server();
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&format!("{}/labels", server.base))?;
    browser.until(
        "the map",
        "Number(document.querySelector('.map')?.dataset.frameMs) > 0 || document.querySelector('.map-note')",
    )?;
    browser.until("the overview", "document.querySelector('.panel .facts')")?;
    browser.screenshot("labels")?;
    browser.type_into("#label-search", "fish")?;
    browser.until(
        "instant results",
        "document.querySelector('.results a')?.innerText.includes('fishing')",
    )?;
    browser.run(
        "[...document.querySelectorAll('.results a')].find((a) => a.href.includes('/label/')).click()",
    )?;
    browser.until("the address", "location.pathname.startsWith('/labels/label/')")?;
    browser.until(
        "the label",
        "document.querySelector('.panel h2')?.innerText === 'fishing'",
    )?;
    browser.until("its details", "document.querySelectorAll('.panel h3').length > 0")?;
    let deep = browser.run("return location.pathname")?;
    browser.goto(&format!("{}{}", server.base, deep.as_str().context("a path")?))?;
    browser.until(
        "the same label by its address",
        "document.querySelector('.panel h2')?.innerText === 'fishing'",
    )?;
    browser.press("List")?;
    browser.until(
        "the list",
        "document.querySelectorAll('.cluster-table tbody tr').length > 0",
    )?;
    browser.run("document.querySelector('.cluster-table tbody a').click()")?;
    browser.until("a cluster", "location.pathname.startsWith('/labels/cluster/')")?;
    browser.until(
        "its labels",
        "document.querySelectorAll('.panel .members li').length > 0",
    )?;
    browser.goto(&format!("{}/labels/label/99999", server.base))?;
    browser.until(
        "a plain answer",
        "document.querySelector('.panel h2')?.innerText.includes('no such label')",
    )?;
    Ok(())
}

#[test]
fn a_corpus_becomes_a_published_model_on_the_train_page() -> Result<()> {
    let data = tempfile::tempdir()?;
    let server = serve_page(data.path(), None)?;
    let file = data.path().join("corpus.jsonl");
    std::fs::write(&file, format!("{}not json\n", small_corpus(80)))?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&format!("{}/train", server.base))?;
    browser.choose_file("#corpus-file", &file)?;
    browser.until(
        "its statistics",
        "document.querySelector('.corpus')?.innerText.includes('80 documents')",
    )?;
    browser.until(
        "the complaint by line",
        "document.querySelector('.complaints')?.innerText.includes(':81')",
    )?;
    let train = |browser: &Browser| -> Result<()> {
        browser.press("Start training")?;
        browser.until("the run", "location.pathname.startsWith('/train/run/')")?;
        browser.until_within(
            Duration::from_secs(90),
            "the end of the run",
            "document.querySelector('.run-head .status')?.innerText === 'done'",
        )?;
        browser.until(
            "every stage done",
            "!document.querySelector('.stage.waiting, .stage.running')",
        )?;
        browser.until(
            "figures",
            "document.querySelectorAll('.figures-list div').length > 0",
        )?;
        browser.press("Publish")?;
        browser.until(
            "published",
            "document.querySelector('.run-actions .primary').innerText === 'Published'",
        )
    };
    train(&browser)?;
    // Only a run with the graph network has epochs to draw.
    let graph = "[encoder]\nname = \"lsa\"\n[matcher]\nkind = \"both\"\n";
    let run = server.post(
        "/api/v1/runs",
        &serde_json::json!({"corpus": 1, "config": graph, "threads": 1}),
    )?;
    let run = run["id"].as_u64().context("a run has an id")?;
    server.finished(run)?;
    browser.goto(&format!("{}/train/run/{run}", server.base))?;
    browser.until(
        "curves",
        "document.querySelector('.chart path.line')?.getAttribute('d')?.length > 0",
    )?;
    browser.screenshot("train-run")?;
    browser.press("All runs")?;
    train(&browser)?;
    browser.press("All runs")?;
    browser.until(
        "three runs",
        "document.querySelectorAll('.runs input[type=checkbox]').length === 3",
    )?;
    browser.run("document.querySelectorAll('.runs input[type=checkbox]').forEach((box) => box.click())")?;
    browser.until(
        "the comparison",
        "document.querySelectorAll('.comparison tbody tr').length > 0",
    )?;
    browser.screenshot("train")?;
    let errors = browser.console_errors()?;
    ensure!(errors.is_empty(), "console errors: {errors:?}");
    Ok(())
}

#[test]
fn a_model_is_rolled_back_and_what_is_kept_here_can_be_cleared() -> Result<()> {
    let server = page_server()?;
    server.publish_small(80, 2, Some("the next"))?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.until("the service worker", "navigator.serviceWorker.controller")?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    let kept = |browser: &Browser| -> Result<u64> {
        let count = browser.run_async("return (await (await caches.open('models')).keys()).length")?;
        count.as_u64().context("a number of files")
    };
    ensure!(kept(&browser)? > 0, "the model's files are kept on the device");
    browser.until("what is kept", "document.querySelector('#storage-used')")?;
    browser.press("Clear models")?;
    browser.run_async("await new Promise((next) => setTimeout(next, 500)); return 1")?;
    ensure!(kept(&browser)? == 0, "cleared models are gone");

    browser.goto(&format!("{}/train", server.base))?;
    let tagging = "[...document.querySelectorAll('.models tbody tr')].find((row) => row.innerText.includes('tags now'))?.innerText";
    browser.until("the newest model", &format!("{tagging}?.includes('the next')"))?;
    browser.press("Roll back")?;
    browser.until(
        "the model before",
        &format!("{tagging} && !{tagging}.includes('the next')"),
    )?;
    let models = server.get("/api/v1/models")?;
    let active =
        (models["models"].as_array().context("models")?.iter()).find(|model| model["active"] == true);
    ensure!(
        active.is_some_and(|model| model["name"] != "the next"),
        "the server tags with the model before: {models}"
    );
    Ok(())
}

/// Every address, both themes, both widths.
#[test]
fn no_page_has_a_serious_accessibility_violation_or_a_console_error() -> Result<()> {
    let server = shared_server();
    let browser = Browser::open(BrowserOptions::default())?;
    for dark in [false, true] {
        for (width, height) in [(1440, 900), (390, 844)] {
            browser.shape(BrowserOptions {
                width,
                height,
                dark,
                ..BrowserOptions::default()
            })?;
            for (name, path) in [
                ("tag", "/"),
                ("labels", "/labels"),
                ("label", "/labels/label/0"),
                ("train", "/train"),
                ("run", "/train/run/1"),
            ] {
                browser.goto(&format!("{}{path}", server.base))?;
                match name {
                    "tag" => {
                        browser.wait_for_engine()?;
                        browser.paste(TEXT)?;
                        browser.wait_for_tags()?;
                    }
                    "labels" | "label" => {
                        browser.until("the panel", "document.querySelector('.panel h2')")?
                    }
                    "train" => browser.until("the runs", "document.querySelector('.runs tbody a')")?,
                    _ => browser.until("the stages", "document.querySelector('.run-head .status')")?,
                }
                let theme = if dark { "dark" } else { "light" };
                browser.screenshot(&format!("{name}-{width}-{theme}"))?;
                let found = browser.accessibility_violations()?;
                ensure!(found.is_empty(), "{path} at {width}, {theme}: {found:#?}");
                let wide = browser.run("return document.documentElement.scrollWidth - innerWidth")?;
                ensure!(
                    wide.as_i64() <= Some(0),
                    "{path} at {width} is {wide} pixels too wide"
                );
            }
        }
    }
    let errors = browser.console_errors()?;
    ensure!(errors.is_empty(), "console errors: {errors:?}");
    Ok(())
}
