// I/O of one cluster: sockets, TLS, DNS and the timer. It executes orders of the Python half, and decides nothing.

import { promises as dns } from "node:dns";
import net from "node:net";
import tls from "node:tls";

const TIMER_MS_MAX = 2 ** 31 - 1; // A longer timer of Node rings immediately. An early alarm is harmless.
const WRITE_SIZE_MAX = 256 * 1024; // All bytes of a write count as handed over from its start.
const PIECE_SIZE_MAX = 64 * 1024; // PIECE_SIZE_BYTES_MAX of triclinium_core.work. Node reads at most this in one call.
const FULL_READ_SIZE = 32 * 1024; // After fewer bytes in one pass of the event loop, the socket was empty.
const CHECKING_PASSES = 3; // After these passes of the event loop, Node has read what had arrived.
const [WORK_OF_A_PASS_MAX, WORK_BEFORE_TIME_MAX] = [10_000, 25_000]; // As in triclinium_core.work.

// Causes of a loss. The first row that matches any error of an attempt to connect applies.
const CAUSES = [
  [
    "NAME_NOT_RESOLVED",
    (error) => error.syscall?.startsWith("getaddrinfo") || error.code?.startsWith("ERR_INVALID_ARG"),
  ],
  ["TLS", (error) => error.syscall === undefined || error.code === "EPROTO"],
  ["REFUSED", (error) => error.code === "ECONNREFUSED"],
  ["RESET", (error) => ["ECONNRESET", "EPIPE", "ECONNABORTED"].includes(error.code)],
  ["UNREACHABLE", () => true],
];

// Error of a call on a closed cluster, or of one that waits when the cluster closes.
export class ClosedError extends Error {
  name = "ClosedError";
}

// One connection, from the order to open it until its loss, which it reports once.
class Stream {
  handedOver = 0;
  unsent = [];
  arrived = 0; // Bytes since the last alarm began to read.
  isFlowing = true;
  #isOpen = false;
  #isEnded = false;
  #checks = 0;

