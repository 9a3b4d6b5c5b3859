// Keeps the page usable with the server gone. It keeps two things:
//   page-VERSION   the files of the page itself, all of them or none; those of RARE once they were needed
//   models         parts of published models; their names are hashes of their content, so they never go stale
// It never keeps, reads or sends what a person types.
const VERSION = "{{version}}";
const FILES = {{files}};
const RARE = {{rare}};
const PAGE = `page-${VERSION}`;
const MODELS = "models";
const PART = /^\/api\/v1\/models\/[0-9a-f]+\/bundle\//;
const NETWORK_PATIENCE = 3000;

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(PAGE)
      .then((cache) => cache.addAll(FILES))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((n) => n.startsWith("page-") && n !== PAGE).map((n) => caches.delete(n))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate") event.respondWith(newestPage(request));
  else if (PART.test(url.pathname)) event.respondWith(modelPart(request, url));
  else if (url.pathname === "/api/v1/models") event.respondWith(modelList(request));
  else if (FILES.includes(url.pathname) || RARE.includes(url.pathname)) event.respondWith(pageFile(request));
});

// The network's page when it answers soon, else the kept one.
async function newestPage(request) {
  try {
    const response = await soon(fetch(request));
    if (response.ok) return response;
  } catch {
    // Fall through to what we keep.
  }
  return (await caches.match("/", { cacheName: PAGE })) ?? Response.error();
}

async function pageFile(request) {
  const kept = await caches.match(request, { cacheName: PAGE, ignoreVary: true });
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await keep(await caches.open(PAGE), request.url, response.clone());
  return response;
}

// Which models there are: the server's word, or the last one heard.
async function modelList(request) {
  const cache = await caches.open(MODELS);
  try {
    const response = await soon(fetch(request));
    if (response.ok) await keep(cache, request.url, response.clone());
    return response;
  } catch {
    return (await cache.match(request.url)) ?? Response.error();
  }
}

// A model's id and the names of its parts are hashes of their content: what was kept once is right. Bytes that do not
// match are passed on, for the tagger to refuse and to ask for again; they are never kept.
async function modelPart(request, url) {
  const cache = await caches.open(MODELS);
  const kept = request.cache === "reload" ? undefined : await cache.match(url.href, { ignoreVary: true });
  if (kept) return kept;
  const response = await fetch(request);
  if (response.status !== 200) return response;
  const bytes = await response.arrayBuffer();
  const whole = () => new Response(bytes, { headers: { "content-type": response.headers.get("content-type") ?? "" } });
  if (await isPromised(bytes, url.pathname)) await keep(cache, url.href, whole());
  return whole();
}

// Whether bytes are what their address says: the first digits of their SHA-256 stand in a part's own name and, for a
// manifest, are the model's id.
async function isPromised(bytes, path) {
  const [, promised] = path.match(/-([0-9a-f]{16})\.bin$/) ?? path.match(/\/([0-9a-f]{16})\/bundle\/manifest\.json$/) ?? [];
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return promised === Array.from(digest.subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A full disk must not stop the page: the answer goes through, only the copy is lost, and the page is told.
async function keep(cache, url, response) {
  try {
    await cache.put(url, response);
  } catch (error) {
    // A body that broke off on its way says nothing about the disk.
    if (error.name !== "QuotaExceededError") return;
    const clients = await self.clients.matchAll({ includeUncontrolled: true });
    for (const client of clients) client.postMessage({ kind: "storage_full", message: String(error) });
  }
}

function soon(promise) {
  return Promise.race([
    promise,
    new Promise((_, reject) => setTimeout(() => reject(new Error("the network is slow")), NETWORK_PATIENCE)),
  ]);
}
