import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// A host to develop against: WAYBILL_URL and WAYBILL_KEY, with the defaults of `waybill dev`.
const host = process.env.WAYBILL_URL ?? "http://127.0.0.1:8080";
const key = process.env.WAYBILL_KEY ?? "dev-key";
const proxied = { target: host, changeOrigin: true, headers: { Authorization: `Bearer ${key}` } };

// The script that sets the theme blocks the first paint, so it is no module and has to be put in by hand.
function themeBoot(): Plugin {
  const source = readFileSync(new URL("src/app/theme-boot.js", import.meta.url), "utf8");
  const name = `assets/theme-${createHash("sha256").update(source).digest("base64url").slice(0, 8)}.js`;
  return {
    name: "theme-boot",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: name, source });
    },
    transformIndexHtml: () => [{ tag: "script", attrs: { src: `./${name}` }, injectTo: "head-prepend" }],
  };
}

// The font is needed by the first paint, and a browser finds it in the styles only.
function preloadFont(): Plugin {
  return {
    name: "preload-font",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler: (_html, { bundle }) =>
        Object.keys(bundle ?? {})
          .filter((file) => file.endsWith(".woff2"))
          .map((file) => ({ tag: "link", attrs: { rel: "preload", as: "font", type: "font/woff2", crossorigin: true, href: `./${file}` }, injectTo: "head" as const })),
    },
  };
}

// The server looks for exactly these bytes to say where it is (console.go), so they stay as they are written in index.html.
function keepBaseMark(): Plugin {
  return {
    name: "keep-base-mark",
    enforce: "post",
    transformIndexHtml: (html) => html.replace(/ \/>/g, ">").replace('<meta name="waybill-base" content="/" >', '<meta name="waybill-base" content="/">'),
  };
}

export default defineConfig(({ command }) => ({
  base: command === "serve" ? "/console/" : "./",
  plugins: [react(), themeBoot(), preloadFont(), keepBaseMark()],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2023",
    sourcemap: false,
    assetsInlineLimit: 0, // a data: URL is no asset of ours
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: "es" as const },
  server: {
    port: Number(process.env.PORT ?? 5173),
    strictPort: true,
    proxy: { "/v1": proxied, "/.well-known": proxied, "/schemas": proxied, "/console/session": proxied, "/console/config.json": proxied },
  },
  test: { include: ["src/**/*.test.{ts,tsx}"] },
}));
