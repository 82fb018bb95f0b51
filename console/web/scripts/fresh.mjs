// Fails unless console/dist is what the sources build to. Contents are compared, since each zlib compresses in its own way.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";

const web = new URL("..", import.meta.url).pathname;
const built = mkdtempSync(join(tmpdir(), "waybill-console-"));
const list = (dir) => readdirSync(dir, { recursive: true }).map(String).filter((f) => statSync(join(dir, f)).isFile()).sort();
const forms = (f) => (f.endsWith(".woff2") ? [f] : [`${f}.br`, `${f}.gz`]);
let stale = false;
try {
  execFileSync("npx", ["vite", "build", "--outDir", built, "--logLevel", "warn"], { cwd: web, stdio: "inherit" });
  const want = list(built).flatMap(forms).sort();
  const have = list(join(web, "../dist"));
  stale = want.join() !== have.join();
  for (const f of stale ? [] : have) {
    const bytes = readFileSync(join(web, "../dist", f));
    const plain = f.endsWith(".br") ? brotliDecompressSync(bytes) : f.endsWith(".gz") ? gunzipSync(bytes) : bytes;
    stale ||= !plain.equals(readFileSync(join(built, f.replace(/\.(br|gz)$/, ""))));
  }
} finally {
  rmSync(built, { recursive: true });
}
if (stale) {
  console.error("console/dist is not what console/web builds to: run `make console` and commit what changes");
  process.exit(1);
}
