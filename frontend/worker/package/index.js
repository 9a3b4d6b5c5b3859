// The tagger for plain pages and for Node: `const tagger = await Tagger.load(bundle); await tagger.tag(text)`.
// It fetches the bundle's files and nothing else; texts stay where they are.
import init, { Tagger as Core } from "./tagger.js";

let ready;

/** Bytes of a file: addresses are left to `fetch`; Node reads `file:` addresses itself. */
async function fromDisk(address) {
  const { readFile } = await import("node:fs/promises");
  return readFile(address);
}

async function instantiate(wasm = new URL("./tagger_bg.wasm", import.meta.url)) {
  const isOnDisk = (typeof wasm === "string" || wasm instanceof URL) && String(wasm).startsWith("file:");
  await init({ module_or_path: isOnDisk ? await fromDisk(new URL(wasm)) : wasm });
}

/** The module, compiled once; what could not be fetched is fetched anew the next time. */
function start(wasm) {
  ready ??= instantiate(wasm).catch((error) => {
    ready = undefined;
    throw error;
  });
  return ready;
}

function source(bundle) {
  if (typeof bundle === "function") return bundle;
  const text = String(bundle);
  if (!text.startsWith("file:")) return text;
  const folder = text.endsWith("/") ? text : `${text}/`;
  return (file) => fromDisk(new URL(file, folder));
}

export class Tagger {
  #core;

  constructor(core) {
    this.#core = core;
  }

  static async load(bundle, { onProgress, engine = "auto", remembered = null, wasm } = {}) {
    await start(wasm);
    const options = JSON.stringify({ engine, remembered });
    return new Tagger(await Core.load(source(bundle), onProgress, options));
  }

  async tag(text, { top = 10, explain = true, keygraph = explain } = {}) {
    return JSON.parse(await this.#core.tag(text, JSON.stringify({ top, explain, keygraph })));
  }

  encode(sentences) {
    const vectors = this.#core.encode(sentences);
    const width = sentences.length > 0 ? vectors.length / sentences.length : 0;
    return sentences.map((_, row) => vectors.subarray(row * width, (row + 1) * width));
  }

  get engine() {
    return this.#core.engine();
  }

  get choice() {
    const choice = this.#core.choice();
    return choice === undefined ? null : JSON.parse(choice);
  }

  get fetched() {
    return this.#core.fetched();
  }

  get manifest() {
    return JSON.parse(this.#core.manifest());
  }

  loseGpu() {
    this.#core.loseGpu();
  }

  free() {
    this.#core.free();
  }
}
