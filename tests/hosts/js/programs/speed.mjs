// Seconds to open a cluster, and microseconds of a get with several gets in flight.
// Usage: node speed.mjs CONNECTION_STRING IN_FLIGHT GETS

import { show } from "./show.mjs";

const began = performance.now();
const { openCluster } = await import("triclinium");
const [connectionString, inFlight, gets] = process.argv.slice(2);
const cluster = await openCluster(connectionString);
const opened = (performance.now() - began) / 1000;
const store = cluster.defaultCollection();
await store.upsert("ada", { text: "x".repeat(80) });

async function getAll(count) {
  let left = count;
  const task = async () => {
    for (; left > 0; await store.get("ada")) left -= 1;
  };
  await Promise.all(Array.from({ length: Number(inFlight) }, task));
}

await getAll(Number(gets) / 10);
const start = performance.now();
await getAll(Number(gets));
show({ opened, us: ((performance.now() - start) * 1000) / Number(gets) });
await cluster.close();
