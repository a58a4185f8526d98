// A write over TLS with the right authority, without it, with a certificate for another host, and without verification.
// Usage: node tls.mjs SERVERS, a JSON list of the two served clusters, each with the file of its authority.

import { readFileSync } from "node:fs";
import { openCluster } from "triclinium";
import { outcome, show } from "./show.mjs";

const [served, misnamed] = JSON.parse(process.argv[2]);

async function write({ tls_connection_string: address, username, password }, tls) {
  const warnings = [];
  const log = (level, text) => level === "warning" && warnings.push(text);
  const cluster = await openCluster(address, { username, password, tls, log, timeouts: { kv: 60_000 } });
  const result = await outcome(cluster.bucket("default").defaultCollection().upsert("ada", 1));
  await cluster.close();
  return [result instanceof Error ? result : "stored", tls?.rejectUnauthorized === false && warnings.length > 0];
}

show(await write(served, { ca: readFileSync(served.ca) }));
show(await write(served));
show(await write(misnamed, { ca: readFileSync(misnamed.ca) }));
show(await write(misnamed, { rejectUnauthorized: false }));
