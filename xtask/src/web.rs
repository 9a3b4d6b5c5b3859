//! Bundles the page: compiles the app and the tagger to wasm32, binds them, and writes `dist/`.
//!
//! Nothing has to be installed beside cargo: wasm-bindgen is used as a library, so its version and the one the
//! code was compiled against are held together by `Cargo.toml`. Every file below `assets/` carries a hash of its
//! content in its name and may be cached for ever; `index.html`, `sw.js` and the web manifest may not.
//! Start reading at [`build`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::bind::{bind, bind_page};
use crate::compress::{brotli, gzip, gzip_slowly};
use crate::package;

/// Files smaller than this travel as they are: compressing them saves less than a packet.
const WORTH_COMPRESSING: usize = 512;

/// The model's code for size in the small tagger: models of words alone run as fast, networks do not, which is why the
/// worker runs those in the whole one.
const SMALL_SHARED: &str = r#"profile.wasm.package.gnnxml-shared.opt-level="s""#;

/// Builds `dist/` and returns its path. With `release` the modules are optimised for size.
///
/// When neither the compiled modules nor the assets changed since the last build, nothing is written.
pub(crate) fn build(release: bool) -> Result<PathBuf> {
    let root = workspace_root()?;
    let profile = if release { "wasm" } else { "dev" };
    let modules = Modules::compile(&root, profile)?;
    let sources = Sources::read(&root)?;

    let dist = root.join("dist");
    let stamp = sources.stamp(&[
        profile.as_bytes(),
        &modules.page,
        &modules.tagger,
        &modules.whole_tagger,
        &modules.plain_tagger,
    ]);
    if package::is_bound(&root) && fs::read_to_string(dist.join(".stamp")).is_ok_and(|old| old == stamp) {
        package::write(&root)?;
        return Ok(dist);
    }

    let mut site = Site::default();
    let page = bind_page(&root, &modules.page, &mut site)?;
    let tagger = bind(&root, "tagger", modules.tagger, &mut site)?;
    let whole = bind(&root, "tagger-whole", modules.whole_tagger, &mut site)?;
    let plain = bind(&root, "tagger-plain", modules.plain_tagger, &mut site)?;
    let style = site.add_hashed("page.css", sources.text("style.css")?.into_bytes());
    let worker = site.add_hashed(
        "worker.js",
        fill(
            &sources.text("worker.js")?,
            &[
                ("tagger.js", &relative(&tagger.script)),
                ("tagger.wasm", &relative(&tagger.wasm)),
                ("tagger-whole.js", &relative(&whole.script)),
                ("tagger-whole.wasm", &relative(&whole.wasm)),
                ("tagger-plain.js", &relative(&plain.script)),
                ("tagger-plain.wasm", &relative(&plain.wasm)),
            ],
        )?
        .into_bytes(),
    );
    let boot = site.add_hashed(
        "boot.js",
        fill(
            &sources.text("boot.js")?,
            &[
                ("page.js", &relative(&page.script)),
                ("page.wasm", &relative(&page.wasm)),
                ("page.wasm.bytes", &page.wasm_bytes.to_string()),
            ],
        )?
        .into_bytes(),
    );
    let theme = site.add_hashed("theme.js", sources.text("theme.js")?.into_bytes());
    site.add("favicon.svg", sources.text("favicon.svg")?.into_bytes());
    site.add(
        "manifest.webmanifest",
        sources.text("manifest.webmanifest")?.into_bytes(),
    );
    let index = fill(
        &sources.index,
        &[
            ("style.css", &format!("/{style}")),
            ("theme.js", &format!("/{theme}")),
            ("boot.js", &format!("/{boot}")),
            ("page.js", &format!("/{}", page.script)),
            ("page.wasm", &format!("/{}", page.wasm)),
            ("worker.js", &format!("/{worker}")),
            ("tagger.wasm.bytes", &tagger.wasm_bytes.to_string()),
        ],
    )?;
    site.add("index.html", index.into_bytes());
    let service_worker = fill(
        &sources.text("sw.js")?,
        &[
            ("version", &stamp[..12]),
            ("files", &site.as_json_list(|path| !is_rare(path))?),
            ("rare", &site.as_json_list(is_rare)?),
        ],
    )?;
    site.add("sw.js", service_worker.into_bytes());

    site.write(&dist, &stamp, release)?;
    package::write(&root)?;
    Ok(dist)
}

/// The folder that holds the workspace: the nearest one above this crate's manifest.
fn workspace_root() -> Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set; start this through `cargo xtask`")?;
    Path::new(&manifest)
        .parent()
        .map(Path::to_path_buf)
        .context("the xtask crate lies at the root of a file system; expected it inside the workspace")
}

