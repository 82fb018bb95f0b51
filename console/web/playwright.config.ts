import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

// The system's Chromium: browsers are not downloaded.
const windowless = "/usr/bin/chromium-headless-shell";
const chromium = process.env.CHROMIUM ?? (existsSync(windowless) ? windowless : "/usr/bin/chromium");
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export default defineConfig<object, { basePath: string }>({
  testDir: "e2e",
  // The longest, which looks for faults of accessibility in every theme, takes half of it on a slow machine.
  timeout: 60_000,
  expect: { timeout: 15_000 },
  fullyParallel: true,
  workers: 2,
  forbidOnly: Boolean(process.env.CI),
  // A browser on a machine that does other things may be late. What fails thrice is wrong.
  retries: process.env.CI ? 2 : 0,
  reporter: [["list"]],
  projects: [
    { name: "root", testIgnore: /paths\.spec/ },
    // Below a path (C13), every page is opened and pictured, and the tests of sessions, lists, runs, files and answers run
    // again. The others are about what a page shows, which does not depend on its address.
    { name: "below a path", use: { basePath: "/a/b" }, testIgnore: /(access|envelope|forms|operate|pages|play|reviews|workflows)\.spec/, grepInvert: /@timed|@root/ },
  ],
  use: {
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    timezoneId: "UTC",
    trace: "off",
    launchOptions: { executablePath: chromium, args },
  },
});
