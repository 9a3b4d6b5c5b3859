// The tagger's own thread. It holds one model and answers one request after the other:
//   {id, kind: "load", base, options}   → {id, kind: "progress", …}* then {id, kind: "done", value}
//   {id, kind: "tag", text, options}    → {id, kind: "done", value}
//   {id, kind: "sketch", text}          → {id, kind: "done", value}: the KeyGraph alone, without a model
// or {id, kind: "failed", message}. Text comes in by message and goes nowhere else.

// Stop words and stemmers of all languages double the module: the small one reads English and undetermined texts.
const SMALL = { script: "{{tagger.js}}", wasm: "{{tagger.wasm}}" };
const ALL_LANGUAGES = { script: "{{tagger-languages.js}}", wasm: "{{tagger-languages.wasm}}" };
const reads = (language) => (/^(en|und)?([-_]|$)/i.test(language) ? SMALL : ALL_LANGUAGES);

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

async function languageOf(base) {
  const answer = await fetch(`${base}manifest.json`);
  if (!answer.ok) throw new Error(`the server answered ${answer.status} for the model's manifest`);
  return String((await answer.json()).language ?? "");
}

async function load({ id, base, options }) {
  const started = performance.now();
  const module = await start(reads(await languageOf(base)));
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
  const module = await start(reads(language));
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
