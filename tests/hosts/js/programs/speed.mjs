// Time to open a cluster, and gets per second with one call and with 64 calls in flight.
// Usage: node speed.mjs CONNECTION_STRING SECONDS

import { show } from "./show.mjs";

const began = performance.now();
const { openCluster } = await import("triclinium");
const [connectionString, seconds] = process.argv.slice(2);
const cluster = await openCluster(connectionString);
const opened = (performance.now() - began) / 1000;
const store = cluster.defaultCollection();
await store.upsert("ada", { text: "x".repeat(80) });

async function getsPerSecond(inFlight) {
  const start = performance.now();
  let count = 0;
  const task = async () => {
    for (; performance.now() < start + seconds * 1000; count += 1) (await store.get("ada")).content;
  };
  await Promise.all(Array.from({ length: inFlight }, task));
  return Math.round((count * 1000) / (performance.now() - start));
}

await getsPerSecond(64);
show({ opened, one: await getsPerSecond(1), many: await getsPerSecond(64) });
await cluster.close();
