// A program with mistakes. The compiler refuses each marked line, and complains about a mark without a mistake.

import { Collection, errors, MutateInSpec, openCluster, QueryResult } from "triclinium";

export async function main(store: Collection, result: QueryResult): Promise<void> {
  // @ts-expect-error
  await openCluster();
  // @ts-expect-error
  await openCluster("couchbase://node", { user: "a" });
  // @ts-expect-error
  await openCluster("couchbase://node", { retryStrategy: "Bold" });
  // @ts-expect-error
  await openCluster("couchbase://node", { log: (level: number) => level });
  // @ts-expect-error
  await store.get(5);
  // @ts-expect-error
  await store.get("a", { cas: 1n });
  // @ts-expect-error
  await store.unlock("a", 5);
  // @ts-expect-error
  await store.unlock("a");
  // @ts-expect-error
  await store.replace("a", 1, { cas: 5 });
  // @ts-expect-error
  await store.upsert("a", 1, { durability: "total" });
  // @ts-expect-error
  await store.upsert("a", 1, { expiry: "soon" });
  // @ts-expect-error
  await store.append("a", 5);
  // @ts-expect-error
  (await store.get("a")).cas = 1n;
  // @ts-expect-error
  (await store.get("a")).cas + 1;
  // @ts-expect-error
  await store.lookupIn("a", [{ op: "destroy", path: "a" }]);
  // @ts-expect-error
  const spec: MutateInSpec = { op: "arrayAppend", path: "a", value: 1 };
  // @ts-expect-error
  for (const row of result) console.log(row, spec);
  // @ts-expect-error
  result.metaData.status;
  // @ts-expect-error
  new errors.NoSuchException();
  // @ts-expect-error
  new errors.TimeoutException().retries;
}
