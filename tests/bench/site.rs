//! The site that is measured: the built page's modules, the bundles, and the functions that measure them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use gnnxml_shared::bundle::Opening;
use gnnxml_tests::{Server, ServerOptions, copy_folder};
use serde_json::{Value, json};

const FUNCTIONS: &str = include_str!("page.js");
/// Files of the page that most visits do without, by how their names begin.
const RARE: [&str; 4] = ["split_", "chunk_", "tagger-whole", "tagger-plain"];

/// What a bundle computes with; the page chooses its module by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Words,
    Networks,
    Transformer,
}

/// A bundle on the site.
pub(crate) struct Published {
    pub name: String,
    pub kind: Kind,
    pub core_bytes: u64,
    /// Its folder and the module that the page runs it with, for `page.js`.
    pub address: Value,
}

/// A folder to be served.
pub(crate) struct Site {
    pub folder: PathBuf,
    bundles: usize,
}

impl Site {
    /// The built page and `page.js` in `folder`.
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/assets");
        ensure!(
            built.exists(),
            "the page is not built: run `cargo xtask web` first"
        );
        copy_folder(&built, &folder.join("assets"))?;
        std::fs::write(folder.join("bench.js"), FUNCTIONS)?;
        std::fs::write(
            folder.join("index.html"),
            "<!doctype html><meta charset=utf-8><title>Bench</title>",
        )?;
        Ok(Self {
            folder: folder.to_owned(),
            bundles: 0,
        })
    }

    /// A copy of a bundle.
    pub(crate) fn add(&mut self, bundle: &Path) -> Result<Published> {
        let file = bundle.join("manifest.json");
        let bytes = std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let opening = Opening::new(&bytes)?;
        let manifest = opening.manifest();
        let kind = if manifest.encoder == "bert" {
            Kind::Transformer
        } else if manifest.core.contains_key("matcher") {
            Kind::Networks
        } else {
            Kind::Words
        };
        let small = kind == Kind::Words && manifest.language.starts_with("en");
        let module = if small { "tagger" } else { "tagger-whole" };
        let name = format!("bundle-{}", self.bundles);
        self.bundles += 1;
        copy_folder(bundle, &self.folder.join(&name))?;
        Ok(Published {
            name: manifest.name.clone(),
            kind,
            core_bytes: manifest.core_bytes(),
            address: json!({
                "folder": format!("/{name}/"),
                "script": self.asset(module, "js")?,
                "wasm": self.asset(module, "wasm")?,
            }),
        })
    }

    /// The address of `assets/STEM-HASH.EXTENSION`.
    fn asset(&self, stem: &str, extension: &str) -> Result<String> {
        for name in self.assets()? {
            let hash = name
                .strip_prefix(&format!("{stem}-"))
                .and_then(|rest| rest.strip_suffix(&format!(".{extension}")));
            if hash.is_some_and(|hash| !hash.contains('-')) {
                return Ok(format!("/assets/{name}"));
            }
        }
        bail!("the built page holds no {stem}.{extension}")
    }

    fn assets(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.folder.join("assets"))? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    /// Compressed bytes of what every first visit fetches.
    pub(crate) fn core_bytes(&self) -> Result<u64> {
        let names = self.assets()?;
        let mut total = 0;
        for name in &names {
            let is_twin = name.ends_with(".gz") || name.ends_with(".br");
            if is_twin || RARE.iter().any(|start| name.starts_with(start)) {
                continue;
            }
            let packed = format!("{name}.gz");
            let sent = if names.contains(&packed) { &packed } else { name };
            total += std::fs::metadata(self.folder.join("assets").join(sent))?.len();
        }
        Ok(total)
    }

    pub(crate) fn serve(&self, data: &Path) -> Result<Server> {
        Server::start_with(
            data,
            &ServerOptions {
                arguments: vec!["--web".into(), self.folder.display().to_string()],
                ..ServerOptions::default()
            },
        )
    }
}
