import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "@playwright/test";
import { expect, least, signIn, test, timePaint } from "./fixtures";
import { Host, key, prepare, readKey } from "./host";
import { asking, envelope, program } from "./model";
import { expectAccessibleEverywhere } from "./themes";

test("C2a the list is filtered by the host, and the URL contains the filter", async ({ signedIn: page, host }) => {
  await host.runUntil("fail", ["failed"]);
  await host.runUntil("steps", ["completed"]);
  await page.goto(host.console);
  await page.getByRole("searchbox").fill("status:failed");
  await page.keyboard.press("Enter");
  const rows = page.getByRole("table", { name: "Runs" }).getByRole("row");
  await expect(rows.filter({ hasText: "fail" }).first()).toBeVisible();
  await expect(rows.filter({ hasText: "Completed" })).toHaveCount(0);
  expect(new URL(page.url()).searchParams.get("filter")).toBe("status:failed");

  const asked: string[] = [];
  page.on("request", (request) => request.url().includes("/v1/") && asked.push(request.url()));
  await page.reload();
  await expect(rows.filter({ hasText: "fail" }).first()).toBeVisible();
  await expect(rows.filter({ hasText: "Completed" })).toHaveCount(0);
  await expect(page.getByRole("list", { name: "Conditions" })).toContainText("status: failed");
  expect(asked.length).toBeLessThanOrEqual(5); // the list, its feed, the list again, the counts, the views
});

test("C2b a run that starts elsewhere appears within a second, and is said", { tag: "@timed" }, async ({ signedIn: page, host }) => {
  await page.goto(host.console);
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
  const runId = await host.run("wait", { tags: ["just-started"] });
  await expect(page.locator(`a[href$="${runId}"]`)).toBeVisible({ timeout: 1000 });
  await expect(page.getByRole("status")).toHaveText(/new run/);
  await host.json("POST", `/v1/runs/${runId}/cancel`, {});
  await expect(page.getByRole("row").filter({ has: page.locator(`a[href$="${runId}"]`) })).toContainText("Cancelled");
});

test("C2c the list and the command line find the same runs by the same words", async ({ signedIn: page, host }) => {
  for (let i = 0; i < 3; i++) await host.runUntil("fail", ["failed"], { tags: ["c2c"] });
  await host.runUntil("steps", ["completed"], { tags: ["c2c"] });
  const filter = "status:failed tag:c2c since:1h";
  await page.goto(`${host.console}?filter=${encodeURIComponent(filter)}`);
  const links = page.locator(".run-link");
  await expect(links).toHaveCount(3);
  const shown = await links.evaluateAll((all) => all.map((a) => new URL((a as HTMLAnchorElement).href).pathname.split("/").at(-1)));
  const found = host.command("run", "list", "--filter", filter, "-o", "json") as { runs: { runId: string }[] };
  expect(shown).toEqual(found.runs.map((run) => run.runId));
});

test("C2 a pasted id leads to its run, and its event", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("steps", ["completed"]);
  await page.goto(host.console);
  await page.getByRole("searchbox").fill(`ev_${runId}_2`);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 2 })).toContainText("#2");
  expect(new URL(page.url()).pathname).toBe(`${new URL(host.console).pathname}runs/${runId}`);
});

