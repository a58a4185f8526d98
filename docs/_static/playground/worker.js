// Worker of the playground: loads Python and the core, and answers questions. Code of readers runs only here.

const MODULES = ["story", "cluster", "coordinators", "outage", "answers"];
const assets = new URL("../assets/", import.meta.url);
let loaded = 0;

async function load(url, read) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url.pathname} is missing (HTTP status ${response.status})`);
  const contents = await response[read]();
  postMessage({ loaded: ++loaded });
  return contents;
}

async function start() {
  const { wheels } = await load(new URL("assets.json", assets), "json");
  const files = Promise.all(wheels.map((name) => load(new URL(`wheels/${name}`, assets), "arrayBuffer")));
  const texts = Promise.all(MODULES.map((name) => load(new URL(`${name}.py`, import.meta.url), "text")));
  const { loadPyodide } = await import(new URL("pyodide/pyodide.mjs", assets).href);
  const python = await loadPyodide({ indexURL: new URL("pyodide/", assets).href });
  postMessage({ loaded: ++loaded });
  for (const file of await files) python.unpackArchive(file, "wheel");
  python.FS.mkdirTree("docs/_static/playground");
  (await texts).forEach((text, index) => python.FS.writeFile(`docs/_static/playground/${MODULES[index]}.py`, text));
  return python.pyimport("docs._static.playground.answers").answer;
}

const fail = (error) => postMessage({ failure: String(error.message) });
const started = start();
started.then(() => postMessage({ ready: true }), (error) => (fail(error), close()));
const share = (done) => postMessage({ share: done });
onmessage = ({ data }) => started.then((answer) => postMessage({ html: answer(data, share) })).catch(fail);
