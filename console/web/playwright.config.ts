import { defineConfig } from "@playwright/test";

// The system's Chromium: browsers are not downloaded.
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export default defineConfig<object, { basePath: string }>({
  testDir: "e2e",
  timeout: 30_000,
  expect: { timeout: 5_000 },
  fullyParallel: true,
  workers: 2,
  forbidOnly: Boolean(process.env.CI),
  // A browser on a machine that does other things may be late. What fails thrice is wrong.
  retries: process.env.CI ? 2 : 0,
  reporter: [["list"]],
  projects: [
    { name: "root" },
    // What makes or follows an address, asks, streams, loads or saves is seen below a path too.
    {
      name: "below a path",
      use: { basePath: "/a/b" },
      grep: /C1[abc] |C2[ab] |C2 a pasted|C3c|C4a|C4 a place|C6[af]|C8|C11|C12|C13|C14|Media/,
      grepInvert: /@slow/,
    },
  ],
  use: {
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    timezoneId: "UTC",
    trace: "off",
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args },
  },
});
