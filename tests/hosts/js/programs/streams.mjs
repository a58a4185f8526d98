// Events that a machine receives for sockets and timers, with a recorder in place of the machine.
// Usage: node streams.mjs FILE AUTHORITY_FILE, where the first file has a key and its certificate.

import { readFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";
import { Driver } from "./node_modules/triclinium/driver.mjs";
import { startPython } from "./node_modules/triclinium/python.mjs";
import { show } from "./show.mjs";

const [pem, ca] = process.argv.slice(2, 4).map((file) => readFileSync(file));
const { pyodide } = await startPython();
pyodide.FS.writeFile("/home/pyodide/recorder.py", readFileSync(new URL("recorder.py", import.meta.url)));
const { open_recorder: openRecorder } = pyodide.pyimport("recorder");

function recording(options = {}) {
  const driver = new Driver(options);
  const events = [];
  let changed = () => {};
  const note = (...event) => {
    events.push(event);
    changed();
  };
  driver.start(openRecorder(driver, note));
  events.length = 0;
  const until = async (condition) => {
    while (!condition()) await new Promise((resolve) => (changed = resolve));
  };
  return { driver, events, until, open: (...stream) => driver.call("open", ...stream) };
}

async function listening(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
}

// How a stream to a server ends: the cause of its loss.
async function lossOf(server, secure, options) {
  const { driver, events, until, open } = recording(options);
  open(1, "127.0.0.1", await listening(server), secure);
  await until(() => events.some(([kind]) => kind === "Lost"));
  const received = events.filter(([kind]) => kind === "Received").map(([, , data]) => new TextDecoder().decode(data));
  const { 2: cause, 4: handedOver } = events.find(([kind]) => kind === "Lost");
  server.close();
  driver.close();
  return { received: received.join(""), cause, handedOver, losses: events.filter(([kind]) => kind === "Lost").length };
}

const tlsServer = (behave) => tls.createServer({ key: pem, cert: pem }, behave);
const sending = (text) => (socket) => socket.end(text);
const trusted = { tls: { ca } };
const renamed = { tls: { ...trusted.tls, checkServerIdentity: () => new Error("another name") } };
for (const [name, server, isSecure, options] of [
  ["end", net.createServer(sending("bye")), false],
  ["close_notify", tlsServer(sending("bye")), true, trusted],
  ["untrusted", tlsServer(), true],
  ["name", tlsServer(), true, renamed],
  ["not TLS", net.createServer(sending("HTTP/1.1 400 Bad Request\r\n\r\n")), true, trusted],
  ["environment", tlsServer(), true],
]) {
  process.removeAllListeners("warning"); // Node warns of the variable.
  if (name === "environment") process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  show([name, await lossOf(server, isSecure, options)]);
}

// Orders for hosts and ports that Node refuses, and for a stream that has ended.
const { driver, events, until, open } = recording();
open(1, "a\0b", 1, false);
open(2, "node..invalid", 1, false);
driver.call("write", 9);
await until(() => events.filter(([kind]) => kind === "Lost").length === 2);
const losses = events.filter(([kind]) => kind === "Lost").map(([, id, cause]) => [id, cause]);
show(losses.sort(([id], [other]) => id - other)); // The look-ups end in any order.

// Responses and failures of DNS.
for (const resolveSrv of [
  async () => [{ name: "node.example", port: 11210, priority: 0, weight: 0 }],
  () => Promise.reject(Object.assign(new Error("queryC NXDOMAIN"), { code: "ENOTFOUND" })),
  () => Promise.reject(Object.assign(new Error("timed out"), { code: "ETIMEOUT" })),
]) {
  const looking = recording({ resolveSrv });
  await looking.driver.lookUp("_couchbase._tcp.cluster.example");
  show(looking.events.at(-1).slice(2));
  looking.driver.close();
}

// A far alarm does not ring at once; a near one does.
const count = events.length;
driver.setAlarm(1e9);
await new Promise((resolve) => setTimeout(resolve, 50));
show(["far alarm", events.length - count]);
driver.setAlarm(0);
await until(() => events.length > count);
show(["near alarm", events.slice(count)]);
driver.setAlarm(Infinity);
driver.close();
