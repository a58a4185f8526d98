// I/O of one connection, from the order to open it until its loss. It decides nothing.

import net from "node:net";
import { setImmediate as nextPass } from "node:timers/promises";
import tls from "node:tls";

// Causes of a loss. The first that matches any error of an attempt to connect applies.
const CAUSES = {
  NAME_NOT_RESOLVED: ({ code, syscall }) => syscall?.startsWith("getaddrinfo") || code?.startsWith("ERR_INVALID_ARG"),
  TLS: ({ code, syscall }) => syscall === undefined || code === "EPROTO",
  REFUSED: ({ code }) => code === "ECONNREFUSED",
  RESET: ({ code }) => ["ECONNRESET", "EPIPE", "ECONNABORTED"].includes(code),
  UNREACHABLE: () => true,
};

export class Connection {
  #driver;
  #id;
  #socket;
  #isPaused = false;
  #checks = 0;

  constructor(driver, id, host, port, secure) {
    this.#driver = driver;
    this.#id = id;
    const servername = net.isIP(host) ? "" : host.replace(/\.$/, "");
    // Given here, rejectUnauthorized has precedence over Node's environment variable.
    const options = { rejectUnauthorized: true, ...driver.tls, servername, host, port };
    this.#socket = secure ? tls.connect(options) : net.connect({ host, port });
    this.#socket.setNoDelay(true);
    this.#socket.on(secure ? "secureConnect" : "connect", () => this.#opened());
    this.#socket.on("data", (data) => driver.read(this, id, data));
    this.#socket.on("drain", () => this.#writable());
    // Node does not report a close_notify, so every end of TLS may be a truncation.
    this.#socket.on("end", () => driver.lost(this, id, secure ? "TRUNCATED" : "END_OF_STREAM"));
    this.#socket.on("error", (error) => this.#failed(error.errors ?? [error]));
    this.#socket.on("close", () => driver.lost(this, id, "RESET"));
  }

  #opened() {
    const { localAddress, localPort, remoteAddress, remotePort } = this.#socket;
    this.#driver.call("connected", this.#id, localAddress, localPort, remoteAddress, remotePort);
    this.#writable();
  }

  #failed(errors) {
    const [cause] = Object.entries(CAUSES).find(([, matches]) => errors.some(matches));
    this.#driver.lost(this, this.#id, cause, errors.map(({ message }) => message).join("; "));
  }

  #writable() {
    if (!this.#checks && !this.#socket.writableNeedDrain) this.#driver.call("write", this.#id);
  }

  // Let Python write if nothing arrives in the next passes of the event loop.
  async check() {
    this.#checks += 1;
    for (let pass = 0; pass < 3; pass += 1) await nextPass();
    this.#checks -= 1;
    this.#writable();
  }

  // Write at the end of this pass of the event loop, with all other writes. Return whether there is room for more.
  write(data) {
    if (!this.#socket.writableCorked) {
      this.#socket.cork();
      process.nextTick(() => this.#socket.uncork());
    }
    return this.#socket.write(data);
  }

  setPaused(isPaused) {
    this.#isPaused = isPaused;
    this.#socket[isPaused ? "pause" : "resume"]();
  }

  // Read no more in this pass of the event loop.
  hold() {
    this.#socket.pause();
    setImmediate(() => this.#isPaused || this.#socket.resume());
  }

  abort() {
    this.#socket.destroy();
  }
}
