// A server whose responses are nested too deeply, and the operations after them.
// Usage: node hostile.mjs SERVED, the JSON line of `triclinium serve`.

import { openCluster } from "triclinium";
import { outcome, show } from "./show.mjs";

const { connection_string: connectionString, username, password } = JSON.parse(process.argv[2]);

async function rows(statement) {
  const found = [];
  for await (const row of cluster.query(statement)) found.push(row);
  return found;
}

const cluster = await openCluster(connectionString, { username, password });
const store = cluster.bucket("default").defaultCollection();
await store.upsert("ada", 1);
for (const statement of ["SELECT row", "SELECT rest", "SELECT error", "SELECT 1 AS one"]) {
  show((await outcome(rows(statement))).name ?? "rows");
  show((await store.get("ada")).content);
}
await cluster.close();