test("C2 an empty list leads to the workflows, and a filter without runs looks different", async ({ signedIn: page, host }) => {
  await page.goto(`${host.console}?filter=${encodeURIComponent("workflow:nobody-has-this")}`);
  await expect(page.getByText("No runs match")).toBeVisible();
  await page.route("**/v1/runs?*", (route) => route.fulfill({ json: { runs: [] } })); // the host has runs of other tests
  await page.goto(host.console);
  await expect(page.getByText("There are no runs yet.")).toBeVisible();
  await expectAccessibleEverywhere(page);
  await page.getByRole("link", { name: "Start a workflow" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Workflows");
});

test("C2 the list links to every page that belongs to no run", async ({ signedIn: page, host }) => {
  for (const [link, title] of [["Compare runs…", "Compare runs"], ["Try an answer…", "Try an answer"], ["Open a file…", "Open a file"]] as const) {
    await page.goto(host.console);
    await page.getByRole("link", { name: link }).click();
    await expect(page.getByRole("heading", { level: 1, name: title })).toBeVisible();
  }
});

test("C2 the filter syntax is listed, and kinds and providers find their runs", { tag: "@root" }, async ({ signedIn: page, host }) => {
  await asking(host, "asks", { envelopeType: "clarification.request" });
  await program(host, "asks", envelope("clarification.request", { questions: [{ id: "q", question: "Which colour?" }] }));
  const runId = await host.runUntil("asks", ["waiting-input"], { tags: ["syntax"] });
  await host.runUntil("steps", ["completed"], { tags: ["syntax"] });
  await page.goto(`${host.console}?filter=${encodeURIComponent("tag:syntax")}`);
  await page.getByText("Filter syntax").click();
  await expectAccessibleEverywhere(page);
  await page.getByRole("list", { name: "Values of kind" }).getByRole("link", { name: "clarification.request" }).click();
  expect(new URL(page.url()).searchParams.get("filter")).toBe("tag:syntax kind:clarification.request");
  await expect(page.locator(`a[href$="${runId}"]`)).toBeVisible();
  await expect(page.getByRole("row").filter({ hasText: "steps" })).toHaveCount(0);

  await page.getByText("Filter syntax").click();
  await page.getByRole("button", { name: "provider:" }).click();
  await expect(page.getByRole("searchbox")).toBeFocused();
  await page.keyboard.type("mock");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("list", { name: "Conditions" })).toContainText("provider: mock");
  await expect(page.locator(`a[href$="${runId}"]`)).toBeVisible();
  await page.goto(`${host.console}?filter=${encodeURIComponent("provider:nobody")}`);
  await expect(page.getByText("No runs match")).toBeVisible();
});

test("C2 a view is saved, picked, changed, shared, renamed and deleted", async ({ signedIn: page, host, browser }) => {
  test.setTimeout(120_000); // it looks for faults of accessibility twice, with two browsers open
  await page.goto(`${host.console}?filter=${encodeURIComponent("status:failed")}&sort=cost`);
  await page.getByText("Columns", { exact: true }).click();
  await page.getByRole("checkbox", { name: "Last node" }).check();
  await page.keyboard.press("Escape");
  await page.getByText("Columns", { exact: true }).click();
  await page.getByRole("button", { name: "Save this view…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name" }).fill("What broke");
  await expectAccessibleEverywhere(page);
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  const saved = page.getByRole("list", { name: "Saved views" });
  const broke = saved.getByRole("link", { name: /^What broke/ });
  await expect(broke).toHaveAttribute("aria-current", "true");

  // It is stored on the host: a browser without anything of its own shows it, with its columns and its order.
  const context = await browser.newContext();
  const other = await context.newPage();
  await signIn(other, host, key);
  await other.goto(host.console);
  await other.getByRole("list", { name: "Saved views" }).getByRole("link", { name: /^What broke/ }).click();
  const address = new URL(other.url()).searchParams;
  expect([address.get("filter"), address.get("sort")]).toEqual(["status:failed", "cost"]);
  await other.getByText("Columns", { exact: true }).click();
  await expect(other.getByRole("checkbox", { name: "Last node" })).toBeChecked();

  // The key that may only look has another subject, and sees what is shared.
  await signIn(other, host, readKey);
  await other.goto(host.console);
  await expect(other.getByRole("table", { name: "Runs" })).toBeVisible();
  await expect(other.getByRole("list", { name: "Saved views" })).toHaveCount(0);
  await page.getByRole("button", { name: "Edit view…" }).click();
  await dialog.getByRole("textbox", { name: "Name" }).fill("Broken today");
  await dialog.getByRole("checkbox", { name: /^Share/ }).check();
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await expect(saved.getByRole("link", { name: /^Broken today/ })).toHaveAttribute("aria-current", "true");
  await other.reload();
  await other.getByRole("link", { name: /^Broken today by key_/ }).click();
  await expect(other.getByRole("button", { name: "Edit view…" })).toHaveCount(0);
  await context.close();

  await page.getByRole("button", { name: "Remove status: failed" }).click();
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect(page.getByRole("button", { name: "Save changes" })).toHaveCount(0);
  await expectAccessibleEverywhere(page);
  await page.goto(host.console);
  await saved.getByRole("link", { name: /^Broken today/ }).click();
  expect(new URL(page.url()).searchParams.get("filter")).toBeNull();
  await page.getByRole("button", { name: "Edit view…" }).click();
  await dialog.getByRole("button", { name: "Delete view" }).click();
  await expect(saved).toHaveCount(0);
});

/** Prices of the scripted model: a thousandth of a dollar for each token that it writes. */
const prices = {
  version: 1,
  asOf: "2026-11-21",
  models: [{ provider: "mock", model: "mock-mini", capabilities: ["structured-output"], contextTokens: 8000, structuredOutput: "format", prices: { input: 0, output: 1000 } }],
};

/** Runs that cost these thousandths of a dollar. */
async function priced(host: Host, costs: number[], tag: string): Promise<string[]> {
  const made: string[] = [];
  await asking(host, tag);
  for (const outputTokens of costs) {
    await program(host, tag, { content: "done", outputTokens });
    made.push(await host.runUntil(tag, ["completed"], { tags: [tag] }));
  }
  return made;
}

const ids = (links: Locator): Promise<string[]> => links.evaluateAll((all) => all.map((a) => new URL((a as HTMLAnchorElement).href).pathname.split("/").at(-1) ?? ""));

test("C2 find the five most expensive runs of the day", { tag: "@root" }, async ({ page, basePath }) => {
  const folder = mkdtempSync(join(tmpdir(), "waybill-prices-"));
  writeFileSync(join(folder, "models.json"), JSON.stringify(prices));
  const host = new Host(basePath, ["--models", join(folder, "models.json")]);
  try {
    await host.start();
    await prepare(host);
    await signIn(page, host, key);
    await findsTheDearest(page, host);
  } finally {
    await host.remove();
    rmSync(folder, { recursive: true });
  }
});

async function findsTheDearest(page: Page, host: Host): Promise<void> {
  const made = await priced(host, [10, 500, 2, 1250, 30, 200], "dear");
  await host.runUntil("steps", ["completed"], { tags: ["dear"] });
  await page.goto(`${host.console}?filter=${encodeURIComponent("tag:dear")}`);
  await page.getByRole("combobox", { name: "Created" }).selectOption("Last 24 hours");
  await page.getByRole("link", { name: "Cost" }).click();
  await expect(page.getByRole("columnheader", { name: "Cost" })).toHaveAttribute("aria-sort", "descending");
  const links = page.locator(".run-link");
  await expect(links).toHaveCount(7);
  const order = [3, 1, 5, 4, 0, 2].map((i) => made[i]);
  await expect(async () => expect((await ids(links)).slice(0, 6)).toEqual(order)).toPass();
  await expect(page.getByRole("row").nth(1)).toContainText("$1.25");
  await expect(page.getByRole("row").nth(7)).toContainText("steps"); // without a cost it comes last
  expect(new URL(page.url()).search).toContain("sort=cost");
  await expectAccessibleEverywhere(page);
  await page.reload();
  await expect(async () => expect((await ids(links)).slice(0, 6)).toEqual(order)).toPass();
  await page.getByRole("link", { name: "Cost" }).click();
  await expect(async () => expect((await ids(links))[0]).toBe(made[2])).toPass();
  const found = host.command("run", "list", "--filter", "tag:dear", "--sort", "cost", "--limit", "5", "-o", "json") as { runs: { runId: string }[] };
  expect(found.runs.map((run) => run.runId)).toEqual(order.slice(0, 5));
}

test("C2 tabs count the runs of each status, and keep the other conditions", async ({ signedIn: page, host }) => {
  for (let i = 0; i < 3; i++) await host.runUntil("fail", ["failed"], { tags: ["tabs"] });
  await host.runUntil("gate", ["waiting-approval"], { tags: ["tabs"] });
  await page.goto(`${host.console}?filter=${encodeURIComponent("tag:tabs")}`);
  const tabs = page.getByRole("navigation", { name: "Status" });
  await expect(tabs.getByRole("link", { name: "All 4" })).toHaveAttribute("aria-current", "true");
  await expect(tabs.getByRole("link", { name: "Needs approval 1" })).toBeVisible();
  await expect(tabs.getByRole("link", { name: "Completed 0" })).toBeVisible();
  await tabs.getByRole("link", { name: "Failed 3" }).click();
  expect(new URL(page.url()).searchParams.get("filter")).toBe("tag:tabs status:failed");
  await expect(page.locator(".run-link")).toHaveCount(3);
  await expect(tabs.getByRole("link", { name: "All 4" })).toBeVisible();
  await host.runUntil("fail", ["failed"], { tags: ["tabs"] });
  await expect(tabs.getByRole("link", { name: "Failed 4" })).toBeVisible();
});

test("C2 columns are chosen, and kept in the browser", async ({ signedIn: page, host }) => {
  await host.runUntil("steps", ["completed"], { tags: ["columns"] });
  await page.goto(`${host.console}?filter=${encodeURIComponent("tag:columns")}`);
  const heading = page.getByRole("columnheader", { name: "Last node" });
  await expect(page.locator(".run-link").first()).toBeVisible();
  await expect(heading).toHaveCount(0);
  await page.getByText("Columns", { exact: true }).click();
  await page.getByRole("checkbox", { name: "Last node" }).check();
  await page.getByRole("checkbox", { name: "Model" }).uncheck();
  await expect(heading).toBeVisible();
  await expectAccessibleEverywhere(page);
  await page.reload();
  await expect(heading).toBeVisible();
  await expect(page.getByRole("columnheader", { name: "Model" })).toHaveCount(0);
});

test("C2 a range of dates is whole local days", { tag: "@root" }, async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("steps", ["completed"], { tags: ["dated"] });
  await page.goto(`${host.console}?filter=${encodeURIComponent("tag:dated")}`);
  const today = new Date().toISOString().slice(0, 10);
  await page.getByRole("combobox", { name: "Created" }).selectOption("Dates…");
  await page.getByLabel("From").fill(today);
  await page.getByLabel("To", { exact: true }).fill(today);
  await expect(page.locator(`a[href$="${runId}"]`)).toBeVisible();
  expect(new URL(page.url()).searchParams.get("filter")).toMatch(/tag:dated since:.* until:/);
  await page.getByLabel("From").fill("2020-01-01");
  await page.getByLabel("To", { exact: true }).fill("2020-01-02");
  await expect(page.getByText("No runs match")).toBeVisible();
  await page.getByRole("link", { name: "Remove the last condition" }).click();
  await expect(page.locator(`a[href$="${runId}"]`)).toBeVisible();
});

