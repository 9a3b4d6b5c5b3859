// The tagger's own thread. It holds one model and answers one request after the other:
//   {id, kind: "load", base, options}   → {id, kind: "progress", …}* then {id, kind: "done", value}
//   {id, kind: "tag", text, options}    → {id, kind: "done", value}
// or {id, kind: "failed", message}. Text comes in by message and goes nowhere else.
import init, * as module from "{{tagger.js}}";

let ready;
let tagger;

async function load(id, base, options) {
  const started = performance.now();
  ready ??= init({ module_or_path: new URL("{{tagger.wasm}}", import.meta.url) });
  await ready;
  const next = await module.Tagger.load(base, (...progress) => {
    postMessage({ id, kind: "progress", progress });
  }, options);
  // Only a model that is whole replaces the one before it.
  tagger?.free();
  tagger = next;
  return { engine: tagger.engine(), choice: tagger.choice(), milliseconds: performance.now() - started };
}

async function tag(text, options) {
  if (!tagger) throw new Error("no model is loaded yet");
  const started = performance.now();
  const json = await tagger.tag(text, options);
  return { json, engine: tagger.engine(), milliseconds: performance.now() - started };
}

let queue = Promise.resolve();
addEventListener("message", ({ data }) => {
  queue = queue.then(async () => {
    try {
      const value = data.kind === "load" ? await load(data.id, data.base, data.options) : await tag(data.text, data.options);
      postMessage({ id: data.id, kind: "done", value });
    } catch (error) {
      postMessage({ id: data.id, kind: "failed", message: error?.message ?? String(error) });
    }
  });
});
