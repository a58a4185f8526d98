// Starts Pyodide, unpacks the wheels into its site-packages and hands over to inside.py.
// Usage: node host.mjs PYODIDE_FOLDER WHEELS_FOLDER CHECKOUT_FOLDER [PYTEST_ARGUMENT ...]

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// Node would print the line that threw, and Pyodide is one line of a million characters.
process.on("uncaughtException", (error) => {
  console.error(error.message);
  process.exitCode = 1;
});

const [pyodideFolder, wheelsFolder, checkoutFolder, ...pytestArguments] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(pyodideFolder, "pyodide.mjs")).href);

const pyodide = await loadPyodide({
  indexURL: pyodideFolder,
  env: {
    HOME: "/home/pyodide",
    PYTHONDONTWRITEBYTECODE: "1",
    PYTHONPATH: "/checkout",
    TRICLINIUM_IMPL: "python",
    CI: process.env.CI ?? "",
  },
  // Before the interpreter starts, so that PYTHONPATH finds it.
  fsInit: async (FS) => {
    FS.mkdirTree("/checkout");
    FS.mount(FS.filesystems.NODEFS, { root: checkoutFolder }, "/checkout");
  },
});
const extractDir = pyodide.runPython("import sysconfig; sysconfig.get_path('purelib')");
for (const wheel of readdirSync(wheelsFolder).filter((name) => name.endsWith(".whl"))) {
  pyodide.unpackArchive(new Uint8Array(readFileSync(join(wheelsFolder, wheel))), "wheel", { extractDir });
}
pyodide.FS.chdir("/checkout");

process.exitCode = pyodide.pyimport("tests.wasm.inside").main(pyodide.toPy(pytestArguments));
