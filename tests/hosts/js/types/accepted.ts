// A program that uses every export. The compiler accepts it in strict mode.

import {
  Bucket,
  Cas,
  CallOptions,
  Cluster,
  ClusterOptions,
  ClosedError,
  Collection,
  ConcatenateOptions,
  CounterOptions,
  CounterResult,
  DurabilityLevel,
  ErrorContext,
  errors,
  ExistsResult,
  Expiry,
  GetResult,
  LookupInOptions,
  LookupInResult,
  LookupInSpec,
  MutateInOptions,
  MutateInResult,
  MutateInSpec,
  MutationMacro,
  MutationOptions,
  MutationResult,
  MutationToken,
  openCluster,
  PathResult,
  QueryMetaData,
  QueryOptions,
  QueryResult,
  RemoveOptions,
  ReplaceOptions,
  RetryStrategyName,
  Scope,
  StoreOptions,
  Timeouts,
  UpsertOptions,
} from "triclinium";

const strategy: RetryStrategyName = "BestEffortRetryStrategy";
const timeouts: Timeouts = { kv: 1000, query: Infinity };
const clusterOptions: ClusterOptions = {
  username: "a",
  password: "b",
  tls: { ca: "pem" },
  log: (level, text) => console.log(level.toUpperCase(), text.length),
  timeouts,
  retryStrategy: strategy,
};

export async function documents(store: Collection): Promise<Cas> {
  const call: CallOptions = { signal: AbortSignal.timeout(5), timeout: 5, retryStrategy: strategy };
  const durability: DurabilityLevel = "persistToMajority";
  const mutation: MutationOptions = { ...call, durability };
  const expiry: Expiry = new Date();
  const stored: StoreOptions = { ...mutation, expiry };
  const upserted: UpsertOptions = { ...stored, preserveExpiry: true };
  const got: GetResult = await store.get("a", call);
  const replaced: ReplaceOptions = { ...upserted, cas: got.cas };
  const removed: RemoveOptions = { cas: 1n };
  const concatenated: ConcatenateOptions = { cas: 1n };
  const counted: CounterOptions = { delta: 1, initial: 2n ** 60n };
  const exists: ExistsResult = await store.exists("a");
  const written: MutationResult = await store.upsert("a", { b: [1, null] }, upserted);
  const token: MutationToken | undefined = written.mutationToken;
  const sum: bigint = (token?.vbucketUuid ?? 0n) + (token?.sequenceNumber ?? 0n);
  await store.insert("a", new Uint8Array(1), stored);
  await store.replace("a", "text", replaced);
  await store.append("a", "x", concatenated);
  await store.prepend("a", new Uint8Array(1));
  const counter: CounterResult = await store.increment("a", counted);
  await store.decrement("a");
  await store.touch("a", null);
  await store.getAndTouch("a", 5);
  const locked = await store.getAndLock("a", 15);
  const nothing: void = await store.unlock("a", locked.cas);
  await store.remove("a", removed);
  return exists.exists ? counter.content + sum : (nothing ?? exists.cas);
}

export async function parts(store: Collection): Promise<bigint | undefined> {
  const lookups: LookupInSpec[] = [
    { op: "get", path: "a" },
    { op: "count", path: "b", xattr: true },
  ];
  const lookupOptions: LookupInOptions = { accessDeleted: true };
  const found: LookupInResult = await store.lookupIn("a", lookups, lookupOptions);
  const first: PathResult | undefined = found.content[0];
  const error: errors.CouchbaseException | undefined = first?.error;
  const macro: MutationMacro = "seqNo";
  const mutations: MutateInSpec[] = [
    { op: "upsert", path: "a", value: null, createParents: true },
    { op: "insert", path: "a", macro },
    { op: "remove", path: "a" },
    { op: "arrayAppend", path: "a", values: [1, "b"] },
    { op: "arrayInsert", path: "a[1]", values: [1] },
    { op: "arrayAddUnique", path: "a", value: 1 },
    { op: "increment", path: "a", delta: 2n },
  ];
  const options: MutateInOptions = { storeSemantics: "upsert", cas: found.cas };
  const changed: MutateInResult = await store.mutateIn("a", mutations, options);
  if (error) throw error;
  return changed.content[6]?.value;
}

export async function queries(cluster: Cluster): Promise<QueryMetaData | undefined> {
  const options: QueryOptions = { parameters: { a: 1 }, readonly: true, scanConsistency: "requestPlus" };
  const result: QueryResult<{ a: number }> = cluster.query<{ a: number }>("SELECT $a AS a", options);
  for await (const row of result) row.a.toFixed();
  const bucket: Bucket = cluster.bucket("b");
  const scope: Scope = bucket.scope("s");
  for await (const row of scope.query("SELECT 1", { parameters: [1] })) console.log(row, scope.collection("c"));
  return result.metaData;
}

export async function main(): Promise<void> {
  await using cluster = await openCluster("couchbases://node", clusterOptions);
  try {
    await documents(cluster.bucket("b").defaultCollection());
    await parts(cluster.bucket("b").collection("c"));
    await queries(cluster);
    await documents(cluster.defaultCollection());
  } catch (error) {
    if (error instanceof errors.InvalidArgumentException) console.log(error.parameter?.length);
    if (error instanceof errors.AmbiguousTimeoutException) throw new errors.TimeoutException(error.message);
    if (error instanceof errors.CouchbaseException) {
      const context: ErrorContext = error.context;
      console.log(context.retryAttempts.toFixed(), context.key?.length, context.retryReasons?.[0]);
    }
    if (error instanceof ClosedError) await cluster.close();
  }
}
