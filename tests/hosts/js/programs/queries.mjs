// Rows of a large result, which are read as they are needed.
// Usage: node queries.mjs CONNECTION_STRING USERNAME PASSWORD

import net from "node:net";
import { openCluster } from "triclinium";
import { outcome, show } from "./show.mjs";

const sockets = [];
const connect = net.connect;
net.connect = (...values) => {
  sockets.push(connect(...values));
  return sockets.at(-1);
};
const bytesRead = () => sockets.reduce((sum, socket) => sum + socket.bytesRead, 0);
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const [connectionString, username, password] = process.argv.slice(2);
const cluster = await openCluster(connectionString, { username, password });

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
show(await outcome(result[Symbol.asyncIterator]().next()));

// A loop that is left early closes its connection; the cluster works on.
const before = sockets.length;
for await (const row of cluster.query("SELECT large")) if (row.number === 3) break;
await pause(20);
show(["left", sockets.at(before)?.destroyed ?? sockets.at(-1).destroyed]);
const controller = new AbortController();
const aborted = async () => {
  for await (const row of cluster.query("SELECT large", { signal: controller.signal })) {
    if (row.number === 3) controller.abort();
  }
};
show(["aborted", await outcome(aborted())]);
const rows = [];
for await (const row of cluster.query("SELECT small")) rows.push(row);
show(rows);
show(await outcome(cluster.query("SELECT refused")[Symbol.asyncIterator]().next()));
const failing = await outcome(cluster.query("SELECT refused", { timeout: 1e9 })[Symbol.asyncIterator]().next());
show([
  failing.context.errorCode,
  failing.context.errorMessage,
  failing.context.statement,
  failing.message.includes("refused"),
]);
await cluster.close();
