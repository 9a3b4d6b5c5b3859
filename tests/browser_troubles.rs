//! What goes wrong in a real life, in a real browser: each time the page says what happened and goes on.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gnnxml_tests::{
    Browser, BrowserOptions, Page as _, Server, TEXT, browser_with_gpu_map, page_server, serve_page,
    small_corpus,
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
