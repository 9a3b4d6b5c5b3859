/** Where a bundle's files come from: the address of its folder, or a function from a file's name to its bytes. */
export type BundleSource = string | URL | ((file: string) => Promise<ArrayBuffer | Uint8Array>);

export interface LoadOptions {
  /** Called after every file of the model. */
  onProgress?: (fetched: number, total: number, file: string) => void;
  /** What runs the graph network; `auto`, the default, takes whichever a short probe finds quicker. */
  engine?: "auto" | "cpu" | "gpu";
  /** `Tagger.choice` of an earlier time: the probe is left out. */
  remembered?: EngineChoice | null;
  /** The compiled module, when it does not lie beside this file; engines without SIMD take the one in `plain`. */
  wasm?: URL | string | BufferSource | WebAssembly.Module;
}

/** What a probe found. */
export interface EngineChoice {
  processor: "cpu" | "gpu";
  adapter: string;
  shape: string;
  cpu_milliseconds: number;
  gpu_milliseconds: number;
}

export interface TagOptions {
  /** Tags at most; 10 unless given. */
  top?: number;
  /** Evidence for each tag; given unless switched off. */
  explain?: boolean;
  /** The text's KeyGraph beside the tags; comes with the evidence unless said otherwise. */
  keygraph?: boolean;
}

export interface TagResponse {
  /** Best first. */
  tags: Tag[];
  /** Most probable first. */
  clusters: MatchedCluster[];
  /** The probability from which keeping a tag gave the best F1 on validation documents. */
  cutoff: number;
  /** Matched clusters whose files could not be fetched. */
  missing_clusters?: number[];
  keygraph?: KeyGraph | null;
}

export interface Tag {
  label: number;
  name: string;
  /** Calibrated probability, 0 to 1. */
  score: number;
  cluster: number;
  evidence?: Evidence | null;
}

/** Additive contributions to a tag's log-score; they add up to `total`. */
export interface Evidence {
  total: number;
  bias: number;
  cluster: number;
  embedding: number;
  /** What the most similar training documents say. */
  neighbours: number;
  /** What the label's own name in the text adds. */
  name: number;
  /** Spans are byte ranges of the text in UTF-8. */
  words: { text: string; spans: [number, number][]; weight: number }[];
  other_words: number;
  sentences: { sentence: number; weight: number }[];
  vertices: { vertex: number; weight: number }[];
}

export interface MatchedCluster {
  cluster: number;
  name: string;
  probability: number;
}

export interface KeyGraph {
  sentences: { start: number; end: number }[];
  vertices: {
    id: number;
    text: string;
    kind: "keyword" | "entity" | "empty";
    rank: number;
    sentences: number[];
    spans: [number, number][];
  }[];
  edges: { source: number; target: number; weight: number }[];
}

/** A model that tags texts where it stands; no text leaves the machine. */
export class Tagger {
  private constructor();
  /** Fetches a bundle's core; the rankers follow as texts need them. */
  static load(bundle: BundleSource, options?: LoadOptions): Promise<Tagger>;
  tag(text: string, options?: TagOptions): Promise<TagResponse>;
  /** A vector a sentence by the model's own encoder, of length one (all zero without a known word); empty ones from a model without an encoder. */
  encode(sentences: string[]): Float32Array[];
  /** What computes: `WebGPU`, `WASM SIMD` or `WASM`. */
  readonly engine: string;
  /** What to pass as `remembered` the next time; null when there was nothing to choose. */
  readonly choice: EngineChoice | null;
  /** Bytes fetched so far. */
  readonly fetched: number;
  /** The bundle's manifest. */
  readonly manifest: Record<string, unknown>;
  /** Gives the GPU up; what follows is computed by the CPU. */
  loseGpu(): void;
  /** Frees the model's memory. */
  free(): void;
}
