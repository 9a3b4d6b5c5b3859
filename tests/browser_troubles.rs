//! What goes wrong in a real life, in a real browser: each time the page says what happened and goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gnnxml_shared::bundle::Bundle;
use gnnxml_shared::model::tagger::ReadOptions;
use gnnxml_tests::{
    Browser, BrowserOptions, Page as _, Server, TEXT, browser_with_gpu_map, copy_folder, open_bundle,
    page_server, serve_page, small_corpus, wide_corpus, wide_text,
};

/// `127.0.0.1:PORT` of a server, to start it again at the same place.
fn address(server: &Server) -> String {
    server.base.trim_start_matches("http://").to_owned()
}

/// The server that was killed, at its old address.
fn start_again(data: &Path, address: &str) -> Result<Server> {
    serve_page(data, Some(address.to_owned()))
}

#[test]
fn the_tag_page_works_with_the_server_gone_and_every_page_recovers_when_it_is_back() -> Result<()> {
    let server = page_server()?;
    let data = server.data().to_owned();
    let (base, place) = (server.base.clone(), address(&server));
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&base)?;
    browser.until("the service worker", "navigator.serviceWorker.controller")?;
    // The second visit goes through the service worker, so that the model is kept whole.
    browser.goto(&base)?;
    browser.wait_for_engine()?;
    browser.paste(TEXT)?;
    browser.wait_for_tags()?;
    let with_server = browser.text(".tag-list")?;

    // Killed half-way through a visit: the page goes on tagging what comes next.
    server.kill();
    browser.paste(&format!("{TEXT} The bank raised its rate."))?;
    browser.wait_for_tags()?;
    // And it works from the start.
    browser.goto(&base)?;
    browser.wait_for_engine()?;
    browser.paste(TEXT)?;
    browser.wait_for_tags()?;
    ensure!(
        browser.text(".tag-list")? == with_server,
        "the tags differ without the server"
    );
    // What needs the server says so, and mends itself when the server is back; nobody presses anything.
    browser.run("[...document.querySelectorAll('.nav a')].find((a) => a.innerText === 'Train').click()")?;
    browser.until(
        "a plain word",
        "[...document.querySelectorAll('main .notice')].some((notice) => notice.innerText.includes('does not answer'))",
    )?;
    browser.screenshot("offline")?;
    let server = start_again(&data, &place)?;
    browser.until(
        "the runs",
        "document.querySelector('.runs tbody a') && !document.querySelector('main .notice')",
    )?;
    browser.run("[...document.querySelectorAll('.nav a')].find((a) => a.innerText === 'Labels').click()")?;
    browser.until("the labels", "document.querySelector('.panel .facts')")?;

    // The map that was fetched stays while the server is away once more.
    server.kill();
    browser.run("dispatchEvent(new Event('online'))")?;
    browser.until("the map still", "document.querySelector('.panel .facts')")?;
    let _server = start_again(&data, &place)?;
    browser.run("dispatchEvent(new Event('online'))")?;
    browser.goto(&base)?;
    browser.wait_for_engine()
}

#[test]
fn a_server_that_is_away_at_the_first_visit_is_waited_for() -> Result<()> {
    let server = page_server()?;
    let data = server.data().to_owned();
    let place = address(&server);
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.until("the service worker", "navigator.serviceWorker.controller")?;
    browser.wait_for_engine()?;
    // Everything is forgotten but the page itself.
    browser.run_async(
        "for (const name of await caches.keys()) if (!name.startsWith('page-')) await caches.delete(name); return 1",
    )?;
    let base = server.base.clone();
    server.kill();
    browser.goto(&base)?;
    browser.until(
        "a plain word",
        "document.querySelector('.engine-strip .notice')?.innerText.includes('does not answer')",
    )?;
    let _server = start_again(&data, &place)?;
    browser.wait_for_engine()?;
    browser.paste(TEXT)?;
    browser.wait_for_tags()
}

