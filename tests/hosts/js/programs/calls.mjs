// Cancellation, timeouts, options of single calls, bad input, and close.
// Usage: node calls.mjs SERVED

import { openCluster, errors, ClosedError } from "triclinium";
import { command, open, pause, rowsOf, served, storeOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const { connection_string: connectionString, username, password } = served;
const cluster = await open();
const store = storeOf(cluster);
await store.upsert("ada", 1);

// A signal that is aborted before, one that is aborted during the call, and one that is aborted too late.
const reason = new RangeError("mine");
show((await outcome(store.get("ada", { signal: AbortSignal.abort(reason) }))) === reason);
await command("get: drop_response x2");
const controller = new AbortController();
const waiting = outcome(store.get("ada", { signal: controller.signal }));
setTimeout(() => controller.abort(), 20);
show(await waiting);
show(await outcome(store.get("ada", { signal: AbortSignal.timeout(20) })));
show((await store.get("ada", { signal: controller.signal }).catch((error) => error)).name);
const later = new AbortController();
show((await store.get("ada", { signal: later.signal })).content);
later.abort();

// Timeouts of a call: the write may have been applied, the read was not.
await command("get: drop_response");
await command("upsert: drop_response");
const read = await outcome(store.get("ada", { timeout: 30 }));
const write = await outcome(store.upsert("ada", 2, { timeout: 30 }));
show([read, read.context.operation, read.context.timeout, read instanceof errors.TimeoutException]);
show([write, write.context.key, write instanceof errors.CouchbaseException, write instanceof errors.KeyValueException]);
show((await store.get("ada", { timeout: 1e12 })).content);

// Retry strategies by name.
await command("upsert: locked x2");
show(await outcome(store.upsert("ada", 3, { retryStrategy: "FailFastRetryStrategy" })));
show(typeof (await store.upsert("ada", 3, { retryStrategy: "BestEffortRetryStrategy" })).cas);

const detached = new Uint8Array(1);
structuredClone(detached, { transfer: [detached.buffer] });

// Nothing of this is sent.
const bad = [
  ["get", ""],
  ["get", undefined],
  ["get", null],
  ["get", 5],
  ["get", {}],
  ["get", "x".repeat(251)],
  ["get", "\ud800"],
  ["get", "ada", { colour: 1 }],
  ["get", "ada", { timeout: -1 }],
  ["get", "ada", { timeout: "soon" }],
  ["get", "ada", { retryStrategy: "bold" }],
  ["get", "ada", { signal: {} }],
  ["get", "ada", 5],
  ["unlock", "ada"],
  ["unlock", "ada", 5],
  ["remove", "ada", { cas: 2n ** 64n }],
  ["remove", "ada", { cas: -1n }],
  ["upsert", "ada"],
  ["upsert", "ada", () => 1],
  ["upsert", "ada", 1n],
  ["upsert", "ada", "x".repeat(21 * 1024 * 1024)],
  ["upsert", "ada", 1, { expiry: 0 }],
  ["upsert", "ada", 1, { expiry: new Date(NaN) }],
  ["upsert", "ada", 1, { expiry: new Date(0) }],
  ["upsert", "ada", 1, { expiry: "soon" }],
  ["upsert", "ada", 1, { durability: "total" }],
  ["upsert", "ada", 1, { durability: 5 }],
  ["upsert", "ada", 1, { durability: Object.create(null) }],
  ["upsert", "ada", detached],
  ["upsert", "ada", 1, { preserveExpiry: 1 }],
  ["append", "ada", 5],
  ["increment", "ada", { delta: -1 }],
  ["increment", "ada", { delta: 1.5 }],
  ["getAndLock", "ada", 31],
  ["lookupIn", "ada", []],
  ["lookupIn", "ada", 5],
  ["lookupIn", "ada", [null]],
  ["lookupIn", "ada", [{ op: "destroy", path: "a" }]],
  ["lookupIn", "ada", [{ op: "get" }]],
  ["lookupIn", "ada", [{ op: "get", path: "a", deep: true }]],
  ["lookupIn", "ada", Array(17).fill({ op: "get", path: "a" })],
  ["mutateIn", "ada", [{ op: "upsert", path: "a" }]],
  ["mutateIn", "ada", [{ op: "upsert", path: "a", value: undefined, macro: "none" }]],
  ["mutateIn", "ada", [{ op: "arrayAppend", path: "a", values: 5 }]],
];
for (const [name, ...values] of bad) {
  const error = await outcome(store[name](...values));
  show([name, error, error.message.length > 10]);
}
for (const [statement, options] of [
  [""],
  [5],
  [undefined],
  ["SELECT 1", { parameters: [() => 1] }],
  ["SELECT 1", { parameters: 5 }],
  ["SELECT 1", { consistentWith: 5 }],
  ["SELECT 1", { consistentWith: [null] }],
  ["SELECT 1", { scanConsistency: "eventual" }],
])
  show(await outcome(rowsOf(cluster.query(statement, options))));
show(await outcome(cluster.bucket("a b").defaultCollection().get("ada")));
for (const [address, options] of [
  ["", {}],
  [undefined, {}],
  ["http://127.0.0.1", { username, password }],
  [connectionString, {}],
  [connectionString, { username }],
  [connectionString, { username, password, colour: 1 }],
  [connectionString, { username, password, tls: {} }],
  [connectionString, { username, password, timeouts: { kv: -1 } }],
  [connectionString, { username, password, timeouts: { tea: 1 } }],
  [connectionString, { username, password, timeouts: 5 }],
])
  show([await outcome(openCluster(address, options))]);

// Calls that wait when the cluster closes.
await command("get: drop_response");
const left = outcome(store.get("ada"));
const rows = cluster.query("SELECT 1 AS one")[Symbol.asyncIterator]();
show(await rows.next());
await pause(20);
await cluster.close();
show([await left, (await left) instanceof ClosedError, await outcome(rows.next()), await outcome(store.get("ada"))]);
