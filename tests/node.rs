//! The tagger's package in Node, and its types.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use gnnxml_shared::model::tagger::{FinishOptions, ReadOptions};
use gnnxml_tests::{GraphModel, install_package, npm_file};

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../frontend/worker/example")
        .join(name)
}

#[test]
fn the_example_for_node_tags_as_the_program_does() -> Result<()> {
    let model = GraphModel::train()?;
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    std::fs::copy(example("node.mjs"), folder.path().join("node.mjs"))?;
    let bundle = model.open_bundle()?;
    for (_, text) in model.documents.iter().take(3) {
        let mut node = Command::new("node")
            .arg(folder.path().join("node.mjs"))
            .arg(model.bundle())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("node cannot be started: `cargo xtask setup` installs it")?;
        node.stdin
            .take()
            .context("standard input")?
            .write_all(text.as_bytes())?;
        let answer = node.wait_with_output()?;
        ensure!(
            answer.status.success(),
            "{}",
            String::from_utf8_lossy(&answer.stderr)
        );
        let printed = String::from_utf8(answer.stdout)?;
        let options = FinishOptions {
            top: 5,
            explain: true,
            ..FinishOptions::default()
        };
        let read = ReadOptions {
            keygraph: true,
            spans: true,
        };
        let expected = bundle.finish(&bundle.prepare(text, read)?, options);
        ensure!(printed.lines().count() == expected.tags.len(), "{printed}");
        for (line, tag) in printed.lines().zip(&expected.tags) {
            ensure!(
                line.starts_with(&tag.name),
                "found {line:?}, expected {}",
                tag.name
            );
            let evidence = tag.evidence.as_ref().context("evidence")?;
            let first = evidence.words.first().map_or("", |word| word.text.as_str());
            ensure!(line.contains(first), "found {line:?}, expected {first:?}");
        }
    }
    Ok(())
}

#[test]
fn a_bundle_that_is_not_there_is_a_plain_error() -> Result<()> {
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    std::fs::write(
        folder.path().join("wrong.mjs"),
        "import { Tagger } from './gnnxml/index.js';\n\
         for (const [bundle, options] of [['file:///nowhere/at/all/', {}], [async () => new TextEncoder().encode('{}'), {}], \
           [async () => new Uint8Array(0), { engine: 'abacus' }]]) {\n\
           try { await Tagger.load(bundle, options); console.log('loaded'); } catch (error) { console.log(error.message); }\n\
         }\n",
    )?;
    let answer = Command::new("node")
        .arg(folder.path().join("wrong.mjs"))
        .output()?;
    let said = String::from_utf8(answer.stdout)?;
    let lines: Vec<&str> = said.lines().collect();
    ensure!(answer.status.success() && lines.len() == 3, "{said}");
    ensure!(lines[0].contains("manifest.json could not be fetched"), "{said}");
    ensure!(lines[1] != "loaded", "{said}");
    ensure!(lines[2].contains("abacus"), "{said}");
    Ok(())
}

/// Answers for one bundle, whose shards stay away twice, come damaged once, or never come.
const TROUBLED: &str = "\
import { readFile } from 'node:fs/promises';
import { Tagger } from './gnnxml/index.js';
const [folder, text] = process.argv.slice(2);
for (const trouble of ['none', 'away twice', 'damaged once', 'away']) {
  const asked = new Map();
  const tagger = await Tagger.load(async (file) => {
    const bytes = await readFile(`${folder}/${file}`);
    if (!file.startsWith('rankers-')) return bytes;
    const times = (asked.get(file) ?? 0) + 1;
    asked.set(file, times);
    if (trouble === 'away' || (trouble === 'away twice' && times < 3)) throw new Error('away');
    if (trouble === 'damaged once' && times === 1) bytes[20] ^= 1;
    return bytes;
  });
  const { tags, missing_clusters: missing } = await tagger.tag(text);
  console.log(trouble, tags.length > 0, (missing ?? []).length > 0, Math.max(...asked.values()));
}
";

#[test]
fn a_shard_is_asked_for_again_and_missed_by_name() -> Result<()> {
    let model = GraphModel::train()?;
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    std::fs::write(folder.path().join("troubled.mjs"), TROUBLED)?;
    let answer = Command::new("node")
        .arg(folder.path().join("troubled.mjs"))
        .arg(model.bundle())
        .arg(&model.documents[0].1)
        .output()?;
    ensure!(
        String::from_utf8_lossy(&answer.stdout)
            == "none true false 1\naway twice true false 3\ndamaged once true false 2\naway false true 3\n",
        "{answer:?}"
    );
    Ok(())
}

/// The compiler the types are held to.
const TYPESCRIPT: &str = "typescript@5.9.3";

/// Uses every name of the package as a caller would; it must compile, and what is misspelt must not.
const CALLER: &str = r#"import { Tagger, type TagResponse, type EngineChoice } from "./gnnxml/index.js";

export async function first(text: string, remembered: EngineChoice | null): Promise<string | undefined> {
  const tagger = await Tagger.load("https://example.org/bundle/", { engine: "auto", remembered, onProgress: (n) => n.toFixed() });
  const answer: TagResponse = await tagger.tag(text, { top: 3, explain: true });
  const span: [number, number] | undefined = answer.tags[0]?.evidence?.words[0]?.spans[0];
  const size: number = tagger.fetched + (span?.[1] ?? 0) + answer.cutoff;
  const likeness: number | undefined = tagger.encode([text])[0]?.[0];
  tagger.loseGpu();
  tagger.free();
  // @ts-expect-error: no such engine
  await Tagger.load("x", { engine: "abacus" });
  // @ts-expect-error: no such option
  await tagger.tag(text, { best: size + (likeness ?? 0) });
  return answer.tags[0]?.name ?? tagger.engine;
}
"#;

#[test]
fn the_types_fit_the_package() -> Result<()> {
    let compiler = npm_file("typescript", TYPESCRIPT, "typescript/bin/tsc")?;
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    std::fs::write(folder.path().join("caller.mts"), CALLER)?;
    let checked = Command::new("node")
        .arg(&compiler)
        .args([
            "--noEmit",
            "--strict",
            "--noUncheckedIndexedAccess",
            "--target",
            "es2022",
        ])
        .args(["--module", "nodenext", "--lib", "es2022,dom", "caller.mts"])
        .current_dir(folder.path())
        .output()?;
    ensure!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
    // What the types name is there.
    std::fs::write(
        folder.path().join("names.mjs"),
        "import { Tagger } from './gnnxml/index.js';\n\
         const names = ['tag', 'encode', 'engine', 'choice', 'fetched', 'manifest', 'loseGpu', 'free'];\n\
         console.log(names.filter((name) => !(name in Tagger.prototype)).join() || 'all there', typeof Tagger.load);\n",
    )?;
    let answer = Command::new("node")
        .arg(folder.path().join("names.mjs"))
        .output()?;
    ensure!(
        String::from_utf8_lossy(&answer.stdout).trim() == "all there function",
        "{answer:?}"
    );
    Ok(())
}
