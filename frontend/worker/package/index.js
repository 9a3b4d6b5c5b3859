// The tagger for plain pages and for Node: `const tagger = await Tagger.load(bundle); await tagger.tag(text)`.
// It fetches the bundle's files and nothing else; texts stay where they are.

// A module with one instruction of SIMD in it: the plain build is for engines that do not know it.
const HAS_SIMD = WebAssembly.validate(
  Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11),
);

const BUILD = HAS_SIMD
  ? { script: () => import("./tagger.js"), wasm: new URL("./tagger_bg.wasm", import.meta.url) }
  : { script: () => import("./plain/tagger.js"), wasm: new URL("./plain/tagger_bg.wasm", import.meta.url) };

let ready;

/** Bytes of a file: addresses are left to `fetch`; Node reads `file:` addresses itself. */
async function fromDisk(address) {
  const { readFile } = await import("node:fs/promises");
  return readFile(address);
}

async function instantiate(wasm = BUILD.wasm) {
  const module = await BUILD.script();
  const isOnDisk = (typeof wasm === "string" || wasm instanceof URL) && String(wasm).startsWith("file:");
  await module.default({ module_or_path: isOnDisk ? await fromDisk(new URL(wasm)) : wasm });
  return module;
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
    const module = await start(wasm);
    const options = JSON.stringify({ engine, remembered });
    return new Tagger(await module.Tagger.load(source(bundle), onProgress, options));
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
