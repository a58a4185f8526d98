// Large documents, many calls at the same time, and servers that send nonsense.
// Usage: node large.mjs SERVED

import net from "node:net";
import { openCluster, errors } from "triclinium";
import { startPython } from "./node_modules/triclinium/python.mjs";
import { open, storeOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const cluster = await open();
const store = storeOf(cluster);

const random = new Uint8Array(20 * 1024 * 1024 - 1000);
for (let at = 0; at < random.length; at += 65536)
  crypto.getRandomValues(random.subarray(at, Math.min(at + 65536, random.length)));
await store.upsert("random", random);
show(Buffer.compare((await store.get("random")).bytes, random));
const text = "é".repeat(5_000_000);
await store.upsert("text", text);
show((await store.get("text")).content === text);
await store.upsert("small", [1]);
const found = await Promise.all(Array.from({ length: 5000 }, () => store.get("small")));
show(found.every(({ content: [one] }) => one === 1));
const deep = JSON.parse("[".repeat(1000) + "]".repeat(1000));
await store.upsert("deep", deep);
show(JSON.stringify((await store.get("deep")).content).length);
await store.upsert("broken", Buffer.from([0xff]));
await store.mutateIn("small", [{ op: "arrayAppend", path: "", values: [2 ** 53] }]);
show((await store.lookupIn("small", [{ op: "get", path: "[1]" }])).content);

// A crash of Python ends all clusters, and the next cluster starts it again.
console.error = () => {};
const other = await open();
const { pyodide } = await startPython();
pyodide.runPython(`
  import msgspec, hosts.js.host
  hosts.js.host.request_of = lambda *_: msgspec.json.decode(b"[" * 10**5)
`);
show([await outcome(store.get("small")), await outcome(store.get("small"))]);
await cluster.close();
await other.close();

// Servers that send random bytes, that never stop, that answer with an endless frame, and that hang up.
const flood = Buffer.alloc(65536, 0x81);
const SERVERS = {
  random: (socket) => socket.write(random.subarray(0, 100_000)),
  flood: (socket) => {
    const more = () => socket.destroyed || socket.write(flood, more);
    more();
  },
  huge: (socket) => socket.write(Buffer.from("8100000000000000ffffffff".padEnd(48, "0"), "hex")),
  silent: () => {},
  closing: (socket) => socket.destroy(),
};
for (const [name, behave] of Object.entries(SERVERS)) {
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    behave(socket);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `memcached://127.0.0.1:${server.address().port}`;
  const hostile = await openCluster(address, { timeouts: { kv: 300 } });
  const error = await outcome(hostile.defaultCollection().get("ada"));
  show([name, error instanceof errors.TimeoutException]);
  await hostile.close();
  server.close();
}
