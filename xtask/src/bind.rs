//! From compiled modules to what a browser loads: wasm-bindgen for all, and the page's module cut into its views.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use sha2::{Digest as _, Sha256};
use wasm_bindgen_cli_support::Bindgen;

use crate::web::{Site, files_below, hex, read, write};

/// A module after wasm-bindgen: paths inside `dist/`.
pub(crate) struct BoundModule {
    pub(crate) script: String,
    pub(crate) wasm: String,
    pub(crate) wasm_bytes: usize,
}

/// Runs wasm-bindgen over one module and adds its script, its wasm and its snippets to the site.
pub(crate) fn bind(root: &Path, name: &str, module: Vec<u8>, site: &mut Site) -> Result<BoundModule> {
    let staging = empty_folder(&root.join("target").join("web").join(name))?;
    // Both taggers go by one name, so that either can be packaged.
    let stem = name.split('-').next().unwrap_or(name);
    bindgen(stem, module, false, &staging)?;
    let snippets = staging.join("snippets");
    if snippets.is_dir() {
        for file in files_below(&snippets)? {
            let inside = file.strip_prefix(&staging)?.to_string_lossy().replace('\\', "/");
            // wasm-bindgen names snippet folders by a hash of their crate already.
            site.add(&format!("assets/{inside}"), read(&file)?);
        }
    }
    let wasm = read(&staging.join(format!("{stem}_bg.wasm")))?;
    let wasm_bytes = wasm.len();
    let script = read(&staging.join(format!("{stem}.js")))?;
    Ok(BoundModule {
        wasm: site.add_hashed(&format!("{name}.wasm"), wasm),
        script: site.add_hashed(&format!("{name}.js"), script),
        wasm_bytes,
    })
}

/// Splits the deferred views off the page's module, binds what is left, and adds all of it to the site.
///
/// The parts name each other, so all of their names carry one hash of them all.
pub(crate) fn bind_page(root: &Path, module: &[u8], site: &mut Site) -> Result<BoundModule> {
    let staging = empty_folder(&root.join("target").join("web").join("page"))?;
    let main = staging.join("main.wasm");
    let mut options = wasm_split_cli_support::Options::new(module);
    options.output_dir = &staging;
    options.main_out_path = &main;
    options.main_module = "./page.js";
    options.link_name = "./views.js";
    let split = wasm_split_cli_support::transform(options)
        .map_err(|error| anyhow!("the page's module cannot be split into its views: {error:?}"))?;
    ensure!(
        !split.split_modules.is_empty(),
        "no view was split off the page's module; expected those that frontend/src/pages/deferred.rs names"
    );
    for part in &split.split_modules {
        let bytes = without_custom_sections(&read(part)?)
            .with_context(|| format!("{} is no wasm module", part.display()))?;
        write(part, &bytes)?;
    }
    let first = read(&main)?;
    fs::remove_file(&main).with_context(|| format!("{} cannot be removed", main.display()))?;
    bindgen("page", first, true, &staging)?;

    let mut files = Vec::new();
    let mut hasher = Sha256::new();
    for file in files_below(&staging)? {
        let inside = file.strip_prefix(&staging)?.to_string_lossy().replace('\\', "/");
        let bytes = read(&file)?;
        hasher.update(inside.as_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(&bytes);
        files.push((inside, bytes));
    }
    let hash = &hex(&hasher.finalize())[..12];
    let names: Vec<(String, String)> = files
        .iter()
        .map(|(name, _)| (name.clone(), hashed_name(name, hash)))
        .collect();
    let mut wasm_bytes = 0;
    for ((name, bytes), (_, new_name)) in files.into_iter().zip(&names) {
        if name == "page_bg.wasm" {
            wasm_bytes = bytes.len();
        }
        let bytes = if name.ends_with(".js") {
            renamed(bytes, &names)?
        } else {
            bytes
        };
        site.add(&format!("assets/{new_name}"), bytes);
    }
    Ok(BoundModule {
        wasm: format!("assets/{}", hashed_name("page_bg.wasm", hash)),
        script: format!("assets/{}", hashed_name("page.js", hash)),
        wasm_bytes,
    })
}

/// `STEM-HASH.EXT`; snippets lie in folders that wasm-bindgen names by a hash already.
fn hashed_name(name: &str, hash: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !name.contains('/') => {
            format!("{}-{hash}.{extension}", stem.trim_end_matches("_bg"))
        }
        _ => name.to_owned(),
    }
}

/// A script whose imports and addresses go by the new names. What a module calls its imports stays as it is.
fn renamed(script: Vec<u8>, names: &[(String, String)]) -> Result<Vec<u8>> {
    let mut script = String::from_utf8(script).context("a script of wasm-bindgen is not UTF-8")?;
    for (name, new_name) in names {
        for before in ["from ", "URL("] {
            script = script.replace(
                &format!("{before}\"./{name}\""),
                &format!("{before}\"./{new_name}\""),
            );
        }
    }
    Ok(script.into_bytes())
}

/// `keep_exports` holds on to what the linker exported: parts that were split off call it.
fn bindgen(stem: &str, module: Vec<u8>, keep_exports: bool, staging: &Path) -> Result<()> {
    Bindgen::new()
        .input_bytes(stem, module)
        .web(true)?
        .omit_default_module_path(true)
        .typescript(false)
        .keep_lld_exports(keep_exports)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(staging)
        .with_context(|| format!("wasm-bindgen cannot bind the {stem}"))
}

fn empty_folder(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{} cannot be cleared", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder.to_path_buf())
}

/// A wasm module without names and other notes that nobody runs.
fn without_custom_sections(module: &[u8]) -> Result<Vec<u8>> {
    const HEADER: usize = 8;
    const CUSTOM: u8 = 0;
    let mut kept = module.get(..HEADER).context("it ends in its header")?.to_vec();
    let mut at = HEADER;
    while at < module.len() {
        let start = at;
        let kind = module[at];
        at += 1;
        let mut length = 0usize;
        for shift in (0..).step_by(7) {
            let byte = *module.get(at).context("it ends in a section's length")?;
            ensure!(shift < 32, "a section's length has more than five bytes");
            at += 1;
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        let end = at.checked_add(length).context("a section has no end")?;
        let section = module
            .get(start..end)
            .context("a section is longer than the file")?;
        if kind != CUSTOM {
            kept.extend_from_slice(section);
        }
        at = end;
    }
    Ok(kept)
}
