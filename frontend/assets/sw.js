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

// A model's files carry its id in their address, and the id is a hash of its content: what was kept once is right.
async function modelPart(request, url) {
  const cache = await caches.open(MODELS);
  const kept = await cache.match(url.href, { ignoreVary: true });
  if (kept) return kept;
  const response = await fetch(request);
  if (response.status === 200) await keep(cache, url.href, response.clone());
  return response;
}

// A full disk must not stop the page: the answer goes through, only the copy is lost, and the page is told.
async function keep(cache, url, response) {
  try {
    await cache.put(url, response);
  } catch (error) {
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
