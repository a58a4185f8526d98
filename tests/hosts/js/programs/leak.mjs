// Objects that stay after clusters were opened, used and closed. Start Node with --expose-gc.
// Usage: node --expose-gc leak.mjs CONNECTION_STRING USERNAME PASSWORD COUNT

import { openCluster } from "triclinium";
import { startPython } from "./node_modules/triclinium/python.mjs";
import { outcome, show } from "./show.mjs";

const [connectionString, username, password, count] = process.argv.slice(2);
const { pyodide } = await startPython();
const hiwire = pyodide._module.hiwire;

// Proxies of JavaScript's objects in Python, hosts in Python, and the memory of both.
async function left() {
  await new Promise((resolve) => setTimeout(resolve, 50));
  pyodide.runPython("import gc; gc.collect()");
  globalThis.gc();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const hosts = pyodide.runPython("sum(type(each).__name__ in ('Host', 'ClientMachine') for each in gc.get_objects())");
  const objects = pyodide.runPython("len(gc.get_objects())");
  const proxies = pyodide.runPython("sum(type(each).__name__ == 'JsProxy' for each in gc.get_objects())");
  const handles = process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP")).length;
  return {
    hosts,
    objects,
    proxies,
    handles,
    references: hiwire.num_keys(),
    memory: pyodide._module.HEAPU8.length,
    heap: process.memoryUsage().heapUsed,
  };
}

async function use(number) {
  const cluster = await openCluster(connectionString, { username, password, timeouts: { kv: 60_000 } });
  const store = cluster.bucket("default").defaultCollection();
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

for (let number = 0; number < count / 4; number += 1) await use(number);
show(await left());
for (let number = count / 4; number < count; number += 1) await use(number);
show(await left());
