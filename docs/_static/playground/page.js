// Page of the playground: its forms, its address, and the worker. Only known elements of an answer enter the page.

const OWN = "your own", FILES = 10, set = (names) => new Set(names.split(" "));
const KNOWN = set("p strong span table caption tbody tr td svg path circle rect text div figure figcaption");
const ATTRIBUTES = set("class viewBox width height d cx cy r x y role aria-label aria-hidden");
const find = (id) => document.getElementById(id);
const [story, outage, bar, status] = ["story", "outage", "playground-progress", "playground-status"].map(find);
const forms = [story, outage], waiting = new Set(), { operation, strategy, code } = story.elements;
let worker, isReady, running, began;

function startWorker(text) {
  worker?.terminate();
  waiting.clear();
  [isReady, running] = [false, null];
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => receive(data);
  worker.onerror = () => receive({ failure: "the browser cannot run worker.js" });
  show(text, 0);
}

function show(text, share) {
  status.textContent = text;
  [bar.hidden, bar.value] = [share === undefined, share ?? 0];
  for (const form of forms) form.elements.stop.disabled = !running;
}

function receive({ loaded, share = loaded / FILES, ready, html, failure }) {
  if (share >= 0) bar.value = share;
  if (ready) {
    isReady = true;
    if (strategy.value !== OWN) waiting.add(story);
    show("Python is ready. Your code runs when you press Run.");
  } else if (html !== undefined && running) {
    const { body } = new DOMParser().parseFromString(html, "text/html");
    find(`${running.id}-answer`).replaceChildren(...[...body.childNodes].map(adopted));
    running = null;
    show(`The core has answered in this browser, in ${Math.round(performance.now() - began)} ms.`);
  } else if (failure !== undefined) {
    [running, worker] = [null, isReady ? worker : undefined];
    show(`${isReady ? "Python has failed" : "Only recorded answers are shown; Python cannot be loaded"}: ${failure}`);
  }
  ask();
}

function adopted(node) {
  if (!KNOWN.has(node.localName)) return document.createTextNode(node.textContent);
  const copy = document.createElementNS(node.namespaceURI, node.localName);
  for (const { name, value } of node.attributes) if (ATTRIBUTES.has(name)) copy.setAttribute(name, value);
  copy.append(...[...node.childNodes].map(adopted));
  return copy;
}

function ask(form) {
  if (form && !worker) startWorker("Python is being loaded again.");
  if (form) waiting.add(form);
  if (!isReady || running || waiting.size === 0) return;
  [running, began] = [[...waiting][0], performance.now()];
  waiting.delete(running);
  const fields = new FormData(running), lists = { fault: fields.getAll("fault"), fleet: fields.getAll("fleet") };
  worker.postMessage(JSON.stringify({ form: running.id, ...Object.fromEntries(fields), ...lists, code: code.value }));
  show("Python runs.", 0);
}

// Show what fits the operation, and its answer unless the reader's code gives it. Disabled fields count nowhere.
function changed(form) {
  const { kind } = operation.selectedOptions[0].dataset;
  for (const part of story.querySelectorAll("[data-of]")) part.hidden = part.disabled = !part.dataset.of.includes(kind);
  if (strategy.selectedOptions[0].disabled) strategy.value = strategy.querySelector("option:enabled").value;
  code.disabled = find("own-code").hidden = !forms.some((each) => [...new FormData(each).values()].includes(OWN));
  if (form === story) strategy.value === OWN ? waiting.delete(story) : ask(story);
}

const save = () =>
  history.replaceState(null, "", `#${new URLSearchParams(forms.flatMap((form) => [...new FormData(form)]))}`);

function restore() {
  const fields = new URLSearchParams(location.hash.slice(1));
  for (const field of fields.has("operation") ? forms.flatMap((form) => [...form.elements]) : []) {
    if (field.type === "checkbox") field.checked = fields.getAll(field.name).includes(field.value);
    else if (fields.has(field.name)) field.value = fields.get(field.name);
    if (field.selectedIndex < 0) field.selectedIndex = 0;
  }
  waiting.clear();
  changed(story);
}

if (typeof WebAssembly === "undefined") {
  show("Only recorded answers are shown, because this browser has no WebAssembly.");
} else {
  startWorker("Python is being loaded.");
  restore();
  addEventListener("hashchange", restore);
  for (const form of forms) {
    form.hidden = false;
    form.addEventListener("change", () => { changed(form); save(); });
    form.addEventListener("submit", (event) => { event.preventDefault(); save(); ask(form); });
    form.elements.stop.addEventListener("click", () => startWorker("Stopped. Python is being loaded again."));
  }
}
