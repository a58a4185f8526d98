// Queries whose responses are nested too deeply, and the operations after them.
// Usage: node hostile.mjs SERVED

import { open, rowsOf, storeOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const cluster = await open();
const store = storeOf(cluster);
await store.upsert("ada", 1);
for (const statement of ["SELECT row", "SELECT rest", "SELECT error", "SELECT 1 AS one"]) {
  show(await outcome(rowsOf(cluster.query(statement))));
  show((await store.get("ada")).content);
}
await cluster.close();
