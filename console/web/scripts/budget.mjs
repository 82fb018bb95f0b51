// Fails when the built console is heavier than it may be (docs/console.md). Sizes are those of the gzip forms, and of the font.
import { readdirSync, statSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const dist = new URL("../../dist/", import.meta.url).pathname;
const kB = 1000;
const files = readdirSync(dist, { recursive: true }).map(String).filter((f) => /\.(gz|woff2)$/.test(f));
const size = (f) => statSync(dist + f).size;
const index = gunzipSync(readFileSync(`${dist}index.html.gz`)).toString();
const entry = /<script type="module"[^>]* src="\.\/([^"]+)"/.exec(index)?.[1];
if (!entry) throw new Error("index.html names no module");
const preloaded = [...index.matchAll(/<link rel="modulepreload"[^>]* href="\.\/([^"]+)"/g)].map((m) => m[1]);
const first = new Set([entry, ...preloaded].map((f) => `${f}.gz`));
const isAPIPage = (f) => /\/(swagger|ApiPage|api-page)/i.test(f);
// CodeMirror, loaded when a definition is edited.
const isEditor = (f) => /\/Editor-/.test(f);
const isPage = (f) => !isAPIPage(f) && !isEditor(f);

const sum = (fs) => fs.reduce((n, f) => n + size(f), 0);
const scripts = files.filter((f) => f.endsWith(".js.gz"));
const rows = [
  ["entry script", sum([...first]), 130 * kB],
  ["styles", sum(files.filter((f) => f.endsWith(".css.gz") && !isAPIPage(f))), 15 * kB],
  ["font", sum(files.filter((f) => f.endsWith(".woff2"))), 60 * kB],
  ...scripts.filter((f) => !first.has(f) && isPage(f)).map((f) => [`chunk ${f}`, size(f), 60 * kB]),
  ["editor", sum(scripts.filter(isEditor)), 140 * kB],
  ["all but the API page and the editor", sum(files.filter(isPage)), 410 * kB],
  ["API page", sum(files.filter(isAPIPage)), 520 * kB],
];
let over = 0;
for (const [what, bytes, limit] of rows) {
  const bad = bytes > limit;
  over += bad;
  console.log(`${bad ? "OVER" : " ok "}  ${(bytes / kB).toFixed(1).padStart(6)} of ${limit / kB} kB  ${what}`);
}
process.exit(over ? 1 : 0);
