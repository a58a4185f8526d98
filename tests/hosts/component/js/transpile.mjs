// Translates a component to an ES module, FOLDER/retry.js. Usage: node transpile.mjs COMPONENT FOLDER

import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { transpile } from "@bytecodealliance/jco-transpile";

const [component, folder] = process.argv.slice(2);
const { files } = await transpile(component, { name: "retry", outDir: folder });
for (const [path, contents] of Object.entries(files)) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, contents);
}