test("C2 several runs are cancelled together, and each shows its result", { tag: "@root" }, async ({ signedIn: page, host }) => {
  const made: string[] = [];
  for (let i = 0; i < 3; i++) made.push(await host.runUntil("gate", ["waiting-approval"], { tags: ["bulk"] }));
  await host.runUntil("steps", ["completed"], { tags: ["bulk"] });
  await page.goto(`${host.console}?filter=${encodeURIComponent("tag:bulk")}`);
  await page.getByRole("button", { name: "Select runs…" }).click();
  const boxes = page.getByRole("table").getByRole("checkbox");
  await expect(boxes).toHaveCount(4);
  await page.getByRole("button", { name: "Select all 4 shown" }).click();
  await boxes.nth(1).uncheck();
  await expectAccessibleEverywhere(page);
  await page.getByRole("button", { name: "Cancel 2 runs…" }).click(); // one has ended
  const dialog = page.getByRole("dialog", { name: "Cancel 2 runs" });
  await expect(dialog.getByRole("list", { name: "Runs to cancel" }).getByRole("listitem")).toHaveCount(2);
  await dialog.getByLabel(/^Reason/).fill("not wanted");
  await expectAccessibleEverywhere(page);
  // One of them ends before the confirmation. The first gate of the list is the newest, and stays.
  const [left, ended] = [made[2] as string, made[1] as string];
  await host.json("POST", `/v1/runs/${ended}/interrupts/gate`, { resumeValue: { action: "accept" } });
  await host.until(ended, ["completed"]);
  await dialog.getByRole("button", { name: "Cancel 2 runs" }).click();
  await expect(dialog.getByText("1 run cancelled, 1 had ended before")).toBeVisible();
  await expect(dialog.getByRole("list", { name: "Runs that were not cancelled" })).toContainText("run_terminal");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  expect((await host.events(made[0] as string)).at(-1)).toMatchObject({ type: "run.cancelled", payload: { reason: "not wanted" } });
  expect((await host.json<{ status: string }>("GET", `/v1/runs/${left}`)).status).toBe("waiting-approval");
});

