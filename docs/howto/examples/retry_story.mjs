// Drives retry machines of the component in Node. Usage: node retry_story.mjs FOLDER/retry.js
//
// The program has a clock of its own: it does not wait, but moves the clock to the time that the machine names.

import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";

// Node 20 has this feature of WebAssembly behind a flag; later versions always have it.
if (Number.parseInt(process.versions.node) < 21) setFlagsFromString("--experimental-wasm-extended-const");
const { machines } = await import(pathToFileURL(process.argv[2]).href);

const upsert = (timeout) => ({
  service: "kv",
  operation: "upsert",
  idempotent: false,
  strategy: "fast-fail-on-terminal-error",
  timeout,
});
const response = (status) => ({ tag: "kv-response-received", val: { status, node: "n1" } });

const BUSY = response(0x86);
const SUCCESS = response(0x00);
const LOST = { tag: "socket-closed", val: "all" };
const SECONDS_TO_RESPONSE = 0.002;

function tell(title, request, outcomes) {
  console.log(title);
  let now = 0;
  const id = machines.open(request, now);
  const orders = [{ tag: "dispatch" }];
  const report = (event) => orders.push(...machines.handle(id, event, now));
  while (orders.length > 0) {
    const { tag, val } = orders.shift();
    const rounded = JSON.stringify(val, (_, part) => (typeof part === "number" ? Number(part.toFixed(6)) : part));
    const detail = tag === "fail" ? `${val.error}: ${val.message}` : rounded;
    console.log(`${now.toFixed(3)} s  ${tag} ${detail ?? ""}`.trimEnd());
    if (tag === "dispatch") {
      report({ tag: "dispatched", val: "n1" });
      now += SECONDS_TO_RESPONSE;
      report(outcomes.shift());
    } else if (tag === "retry-after") {
      now = machines.wakeup(id);
      report({ tag: "time-passed" });
    }
  }
  machines.close(id);
}

tell("A node that is busy twice:", upsert(2.5), [BUSY, BUSY, SUCCESS]);
tell("\nA connection that is lost after the write was sent:", upsert(2.5), [LOST]);
tell("\nA node that stays busy until the deadline:", upsert(0.01), [BUSY, BUSY, BUSY]);
