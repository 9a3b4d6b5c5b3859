// The tagger's own thread. It holds one model and answers one request after the other:
//   {id, kind: "load", base, options}   → {id, kind: "progress", …}* then {id, kind: "done", value}
//   {id, kind: "tag", text, options}    → {id, kind: "done", value}
//   {id, kind: "sketch", text}          → {id, kind: "done", value}: the KeyGraph alone, without a model
// or {id, kind: "failed", message}. Text comes in by message and goes nowhere else.

// Three builds of one tagger. The small one reads English and undetermined texts and is made to be fetched quickly: models
// that go by words alone, the usual ones, run in it as fast as in the whole one. The whole one reads every language,
// runs networks at full speed and knows WebGPU. The plain one is the whole one for engines without SIMD.
const SMALL = { script: "{{tagger.js}}", wasm: "{{tagger.wasm}}" };
const WHOLE = { script: "{{tagger-whole.js}}", wasm: "{{tagger-whole.wasm}}" };
const PLAIN = { script: "{{tagger-plain.js}}", wasm: "{{tagger-plain.wasm}}" };
// A module with one instruction of SIMD in it.
const HAS_SIMD = WebAssembly.validate(
  Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11),
);
const build = (isDemanding) => (HAS_SIMD ? (isDemanding ? WHOLE : SMALL) : PLAIN);
const isForeign = (language) => !/^(en|und)?([-_]|$)/i.test(language);
const hasNetworks = ({ core }) => ["lsa", "static", "bert", "matcher"].some((part) => part in (core ?? {}));

const modules = new Map();
let tagger;

// The module, compiled when it is first needed.
function start({ script, wasm }) {
  if (!modules.has(script)) {
    const ready = import(script).then(async (module) => {
      await module.default({ module_or_path: new URL(wasm, import.meta.url) });
      return module;
    });
    // What could not be fetched is fetched anew the next time.
    ready.catch(() => modules.delete(script));
    modules.set(script, ready);
  }
  return modules.get(script);
}

async function manifestOf(base, cache = "default") {
  const answer = await fetch(`${base}manifest.json`, { cache });
  if (!answer.ok) throw new Error(`the server answered ${answer.status} for the model's manifest`);
  return answer.json().catch((error) => {
    if (cache === "reload") throw error;
    // What lies in a cache may be what is wrong.
    return manifestOf(base, "reload");
  });
}

async function load({ id, base, options }) {
  const started = performance.now();
  const manifest = await manifestOf(base);
  const isDemanding = isForeign(String(manifest.language ?? "")) || hasNetworks(manifest);
  const module = await start(build(isDemanding));
  const next = await module.Tagger.load(base, (...progress) => {
    postMessage({ id, kind: "progress", progress });
  }, options);
  // Only a model that is whole replaces the one before it.
  tagger?.free();
  tagger = next;
  return { engine: tagger.engine(), choice: tagger.choice(), milliseconds: performance.now() - started };
}

async function tag({ text, options }) {
  if (!tagger) throw new Error("no model is loaded yet");
  const started = performance.now();
  const json = await tagger.tag(text, options);
  return { json, engine: tagger.engine(), milliseconds: performance.now() - started };
}

async function sketch({ text }) {
  const language = navigator.language ?? "";
  const module = await start(build(isForeign(language)));
  return { json: module.keygraph(text, language) };
}

const answers = { load, tag, sketch };
let queue = Promise.resolve();
addEventListener("message", ({ data }) => {
  queue = queue.then(async () => {
    try {
      postMessage({ id: data.id, kind: "done", value: await answers[data.kind](data) });
    } catch (error) {
      postMessage({ id: data.id, kind: "failed", message: error?.message ?? String(error) });
    }
  });
});