#[test]
fn a_model_that_is_deleted_while_it_tags_gives_way_to_the_next() -> Result<()> {
    let server = page_server()?;
    let old = server.get("/api/v1/models")?["active"]
        .as_str()
        .context("a model is active")?
        .to_owned();
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    browser.paste(TEXT)?;
    browser.wait_for_tags()?;

    server.publish_small(80, 2, Some("the next"))?;
    server.delete(&format!("/api/v1/models/{old}"))?;
    // Coming back to the tab is when a person would notice.
    browser.run("document.dispatchEvent(new Event('visibilitychange'))")?;
    browser.until(
        "the next model",
        "document.querySelector('.engine-strip')?.innerText.includes('the next') && document.querySelector('#engine-name')",
    )?;
    browser.wait_for_tags()?;
    let kept = browser.run_async(
        "const kept = await (await caches.open('models')).keys(); return kept.map((request) => request.url)",
    )?;
    ensure!(
        !kept.to_string().contains(&old),
        "files of the deleted model are still kept: {kept}"
    );
    Ok(())
}

#[test]
fn a_full_disk_is_said_and_tagging_goes_on() -> Result<()> {
    let server = page_server()?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.until("the service worker", "navigator.serviceWorker.controller")?;
    browser.wait_for_engine()?;
    browser.run_async("await caches.delete('models'); return 1")?;
    browser.limit_storage(&server.base, 1)?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    browser.paste(TEXT)?;
    browser.wait_for_tags()?;
    browser.until(
        "a word about the room",
        "[...document.querySelectorAll('.tags-column .notice')].some((notice) => notice.innerText.includes('no room left'))",
    )
}

#[test]
fn two_tabs_tag_side_by_side_and_both_follow_a_new_model() -> Result<()> {
    let server = page_server()?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    let first = browser.open_tab()?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    browser.paste(TEXT)?;
    browser.wait_for_tags()?;
    let there = browser.text(".tag-list")?;
    let second = browser.switch_to(first)?;
    browser.paste(TEXT)?;
    browser.wait_for_tags()?;
    ensure!(browser.text(".tag-list")? == there, "two tabs, two answers");

    server.publish_small(80, 2, Some("the next"))?;
    let follows = || -> Result<()> {
        browser.run("document.dispatchEvent(new Event('visibilitychange'))")?;
        browser.until(
            "the next model",
            "document.querySelector('.engine-strip')?.innerText.includes('the next') && document.querySelector('#engine-name')",
        )?;
        browser.paste(TEXT)?;
        browser.wait_for_tags()
    };
    follows()?;
    browser.switch_to(second)?;
    follows()
}

#[test]
fn a_cut_stream_of_events_is_taken_up_again() -> Result<()> {
    let data = tempfile::tempdir()?.keep();
    let server = serve_page(&data, None)?;
    let (base, place) = (server.base.clone(), address(&server));
    let corpus = server.upload("small.jsonl", small_corpus(2000))?;
    let graph = "[encoder]\nname = \"lsa\"\n[matcher]\nkind = \"both\"\n";
    let run = server.post(
        "/api/v1/runs",
        &serde_json::json!({"corpus": corpus, "config": graph, "threads": 1}),
    )?;
    let run = run["id"].as_u64().context("a run has an id")?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&format!("{base}/train/run/{run}"))?;
    browser.until(
        "a stage under way",
        "document.querySelector('.stage.running') && document.querySelector('#run-line')?.innerText === 'Live'",
    )?;
    server.kill();
    browser.until(
        "a plain word",
        "document.querySelector('#run-line')?.innerText.includes('cut')",
    )?;
    let _server = start_again(&data, &place)?;
    browser.until_within(
        Duration::from_secs(60),
        "what became of the run",
        "['interrupted', 'failed', 'running', 'done'].includes(document.querySelector('.run-head .status')?.innerText) \
         && !document.querySelector('#run-line')?.innerText.includes('cut')",
    )
}

