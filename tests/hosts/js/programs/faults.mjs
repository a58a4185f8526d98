// Outcomes of operations with injected faults.
// Usage: node faults.mjs SERVED CASES, where a case has an operation and a fault, or a service and a fault.

import { readFileSync } from "node:fs";
import { openCluster } from "triclinium";
import { show } from "./show.mjs";

const { connection_string: connectionString, username, password, control } = JSON.parse(process.argv[2]);
const cases = JSON.parse(readFileSync(process.argv[3], "utf8"));

async function command(text) {
  const headers = { authorization: `Bearer ${control.token}`, "content-type": "application/json" };
  const response = await fetch(`${control.url}/commands`, { method: "POST", headers, body: JSON.stringify(text) });
  if (!response.ok) throw new Error(await response.text());
}

const retries = [];
const log = (level, text) => level === "debug" && text.startsWith("ReportRetry") && retries.push(text);
const cluster = await openCluster(connectionString, { username, password, timeouts: { kv: 1000, query: 1000 }, log });
const store = cluster.bucket("default").defaultCollection();

async function ask(readonly) {
  for await (const row of cluster.query("SELECT 1 AS one", { readonly }))
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
  query: () => ask(false),
  readonly: () => ask(true),
};

await store.upsert("held", 1);
for (const { operation, fault } of cases) {
  await command("clear_faults");
  await store.upsert("ada", 1);
  await store.upsert("text", new Uint8Array(1));
  await store[operation === "remove" ? "upsert" : "remove"]("grace", ...(operation === "remove" ? [1] : [])).catch(
    () => 0,
  );
  await command(`${operation === "readonly" ? "query" : operation}: ${fault}`);
  retries.length = 0;
  const error = await RUN[operation]().then(() => null, (rejected) => rejected.name); // prettier-ignore
  await new Promise(setImmediate);
  show({ operation, fault, error, isRetried: retries.length > 0 });
}
await command("clear_faults");
await cluster.close();
