// Builds `built/page.js` and `built/page.css`; with --check only says whether they are what the source builds to.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const outputs = { "page.js": "src/main.ts", "page.css": "src/page.css" };
let stale = false;
for (const [name, source] of Object.entries(outputs)) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [source],
    bundle: true,
    minify: true,
    target: "es2022",
    format: "iife",
    charset: "ascii",
    legalComments: "none",
    write: false,
  });
  const file = join(here, "built", name);
  const text = result.outputFiles[0].text;
  if (!process.argv.includes("--check")) {
    writeFileSync(file, text);
  } else if (readFileSync(file, "utf8") !== text) {
    console.error(`built/${name} is not what src builds to: run npm run build`);
    stale = true;
  }
}
process.exit(stale ? 1 : 0);
