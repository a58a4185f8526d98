// Runs the laws of a driver inside Pyodide, with the driver for Node and with sockets of Node.
// Usage: node laws.mjs VARIANT. Prints a line of JSON for each law.

import { readFileSync } from "node:fs";
import net from "node:net";
import { Driver } from "./node_modules/triclinium/driver.mjs";
import { startPython } from "./node_modules/triclinium/python.mjs";
import { show } from "./show.mjs";

const [variant] = process.argv.slice(2);

// Drivers that break their contract.
const VARIANTS = {
  correct: Driver,
  forgetful: class extends Driver {
    isForgetful = true;
  },
  hasty: class extends Driver {
    step(isFirst) {
      for (let isNext = isFirst; this.call("step", isNext); isNext = false);
    }
  },
  tardy: class extends Driver {
    read(connection, id, data) {
      setImmediate(() => setImmediate(() => super.read(connection, id, data)));
    }
  },
  deaf: class extends Driver {
    connect(...values) {
      const connection = super.connect(...values);
      const setPaused = connection.setPaused.bind(connection);
      connection.setPaused = (isPaused) => isPaused && setPaused(true);
      return connection;
    }
  },
};

// The peer's end of a stream, with the behavior of a non-blocking socket of Python.
class Peer {
  isOver = false;

  constructor(socket) {
    this.socket = socket;
    socket.on("readable", () => {});
    socket.on("end", () => (this.isOver = true));
    socket.on("error", () => (this.isOver = true));
  }

  // Bytes; an empty array at the end of the stream, undefined if none have arrived.
  recv(size) {
    const data = this.socket.read(Math.min(size, this.socket.readableLength) || undefined);
    return data ? new Uint8Array(data) : this.isOver ? new Uint8Array() : undefined;
  }

  send(data) {
    this.socket.write(data);
    return data.length;
  }

  close() {
    this.socket.destroy();
  }
}

// A server is ready before a law requests it, because Node opens servers in the background.
const ready = [];

async function prepareListener() {
  const peers = [];
  const server = net.createServer({ allowHalfOpen: true }, (socket) => peers.push(new Peer(socket)));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  ready.push({ port: server.address().port, accept: () => peers.shift(), close: () => server.close() });
}

function listen() {
  prepareListener();
  return ready.shift();
}

// A call or a reader, as a user makes them.
class Task {
  rows = [];
  outcome = undefined;
  error = undefined;
  #controller = new AbortController();
  #readOn;

  constructor(run) {
    run(this, this.#controller.signal).then(
      (outcome) => (this.outcome = outcome),
      (error) => (this.error = error),
    );
  }

  leave() {
    this.#controller.abort();
    this.#readOn?.();
  }

  readOn() {
    this.#readOn();
  }

  demand() {
    return new Promise((resolve) => (this.#readOn = resolve));
  }
}

const submitTo = (driver, submit) => new Task((_, signal) => driver.wait((token) => submit(token), { signal }));

const askOf = (driver, ask) =>
  new Task(async (task, signal) => {
    for await (const outcome of driver.outcomes((token) => ask(token), { signal })) {
      if (outcome[0] !== "rows") return outcome;
      task.rows.push(...outcome[1]);
      await task.demand();
      signal.throwIfAborted();
    }
  });

const sleep = (seconds) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1000);

async function turn() {
  sleep(0.001);
  for (let pass = 0; pass < 3; pass += 1) await new Promise(setImmediate);
}

const newDriver = () =>
  new VARIANTS[variant]({
    resolveSrv: () => Promise.reject(Object.assign(new Error("no records"), { code: "ENOTFOUND" })),
  });

await Promise.all(Array.from({ length: 10 }, prepareListener));
const { pyodide } = await startPython();
pyodide.registerJsModule("law_host", { askOf, listen, newDriver, sleep, submitTo, turn });
pyodide.FS.writeFile("/home/pyodide/law_runner.py", readFileSync(new URL("law_runner.py", import.meta.url)));
await pyodide.pyimport("law_runner").run((law, broken) => show({ law, broken }));
process.exit();
