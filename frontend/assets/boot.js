// Loads the app and says honestly what it is doing: how many bytes came, from where, and that it compiles.
import init from "{{page.js}}";

const total = Number("{{page.wasm.bytes}}");
const bar = document.getElementById("boot-bar");
const text = document.getElementById("boot-text");
const kilobytes = (bytes) => `${Math.round(bytes / 1000)} kB`;

// Counts the bytes as they come. A response that was touched loses the browser's compiled copy, so what this device
// keeps already is handed over as it is.
function counted(response) {
  let received = 0;
  const counter = new TransformStream({
    transform(chunk, controller) {
      received += chunk.byteLength;
      bar.value = received / total;
      text.textContent =
        received < total ? `Downloading: ${kilobytes(received)} of ${kilobytes(total)}` : "Compiling…";
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(counter), {
    headers: { "content-type": "application/wasm" },
  });
}

async function start() {
  const url = new URL("{{page.wasm}}", import.meta.url);
  const kept = "caches" in self && (await caches.match(url).catch(() => undefined));
  const response = await fetch(url);
  if (!response.ok) throw new Error(`the server answered ${response.status} for ${url.pathname}`);
  if (kept) {
    bar.removeAttribute("value");
    text.textContent = `Reading ${kilobytes(total)} from this device…`;
  }
  await init({ module_or_path: kept ? response : counted(response) });
}

start().catch((error) => {
  document.getElementById("boot")?.classList.add("boot-failed");
  text.textContent = `The page could not start: ${error.message}. Check that the server runs, then reload.`;
});

if ("serviceWorker" in navigator) {
  navigator.serviceWorker.register("/sw.js").catch((error) => {
    console.info(`Offline use is off: ${error.message}`);
  });
}
