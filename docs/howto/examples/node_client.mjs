// Write, read and query documents from Node. Usage: node node_client.mjs [CONNECTION_STRING USERNAME PASSWORD]
// Without arguments, it starts a fake node: that needs uv and the repository.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { errors, openCluster } from "../../../core/hosts/js/triclinium.mjs";

async function serve() {
  const server = spawn("uv", ["run", "--quiet", "triclinium", "serve", "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(createInterface(server.stdout), "line");
  const { connection_string: address, username, password } = JSON.parse(line);
  return { address, username, password, stop: () => server.kill() };
}

const [address, username, password] = process.argv.slice(2);
const node = address ? { address, username, password, stop() {} } : await serve();
const cluster = await openCluster(node.address, { username: node.username, password: node.password });
try {
  const people = cluster.bucket("default").defaultCollection();
  const { cas } = await people.upsert("ada", { born: 1815 }, { expiry: 3600 });
  await people.replace("ada", { born: 1815, name: "Ada" }, { cas });
  console.log((await people.get("ada")).content);

  await people.mutateIn("ada", [{ op: "increment", path: "visits", delta: 2 }]);
  const { content } = await people.lookupIn("ada", [
    { op: "get", path: "visits" },
    { op: "get", path: "died" },
  ]);
  console.log(content[0].value, content[1].error.name);

  for await (const row of cluster.query("SELECT 1 AS one", { readonly: true, timeout: 5000 })) console.log(row);

  await people.get("bob", { signal: AbortSignal.timeout(1000) });
} catch (error) {
  if (!(error instanceof errors.DocumentNotFoundException)) throw error;
  console.log(`${error.name}: ${error.context.key} after ${error.context.retryAttempts} retries`);
} finally {
  await cluster.close();
  node.stop();
}
