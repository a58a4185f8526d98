// Python for all clusters of the process: Pyodide with the wheels of the core, from the folder `assets`.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const HERE = new URL("./", import.meta.url);

function read(name) {
  try {
    return new Uint8Array(readFileSync(new URL(name, HERE)));
  } catch (cause) {
    throw new Error(`${name} of the package triclinium cannot be read; make its assets as its README.md describes`, {
      cause,
    });
  }
}

export const assets = JSON.parse(new TextDecoder().decode(read("assets/assets.json")));

// Standard output belongs to the program.
const report = (text) => console.error(text);

async function start() {
  const { loadPyodide } = await import(new URL("assets/pyodide/pyodide.mjs", HERE));
  const pyodide = await loadPyodide({
    indexURL: fileURLToPath(new URL("assets/pyodide/", HERE)),
    stdout: report,
    stderr: report,
  });
  const extractDir = pyodide.runPython("import sysconfig; sysconfig.get_path('purelib')");
  const unpack = (wheel) => pyodide.unpackArchive(read(`assets/wheels/${wheel}`), "wheel", { extractDir });
  assets.wheels.forEach(unpack);
  pyodide.FS.mkdirTree(`${extractDir}/hosts/js`);
  for (const name of ["host.py", "values.py"]) pyodide.FS.writeFile(`${extractDir}/hosts/js/${name}`, read(name));
  const host = pyodide.pyimport("hosts.js.host");
  host.codec.unpack = () => unpack(assets.snappy);
  return { pyodide, host };
}

let started;

// Return Python, which starts if it has not started, could not start, or has crashed.
export async function startPython() {
  try {
    const python = await (started ??= start());
    python.pyodide.runPython("None");
    return python;
  } catch {
    return (started = start());
  }
}
