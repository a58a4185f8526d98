// Host of the component in Node: carries out calls from standard input. Usage: node host.mjs FOLDER/retry.js
//
// Each line of input is a JSON array: the name of an exported function in kebab case, and its arguments. Each line of
// output is {"ok": result} or {"error": text}. Prints the durations to standard error at the end. A trap ends the
// process with status 1.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";

// Node 20 has this feature of WebAssembly behind a flag; later versions always have it.
if (Number.parseInt(process.versions.node) < 21) setFlagsFromString("--experimental-wasm-extended-const");

const began = performance.now();
const { decisions, machines } = await import(pathToFileURL(process.argv[2]).href);
const loaded = performance.now();

const TIMES = new Set(["NaN", "Infinity", "-Infinity"]);
const TAKES_AN_ID = new Set(["handle", "wakeup", "close"]);

const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

// Returns a JSON value as jco takes it: field names in camel case.
function toComponent(value) {
  if (TIMES.has(value)) return Number(value);
  if (value === null || typeof value !== "object") return value ?? undefined;
  if ("tag" in value) return { tag: value.tag, val: toComponent(value.val) };
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [camel(name), toComponent(field)]));
}

let calls = 0;
let spent = 0;

function call(name, ...given) {
  const isQuestion = name === "decide";
  const found = (isQuestion ? decisions : machines)[camel(name)];
  const values = isQuestion ? given : given.map(toComponent);
  if (TAKES_AN_ID.has(name)) values[0] = BigInt(given[0]);
  const start = performance.now();
  try {
    return { ok: found(...values) ?? null };
  } catch (error) {
    if (typeof error !== "string") throw error;
    return { error };
  } finally {
    calls += 1;
    spent += performance.now() - start;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const result = call(...JSON.parse(line));
  console.log(JSON.stringify(result, (_, value) => (typeof value === "bigint" ? Number(value) : value)));
}
console.error(
  JSON.stringify({ instantiate_s: (loaded - began) / 1000, us_per_call: (spent * 1000) / Math.max(calls, 1) }),
);
