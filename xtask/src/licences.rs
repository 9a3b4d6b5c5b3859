//! The rules of `deny.toml` that can be checked offline: every crate's licence and where it came from.
//!
//! cargo-deny knows more (advisories, duplicate versions); where it is not installed this keeps the two rules that
//! must never break in silence.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::steps;

pub(crate) fn check() -> Result<()> {
    let allowed = allowed()?;
    let out = Command::new(steps::cargo_path())
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(steps::root())
        .output()
        .context("could not start `cargo metadata`")?;
    ensure!(
        out.status.success(),
        "`cargo metadata` failed:\n{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let metadata: Value = serde_json::from_slice(&out.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .context("`cargo metadata` lists no packages")?;
    let mut faults = Vec::new();
    for package in packages {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        if package["source"]
            .as_str()
            .is_some_and(|source| !source.starts_with("registry+"))
        {
            faults.push(format!(
                "{name}: comes from {}, not from the registry",
                package["source"]
            ));
        }
        let licence = text(&package["license"]);
        if licence.is_empty() {
            if package["license_file"].is_null() {
                faults.push(format!("{name}: names no licence"));
            }
        } else if !satisfied(licence, &allowed) {
            faults.push(format!("{name}: `{licence}` is not allowed by deny.toml"));
        }
    }
    ensure!(
        faults.is_empty(),
        "deny.toml is not kept:\n  {}",
        faults.join("\n  ")
    );
    println!(
        "▸ licences and sources of {} crates: as deny.toml allows",
        packages.len()
    );
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn allowed() -> Result<BTreeSet<String>> {
    let rules: toml::Table = std::fs::read_to_string(steps::root().join("deny.toml"))?.parse()?;
    let list = rules
        .get("licenses")
        .and_then(|table| table.get("allow"))
        .and_then(toml::Value::as_array);
    Ok(list
        .context("deny.toml has no [licenses] allow")?
        .iter()
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect())
}

/// Whether an SPDX expression can be met by the allowed licences; `A/B` is the old spelling of `A OR B`.
fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, allowed)
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed);
    }
    met
}

fn all(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    match words.next() {
        Some("(") => {
            let met = any(words, allowed);
            words.next_if_eq(&")").is_some() && met
        }
        Some(id) => {
            if words.next_if_eq(&"WITH").is_some() {
                let exception = words.next().unwrap_or_default();
                allowed.contains(&format!("{id} WITH {exception}")) || allowed.contains(id)
            } else {
                allowed.contains(id)
            }
        }
        None => false,
    }
}
