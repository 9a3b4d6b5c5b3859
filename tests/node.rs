//! The tagger's package in Node, and its types.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use gnnxml_shared::model::tagger::{FinishOptions, ReadOptions};
use gnnxml_tests::{GraphModel, install_package, npm_file, program};

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../frontend/worker/example")
        .join(name)
}

/// Runs a script beside the installed package and answers with what it prints. Words that begin with a dash are Node's own.
fn node(folder: &Path, script: &str, arguments: &[&str]) -> Result<String> {
    let file = folder.join("script.mjs");
    std::fs::write(&file, script)?;
    let (own, arguments): (Vec<&str>, Vec<&str>) = arguments.iter().partition(|word| word.starts_with('-'));
    output(Command::new("node").args(own).arg(file).args(arguments), "")
}

/// What a command prints when it is given this.
fn output(command: &mut Command, input: &str) -> Result<String> {
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{command:?} cannot be started"))?;
    let mut stdin = process.stdin.take().context("standard input")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let answer = process.wait_with_output()?;
    ensure!(
        answer.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&answer.stderr)
    );
    Ok(String::from_utf8(answer.stdout)?)
}

#[test]
fn the_example_for_node_tags_as_the_program_does() -> Result<()> {
    let model = GraphModel::train()?;
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    std::fs::copy(example("node.mjs"), folder.path().join("node.mjs"))?;
    let bundle = model.open_bundle()?;
    for (_, text) in model.documents.iter().take(3) {
        let mut example = Command::new("node");
        example.arg(folder.path().join("node.mjs")).arg(model.bundle());
        let printed = output(&mut example, text)?;
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

/// Bundles that are none.
const WRONG: &str = "\
import { Tagger } from './gnnxml/index.js';
const bytes = (length) => async () => new Uint8Array(length);
const json = async () => new TextEncoder().encode('{}');
for (const [bundle, options] of [
  ['file:///nowhere/at/all/'], [json], [bytes(0), { engine: 'abacus' }], [bytes((8 << 20) + 1)], [async () => 2e9],
]) {
  try { await Tagger.load(bundle, options); console.log('loaded'); } catch (error) { console.log(error.message); }
}
";

#[test]
fn a_bundle_that_is_not_there_is_a_plain_error() -> Result<()> {
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    let said = node(folder.path(), WRONG, &[])?;
    let lines: Vec<&str> = said.lines().collect();
    ensure!(lines.len() == 5, "{said}");
    ensure!(lines[0].contains("manifest.json could not be fetched"), "{said}");
    ensure!(lines[1] != "loaded", "{said}");
    ensure!(lines[2].contains("abacus"), "{said}");
    ensure!(
        lines[3].contains("8388609 bytes, expected 8388608 at most"),
        "{said}"
    );
    ensure!(
        lines[4].contains("expected an ArrayBuffer or a Uint8Array"),
        "{said}"
    );
    Ok(())
}

/// Answers for one bundle, whose shards stay away twice, come damaged or too long once, or never come; and whose core comes
/// damaged once, or always.
const TROUBLED: &str = "\
import { readFile } from 'node:fs/promises';
import { Tagger } from './gnnxml/index.js';
const [folder, text] = process.argv.slice(2);
const ALWAYS = Infinity;
for (const [trouble, part, times] of [
  ['none', 'rankers-', 0], ['away', 'rankers-', 2], ['damaged', 'rankers-', 1], ['too long', 'rankers-', 1],
  ['away', 'rankers-', ALWAYS], ['damaged', 'labels-', 1], ['damaged', 'labels-', ALWAYS],
]) {
  let asked = 0;
  const source = async (file) => {
    const bytes = await readFile(`${folder}/${file}`);
    if (!file.startsWith(part)) return bytes;
    asked += 1;
    if (asked > times) return bytes;
    if (trouble === 'away') throw new Error('away');
    if (trouble === 'too long') return new ArrayBuffer(2 ** 31);
    bytes[20] ^= 1;
    return bytes;
  };
  try {
    const tagger = await Tagger.load(source);
    const { tags, missing_clusters: missing } = await tagger.tag(text);
    console.log(trouble, part, tags.length > 0 ? 'tags' : 'no tags', (missing ?? []).length > 0 ? 'some missing' : 'all there', asked);
  } catch (error) {
    console.log(trouble, part, error.message.includes('SHA-256') || error.message, asked);
  }
}
";

#[test]
fn a_part_is_asked_for_again_and_missed_by_name() -> Result<()> {
    let model = GraphModel::train()?;
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    let bundle = model.bundle();
    let arguments = [bundle.to_str().context("a path in UTF-8")?, &model.documents[0].1];
    let said = node(folder.path(), TROUBLED, &arguments)?;
    let expected = "\
none rankers- tags all there 1
away rankers- tags all there 3
damaged rankers- tags all there 2
too long rankers- tags all there 2
away rankers- no tags some missing 3
damaged labels- tags all there 2
damaged labels- true 3
";
    ensure!(said == expected, "{said}");
    Ok(())
}

/// The module cannot be fetched, then it can; and it is read from a disk, by whichever kind of address.
const RECOVERED: &str = "\
import { pathToFileURL } from 'node:url';
import { Tagger } from './gnnxml/index.js';
const wasm = new URL('./gnnxml/tagger_bg.wasm', import.meta.url);
const bundle = pathToFileURL(`${process.argv[2]}/`);
for (const module of [new URL('./nowhere.wasm', import.meta.url), wasm.href]) {
  try { console.log((await Tagger.load(bundle, { wasm: module })).engine); } catch { console.log('failed'); }
}
";

#[test]
fn a_module_that_could_not_be_fetched_is_fetched_the_next_time() -> Result<()> {
    let model = GraphModel::train()?;
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    let bundle = model.bundle();
    let said = node(
        folder.path(),
        RECOVERED,
        &[bundle.to_str().context("a path in UTF-8")?],
    )?;
    ensure!(said == "failed\nWASM SIMD\n", "{said}");
    Ok(())
}

/// Prints the vector of every sentence of a file.
const ENCODING: &str = "\
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Tagger } from './gnnxml/index.js';
const [bundle, sentences] = process.argv.slice(2);
const tagger = await Tagger.load(pathToFileURL(`${bundle}/`));
const vectors = tagger.encode(readFileSync(sentences, 'utf8').trim().split('\\n'));
for (const vector of vectors) console.log(JSON.stringify(Array.from(vector)));
";

/// One vector a line.
fn vectors(lines: &str) -> Result<Vec<Vec<f32>>> {
    let read = |line: &str| serde_json::from_str(line).with_context(|| format!("no vector: {line}"));
    lines.lines().map(read).collect()
}

/// The largest difference of two lists of vectors beyond `share` of a number's own size.
fn difference(found: &[Vec<f32>], expected: &[Vec<f32>], share: f32) -> Result<f32> {
    ensure!(
        found.len() == expected.len() && !found.is_empty(),
        "{} vectors",
        found.len()
    );
    let mut largest = 0.0f32;
    for (found, expected) in found.iter().zip(expected) {
        ensure!(
            found.len() == expected.len(),
            "a vector of {} numbers",
            found.len()
        );
        for (a, b) in found.iter().zip(expected) {
            largest = largest.max((a - b).abs() - share * b.abs());
        }
    }
    Ok(largest)
}

#[test]
fn sentences_have_the_vectors_the_program_gives_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    install_package(folder)?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (bert, table) = (here.join("fixtures/encoders/bert"), folder.join("static"));
    let mut distil = Command::new(program());
    distil
        .args(["encoder", "distil", "--dims", "16", "--from"])
        .arg(&bert);
    distil.arg("--out").arg(&table).arg("--corpus");
    output(distil.arg(here.join("corpora/garden.jsonl")), "")?;
    for (encoder, tolerance) in [(bert, 6e-5), (table, 0.0)] {
        let name = encoder.to_str().context("a path in UTF-8")?;
        let model = GraphModel::train_with(&format!(
            "[encoder]\nname = {name:?}\n[ranker]\nembedding = true\n"
        ))?;
        let mut sentences: Vec<&str> = model
            .documents
            .iter()
            .take(60)
            .map(|(_, text)| text.as_str())
            .collect();
        sentences.extend(["Naïve façades, 漢字 and 🌹.", "qqqq", "x"]);
        let file = folder.join("sentences.txt");
        std::fs::write(&file, sentences.join("\n"))?;
        let bundle = model.bundle();
        let arguments = [bundle.to_str(), file.to_str()].map(Option::unwrap_or_default);
        let in_node = vectors(&node(folder, ENCODING, &arguments)?)?;

        let opened = model.open_bundle()?;
        let native = opened
            .tagger()
            .encoder
            .as_deref()
            .context("an encoder")?
            .encode(&sentences);
        let native: Vec<Vec<f32>> = native
            .chunks(native.len() / sentences.len())
            .map(<[f32]>::to_vec)
            .collect();
        let apart = difference(&in_node, &native, 0.0)?;
        println!("{name}: {apart} from the bundle opened natively");
        ensure!(apart <= tolerance, "{name}: {apart} apart, expected {tolerance}");

        // The program hands vectors out in sixteen bits, eleven of them significant.
        let mut encode = Command::new(program());
        encode
            .args(["encoder", "encode", "--no-cache", "--encoder", name])
            .arg(&file);
        let said = vectors(&output(&mut encode, "")?)?;
        let apart = difference(&in_node, &said, 1.0 / 2048.0)?;
        ensure!(
            apart <= 6e-5,
            "{name}: {apart} from what `gnnxml encoder encode` says"
        );
    }
    Ok(())
}

/// Tags one text in each build.
const BUILDS: &str = "\
import { pathToFileURL } from 'node:url';
import { Tagger } from './gnnxml/index.js';
const [bundle, ...texts] = process.argv.slice(2);
const tagger = await Tagger.load(pathToFileURL(`${bundle}/`));
console.log(tagger.engine);
for (const text of texts) for (const { name, score } of (await tagger.tag(text)).tags) console.log(name, score.toFixed(3));
";

#[test]
#[cfg(target_arch = "x86_64")]
fn an_engine_without_simd_gives_the_same_tags() -> Result<()> {
    let model = GraphModel::train()?;
    let folder = tempfile::tempdir()?;
    install_package(folder.path())?;
    let bundle = model.bundle();
    let mut arguments = vec![bundle.to_str().context("a path in UTF-8")?];
    arguments.extend(model.documents.iter().take(20).map(|(_, text)| text.as_str()));
    let with = node(folder.path(), BUILDS, &arguments)?;
    // What V8's SIMD is made of.
    arguments.push("--no-enable-sse4-1");
    let without = node(folder.path(), BUILDS, &arguments)?;
    let tags = with.strip_prefix("WASM SIMD\n").context("no SIMD")?;
    let plain = without.strip_prefix("WASM\n").context("SIMD in spite of all")?;
    ensure!(tags == plain && tags.lines().count() > 20, "{with}\n{without}");
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
    let names = "\
import { Tagger } from './gnnxml/index.js';
const names = ['tag', 'encode', 'engine', 'choice', 'fetched', 'manifest', 'loseGpu', 'free'];
console.log(names.filter((name) => !(name in Tagger.prototype)).join() || 'all there', typeof Tagger.load);
";
    let said = node(folder.path(), names, &[])?;
    ensure!(said.trim() == "all there function", "{said}");
    Ok(())
}
