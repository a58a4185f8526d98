// Rows of a large result, which are read as they are needed.
// Usage: node queries.mjs SERVED

import net from "node:net";
import { open, pause, rowsOf } from "./serving.mjs";
import { outcome, show } from "./show.mjs";

const sockets = [];
const connect = net.connect;
net.connect = (...values) => {
  sockets.push(connect(...values));
  return sockets.at(-1);
};
const bytesRead = () => sockets.reduce((sum, socket) => sum + socket.bytesRead, 0);
const cluster = await open();

// A reader that pauses at its first row stops the reading of the socket.
const result = cluster.query("SELECT large", { readonly: true });
let count = 0;
let sum = 0;
let atPause;
show([result.metaData ?? null]);
for await (const row of result) {
  if (count === 0) {
    let before;
    do {
      before = bytesRead();
      await pause(100);
    } while (bytesRead() > before);
    atPause = before;
  }
  count += 1;
  sum += row.number;
}
show({ count, sum, isBounded: atPause < 3_000_000, isLarge: bytesRead() > 10_000_000, status: result.metaData.status });
show(await outcome(rowsOf(result)));

// A loop that is left early closes its connection; the cluster works on.
const before = sockets.length;
for await (const row of cluster.query("SELECT large")) if (row.number === 3) break;
const closed = sockets.at(before) ?? sockets.at(-1);
while (!closed.destroyed) await pause(5);
show(["left", closed.destroyed]);
const controller = new AbortController();
const aborted = async () => {
  for await (const row of cluster.query("SELECT large", { signal: controller.signal })) {
    if (row.number === 3) controller.abort();
  }
};
show(["aborted", await outcome(aborted())]);
show(await rowsOf(cluster.query("SELECT small")));
const refused = await outcome(rowsOf(cluster.query("SELECT refused", { timeout: 1e9 })));
const { errorCode, errorMessage, statement } = refused.context;
show([refused, errorCode, errorMessage, statement, refused.message.includes("refused")]);
await cluster.close();
