import { availableParallelism, loadavg } from "node:os";
import { AxeBuilder } from "@axe-core/playwright";
import { test as base, expect, type Page } from "@playwright/test";
import { Host, key, prepare } from "./host";

type Workers = { host: Host; basePath: string };
type Tests = { signedIn: Page; faults: string[] };

/** Tests share a host for each worker; `signedIn` is a page with a session, whose console and policy must not complain. */
export const test = base.extend<Tests, Workers>({
  basePath: ["", { option: true, scope: "worker" }],
  host: [
    async ({ basePath }, use) => {
      const host = new Host(basePath);
      await host.start();
      await prepare(host);
      await use(host);
      await host.remove();
    },
    { scope: "worker" },
  ],
  faults: async ({}, use) => {
    await use([]);
  },
  signedIn: async ({ page, host, faults }, use) => {
    watch(page, faults);
    await signIn(page, host, key);
    await use(page);
    expect(faults).toEqual([]);
  },
});

export { expect };

export async function signIn(page: Page, host: Host, credential: string): Promise<void> {
  const answer = await page.request.post(`${host.console}session`, {
    data: { key: credential },
    headers: { "X-Waybill-Console": "1", Origin: new URL(host.url).origin },
  });
  expect(answer.status()).toBe(204);
}

/** Collects what should never be: errors of scripts, breaches of the policy, requests to other hosts. */
export function watch(page: Page, faults: string[]): void {
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !text.startsWith("Failed to load resource")) faults.push(`console: ${text}`);
  });
}

/** Skips what is held against the clock while others keep the machine busy: then the clock says more of them than of us. */
export function needsAQuietMachine(): void {
  const load = loadavg()[0] ?? 0;
  test.skip(load > 4 * availableParallelism(), `the machine is busy with something else (load ${load.toFixed(1)})`);
}

/** No violation of the rules of WCAG 2.2 AA, or of good practice. */
export async function expectAccessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]).analyze();
  expect.soft(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`)).toEqual([]);
}
