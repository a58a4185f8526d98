// A program that uses every export. The compiler accepts it in strict mode.

import * as t from "triclinium";

const strategy: t.RetryStrategyName = "BestEffortRetryStrategy";
const timeouts: t.Timeouts = { kv: 1000, query: Infinity };
const clusterOptions: t.ClusterOptions = {
  username: "a",
  password: "b",
  tls: { ca: "pem" },
  log: (level, text) => console.log(level.toUpperCase(), text.length),
  timeouts,
  retryStrategy: strategy,
};

export async function documents(store: t.Collection): Promise<t.Cas> {
  const call: t.CallOptions = { signal: AbortSignal.timeout(5), timeout: 5, retryStrategy: strategy };
  const durability: t.DurabilityLevel = "persistToMajority";
  const mutation: t.MutationOptions = { ...call, durability };
  const expiry: t.Expiry = new Date();
  const stored: t.StoreOptions = { ...mutation, expiry };
  const upserted: t.UpsertOptions = { ...stored, preserveExpiry: true };
  const got: t.GetResult = await store.get("a", call);
  const replaced: t.ReplaceOptions = { ...upserted, cas: got.cas };
  const removed: t.RemoveOptions = { cas: 1n };
  const concatenated: t.ConcatenateOptions = { cas: 1n };
  const counted: t.CounterOptions = { delta: 1, initial: 2n ** 60n };
  const exists: t.ExistsResult = await store.exists("a");
  const written: t.MutationResult = await store.upsert("a", { b: [1, null] }, upserted);
  const token: t.MutationToken | undefined = written.mutationToken;
  const sum: bigint = (token?.vbucketUuid ?? 0n) + (token?.sequenceNumber ?? 0n);
  await store.insert("a", new Uint8Array(1), stored);
  await store.replace("a", "text", replaced);
  await store.append("a", "x", concatenated);
  await store.prepend("a", new Uint8Array(1));
  const counter: t.CounterResult = await store.increment("a", counted);
  await store.decrement("a");
  await store.touch("a", null);
  await store.getAndTouch("a", 5);
  const locked = await store.getAndLock("a", 15);
  const nothing: void = await store.unlock("a", locked.cas);
  await store.remove("a", removed);
  return exists.exists ? counter.content + sum : (nothing ?? exists.cas);
}

export async function parts(store: t.Collection): Promise<bigint | undefined> {
  const lookups: t.LookupInSpec[] = [
    { op: "get", path: "a" },
    { op: "count", path: "b", xattr: true },
  ];
  const lookupOptions: t.LookupInOptions = { accessDeleted: true };
  const found: t.LookupInResult = await store.lookupIn("a", lookups, lookupOptions);
  const first: t.PathResult | undefined = found.content[0];
  const error: t.errors.CouchbaseException | undefined = first?.error;
  const macro: t.MutationMacro = "seqNo";
  const mutations: t.MutateInSpec[] = [
    { op: "upsert", path: "a", value: null, createParents: true },
    { op: "insert", path: "a", macro },
    { op: "remove", path: "a" },
    { op: "arrayAppend", path: "a", values: [1, "b"] },
    { op: "arrayInsert", path: "a[1]", values: [1] },
    { op: "arrayAddUnique", path: "a", value: 1 },
    { op: "increment", path: "a", delta: 2n },
  ];
  const options: t.MutateInOptions = { storeSemantics: "upsert", cas: found.cas };
  const changed: t.MutateInResult = await store.mutateIn("a", mutations, options);
  if (error) throw error;
  return changed.content[6]?.value;
}

export async function queries(cluster: t.Cluster): Promise<t.QueryMetaData | undefined> {
  const options: t.QueryOptions = { parameters: { a: 1 }, readonly: true, scanConsistency: "requestPlus" };
  const result: t.QueryResult<{ a: number }> = cluster.query<{ a: number }>("SELECT $a AS a", options);
  for await (const row of result) row.a.toFixed();
  const bucket: t.Bucket = cluster.bucket("b");
  const scope: t.Scope = bucket.scope("s");
  for await (const row of scope.query("SELECT 1", { parameters: [1] })) console.log(row, scope.collection("c"));
  return result.metaData;
}

export async function main(): Promise<void> {
  await using cluster = await t.openCluster("couchbases://node", clusterOptions);
  try {
    await documents(cluster.bucket("b").defaultCollection());
    await parts(cluster.bucket("b").collection("c"));
    await queries(cluster);
    await documents(cluster.defaultCollection());
  } catch (error) {
    if (error instanceof t.errors.InvalidArgumentException) console.log(error.parameter?.length);
    if (error instanceof t.errors.AmbiguousTimeoutException) throw new t.errors.TimeoutException(error.message);
    if (error instanceof t.errors.CouchbaseException) {
      const context: t.ErrorContext = error.context;
      console.log(context.retryAttempts.toFixed(), context.key?.length, context.retryReasons?.[0]);
    }
    if (error instanceof t.ClosedError) await cluster.close();
  }
}
