//! Steps that every story of the Tag page begins with, and a server that has a page and a model.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{Browser, BrowserOptions, Server, ServerOptions, copy_folder};

/// A text about one subject of the small corpus, with a word no other request could hold.
pub const TEXT: &str = "The trawler Xyzzyquux left the harbour. Its quota of cod was used up, the Council of fleets noted. \
                        A report on herring and the net followed.";
/// That word.
pub const SECRET: &str = "Xyzzyquux";

/// The page as `cargo xtask web` built it.
fn folder() -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist");
    ensure!(
        folder.join("index.html").exists(),
        "the page is not built: run `cargo xtask web` first"
    );
    Ok(folder.canonicalize()?)
}

/// A server of the page over `data`; at `address` when one is named.
pub fn serve_page(data: &Path, address: Option<String>) -> Result<Server> {
    Server::start_with(
        data,
        &ServerOptions {
            address,
            arguments: vec!["--web".to_owned(), folder()?.display().to_string()],
            ..ServerOptions::default()
        },
    )
}

/// A data directory with one published model, whose server has stopped: trained once, copied for each server.
fn trained() -> Result<&'static Path> {
    static TRAINED: OnceLock<PathBuf> = OnceLock::new();
    if TRAINED.get().is_none() {
        let data = tempfile::tempdir()?.keep();
        let server = serve_page(&data, None)?;
        server.publish_small(120, 1, None)?;
        server.stop()?;
        // Tests of one program run one after the other; should two have trained, either will do.
        let _ = TRAINED.set(data);
    }
    TRAINED
        .get()
        .map(PathBuf::as_path)
        .context("the model was just trained")
}

/// A server of the page with one published model, in a directory of its own.
pub fn page_server() -> Result<Server> {
    let data = tempfile::tempdir()?.keep();
    copy_folder(trained()?, &data)?;
    serve_page(&data, None)
}

/// A browser on the Labels page whose map is drawn by the GPU, with a script before every page.
///
/// Some browsers have no software GPU while the page asks: such a one is replaced.
pub fn browser_with_gpu_map(base: &str, script: &str) -> Result<Browser> {
    const BROWSERS: usize = 8;
    let drawn = "document.querySelector('.map')?.dataset.painter === 'webgpu'";
    for _ in 0..BROWSERS {
        let browser = Browser::open(BrowserOptions {
            webgpu_canvas: true,
            ..BrowserOptions::default()
        })?;
        browser.before_every_page(script)?;
        browser.goto(&format!("{base}/labels"))?;
        let soon = Duration::from_secs(10);
        if browser.until_within(soon, "the GPU", drawn).is_err() {
            continue;
        }
        // That a device was lost with its first frame is told a little later.
        std::thread::sleep(Duration::from_secs(1));
        if browser.run(&format!("return {drawn}"))? == true {
            return Ok(browser);
        }
    }
    bail!("none of {BROWSERS} browsers drew the map with WebGPU and went on")
}

/// The Tag page in a browser.
pub trait Page {
    /// Waits until the worker holds a model.
    fn wait_for_engine(&self) -> Result<()>;
    /// Puts a text into the box as pasting would.
    fn paste(&self, text: &str) -> Result<()>;
    /// Waits until the tags are those of the text in the box.
    fn wait_for_tags(&self) -> Result<()>;
}

impl Page for Browser {
    fn wait_for_engine(&self) -> Result<()> {
        self.until(
            "the model in the worker",
            "document.querySelector('#engine-name')",
        )
    }

    fn paste(&self, text: &str) -> Result<()> {
        let text = serde_json::Value::from(text);
        self.until("the text box", "document.querySelector('#text')")?;
        self.run(&format!(
            "const box = document.querySelector('#text'); box.value = {text}; box.dispatchEvent(new Event('input', {{bubbles: true}}));"
        ))?;
        Ok(())
    }

    fn wait_for_tags(&self) -> Result<()> {
        self.until(
            "tags",
            "document.querySelectorAll('.tag').length > 0 && !document.querySelector('.tag-list.stale')",
        )
    }
}
