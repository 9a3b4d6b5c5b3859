// What `cargo xtask bench browser` runs inside the page. Each function takes some seconds at most: a driver does not wait
// for ever. A bundle's core is fetched once and kept; its shards are fetched anew, past the browser's cache.

const kept = new Map();

async function bytesOf(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

async function module({ script, wasm }) {
  const tagger = await import(script);
  await tagger.default({ module_or_path: wasm });
  return tagger;
}

/** A tagger without any shard, and what it fetched since. */
async function fresh(bundle, engine = "cpu") {
  const { Tagger } = await module(bundle);
  const fetched = { shards: 0, bytes: 0 };
  const tagger = await Tagger.load(async (file) => {
    if (kept.has(bundle.folder + file)) return kept.get(bundle.folder + file);
    const bytes = await bytesOf(bundle.folder + file);
    if (file.startsWith("rankers-")) {
      fetched.shards += 1;
      fetched.bytes += bytes.length;
    } else kept.set(bundle.folder + file, bytes);
    return bytes;
  }, undefined, JSON.stringify({ engine }));
  return { tagger, fetched };
}

/** Milliseconds from a text to the tags as the page can draw them. */
async function tagged(tagger, text, explain) {
  const begun = performance.now();
  JSON.parse(await tagger.tag(text, JSON.stringify({ top: 10, explain, keygraph: explain })));
  return performance.now() - begun;
}

/** One text again and again, its shards there from the second time on. */
export async function cached({ bundle, text, explain, warm, runs }) {
  const { tagger } = await fresh(bundle);
  for (let run = 0; run < warm; run++) await tagged(tagger, text, explain);
  const times = [];
  for (let run = 0; run < runs; run++) times.push(await tagged(tagger, text, explain));
  const engine = tagger.engine();
  tagger.free();
  return { times, engine };
}

/** Each text by a tagger that holds no shard yet. */
export async function uncached({ bundle, texts }) {
  const answers = [];
  for (const text of texts) {
    const { tagger, fetched } = await fresh(bundle);
    answers.push({ time: await tagged(tagger, text, true), ...fetched });
    tagger.free();
  }
  return answers;
}

// ---- the encoder beside onnxruntime-web

let ours;
let peer;

export async function openEncoder({ bundle }) {
  ours = (await fresh(bundle)).tagger;
  return ours.engine();
}

export async function openPeer({ script, folder, model }) {
  const ort = await import(script);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = new URL(folder, location.href).href;
  const session = await ort.InferenceSession.create(await bytesOf(model), { executionProviders: ["wasm"] });
  peer = { ort, session };
  return ort.env.versions.web;
}

export async function encode({ sentences }) {
  const begun = performance.now();
  const vectors = ours.encode(sentences);
  return { time: performance.now() - begun, vectors: rows(vectors, sentences.length) };
}

/** `batches` of token numbers, each filled up to its longest sentence. Only the runs are timed, not the means. */
export async function encodePeer({ batches }) {
  const { Tensor } = peer.ort;
  let time = 0;
  const vectors = [];
  for (const batch of batches) {
    const length = Math.max(...batch.map((ids) => ids.length));
    const shape = [batch.length, length];
    const ids = new Int32Array(batch.length * length);
    const mask = new Int32Array(ids.length);
    batch.forEach((sentence, row) => {
      ids.set(sentence, row * length);
      mask.fill(1, row * length, row * length + sentence.length);
    });
    const begun = performance.now();
    const { hidden } = await peer.session.run({
      ids: new Tensor("int32", ids, shape),
      types: new Tensor("int32", new Int32Array(ids.length), shape),
      mask: new Tensor("int32", mask, shape),
    });
    time += performance.now() - begun;
    const width = hidden.dims[2];
    batch.forEach((sentence, row) => {
      const sum = new Array(width).fill(0);
      for (let at = row * length * width, end = at + sentence.length * width; at < end; at++) sum[at % width] += hidden.data[at];
      vectors.push(sum);
    });
    hidden.dispose();
  }
  return { time, vectors };
}

function rows(numbers, count) {
  const width = numbers.length / count;
  return Array.from({ length: count }, (_, row) => [...numbers.subarray(row * width, (row + 1) * width)]);
}

// ---- WebGPU, counted where the browser is asked for it

/** What one text asks of the GPU, and the time it takes. */
export async function onGpu({ bundle, texts }) {
  const { tagger } = await fresh(bundle, "gpu");
  const count = { dispatches: 0, submissions: 0, up: 0, readBacks: 0, down: 0 };
  const counting = (type, name, note) => {
    const original = type.prototype[name];
    type.prototype[name] = function (...args) {
      note.apply(this, args);
      return original.apply(this, args);
    };
  };
  counting(GPUComputePassEncoder, "dispatchWorkgroups", () => (count.dispatches += 1));
  counting(GPUQueue, "submit", () => (count.submissions += 1));
  counting(GPUQueue, "writeBuffer", (_buffer, _at, data, start = 0, size = undefined) => {
    count.up += (size ?? data.length - start) * (data.BYTES_PER_ELEMENT ?? 1);
  });
  counting(GPUBuffer, "mapAsync", function (_mode, offset = 0, size = this.size - offset) {
    count.readBacks += 1;
    count.down += size;
  });
  const answers = [];
  for (const text of texts) {
    // The shards first: what is timed is the networks.
    await tagged(tagger, text, false);
    for (const what in count) count[what] = 0;
    answers.push({ time: await tagged(tagger, text, false), ...count });
  }
  const engine = tagger.engine();
  tagger.free();
  return { engine, answers };
}