/// Where cargo leaves the wasm modules of `profile`.
fn module_directory(root: &Path, profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = if profile == "dev" { "debug" } else { profile };
    target.join("wasm32-unknown-unknown").join(folder)
}

/// The compiled modules, before wasm-bindgen.
struct Modules {
    /// Without SIMD, which it has no use for: it starts wherever one of the taggers runs.
    page: Vec<u8>,
    /// Reads English and undetermined texts, and computes on the processor.
    tagger: Vec<u8>,
    /// Reads every language and knows WebGPU; larger, and fetched only where one of the two is needed.
    whole_tagger: Vec<u8>,
    /// The whole tagger for engines without SIMD.
    plain_tagger: Vec<u8>,
}

impl Modules {
    fn compile(root: &Path, profile: &str) -> Result<Self> {
        const WORKER: [&str; 2] = ["--package", "gnnxml-worker"];
        const SMALL: [&str; 3] = ["--no-default-features", "--config", SMALL_SHARED];
        let folder = module_directory(root, profile);
        let compiled = |simd: Simd, selection: &[&str], module: &str| {
            compile(root, profile, simd, selection)?;
            read(&folder.join(module))
        };
        let small_worker = [&WORKER[..], &SMALL].concat();
        let page = [&["--package", "gnnxml-frontend"][..], &SMALL].concat();
        Ok(Self {
            whole_tagger: compiled(Simd::On, &WORKER, "gnnxml_worker.wasm")?,
            tagger: compiled(Simd::On, &small_worker, "gnnxml_worker.wasm")?,
            plain_tagger: compiled(Simd::Off, &WORKER, "gnnxml_worker.wasm")?,
            page: compiled(Simd::Off, &page, "gnnxml-page.wasm")?,
        })
    }
}

/// Whether a module may use vector instructions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Simd {
    /// As `.cargo/config.toml` has it.
    On,
    Off,
}

fn compile(root: &Path, profile: &str, simd: Simd, selection: &[&str]) -> Result<()> {
    // The cargo that started us, asked at run time: `env!` would forget the toolchain that was chosen.
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo)
        .current_dir(root)
        .args([
            "build",
            "--quiet",
            "--target",
            "wasm32-unknown-unknown",
            "--profile",
            profile,
        ])
        .args(["--config", &rust_flags(simd)?])
        .args(selection)
        .status()
        .context("cargo could not be started to compile the page")?;
    ensure!(
        status.success(),
        "the page does not compile to wasm32 (see cargo's messages above)"
    );
    Ok(())
}

/// What is added to the flags of `.cargo/config.toml`: crates by their names instead of where this machine keeps them, so
/// that the same sources give the same module everywhere.
fn rust_flags(simd: Simd) -> Result<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.map(|home| home.join("registry").join("src"));
    let mut flags = Vec::new();
    if let Some(Ok(registries)) = sources.map(fs::read_dir) {
        for registry in registries {
            flags.push(format!(
                "--remap-path-prefix={}=crates",
                registry?.path().display()
            ));
        }
    }
    flags.sort();
    if simd == Simd::Off {
        flags.push("-Ctarget-feature=-simd128".to_owned());
    }
    // JSON's lists of strings are TOML's too.
    let flags = serde_json::to_string(&flags)?;
    Ok(format!("target.wasm32-unknown-unknown.rustflags={flags}"))
}

/// The hand-written files of the page.
struct Sources {
    index: String,
    assets: BTreeMap<String, Vec<u8>>,
}

impl Sources {
    fn read(root: &Path) -> Result<Self> {
        let index = read_text(&root.join("index.html"))?;
        let folder = root.join("frontend").join("assets");
        let mut assets = BTreeMap::new();
        for file in files_below(&folder)? {
            let name = file.strip_prefix(&folder)?.to_string_lossy().replace('\\', "/");
            let bytes = read(&file)?;
            assets.insert(name, bytes);
        }
        Ok(Self { index, assets })
    }

    /// One asset as text. `style.css` is every sheet of `styles/` in the order of their names.
    fn text(&self, name: &str) -> Result<String> {
        if name == "style.css" {
            let mut sheet = String::new();
            for (path, bytes) in &self.assets {
                if path.starts_with("styles/") && path.ends_with(".css") {
                    sheet.push_str(
                        std::str::from_utf8(bytes).with_context(|| format!("{path} is not UTF-8"))?,
                    );
                }
            }
            ensure!(!sheet.is_empty(), "frontend/assets/styles holds no style sheet");
            return Ok(sheet);
        }
        let bytes = self
            .assets
            .get(name)
            .with_context(|| format!("frontend/assets/{name} is missing"))?;
        String::from_utf8(bytes.clone()).with_context(|| format!("frontend/assets/{name} is not UTF-8"))
    }

