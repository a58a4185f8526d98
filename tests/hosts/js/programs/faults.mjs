// Outcomes of operations with injected faults.
// Usage: node faults.mjs SERVED FILE, a file with JSON cases. A case has an operation, a fault, and the expected error.

import { readFileSync } from "node:fs";
import { command, open, rowsOf, storeOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const cases = JSON.parse(readFileSync(process.argv[3], "utf8"));
const retries = [];
const log = (level, text) => level === "debug" && text.startsWith("ReportRetry") && retries.push(text);
const cluster = await open({ log });
const store = storeOf(cluster);
let locks = 0;

async function query(options) {
  const [row] = await rowsOf(cluster.query("SELECT 1 AS one", options));
  if (row.one !== 1) throw new Error("wrong row");
}

const RUN = {
  get: (limit) => store.get("ada", limit),
  upsert: (limit) => store.upsert("ada", 1, limit),
  insert: (limit) => store.insert("grace", 1, limit),
  append: (limit) => store.append("text", "x", limit),
  increment: (limit) => store.increment("count", { initial: 1, ...limit }),
  decrement: (limit) => store.decrement("count", { initial: 1, ...limit }),
  get_and_lock: (limit) => store.getAndLock(`held${locks}`, 1, limit),
  unlock: (limit) => store.unlock("ada", 1n, limit),
  remove: (limit) => store.remove("grace", limit),
  query: (limit) => query({ readonly: false, ...limit }),
  readonly: (limit) => query({ readonly: true, ...limit }),
};

for (const { operation, fault, error } of cases) {
  await command("clear_faults");
  await store.upsert(`held${++locks}`, 1);
  await store.upsert("ada", 1);
  await store.upsert("text", new Uint8Array(1));
  await store.upsert("grace", 1);
  if (operation !== "remove") await store.remove("grace");
  await command(`${operation === "readonly" ? "query" : operation}: ${fault}`);
  retries.length = 0;
  // Only a call that must time out has a short limit.
  const result = await outcome(RUN[operation](error?.includes("Timeout") ? { timeout: 1000 } : {}));
  await new Promise(setImmediate);
  show({ operation, fault, error: result instanceof Error ? result : null, isRetried: retries.length > 0 });
}
await command("clear_faults");
await cluster.close();
