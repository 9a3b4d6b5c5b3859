//! Takes the pictures of the README from a running server with a trained model:
//!
//! ```text
//! GNNXML_PICTURES_OF=http://127.0.0.1:8080 cargo test -p gnnxml-tests --test browser_pictures -- --ignored
//! ```
//!
//! `GNNXML_PICTURES_RUN` is the number of a finished run with curves (the newest run otherwise).

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use gnnxml_tests::{Browser, BrowserOptions, Page as _, with_palette};

/// A README must load quickly.
const LARGEST: usize = 200_000;

fn keep(browser: &Browser, name: &str) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    std::fs::create_dir_all(&folder)?;
    let picture = with_palette(&browser.picture()?)?;
    ensure!(
        picture.len() <= LARGEST,
        "{name}.png has {} bytes; at most {LARGEST}",
        picture.len()
    );
    std::fs::write(folder.join(format!("{name}.png")), picture)?;
    Ok(())
}

/// Waits until nothing moves: flights, glides and transitions are over within this time.
fn settle(browser: &Browser) -> Result<()> {
    browser.run_async("await new Promise((next) => setTimeout(next, 3000)); return 1")?;
    Ok(())
}

#[test]
#[ignore = "takes pictures of a server that somebody started; see the head of this file"]
fn the_pictures_of_the_readme() -> Result<()> {
    let base = std::env::var("GNNXML_PICTURES_OF").context("GNNXML_PICTURES_OF is not set")?;
    let browser = Browser::open(BrowserOptions::default())?;

    browser.goto(&base)?;
    browser.wait_for_engine()?;
    browser.press("Fisheries rule")?;
    browser.wait_for_tags()?;
    // Tagged once more with its rankers at hand, and shown with the tags that are less sure.
    browser.press("Grain harvest")?;
    settle(&browser)?;
    browser.press("Fisheries rule")?;
    settle(&browser)?;
    browser.run(
        "const slider = document.querySelector('input[type=range]'); slider.value = slider.max * 0.04; \
         slider.dispatchEvent(new Event('input', {bubbles: true}))",
    )?;
    browser.run("document.querySelector('.tag-name').click()")?;
    settle(&browser)?;
    keep(&browser, "tag")?;

    browser.goto(&format!("{base}/labels"))?;
    browser.until("the map", "document.querySelector('.panel .facts')")?;
    // A little closer than the whole map, so that labels are named beside their clusters.
    browser.run(
        "const map = document.querySelector('.map'), area = map.getBoundingClientRect(); \
         map.dispatchEvent(new WheelEvent('wheel', {deltaY: -420, clientX: area.left + area.width / 2, clientY: area.top + area.height / 2, bubbles: true, cancelable: true}))",
    )?;
    settle(&browser)?;
    keep(&browser, "map")?;

    let run = match std::env::var("GNNXML_PICTURES_RUN") {
        Ok(run) => format!("/train/run/{run}"),
        Err(_) => {
            browser.goto(&format!("{base}/train"))?;
            browser.until("a run", "document.querySelector('.runs tbody a')")?;
            let newest = browser.run("return document.querySelector('.runs tbody a').pathname")?;
            newest.as_str().context("a run has an address")?.to_owned()
        }
    };
    browser.goto(&format!("{base}{run}"))?;
    browser.until("its figures", "document.querySelector('.figures-list div')")?;
    settle(&browser)?;
    keep(&browser, "train")
}
