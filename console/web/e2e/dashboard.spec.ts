import { readFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expect, signIn, test } from "./fixtures";
import { Host, key, prepare } from "./host";
import { asking, envelope, kind, program, triage } from "./model";
import { expectAccessibleInBothThemes } from "./themes";

/** Prices of the scripted model: a thousandth of a dollar for each token that it writes. */
const prices = {
  version: 1,
  asOf: "2026-11-21",
  models: [{ provider: "mock", model: "mock-mini", capabilities: ["structured-output"], contextTokens: 8000, structuredOutput: "format", prices: { input: 0, output: 1000 } }],
};

/** Runs whose answers are accepted first, corrected and refused, and one that fails. */
async function busy(host: Host): Promise<void> {
  await asking(host, "sorted", { envelopeContract: { accepts: [kind] } });
  const good = envelope(kind, triage());
  await program(host, "sorted", { content: good, outputTokens: 100 });
  await host.runUntil("sorted", ["completed"]);
  await program(host, "sorted", { content: envelope(kind, triage({ priority: "whenever" })), outputTokens: 20 }, { content: good, outputTokens: 30 });
  await host.runUntil("sorted", ["completed"]);
  await program(host, "sorted", { content: envelope("error", { code: "late", message: "too late" }), outputTokens: 10 });
  await host.runUntil("sorted", ["completed", "failed"]);
  await host.runUntil("fail", ["failed"]);
}

const figure = (page: Page, name: string) => page.getByLabel("Figures of the span").locator("div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd");

test("see what the runs of the last hour did, failed with and cost", { tag: "@root" }, async ({ page, basePath }) => {
  test.setTimeout(90_000);
  const folder = mkdtempSync(join(tmpdir(), "waybill-prices-"));
  writeFileSync(join(folder, "models.json"), JSON.stringify(prices));
  const host = new Host(basePath, ["--models", join(folder, "models.json"), "--demo-runs=false"]);
  try {
    await host.start();
    await prepare(host);
    await signIn(page, host, key);
    await page.goto(host.console);
    await page.getByRole("link", { name: "Dashboard" }).click();
    await expect(page.getByText("No runs in this span")).toBeVisible();
    await expect(page.getByRole("link", { name: "Start a run" })).toBeVisible();
    await busy(host);
    await readsTheDashboard(page, host);
    await readsTheQuality(page);
  } finally {
    await host.remove();
    rmSync(folder, { recursive: true });
  }
});

async function readsTheDashboard(page: Page, host: Host): Promise<void> {
  await page.reload();
  await page.getByRole("combobox", { name: "Span of time" }).selectOption("Last hour");
  await expect(figure(page, "Runs started")).toHaveText("4");
  await expect(figure(page, "Model calls")).toHaveText("4");
  await expect(figure(page, "Cost (estimate)")).toHaveText("$0.16");
  const row = (table: string, name: string) => page.getByRole("region", { name: table, exact: true }).getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
  await expect(row("Workflows", "sorted")).toContainText("$0.16");
  await expect(row("Models", "mock·mock-mini")).toContainText("$0.16");
  for (const width of [390, 1024, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    expect.soft(await page.evaluate(() => document.documentElement.scrollWidth), `at ${width}`).toBeLessThanOrEqual(width);
    await expectAccessibleInBothThemes(page);
  }
  await page.getByRole("figure", { name: "Runs that ended" }).getByText("Show the values").click();
  await expect(page.getByRole("region", { name: "Values: Runs that ended" }).getByRole("row")).not.toHaveCount(1);

  await row("Workflows", "sorted").getByRole("link").click();
  await expect(figure(page, "Runs started")).toHaveText("3");
  await page.getByRole("link", { name: "Show all workflows" }).click();
  await expect(figure(page, "Runs started")).toHaveText("4");
  const failures = page.getByRole("region", { name: "Failures by code" });
  await failures.getByRole("link").first().click();
  await expect(page.locator(".run-link").first()).toBeVisible();
  expect(new URL(page.url()).searchParams.get("filter")).toMatch(/^code:\S+ since:1h$/);
  await page.goto(`${host.console}dashboard?span=1h`);
}

async function readsTheQuality(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Quality" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Quality of answers");
  await expect(figure(page, "Answers")).toHaveText("3");
  const why = page.getByRole("region", { name: "Why answers were refused" });
  await expect(why.getByRole("row").filter({ hasText: "schema violation" })).toContainText("payload");
  await page.getByRole("combobox", { name: "Refusals by" }).selectOption("kind");
  await expect(page.getByRole("figure", { name: "Refused answers by kind" })).toContainText(kind);
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    expect.soft(await page.evaluate(() => document.documentElement.scrollWidth), `at ${width}`).toBeLessThanOrEqual(width);
    await expectAccessibleInBothThemes(page);
  }
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as JSON lines" }).click();
  const file = await saved;
  expect(file.suggestedFilename()).toBe("waybill-answers-1h.jsonl");
  const lines = readFileSync(await file.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line) as { outcome: string; workflowId: string; documents: { kind: string; payload: unknown }[] });
  expect(lines.every((line) => line.outcome === "accepted" && line.workflowId === "sorted")).toBe(true);
  expect(lines.at(-1)?.documents[0]).toMatchObject({ kind, payload: triage() });
}

test("rate a node, correct it, and read the feedback on the run", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("steps", ["completed"]);
  await page.goto(`${host.console}runs/${runId}`);
  const node = page.getByRole("complementary", { name: /^Node / });
  await node.getByText("Feedback on the node").click();
  await node.getByRole("radio", { name: "Bad" }).check();
  await node.getByRole("textbox", { name: "Remark (optional)" }).fill("Too short");
  await node.getByRole("button", { name: "Save feedback" }).click();
  await expect(node.getByRole("listitem").filter({ hasText: "Too short" })).toContainText("Rated 1 of 5");
  await node.getByRole("radio", { name: "Correction" }).check();
  await node.getByRole("textbox", { name: "What would have been right" }).fill("A longer one");
  await node.getByRole("button", { name: "Save feedback" }).click();
  await expect(node.getByRole("listitem").filter({ hasText: "A longer one" })).toBeVisible();
  await page.reload();
  await page.getByText("Feedback on the run").click();
  await expect(page.getByRole("listitem").filter({ hasText: "Too short" })).toContainText("on third");
  await expectAccessibleInBothThemes(page);
});

const operator = "hk_test_0b1c2d3e4f5a6978";

test("see what each tenant cost, as an operator only", async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), "waybill-prices-"));
  writeFileSync(join(folder, "models.json"), JSON.stringify(prices));
  const host = new Host("", ["--models", join(folder, "models.json"), "--demo-runs=false", "--api-key", `${operator}=ops:*,tenants:read`]);
  try {
    await host.start();
    await prepare(host);
    await busy(host);
    await signIn(page, host, operator);
    await page.goto(`${host.console}dashboard?span=1h`);
    const row = page.getByRole("region", { name: "Tenants" }).getByRole("row").filter({ has: page.getByRole("rowheader", { name: "default", exact: true }) });
    await expect(row.getByRole("cell")).toHaveText(["4", "1", "4", /\d/, "160", "$0.16", "100 %"]);
    await expectAccessibleInBothThemes(page);
    await signIn(page, host, key);
    await page.goto(`${host.console}dashboard?span=1h`);
    await expect(page.getByRole("region", { name: "Models" })).toBeVisible();
    await expect(page.getByRole("heading", { name: "Tenants" })).toHaveCount(0);
  } finally {
    await host.remove();
    rmSync(folder, { recursive: true });
  }
});