test("C2 all runs of a filter are labelled, started again, exported and deleted", { tag: "@root" }, async ({ signedIn: page, host }) => {
  test.setTimeout(180_000);
  const tag = "whole";
  for (let made = 0; made < 120; made += 20) await Promise.all(Array.from({ length: 20 }, () => host.run("fail", { tags: [tag] })));
  const count = async (filter: string): Promise<number> => (await host.json<{ total: number }>("GET", `/v1/runs:count?filter=${encodeURIComponent(filter)}`)).total;
  const failed = async (): Promise<number> => (await host.json<{ runs: unknown[] }>("GET", `/v1/runs?limit=200&filter=${encodeURIComponent(`tag:${tag} status:failed`)}`)).runs.length;
  await expect(async () => expect(await failed()).toBe(120)).toPass();
  const open = async (verb: string): Promise<Locator> => {
    await page.goto(`${host.console}?filter=${encodeURIComponent(`tag:${tag}`)}`);
    await page.getByRole("button", { name: "Select runs…" }).click();
    await page.getByRole("button", { name: /^Select all \d+ matching runs/ }).click();
    await page.getByRole("button", { name: `${verb} all…` }).click();
    return page.getByRole("dialog");
  };
  let dialog = await open("Label");
  await dialog.getByLabel("Label").fill("seen");
  await expectAccessibleEverywhere(page);
  await dialog.getByRole("button", { name: "Label all 120 matching runs" }).click();
  await expect(dialog.getByText("120 runs labelled")).toBeVisible();

  dialog = await open("Export");
  const download = page.waitForEvent("download");
  await dialog.getByRole("button", { name: /^Export all/ }).click();
  await expect(dialog.getByText("120 runs exported")).toBeVisible();
  const lines = readFileSync(await (await download).path(), "utf8").trim().split("\n");
  expect(lines).toHaveLength(120);
  expect(JSON.parse(lines[0] as string)).toHaveProperty("bundleVersion");

  dialog = await open("Retry");
  await dialog.getByRole("button", { name: /^Retry all/ }).click();
  await expect(dialog.getByText("120 runs started again")).toBeVisible();
  await expect(async () => expect(await count(`tag:${tag} status:failed`)).toBe(240)).toPass();

  dialog = await open("Delete");
  await dialog.getByRole("button", { name: /^Delete all/ }).click();
  await expect(dialog.getByText("240 runs deleted")).toBeVisible({ timeout: 60_000 });
  expect(await count(`tag:${tag}`)).toBe(0);
});

