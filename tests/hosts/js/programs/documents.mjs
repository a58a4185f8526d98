// Operations on documents. Prints the outcome of each.
// Usage: node documents.mjs SERVED KEY

import { open, storeOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const key = process.argv[3];
const cluster = await open();
const store = storeOf(cluster);

// Show the name of a call and the fields of its outcome that do not differ from run to run.
async function perform(name, ...values) {
  const result = await outcome(store[name](...values));
  const { mutationToken, cas, bytes, ...fields } = result instanceof Error ? { error: result } : (result ?? {});
  show([name, { ...fields, ...(bytes && { content: result.content }), ...(cas !== undefined && { cas: typeof cas }) }]);
  return result;
}

await perform("get", key);
const written = await perform("insert", key, { born: 1815, naïve: ["é", null, 1.5], long: "x".repeat(100) });
await perform("insert", key, 1);
await perform("get", key);
await perform("replace", key, { born: 1816 }, { cas: written.cas + 1n });
const replaced = await perform("replace", key, { born: 1816 }, { cas: written.cas });
await perform("touch", key, 1000);
await perform("touch", key, null);
await perform("getAndTouch", key, new Date(Date.now() + 86_400_000));
await perform("upsert", key, null);
await perform("get", key);
await perform("upsert", key, Buffer.from([0, 255, 1]));
await perform("append", key, new Uint8Array([2]));
await perform("prepend", key, "é");
await perform("get", key);
await perform("increment", key + ":count", { initial: 2n ** 64n - 2n });
await perform("increment", key + ":count", { delta: 1 });
await perform("decrement", key + ":count", { delta: 2n ** 63n });
await perform("remove", key, { cas: replaced.cas });
await perform("remove", key);
await perform("remove", key);
await cluster.close();
