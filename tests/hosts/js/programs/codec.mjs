// When the codec of compressed documents is loaded.
// Usage: node codec.mjs PLAIN_CONNECTION_STRING CONNECTION_STRING USERNAME PASSWORD

import { openCluster } from "triclinium";
import { startPython } from "./node_modules/triclinium/python.mjs";
import { show } from "./show.mjs";

const [plain, compressing, username, password] = process.argv.slice(2);
const { pyodide } = await startPython();
const isLoaded = () => pyodide.runPython("import sys; type(sys.modules['cramjam']).__name__ == 'module'");
const value = "compressible ".repeat(1000);

async function write(cluster, store) {
  await store.upsert("text", value);
  const isSame = (await store.get("text")).content === value;
  await cluster.close();
  return isSame;
}

const memcached = await openCluster(plain);
show(["memcached", await write(memcached, memcached.defaultCollection()), isLoaded()]);
const refusing = await openCluster(compressing, { username, password, compression: false });
show(["without compression", await write(refusing, refusing.bucket("default").defaultCollection()), isLoaded()]);
const cluster = await openCluster(compressing, { username, password });
show(["with compression", await write(cluster, cluster.bucket("default").defaultCollection()), isLoaded()]);
