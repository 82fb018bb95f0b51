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
// withMortal has a host of its own, which may be killed, and a page that watches a run of it that waits at a gate.
export async function withMortal(page: Page, basePath: string, query: string, use: (host: Host, runId: string) => Promise<void>): Promise<void> {
  const host = new Host(basePath, ["--durability", "sync"]);
  try {
    await host.start();
    await prepare(host);
    await signIn(page, host, key);
    const runId = await host.runUntil("gate", ["waiting-approval"]);
    await page.goto(`${host.console}runs/${runId}${query}`);
    await expect(page.getByText("Live", { exact: true })).toBeVisible();
    await use(host, runId);
  } finally {
    await host.remove();
  }
}

export function watch(page: Page, faults: string[]): void {
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !text.startsWith("Failed to load resource")) faults.push(`console: ${text}`);
  });
}

/**
 * The least of several measurements, of which no more are made once one keeps the bound. What else the machine does
 * only ever adds to a duration: the least is the nearest to what the page takes by itself.
 */
export async function least(bound: number, rounds: number, measure: () => Promise<number>): Promise<number> {
  const all: number[] = [];
  do all.push(await measure());
  while (Math.min(...all) >= bound && all.length < rounds);
  test.info().annotations.push({ type: "measured", description: `${all.map(Math.round).join(", ")} (bound ${bound})` });
  return Math.min(...all);
}

/** Measures how long pages take from their navigation until something is painted, in ms. */
export async function timePaint(page: Page, selector: string): Promise<(url: string) => Promise<number>> {
  await page.addInitScript((wanted) => {
    const painted = new Promise((resolve) => {
      new MutationObserver((_, observer) => {
        if (!document.querySelector(wanted)) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      }).observe(document, { childList: true, subtree: true });
    });
    Object.assign(window, { painted });
  }, selector);
  return async (url) => {
    await page.goto(url);
    return page.evaluate(() => (window as unknown as { painted: Promise<number> }).painted);
  };
}

const guidelines = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** The rules about colours. A theme changes nothing else. */
const aboutColours = ["color-contrast", "link-in-text-block"];

/** No violation of the rules of WCAG 2.2 AA, or of good practice. */
export async function expectAccessible(page: Page, rules: "all" | "colours" = "all"): Promise<void> {
  await expect(page.locator("h1").first()).toBeAttached(); // a page that is still loading has none
  // No page has frames. Without this mode, each analysis opens a page of its own for the results of all frames.
  const axe = new AxeBuilder({ page }).setLegacyMode();
  const { violations } = await (rules === "all" ? axe.withTags(guidelines) : axe.withRules(aboutColours)).analyze();
  expect(page.frames()).toHaveLength(1);
  expect.soft(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`)).toEqual([]);
}