  constructor(driver, id, host, port, secure) {
    Object.assign(this, { driver, id });
    const servername = net.isIP(host) ? "" : host.replace(/\.$/, "");
    // Given here, rejectUnauthorized has precedence over Node's environment variable.
    const options = { rejectUnauthorized: true, ...driver.tls, servername, host, port };
    this.socket = secure ? tls.connect(options) : net.connect({ host, port });
    this.socket.setNoDelay(true);
    this.socket.on(secure ? "secureConnect" : "connect", () => this.#opened());
    this.socket.on("data", (data) => this.#read(data));
    this.socket.on("drain", () => this.#flush());
    // Node does not report a close_notify, so every end of TLS may be a truncation.
    this.socket.on("end", () => this.end(secure ? "TRUNCATED" : "END_OF_STREAM"));
    this.socket.on("error", (error) => this.fail(error));
    this.socket.on("close", () => this.end("RESET"));
  }

  #opened() {
    this.#isOpen = true;
    const { localAddress, localPort, remoteAddress, remotePort } = this.socket;
    const name = (address, port) => (net.isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`);
    this.driver.feed("Opened", this.id, name(localAddress, localPort), name(remoteAddress, remotePort));
    this.#flush();
  }

  #read(data) {
    this.arrived += data.length;
    for (let at = 0; at < data.length && !this.#isEnded; at += PIECE_SIZE_MAX) {
      if (this.#checks) return this.end("UNSOLICITED");
      const piece = new Uint8Array(data.buffer, data.byteOffset + at, Math.min(PIECE_SIZE_MAX, data.length - at));
      this.driver.received(this, piece);
    }
  }

  send(data, unlessReadable) {
    for (let at = 0; at < data.length; at += WRITE_SIZE_MAX) this.unsent.push(data.subarray(at, at + WRITE_SIZE_MAX));
    if (unlessReadable) this.#check((this.#checks = CHECKING_PASSES));
    else process.nextTick(() => this.#flush());
  }

  #check() {
    setImmediate(() => (--this.#checks ? this.#check() : this.#flush()));
  }

  // Write what is unsent. Join small pieces, because each write is a system call.
  #flush() {
    while (this.#isOpen && !this.#isEnded && !this.#checks && this.unsent.length && !this.socket.writableNeedDrain) {
      let size = 0;
      const count = this.unsent.findIndex((piece) => (size += piece.length) > WRITE_SIZE_MAX);
      const data = Buffer.concat(this.unsent.splice(0, count < 0 ? Infinity : Math.max(count, 1)));
      this.handedOver += data.length;
      this.socket.write(data);
    }
  }

  flow(isFlowing) {
    this.isFlowing = isFlowing;
    this.socket[isFlowing ? "resume" : "pause"]();
  }

  // Read no more in this pass of the event loop.
  hold() {
    this.arrived = Infinity;
    this.socket.pause();
    setImmediate(() => this.isFlowing && this.socket.resume());
  }

  fail(error) {
    const errors = error.errors ?? [error];
    const [cause] = CAUSES.find(([, matches]) => errors.some(matches));
    this.end(cause, errors.map(({ message }) => message).join("; "));
  }

  end(cause, text = "") {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.unsent = [];
    this.socket.destroy();
    this.driver.lost(this, cause, text);
  }
}

export class Driver {
  #calls = new Map(); // Callers that wait, by token.
  #held = new Set(); // Tokens of queries whose readers have rows.
  #streams = new Map();
  #isClosed = false;
  #newestToken = 0;
  #work = 0;
  #passWorkMax; // Work at which streams are held until the next pass of the event loop; undefined before a read.
  #alarmWorkMax; // Work at which time passes although bytes are left; undefined without a due alarm.
  #timer;

  // `log` receives levels and texts. `asError` makes an error of a description by the Python half.
  constructor({ tls, log, asError = (fields) => fields, resolveSrv = dns.resolveSrv }) {
    Object.assign(this, { tls, userLog: log, asError, resolveSrv });
  }

  start(host) {
    this.host = host;
    this.feed("TimePassed", [], []);
  }

  // Call the Python half. An exception is a defect, and closes the cluster.
  call(method, ...values) {
    try {
      return this.#isClosed ? 0 : this.host[method](...values);
    } catch (cause) {
      this.#end(new ClosedError(`the client has a defect, please report it: ${cause.message}`, { cause }));
      return 0;
    }
  }

  feed(kind, ...fields) {
    return this.call("happen", kind, ...fields);
  }

  // -- Callers.

  // Return a promise of an outcome: its kind and its fields. `start` submits something with the token.
  wait(start, { signal, timeout } = {}, token = ++this.#newestToken) {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new ClosedError("the cluster is closed; open another one");
      const leave = () => this.#leave(token, signal.reason);
      const timer = timeout < TIMER_MS_MAX ? setTimeout(() => this.call("expire", token, timeout / 1000), timeout) : 0;
      const end = () => (clearTimeout(timer), signal?.removeEventListener("abort", leave));
      this.#calls.set(token, { resolve, reject, end });
      if (signal?.aborted) return leave();
      signal?.addEventListener("abort", leave);
      start(token);
    });
  }

  // Yield the rows of a query in pieces, as the caller needs them, and return the fields of the result.
  async *pieces(start, options) {
    const token = ++this.#newestToken;
    try {
      for (let next = start; ; next = () => this.feed("Wanted", token)) {
        const waiting = this.wait(next, options, token);
        this.#held.delete(token);
        const [kind, fields] = await waiting;
        if (kind !== "rows") return fields;
        this.#held.add(token);
        yield fields;
      }
    } finally {
      if (this.#held.delete(token)) this.feed("Abandoned", token, "not_needed");
    }
  }

  #take(token) {
    const call = this.#calls.get(token);
    this.#calls.delete(token);
    call?.end();
    return call;
  }

  #leave(token, reason) {
    this.#take(token).reject(reason);
    this.feed("Abandoned", token, "cancelled");
  }

  close() {
    if (this.#isClosed) return;
    const reason = new ClosedError("the cluster was closed");
    for (const token of this.#calls.keys()) this.#leave(token, reason);
    for (const token of this.#held) this.feed("Abandoned", token, "cancelled");
    this.call("close");
    if (this.#isClosed) return; // Python has crashed.
    this.#end(reason);
    this.host.destroy();
  }

  #end(reason) {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const token of this.#calls.keys()) this.#take(token).reject(reason);
    for (const stream of this.#streams.values()) stream.end("CLOSED_BY_US");
  }

  // -- Events.

  received(stream, data) {
    if (this.#passWorkMax === undefined) setImmediate(() => (this.#passWorkMax = undefined));
    this.#passWorkMax ??= this.#work + WORK_OF_A_PASS_MAX;
    this.#work = this.feed("Received", stream.id, data);
    if (this.#work >= this.#alarmWorkMax) this.#passTime([...this.#streams.keys()]);
    if (this.#work >= this.#passWorkMax) stream.hold();
  }

  lost(stream, cause, text) {
    this.#streams.delete(stream.id);
    this.feed("Lost", stream.id, cause, text, stream.handedOver);
  }

  // Read until the sockets are empty or the work reaches its maximum, then pass the time.
  #ring() {
    this.#alarmWorkMax ??= this.#work + WORK_BEFORE_TIME_MAX;
    for (const stream of this.#streams.values()) stream.arrived = 0;
    setImmediate(() => {
      if (this.#alarmWorkMax === undefined) return;
      if ([...this.#streams.values()].some((stream) => stream.arrived >= FULL_READ_SIZE)) this.#ring();
      else this.#passTime([]);
    });
  }

  #passTime(unread) {
    this.#alarmWorkMax = undefined;
    const behind = [...this.#streams.values()].filter((stream) => stream.unsent.length);
    this.feed(
      "TimePassed",
      behind.map((stream) => [stream.id, stream.handedOver]),
      unread,
    );
  }

  // -- Orders of the Python half.

  open(id, host, port, secure) {
    try {
      this.#streams.set(id, new Stream(this, id, host, port, secure));
    } catch (error) {
      this.feed("Lost", id, "NAME_NOT_RESOLVED", error.message, 0); // Node refuses a host before it looks it up.
    }
  }

  perform(method, id, ...values) {
    this.#streams.get(id)?.[method](...values);
  }

  async lookUp(service) {
    const found = await this.resolveSrv(service).catch((error) => error);
    const isFailure = found instanceof Error && !["ENOTFOUND", "ENODATA"].includes(found.code);
    const targets = Array.isArray(found) ? found.map(({ name, port }) => [name, port]) : [];
    this.feed("LookedUp", service, targets, isFailure ? found.message : "");
  }

  setAlarm(seconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ring(), Math.min(seconds * 1000, TIMER_MS_MAX));
  }

  complete(token, ...outcome) {
    this.#take(token)?.resolve(outcome);
  }

  fail(token, description) {
    this.#take(token)?.reject(this.asError(description));
  }

  log(level, text) {
    queueMicrotask(() => this.userLog?.(level, text));
  }
}
