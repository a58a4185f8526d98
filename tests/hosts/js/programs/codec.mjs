// When the codec of compressed documents is loaded.
// Usage: node codec.mjs SERVED CONNECTION_STRING, where the second server is a plain memcached.

import { openCluster } from "triclinium";
import { startPython } from "./node_modules/triclinium/python.mjs";
import { open, storeOf } from "./serving.mjs";
import { show } from "./show.mjs";

const { pyodide } = await startPython();
const isLoaded = () => pyodide.runPython("import sys; type(sys.modules['cramjam']).__name__ == 'module'");
const value = "compressible ".repeat(1000);

async function write(name, cluster, store) {
  await store.upsert("text", value);
  show([name, (await store.get("text")).content === value, isLoaded()]);
  await cluster.close();
}

const memcached = await openCluster(process.argv[3]);
await write("memcached", memcached, memcached.defaultCollection());
const refusing = await open({ compression: false });
await write("without compression", refusing, storeOf(refusing));
const cluster = await open();
await write("with compression", cluster, storeOf(cluster));
