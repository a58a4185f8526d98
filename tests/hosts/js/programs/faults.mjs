// Outcomes of operations with injected faults.
// Usage: node faults.mjs SERVED FILE, a file with JSON cases. A case has an operation and a fault.

import { readFileSync } from "node:fs";
import { command, open, rowsOf, storeOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const cases = JSON.parse(readFileSync(process.argv[3], "utf8"));
const retries = [];
const log = (level, text) => level === "debug" && text.startsWith("ReportRetry") && retries.push(text);
const cluster = await open({ timeouts: { kv: 1000, query: 1000 }, log });
const store = storeOf(cluster);

async function query(readonly) {
  const [row] = await rowsOf(cluster.query("SELECT 1 AS one", { readonly }));
  if (row.one !== 1) throw new Error("wrong row");
}

const RUN = {
  get: () => store.get("ada"),
  upsert: () => store.upsert("ada", 1),
  insert: () => store.insert("grace", 1),
  append: () => store.append("text", "x"),
  increment: () => store.increment("count", { initial: 1 }),
  decrement: () => store.decrement("count", { initial: 1 }),
  get_and_lock: () => store.getAndLock("held", 1),
  unlock: () => store.unlock("ada", 1n),
  remove: () => store.remove("grace"),
  query: () => query(false),
  readonly: () => query(true),
};

await store.upsert("held", 1);
for (const { operation, fault } of cases) {
  await command("clear_faults");
  await store.upsert("ada", 1);
  await store.upsert("text", new Uint8Array(1));
  await store.upsert("grace", 1);
  if (operation !== "remove") await store.remove("grace");
  await command(`${operation === "readonly" ? "query" : operation}: ${fault}`);
  retries.length = 0;
  const result = await outcome(RUN[operation]());
  await new Promise(setImmediate);
  show({ operation, fault, error: result instanceof Error ? result : null, isRetried: retries.length > 0 });
}
await command("clear_faults");
await cluster.close();
