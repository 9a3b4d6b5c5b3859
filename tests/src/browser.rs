//! A real Chromium behind chromedriver, driven step by step.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use thirtyfour::common::capabilities::chromium::ChromiumLikeCapabilities as _;
use thirtyfour::{By, DesiredCapabilities, LoggingPrefsLogLevel, WebDriver, WebElement};

use crate::npm_file;

/// How long a page may take for one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Without a GPU Chromium composes pages where no WebGPU texture can go: the first frame that a canvas shows loses the device.
/// With Vulkan, in software too, the device stays and takes the frames, but no screenshot shows them.
const VULKAN_COMPOSITOR: [&str; 4] = [
    "--use-angle=swiftshader",
    "--use-vulkan=swiftshader",
    "--enable-features=Vulkan",
    "--disable-vulkan-surface",
];

/// How the browser is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrowserOptions {
    /// Whether `navigator.gpu` finds an adapter (a software one).
    pub webgpu: bool,
    /// Whether a WebGPU device may also draw into a canvas and lives on.
    pub webgpu_canvas: bool,
    /// Whether its WebAssembly knows SIMD; only an x86 processor can be made to forget it.
    pub simd: bool,
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

impl Default for BrowserOptions {
    fn default() -> Self {
        Self {
            webgpu: false,
            webgpu_canvas: false,
            simd: true,
            width: 1440,
            height: 900,
            dark: false,
        }
    }
}

/// A tab of a browser.
#[derive(Clone, Debug)]
pub struct Tab(thirtyfour::prelude::WindowHandle);