test("C2 an action by filter goes on where an error stopped it", { tag: "@root" }, async ({ signedIn: page, host }) => {
  const tag = "again";
  for (let made = 0; made < 110; made += 22) await Promise.all(Array.from({ length: 22 }, () => host.run("gate", { tags: [tag] })));
  await expect(async () => expect((await host.json<{ runs: unknown[] }>("GET", `/v1/runs?limit=200&filter=${encodeURIComponent(`tag:${tag} status:waiting-approval`)}`)).runs).toHaveLength(110)).toPass();
  await page.goto(`${host.console}?filter=${encodeURIComponent(`tag:${tag}`)}`);
  await page.getByRole("button", { name: "Select runs…" }).click();
  await page.getByRole("button", { name: "Select all 110 matching runs" }).click();
  await page.getByRole("button", { name: "Cancel all…" }).click();
  const keys: (string | undefined)[] = [];
  await page.route("**/v1/runs:bulk-cancel", async (route) => {
    keys.push(route.request().headers()["idempotency-key"]);
    if (keys.length !== 2) return route.continue();
    await route.fetch(); // the host does it, and the answer is lost
    return route.abort();
  });
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: /^Cancel all/ }).click();
  await expect(dialog.getByText("100 runs cancelled")).toBeVisible();
  await dialog.getByRole("button", { name: "Continue" }).click();
  await expect(dialog.getByText("110 runs cancelled")).toBeVisible();
  expect(keys).toHaveLength(3);
  expect(keys[2]).toBe(keys[1]);
  expect(keys[1]).not.toBe(keys[0]);
});

test("C2a a hundred thousand runs do not slow the list down", { tag: "@slow" }, async ({ signedIn: page, host }) => {
  test.setTimeout(3_000_000);
  const want = Number(process.env.RUNS ?? 100_000);
  for (let made = 0; made < want; made += 200) await Promise.all(Array.from({ length: 200 }, (_, i) => host.run(i % 50 === 0 ? "fail" : "steps")));
  await expect(async () => expect((await host.json<{ runs: unknown[] }>("GET", "/v1/runs?status=pending&limit=1")).runs).toEqual([])).toPass({ timeout: 600_000 });

  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  const paint = await timePaint(page, ".run-link");
  for (const [query, kind] of [["", "steps"], [`?filter=${encodeURIComponent("status:failed")}`, "fail"]] as const) {
    const took = await least(1000, 10, async () => {
      await page.goto("about:blank"); // so that no answer is still on its way to the page of before
      requests.length = 0;
      const answer = page.waitForResponse((response) => response.url().includes("/v1/runs?")).then((response) => response.body());
      const ms = await paint(host.console + query);
      expect((await answer).length).toBeLessThan(50_000);
      return ms;
    });
    expect(took).toBeLessThan(1000);
    await expect(page.locator(".run-link")).toHaveCount(50);
    await expect(page.getByRole("row").nth(2)).toContainText(kind);
    // One of them counts the open questions, for the navigation, and one lists the views.
    expect(requests.filter((url) => url.includes("/v1/")).length).toBeLessThanOrEqual(6);
  }
});
