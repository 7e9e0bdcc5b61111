// Builds the page from src/ into built/, which is committed: cargo needs no builder of pages.
// With --check nothing is written: it fails if built/ is not what src/ gives.
import { build } from "esbuild";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const result = await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.ts" },
  bundle: true,
  minify: true,
  write: false,
  outdir: "built",
  target: ["chrome109", "firefox102", "safari16"],
  charset: "utf8",
  legalComments: "inline",
});
const files = result.outputFiles.map((file) => [file.path.split("/").pop(), file.text]);
files.push(["index.html", readFileSync(join(here, "src/index.html"), "utf8")]);

const differing = [];
mkdirSync(join(here, "built"), { recursive: true });
for (const [name, text] of files) {
  const path = join(here, "built", name);
  let before = null;
  try {
    before = readFileSync(path, "utf8");
  } catch {
    // It is not there yet.
  }
  if (before === text) continue;
  if (process.argv.includes("--check")) differing.push(name);
  else writeFileSync(path, text);
}
if (differing.length > 0) {
  console.error(`built/ is not the build of src/: ${differing.join(", ")}; run 'npm run build' and commit it`);
  process.exit(1);
}
