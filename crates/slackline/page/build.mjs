// Builds the page of --report (`built`) and the dashboard of the service (`crates/serve/page`): a program and a style each.
// With --check only says whether they are what the source builds to.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const outputs = {
  "built/page.js": "src/main.ts",
  "built/page.css": "src/page.css",
  "../../serve/page/dashboard.js": "src/dashboard/main.ts",
  "../../serve/page/dashboard.css": "src/dashboard/dashboard.css",
};
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
  const file = join(here, name);
  const text = result.outputFiles[0].text;
  if (!process.argv.includes("--check")) {
    writeFileSync(file, text);
  } else if (readFileSync(file, "utf8") !== text) {
    console.error(`${name} is not what src builds to: run npm run build`);
    stale = true;
  }
}
process.exit(stale ? 1 : 0);