#[test]
fn a_lost_gpu_leaves_the_map_to_the_canvas() -> Result<()> {
    let server = page_server()?;
    let browser = browser_with_gpu_map(
        &server.base,
        "const ask = GPUAdapter.prototype.requestDevice; \
         GPUAdapter.prototype.requestDevice = async function (...all) { return (window.theDevice = await ask.apply(this, all)); };",
    )?;
    // Nobody touches the map: it is painted anew by itself.
    browser.run("window.theDevice.destroy()")?;
    browser.until(
        "the canvas",
        "document.querySelector('.map')?.dataset.painter === 'canvas'",
    )?;
    browser.until("the panel still", "document.querySelector('.panel .facts')")
}

#[test]
fn texts_that_cannot_be_tagged_are_refused_with_a_reason_and_the_box_keeps_what_it_held() -> Result<()> {
    let server = page_server()?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    browser.paste(TEXT)?;
    browser.wait_for_tags()?;
    let before = browser.run("return document.querySelector('#text').value")?;

    // A hundred megabytes, made in the page: nobody sends them over the wire.
    browser.run(
        "const box = document.querySelector('#text'); box.value = 'word '.repeat(20_000_000); \
         box.dispatchEvent(new Event('input', {bubbles: true}));",
    )?;
    browser.until(
        "the limit",
        "document.querySelector('.reader-column .notice')?.innerText.includes('100.0 MB')",
    )?;
    ensure!(
        browser.run("return document.querySelector('#text').value")? == before,
        "the box must keep what it held"
    );
    ensure!(
        browser.run("return document.querySelectorAll('.tag').length > 0")? == true,
        "the tags must stay"
    );

    // A picture, dropped on the box.
    browser.run(
        "const data = new DataTransfer(); data.items.add(new File([new Uint8Array([137, 80, 78, 71, 0, 0, 1])], 'picture.txt')); \
         document.querySelector('.reader').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));",
    )?;
    browser.until(
        "the refusal",
        "document.querySelector('.reader-column .notice')?.innerText.includes('binary')",
    )?;

    // An empty box has nothing to complain about.
    browser.paste("")?;
    browser.until(
        "an empty box",
        "!document.querySelector('.reader-column .notice') && !document.querySelector('.tag')",
    )
}

/// The folder of a server's one published bundle.
fn bundle_folder(server: &Server) -> Result<PathBuf> {
    let models = server.get("/api/v1/models")?;
    let active = models["active"].as_str().context("a model is active")?;
    Ok(server.data().join("models").join(active).join("bundle"))
}

/// The clusters a text asks for, most probable first: the file their rankers are in, and the name.
fn clusters_of(bundle: &Bundle, text: &str) -> Result<Vec<(String, String)>> {
    let needed = bundle.prepare(text, ReadOptions::default())?.needed;
    let found = needed.into_iter().map(|cluster| {
        let mut shards = bundle.manifest().shards.iter();
        let shard = shards.find(|shard| shard.clusters.contains(&cluster));
        let file = shard.context("a cluster has a shard")?.part.file.clone();
        Ok((file, bundle.tagger().clusters[cluster as usize].clone()))
    });
    found.collect()
}

const MISSING: &str = "[...document.querySelectorAll('.tags-column .notice')].find((notice) => notice.innerText.includes('could not be fetched'))";

