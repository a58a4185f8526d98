// Objects that stay after clusters were opened, used and closed. Start Node with --expose-gc.
// Usage: node --expose-gc leak.mjs SERVED COUNT

import { startPython } from "./node_modules/triclinium/python.mjs";
import { open, pause, storeOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const clusters = Number(process.argv[3]);
const { pyodide } = await startPython();
const hiwire = pyodide._module.hiwire;

const handles = () => process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP")).length;
const count = (condition) => pyodide.runPython(`sum(${condition} for each in gc.get_objects())`);

// Proxies of JavaScript's objects in Python, hosts in Python, and the memory of both.
async function left() {
  while (handles()) await pause(50); // Sockets close in the background.
  pyodide.runPython("import gc; gc.collect()");
  globalThis.gc();
  await pause(50);
  return {
    hosts: count("type(each).__name__ in ('Host', 'ClientMachine')"),
    objects: count("True"),
    proxies: count("type(each).__name__ == 'JsProxy'"),
    handles: handles(),
    references: hiwire.num_keys(),
    memory: pyodide._module.HEAPU8.length,
    heap: process.memoryUsage().heapUsed,
  };
}

async function use(number) {
  const cluster = await open();
  const store = storeOf(cluster);
  await store.upsert(`key${number}`, { number });
  await outcome(store.get("missing", { timeout: 60_000, signal: new AbortController().signal }));
  const aborted = new AbortController();
  const waiting = outcome(store.get("missing", { signal: aborted.signal }));
  aborted.abort();
  await waiting;
  if (number % 10 === 0) for await (const _ of cluster.query("SELECT 1 AS one")) break;
  await outcome(store.get(""));
  outcome(store.get("missing"));
  await cluster.close();
}

for (let number = 0; number < clusters / 4; number += 1) await use(number);
show(await left());
for (let number = clusters / 4; number < clusters; number += 1) await use(number);
show(await left());
