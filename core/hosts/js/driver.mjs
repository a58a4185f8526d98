// I/O of one cluster: callers, connections, DNS and the alarm. The driver in `host.py` gives the orders.

import { promises as dns } from "node:dns";
import { Connection } from "./connection.mjs";

const TIMER_MS_MAX = 2 ** 31 - 1; // A longer timer of Node rings immediately. An early alarm is harmless.

// Error of a call on a closed cluster, or of one that waits when the cluster closes.
export class ClosedError extends Error {
  name = "ClosedError";
}

export class Driver {
  #calls = new Map(); // Callers that wait, by token.
  #connections = new Set();
  #isClosed = false;
  #newestToken = 0;
  #pass; // Timer that rings at the end of a pass of the event loop in which something was read.
  #timer;

  // `log` receives levels and texts.
  constructor({ tls, log, resolveSrv = dns.resolveSrv }) {
    Object.assign(this, { tls, userLog: log, resolveSrv });
  }

  start(host) {
    this.host = host;
    this.step(true);
  }

  // Call the Python half. An exception is a defect, and closes the cluster.
  call(method, ...values) {
    try {
      return this.#isClosed ? undefined : this.host[method](...values);
    } catch (cause) {
      this.#end(new ClosedError(`the client has a defect, please report it: ${cause.message}`, { cause }));
    }
  }

  // -- Callers.

  // Return a promise of an outcome: its kind, which may be "error", and its fields. `start` submits with the token.
  wait(start, { signal, timeout } = {}, token = ++this.#newestToken) {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new ClosedError("the cluster is closed; open another one");
      const leave = () => {
        this.#take(token).reject(signal.reason);
        this.call("abandon", token, "cancelled");
      };
      const timer = timeout < TIMER_MS_MAX ? setTimeout(() => this.call("expire", token, timeout / 1000), timeout) : 0;
      const end = () => (clearTimeout(timer), signal?.removeEventListener("abort", leave));
      this.#calls.set(token, { resolve, reject, end });
      if (signal?.aborted) return leave();
      signal?.addEventListener("abort", leave);
      start(token);
    });
  }

  // Yield the outcomes of a query: pieces of its rows, as the caller needs them, and the last outcome.
  async *outcomes(start, options) {
    const token = ++this.#newestToken;
    const want = () => this.call("want", token);
    try {
      let outcome = await this.wait(start, options, token);
      for (; outcome[0] === "rows"; outcome = await this.wait(want, options, token)) yield outcome;
      yield outcome;
    } finally {
      this.call("abandon", token, "not_needed");
    }
  }

  #take(token) {
    const call = this.#calls.get(token);
    this.#calls.delete(token);
    call?.end();
    return call;
  }

  close() {
    this.call("close");
    if (this.#isClosed) return; // The cluster was closed, or Python has crashed.
    this.#end(new ClosedError("the cluster was closed"));
    this.host.destroy();
  }

  #end(reason) {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const token of this.#calls.keys()) this.#take(token).reject(reason);
    for (const connection of this.#connections) connection.abort();
  }

  // -- Events of connections and of the alarm.

  read(connection, id, data) {
    const isFirst = !this.#pass;
    this.#pass ??= setImmediate(() => (this.#pass = undefined));
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.length);
    if (this.call("read", id, bytes, isFirst)) connection.hold();
  }

  lost(connection, ...loss) {
    this.#connections.delete(connection);
    this.call("lost", ...loss);
  }

  // Let every connection be read once between two steps, until the time has passed.
  step(isFirst) {
    if (this.call("step", isFirst)) setImmediate(() => this.step(false));
  }

  // -- Orders of the Python half.

  connect(...values) {
    const connection = new Connection(this, ...values);
    this.#connections.add(connection);
    return connection;
  }

  async lookUp(service) {
    const found = await this.resolveSrv(service).catch((error) => error);
    const isFailure = found instanceof Error && !["ENOTFOUND", "ENODATA"].includes(found.code);
    const targets = Array.isArray(found) ? found.map(({ name, port }) => [name, port]) : [];
    this.call("looked_up", service, targets, isFailure ? found.message : "");
  }

  setAlarm(seconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.step(true), Math.min(seconds * 1000, TIMER_MS_MAX));
  }

  complete(token, ...outcome) {
    this.#take(token)?.resolve(outcome);
  }

  log(level, text) {
    queueMicrotask(() => this.userLog?.(level, text));
  }
}