#[test]
fn rankers_that_come_damaged_or_not_at_all_are_named_and_fetched_once_the_server_is_mended() -> Result<()> {
    let data = tempfile::tempdir()?.keep();
    let server = serve_page(&data, None)?;
    server.publish(wide_corpus(480), 1, None)?;
    let folder = bundle_folder(&server)?;
    let whole = tempfile::tempdir()?;
    copy_folder(&folder, whole.path())?;
    let text = wide_text(&[0, 1, 2], 1_000);
    let clusters = clusters_of(&open_bundle(&folder)?, &text)?;
    let mut files: Vec<&String> = clusters.iter().map(|(file, _)| file).collect();
    files.sort_unstable();
    files.dedup();
    ensure!(files.len() > 2, "the text asks for too few shards: {clusters:?}");
    let broken = &files[..2];
    for file in broken {
        for ending in ["", ".gz", ".br"] {
            // Not every part has a packed twin.
            let _ = std::fs::remove_file(folder.join(format!("{file}{ending}")));
        }
    }
    // One stays away, one comes with a wrong bit.
    let mut wrong = std::fs::read(whole.path().join(broken[0]))?;
    wrong[20] ^= 1;
    std::fs::write(folder.join(broken[0]), wrong)?;

    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.until("the service worker", "navigator.serviceWorker.controller")?;
    // Twice: wrong bytes must not be kept from the first visit either.
    for _ in 0..2 {
        browser.goto(&server.base)?;
        browser.wait_for_engine()?;
        browser.paste(&text)?;
        browser.wait_for_tags()?;
        browser.until("the missing clusters", MISSING)?;
        let said = browser.text(".tags-column .notice")?;
        let missing = clusters.iter().filter(|(file, _)| broken.contains(&file));
        for (_, name) in missing.take(3) {
            ensure!(
                said.contains(&format!("“{name}”")),
                "{name:?} is not named: {said}"
            );
        }
    }
    browser.screenshot("missing-clusters")?;

    copy_folder(whole.path(), &folder)?;
    browser.press("Try again")?;
    browser.until("every cluster", &format!("!{MISSING}"))?;
    browser.wait_for_tags()?;
    let mended = browser.text(".tag-list")?;

    // What was kept before it was checked mends itself as well.
    browser.run_async(
        "const cache = await caches.open('models'); \
         for (const { url } of await cache.keys()) if (url.includes('/bundle/')) await cache.put(url, new Response('wrong')); return 1",
    )?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    browser.paste(&text)?;
    browser.wait_for_tags()?;
    ensure!(browser.text(".tag-list")? == mended, "other tags than before");
    ensure!(
        browser.run(&format!("return Boolean({MISSING})"))? == false,
        "clusters are missing"
    );
    let kept = browser.run_async(
        "const kept = await (await caches.open('models')).matchAll(); \
         return (await Promise.all(kept.map((answer) => answer.text()))).filter((text) => text === 'wrong').length",
    )?;
    ensure!(kept == 0, "{kept} wrong files are still kept");
    Ok(())
}

#[test]
fn a_text_of_a_megabyte_is_tagged_while_the_page_stays_awake() -> Result<()> {
    let server = page_server()?;
    let browser = Browser::open(BrowserOptions::default())?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    let text = serde_json::Value::from(TEXT);
    // Made in the page: nobody sends it over the wire. Every sentence is another one.
    browser.run(&format!(
        "const box = document.querySelector('#text'); let text = ''; \
         for (let number = 0; text.length < 1_000_000; number++) text += {text}.replace('Xyzzyquux', `number ${{number}}`) + '\\n'; \
         window.longest = 0; let last = performance.now(); \
         setInterval(() => {{ const now = performance.now(); longest = Math.max(longest, now - last); last = now; }}, 20); \
         box.value = text; box.dispatchEvent(new Event('input', {{bubbles: true}}));"
    ))?;
    browser.until_within(
        Duration::from_secs(60),
        "tags",
        "document.querySelectorAll('.tag').length > 0 && !document.querySelector('.tag-list.stale')",
    )?;
    let tags = browser.text(".tag-list")?;
    ensure!(tags.contains("fishing"), "a megabyte about fishing got {tags}");
    let longest = browser.run("return Math.round(longest)")?;
    println!(
        "a megabyte: {}, the page slept for {longest} ms at most",
        browser.text("#tagging-time")?
    );
    ensure!(
        longest.as_f64().is_some_and(|longest| longest < 5_000.0),
        "the page slept for {longest} ms"
    );
    browser.paste(TEXT)?;
    browser.wait_for_tags()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_browser_without_simd_tags_in_the_plain_build() -> Result<()> {
    let server = page_server()?;
    let browser = Browser::open(BrowserOptions {
        simd: false,
        ..BrowserOptions::default()
    })?;
    browser.goto(&server.base)?;
    browser.wait_for_engine()?;
    ensure!(browser.text("#engine-name")? == "WASM", "SIMD in spite of all");
    browser.paste(TEXT)?;
    browser.wait_for_tags()?;
    let tags = browser.text(".tag-list")?;
    ensure!(tags.contains("fishing"), "a text about fishing got {tags}");
    Ok(())
}