    /// A hash of everything the site is made of, this program included.
    fn stamp(&self, others: &[&[u8]]) -> String {
        let mut hasher = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for program in [
            include_str!("web.rs"),
            include_str!("bind.rs"),
            include_str!("compress.rs"),
        ] {
            part(program.as_bytes());
        }
        part(self.index.as_bytes());
        for (name, bytes) in &self.assets {
            part(name.as_bytes());
            part(bytes);
        }
        for other in others {
            part(other);
        }
        hex(&hasher.finalize())
    }
}

/// Whether most visits do without this file: the service worker keeps it only once it was asked for.
fn is_rare(path: &str) -> bool {
    ["split_", "chunk_", "tagger-whole", "tagger-plain"]
        .iter()
        .any(|start| {
            path.strip_prefix("assets/")
                .is_some_and(|name| name.starts_with(start))
        })
}

/// What `dist/` will hold, by path.
#[derive(Default)]
pub(crate) struct Site {
    files: BTreeMap<String, Vec<u8>>,
}

impl Site {
    pub(crate) fn add(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), bytes);
    }

    /// Adds `assets/STEM-HASH.EXT` and returns that path.
    pub(crate) fn add_hashed(&mut self, name: &str, bytes: Vec<u8>) -> String {
        let hash = hex(&Sha256::digest(&bytes));
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "bin"));
        let path = format!("assets/{stem}-{}.{extension}", &hash[..12]);
        self.files.insert(path.clone(), bytes);
        path
    }

    /// The absolute paths of these files as a JSON list; `/` stands for `index.html`.
    fn as_json_list(&self, chosen: impl Fn(&str) -> bool) -> Result<String> {
        let paths: Vec<String> = self
            .files
            .keys()
            .filter(|path| chosen(path))
            .map(|path| {
                if path == "index.html" {
                    "/".to_owned()
                } else {
                    format!("/{path}")
                }
            })
            .collect();
        Ok(serde_json::to_string(&paths)?)
    }

    /// Writes a fresh folder beside `dist/` and swaps it in, so a server never sees half a site.
    fn write(&self, dist: &Path, stamp: &str, release: bool) -> Result<()> {
        let fresh = dist.with_extension("new");
        if fresh.exists() {
            fs::remove_dir_all(&fresh).with_context(|| format!("{} cannot be cleared", fresh.display()))?;
        }
        for (path, bytes) in &self.files {
            let target = fresh.join(path);
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
            }
            write(&target, bytes)?;
            if bytes.len() >= WORTH_COMPRESSING {
                let is_fetched_often = release && !is_rare(path);
                let packed = if is_fetched_often {
                    gzip_slowly(bytes)
                } else {
                    gzip(bytes)
                };
                write(&with_suffix(&target, "gz"), &packed?)?;
                write(&with_suffix(&target, "br"), &brotli(bytes)?)?;
            }
        }
        write(&fresh.join(".stamp"), stamp.as_bytes())?;
        if dist.exists() {
            fs::remove_dir_all(dist).with_context(|| format!("{} cannot be cleared", dist.display()))?;
        }
        fs::rename(&fresh, dist).with_context(|| format!("{} cannot be moved into place", fresh.display()))
    }
}

/// Replaces every `{{name}}`; a name without a value, or a value nobody asked for, is an error.
fn fill(template: &str, values: &[(&str, &str)]) -> Result<String> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    let mut used = vec![false; values.len()];
    while let Some(start) = rest.find("{{") {
        let (before, after) = rest.split_at(start);
        filled.push_str(before);
        let end = after
            .find("}}")
            .context("a template placeholder is opened with {{ and never closed")?;
        let name = &after[2..end];
        let Some(index) = values.iter().position(|(known, _)| *known == name) else {
            bail!("the template asks for {{{{{name}}}}}, which the bundler does not know");
        };
        used[index] = true;
        filled.push_str(values[index].1);
        rest = &after[end + 2..];
    }
    filled.push_str(rest);
    if let Some(unused) = used.iter().position(|used| !used) {
        bail!("the template never uses {{{{{}}}}}", values[unused].0);
    }
    Ok(filled)
}

/// `assets/page-….js` as seen from another file in `assets/`.
fn relative(path: &str) -> String {
    path.replacen("assets/", "./", 1)
}

pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("{} cannot be listed", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found.sort();
    Ok(found)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
}

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read as text", path.display()))
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
