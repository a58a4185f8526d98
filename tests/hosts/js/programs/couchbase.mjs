// Operations that a plain memcached lacks: locks, sub-documents, collections, durability and queries.
// Usage: node couchbase.mjs SERVED

import { open, rowsOf, storeOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const cluster = await open();
const store = storeOf(cluster);

const written = await store.upsert("ada", { name: "Ada", tags: ["a"] }, { durability: "none" });
const { vbucketUuid, sequenceNumber, ...token } = written.mutationToken;
show({ ...token, types: [typeof vbucketUuid, typeof sequenceNumber, typeof written.cas] });
show(await store.exists("ada").then(({ exists }) => exists));
const locked = await store.getAndLock("ada", 10);
show(await outcome(store.unlock("ada", locked.cas + 1n)));
show((await store.unlock("ada", locked.cas)) ?? "unlocked");

const mutations = [
  { op: "upsert", path: "address.city", value: "Paris", createParents: true },
  { op: "arrayAppend", path: "tags", values: ["b", { c: null }] },
  { op: "increment", path: "count", delta: 2n ** 62n + 1n },
  { op: "insert", path: "meta.cas", macro: "cas", xattr: true, createParents: true },
];
show((await store.mutateIn("ada", mutations, { cas: locked.cas, expiry: 1000, preserveExpiry: undefined })).content);
const lookups = [
  { op: "get", path: "address" },
  { op: "get", path: "tags" },
  { op: "count", path: "tags" },
  { op: "exists", path: "missing" },
  { op: "get", path: "missing.path" },
];
show((await store.lookupIn("ada", lookups)).content);
show(await outcome(store.mutateIn("bob", [{ op: "remove", path: "x" }])));
show((await store.mutateIn("bob", [{ op: "upsert", path: "x", value: 1 }], { storeSemantics: "upsert" })).content);
show(await outcome(cluster.bucket("default").scope("nowhere").collection("nothing").get("ada")));
show(typeof (await store.upsert("ada", 1, { durability: "majority" })).cas);

const result = cluster.query("SELECT 1 AS one", {
  readonly: true,
  parameters: { name: [1n, "é"].map(String) },
  raw: { x: 1 },
});
const rows = await rowsOf(result);
show({ rows, status: result.metaData.status, warnings: result.metaData.warnings });
await cluster.close();
await cluster.close();
show(await outcome(store.get("ada")));