/// One browser with an empty profile of its own.
#[derive(Debug)]
pub struct Browser {
    runtime: tokio::runtime::Runtime,
    driver: Option<WebDriver>,
    process: Child,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub fn open(options: BrowserOptions) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("chromedriver cannot be started: `cargo xtask setup` installs it")?;
        let lines = BufReader::new(process.stdout.take().context("chromedriver has no output")?).lines();
        let mut port = None;
        for line in lines {
            let line = line?;
            if let Some((_, after)) = line.split_once("successfully on port ") {
                port = after.trim_end_matches('.').parse::<u16>().ok();
                break;
            }
        }
        let Some(port) = port else {
            let _ = process.kill();
            bail!("chromedriver did not say on which port it listens");
        };
        let mut wanted = DesiredCapabilities::chrome();
        let size = format!("--window-size={},{}", options.width, options.height);
        let user_data = format!("--user-data-dir={}", profile.path().display());
        let mut arguments = vec![
            "--headless=new",
            "--no-sandbox",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            &size,
            &user_data,
        ];
        if options.webgpu || options.webgpu_canvas {
            arguments.push("--enable-unsafe-webgpu");
        }
        if options.webgpu_canvas {
            arguments.extend(VULKAN_COMPOSITOR);
        }
        if !options.simd {
            // What V8's SIMD is made of.
            arguments.push("--js-flags=--no-enable-sse4-1");
        }
        for argument in arguments {
            wanted.add_arg(argument)?;
        }
        if Path::new("/usr/bin/chromium").exists() {
            wanted.set_binary("/usr/bin/chromium")?;
        }
        wanted.set_logging_prefs("browser", LoggingPrefsLogLevel::All)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let driver = runtime.block_on(WebDriver::new(format!("http://127.0.0.1:{port}"), wanted))?;
        let browser = Self {
            runtime,
            driver: Some(driver),
            process,
            _profile: profile,
        };
        browser.shape(options)?;
        Ok(browser)
    }

    fn driver(&self) -> &WebDriver {
        self.driver
            .as_ref()
            .expect("the browser is open until it is dropped")
    }

    /// A command of the DevTools protocol.
    fn devtools(&self, name: &str, parameters: Value) -> Result<Value> {
        Ok(self
            .runtime
            .block_on(self.driver().cdp().send_raw(name, parameters))?)
    }

    /// Gives the page another size and colour scheme, exactly: windows have a smallest width, pages do not.
    pub fn shape(&self, options: BrowserOptions) -> Result<()> {
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            serde_json::json!({"width": options.width, "height": options.height, "deviceScaleFactor": 1, "mobile": false}),
        )?;
        let scheme = if options.dark { "dark" } else { "light" };
        self.devtools(
            "Emulation.setEmulatedMedia",
            serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        )?;
        Ok(())
    }

    /// Runs a script in every page before its own scripts.
    pub fn before_every_page(&self, script: &str) -> Result<()> {
        self.devtools(
            "Page.addScriptToEvaluateOnNewDocument",
            serde_json::json!({"source": format!("{{ {script} }}")}),
        )?;
        Ok(())
    }

    /// Leaves the page's origin only so much room to keep things in.
    pub fn limit_storage(&self, origin: &str, bytes: u64) -> Result<()> {
        self.devtools(
            "Storage.overrideQuotaForOrigin",
            serde_json::json!({"origin": origin, "quotaSize": bytes}),
        )?;
        Ok(())
    }

    /// Opens another tab of the same profile and drives that one from now on.
    pub fn open_tab(&self) -> Result<Tab> {
        let before = self.runtime.block_on(self.driver().window())?;
        let handle = self.runtime.block_on(self.driver().new_tab())?;
        self.runtime.block_on(self.driver().switch_to_window(handle))?;
        Ok(Tab(before))
    }

    /// Drives another tab; the answer leads back to this one.
    pub fn switch_to(&self, tab: Tab) -> Result<Tab> {
        let before = self.runtime.block_on(self.driver().window())?;
        self.runtime.block_on(self.driver().switch_to_window(tab.0))?;
        Ok(Tab(before))
    }

    pub fn goto(&self, address: &str) -> Result<()> {
        Ok(self.runtime.block_on(self.driver().goto(address))?)
    }

    /// Runs a script's function body and returns what it returns.
    pub fn run(&self, script: &str) -> Result<Value> {
        let answer = self.runtime.block_on(self.driver().execute(script, Vec::new()));
        let answer = answer.with_context(|| format!("in the script: {script}"))?;
        Ok(answer.json().clone())
    }

    /// Runs a script that awaits; it must end in `return`.
    pub fn run_async(&self, script: &str) -> Result<Value> {
        let wrapped = format!(
            "const done = arguments[arguments.length - 1]; \
             (async () => {{ {script} }})().then(done, (error) => done({{failed: String(error)}}));"
        );
        let answer = self
            .runtime
            .block_on(self.driver().execute_async(wrapped, Vec::new()))?;
        let value = answer.json().clone();
        if let Some(failed) = value.get("failed").and_then(Value::as_str) {
            bail!("{failed} in the script: {script}");
        }
        Ok(value)
    }

    /// Waits until an expression is true; the error says what was waited for and what the page showed.
    pub fn until(&self, what: &str, expression: &str) -> Result<()> {
        self.until_within(PATIENCE, what, expression)
    }

    pub fn until_within(&self, patience: Duration, what: &str, expression: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            // A page that is just being replaced throws; that is the same as not yet.
            if self
                .run(&format!("return Boolean({expression})"))
                .is_ok_and(|value| value == Value::Bool(true))
            {
                return Ok(());
            }
            if begun.elapsed() > patience {
                let page = self.run("return document.body.innerText").unwrap_or_default();
                bail!(
                    "waited in vain for {what} ({expression}); the page shows:\n{}",
                    page.as_str().unwrap_or("")
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn element(&self, css: &str) -> Result<WebElement> {
        self.until(css, &format!("document.querySelector({})", quoted(css)))?;
        Ok(self.runtime.block_on(self.driver().find(By::Css(css)))?)
    }

    pub fn click(&self, css: &str) -> Result<()> {
        let element = self.element(css)?;
        self.runtime.block_on(element.scroll_into_view())?;
        self.runtime
            .block_on(element.click())
            .with_context(|| format!("clicking {css}"))
    }

    /// Clicks the button or link with exactly this text, once it can be clicked.
    pub fn press(&self, text: &str) -> Result<()> {
        let find = format!(
            "[...document.querySelectorAll('button,a,label.button,summary')].find((e) => e.textContent.trim() === {} && !e.disabled)",
            quoted(text)
        );
        self.until(&format!("the button “{text}”"), &find)?;
        self.run(&format!("{find}.click()"))?;
        Ok(())
    }

    pub fn type_into(&self, css: &str, text: &str) -> Result<()> {
        let element = self.element(css)?;
        self.runtime
            .block_on(element.send_keys(text))
            .with_context(|| format!("typing into {css}"))
    }

    /// Puts a file into a file field, as choosing it would.
    pub fn choose_file(&self, css: &str, file: &Path) -> Result<()> {
        self.until(
            css,
            &format!(
                "document.querySelector({0}) && !document.querySelector({0}).disabled",
                quoted(css)
            ),
        )?;
        self.type_into(css, &file.to_string_lossy())
    }

    /// Text of the first element that matches.
    pub fn text(&self, css: &str) -> Result<String> {
        let value = self.run(&format!(
            "return document.querySelector({})?.innerText ?? ''",
            quoted(css)
        ))?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    }

    pub fn screenshot(&self, name: &str) -> Result<()> {
        let folder = artefacts()?;
        Ok(self
            .runtime
            .block_on(self.driver().screenshot(&folder.join(format!("{name}.png"))))?)
    }

    /// What the page shows, as PNG.
    pub fn picture(&self) -> Result<Vec<u8>> {
        Ok(self.runtime.block_on(self.driver().screenshot_as_png())?)
    }

    /// Messages the page wrote as errors since the last call.
    pub fn console_errors(&self) -> Result<Vec<String>> {
        let entries = self.runtime.block_on(self.driver().browser_log())?;
        Ok(entries
            .into_iter()
            .filter(|entry| entry.level == "SEVERE")
            .map(|entry| entry.message)
            .collect())
    }

    /// Serious and critical accessibility violations that axe-core finds on the page as it stands.
    pub fn accessibility_violations(&self) -> Result<Vec<String>> {
        // Through DevTools: the page's own policy forbids scripts from elsewhere, as it should.
        self.devtools("Runtime.evaluate", serde_json::json!({"expression": axe_core()?}))?;
        let found = self.run_async(
            "const result = await axe.run(document, {resultTypes: ['violations']}); \
             return result.violations.filter((v) => ['serious', 'critical'].includes(v.impact)) \
               .map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html + ' ' + (n.any[0]?.message ?? '')).join(' | ')}`);",
        )?;
        let list = found.as_array().cloned().unwrap_or_default();
        Ok(list
            .iter()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.take() {
            // A browser that is gone already needs no farewell.
            let _ = self.runtime.block_on(driver.quit());
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Where screenshots are kept: `target/browser` of the workspace.
fn artefacts() -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/browser");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The version whose rules the pages are held to.
const AXE: &str = "axe-core@4.14.0";

/// axe-core's script, fetched from npm once and kept in `target/axe`.
fn axe_core() -> Result<String> {
    let script = npm_file("axe", AXE, "axe-core/axe.min.js")?;
    std::fs::read_to_string(&script).with_context(|| format!("{} cannot be read", script.display()))
}
