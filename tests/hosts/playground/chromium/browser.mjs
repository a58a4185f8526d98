// Browser whose pages a test controls: a line of JSON for each question on standard input, and one for each answer.
// Usage: node browser.mjs PLAYWRIGHT_FOLDER CHROMIUM PROFILE_FOLDER
//
// {"open": ADDRESS, "javaScript", "before"} opens a page in a new context, with a script to run before
// those of the page. {"call": NAME, "arguments"} calls a method of the page, {"locate": SELECTOR, "call", "arguments"}
// one of an element. {"log": true} returns what went wrong since the page was opened, and all requests. An answer has
// "value" or "error".

import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [playwrightFolder, executablePath, profile] = process.argv.slice(2);
const { default: playwright } = await import(pathToFileURL(join(playwrightFolder, "index.js")).href);
// Milliseconds after which a browser that does not start, or an element that does not appear, has failed.
const timeout = 240_000;
const quiet = ["quic", "background-networking", "component-update", "sync", "gpu"].map((name) => `--disable-${name}`);
const browser = await playwright.chromium.launch({
  executablePath,
  headless: true,
  timeout,
  args: ["--no-sandbox", "--no-first-run", `--disk-cache-dir=${profile}`, ...quiet],
});

let context, page, log;

async function open({ open: address, javaScript = true, before = "" }) {
  await context?.close();
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, javaScriptEnabled: javaScript });
  page = await context.newPage();
  page.setDefaultTimeout(timeout);
  log = { wrong: [], requests: [] };
  const seen = log;
  context.on("request", (request) => seen.requests.push(request.url()));
  page.on("console", (message) => message.type() === "error" && seen.wrong.push(message.text()));
  page.on("pageerror", (error) => seen.wrong.push(String(error)));
  await page.addInitScript(before);
  await page.goto(address, { waitUntil: "load" });
}

async function answer(question) {
  if (question.open) return open(question);
  if (question.log) return log;
  const target = question.locate ? page.locator(question.locate) : page;
  const { call, arguments: given = [] } = question;
  return call.split(".").reduce((found, name, index, names) => (
    index === names.length - 1 ? found[name](...given) : found[name]
  ), target);
}

for await (const line of createInterface({ input: process.stdin })) {
  const reply = await answer(JSON.parse(line)).then(
    (value) => ({ value: Buffer.isBuffer(value) ? null : value ?? null }),
    (error) => ({ error: error.message }),
  );
  console.log(JSON.stringify(reply));
}
await browser.close();
