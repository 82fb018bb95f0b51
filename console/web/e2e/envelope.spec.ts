import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "@playwright/test";
import { expect, expectAccessible, signIn, test, watch } from "./fixtures";
import { Host, key } from "./host";
import { asking, envelope, kind, picture, program, triage } from "./model";
import { expectAccessibleEverywhere } from "./themes";

const states = async (page: Page): Promise<string[]> => {
  const chosen = page.locator("table.ladder tbody td.rung.chosen");
  await expect(chosen).toHaveCount(8);
  return (await chosen.evaluateAll((cells) => cells.map((c) => c.querySelector(".rung-word")?.textContent ?? ""))) as string[];
};
const passed = "passed";
const later = "not reached";
const section = (page: Page, name: string): Locator => page.getByRole("region", { name, exact: true });

test("C4a a kind outside the contract is stopped at gate 4, with the kinds that are accepted", async ({ signedIn: page, host }) => {
  await asking(host, "c4a", { envelopeContract: { accepts: [kind] } });
  await program(host, "c4a", envelope("media.image", picture()));
  const runId = await host.runUntil("c4a", ["failed"]);
  await page.goto(`${host.console}runs/${runId}/envelopes`);
  await expect(page.getByRole("heading", { level: 1, name: "media.image" })).toBeVisible();
  expect(await states(page)).toEqual([passed, passed, passed, "refused", later, later, later, later]);
  await expect(page.locator(".verdict")).toContainText("Stopped at gate 4 of 8, contract: media.image");
  await expect(page.locator(".verdict code")).toHaveText("envelope_contract_violation");
  const refused = section(page, "Refused at contract");
  await expect(refused.getByText("media.image", { exact: true })).toBeVisible();
  for (const accepted of ["clarification.request", "error", kind]) await expect(refused.locator(".chip", { hasText: accepted })).toBeVisible();
  await expectAccessible(page);
});

test("C4 find why an answer was refused, two clicks from the list of runs", async ({ signedIn: page, host }) => {
  await asking(host, "c4-way", { envelopeContract: { accepts: [kind] } });
  await program(host, "c4-way", envelope("media.image", picture()));
  const runId = await host.runUntil("c4-way", ["failed"]);
  await page.goto(`${host.console}?filter=workflow%3Ac4-way`);
  await page.locator(`a[href$="${runId}"]`).click();
  await page.getByRole("link", { name: "Show the model's answer" }).click();
  await expect(page.locator(".verdict")).toContainText("Stopped at gate 4 of 8, contract: media.image");

  // A completed run has the same path; without model calls it ends with an explanation.
  await page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link").click();
  await expect(page.getByRole("navigation", { name: "Views of this run" }).getByRole("link", { name: "Answers" })).toBeVisible();
  await page.goto(`${host.console}runs/${await host.runUntil("fail", ["failed"])}`);
  await expect(page.getByRole("button", { name: "Failed at fail" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Show the model's answer" })).toHaveCount(0);
  await page.getByRole("link", { name: "Answers" }).click();
  await expect(page.getByText("No model has been called in this run yet")).toBeVisible();
});

test("C4b two schema violations and an acceptance are three attempts, with the failing places", async ({ signedIn: page, host }) => {
  await asking(host, "c4b", { envelopeType: kind });
  const { summary: _, ...short } = triage();
  await program(host, "c4b", JSON.stringify(triage({ category: "bills" })), JSON.stringify(short), JSON.stringify(triage()));
  const runId = await host.runUntil("c4b", ["completed"]);
  const accepted = (await host.events(runId)).find((e) => e.type === "artifact.created");
  await page.goto(`${host.console}runs/${runId}/envelopes`);
  await expect(page.locator(".verdict")).toContainText("Accepted on attempt 3 after two schema violations");
  await expect(page.locator("table.ladder thead th a")).toHaveText([/Attempt 1 of 3/, /Attempt 2 of 3.*schema violation/s, /Attempt 3 of 3.*schema violation/s]);
  await expect(page.getByRole("link", { name: `#${accepted?.sequence} artifact.created` })).toHaveAttribute("href", new RegExp(`/runs/${runId}\\?e=${accepted?.sequence}$`));

  await page.locator("table.ladder thead th a").first().click();
  expect(await states(page)).toEqual([passed, passed, "refused", later, later, later, later, later]);
  await expect(section(page, "Payload").locator(".marked")).toContainText("category");
  await expect(section(page, "Payload").locator(".marked")).toContainText("bills");
  await expect(section(page, "Schema").locator(".marked")).toContainText("enum");

  await expect(section(page, "What changed")).toHaveCount(0); // nothing was given before
  await page.locator("table.ladder thead th a").nth(1).click();
  const changed = section(page, "What changed");
  await expect(changed.getByRole("heading")).toHaveText("What changed since attempt 1");
  await expect(changed.getByRole("row")).toHaveText([/path.*attempt 1.*attempt 2/, /\/category.*bills.*billing/, /\/summary.*nothing/]);
  await expect(page.getByText("Correction sent to the model:")).toContainText("not one of the allowed values");
  await expect(section(page, "Payload").locator(".missing")).toHaveText("summary is missing");
  await expect(section(page, "Schema").locator(".marked")).toContainText("summary");
  await page.reload();
  await expect(section(page, "Payload").locator(".missing")).toBeVisible();
  await expectAccessibleEverywhere(page);
});

test("C4c a truncated attempt has its tokens and more room, and no correction", async ({ signedIn: page, host }) => {
  await asking(host, "c4c", { envelopeType: kind, maxTokens: 64 });
  const cut = { content: '{"reasoning":"cha', stopReason: "max_tokens", outputTokens: 64 };
  await program(host, "c4c", cut, JSON.stringify(triage()));
  const runId = await host.runUntil("c4c", ["completed"]);
  await page.goto(`${host.console}runs/${runId}/envelopes`);
  await expect(page.getByText("No correction was added")).toContainText("up to 128 tokens");
  await page.locator("table.ladder thead th a").first().click();
  await expect(section(page, "Truncated")).toContainText("Truncated after 64 tokens");
  await expect(page.getByText("Correction sent to the model")).toHaveCount(0);
  expect(await states(page)).toEqual(Array.from({ length: 8 }, () => later));

  await program(host, "c4c", cut, cut, cut);
  const exhausted = await host.runUntil("c4c", ["failed"]);
  await page.goto(`${host.console}runs/${exhausted}/envelopes`);
  await expect(page.locator(".verdict")).toContainText("Given up after three attempts: three truncations");
  await expect(page.locator(".verdict code")).toHaveText("envelope_truncation_unrecoverable");
});

test("C4d a refusal is one attempt that is not retried", async ({ signedIn: page, host }) => {
  await asking(host, "c4d", { envelopeType: kind });
  await program(host, "c4d", { stopReason: "safety", refusalText: "That is nothing for me" });
  const runId = await host.runUntil("c4d", ["failed"]);
  await page.goto(`${host.console}runs/${runId}/envelopes`);
  await expect(page.locator("table.ladder thead th a")).toHaveCount(1);
  await expect(page.locator(".verdict")).toContainText("not retried");
  const declined = section(page, "Declined");
  await expect(declined.getByText("envelope_refusal")).toBeVisible();
  await expect(declined).toContainText("“That is nothing for me”");
  await expectAccessible(page);
});

test("C4e a duplicate has the earlier outcome, and no new events", async ({ signedIn: page, host }) => {
  await asking(host, "c4e", { envelopeType: kind });
  const doubt = { type: "error", payload: { code: "ambiguous_intent", message: "two mails in one" } };
  const both = (payload: object): string => JSON.stringify([doubt, { type: kind, payload }]);
  await program(host, "c4e", both(triage({ category: "bills" })), both(triage()));
  const runId = await host.runUntil("c4e", ["completed"]);
  await page.goto(`${host.console}runs/${runId}/envelopes`);
  const repeated = page.locator("table.ladder tfoot td", { hasText: "cached outcome" });
  await expect(repeated).toHaveCount(1);
  await page.locator("table.ladder thead th a").nth(2).click();
  await expect(page.getByRole("heading", { level: 2, name: "Duplicate: cached outcome, no new events" })).toBeVisible();
  await expect(page.locator("td.rung.chosen", { hasText: "no new events" })).toBeVisible();
});

test("C4f a substitution names both models and what the first lacked; hidden coordinates stay hidden", async ({ signedIn: page, host, browser }) => {
  const sort = [{ id: "sort", typeId: "vendor.acme.desk.sort" }];
  await host.workflow("c4f", sort);
  const runId = await host.runUntil("c4f", ["completed", "failed"]);
  await page.goto(`${host.console}runs/${runId}/envelopes`);
  await expect(page.locator(".substitution")).toContainText(/sample·sample-1.*mock·mock-large.*reasoning/s);

  const discreet = new Host("", ["--hide-fallback", "*"]);
  try {
    await discreet.start();
    await discreet.workflow("c4f", sort);
    const hidden = await discreet.runUntil("c4f", ["completed", "failed"]);
    const other = await (await browser.newContext()).newPage();
    await signIn(other, discreet, key);
    await other.goto(`${discreet.console}runs/${hidden}/envelopes`);
    await expect(other.locator(".substitution .redacted")).toHaveText("redacted");
    await expect(other.locator(".substitution")).not.toContainText("mock-large");
    await other.context().close();
  } finally {
    await discreet.remove();
  }
});

test("Media an image without a description, a foreign address, a sound and a file", async ({ signedIn: page, host }) => {
  await asking(host, "media", { envelopeContract: { accepts: ["media.image", "media.audio", "media.file"] } });
  const requests: string[] = [];
  page.on("request", (r) => requests.push(r.url()));
  const wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
  await program(
    host,
    "media",
    JSON.stringify([
      { type: "media.image", payload: picture() },
      { type: "media.image", payload: { url: "https://evil.example/pixel.png", bytes: 1, mimeType: "image/png" } },
      { type: "media.audio", payload: { base64: wav, bytes: 44, mimeType: "audio/wav", alt: "a bell", durationSeconds: 2 } },
      { type: "media.file", payload: { base64: "aGVsbG8=", bytes: 5, mimeType: "text/plain", name: "hello.txt" } },
    ]),
  );
  const runId = await host.runUntil("media", ["completed"]);
  const columns = page.locator("table.ladder thead th a");
  await page.goto(`${host.console}runs/${runId}/envelopes`);
  await expect(columns).toHaveCount(4);
  await expect(page.getByRole("link", { name: "hello.txt" })).toHaveAttribute("href", /^blob:/);
  await expect(page.getByText("text/plain · 5 bytes")).toBeVisible();
  await columns.nth(2).click();
  await expect(page.getByLabel("a bell")).toHaveAttribute("src", /^blob:/);
  await expect(page.locator("audio")).toHaveAttribute("controls", "");
  await columns.nth(1).click();
  await expect(page.getByText("https://evil.example/pixel.png")).toBeVisible();
  await expect(page.locator("main img")).toHaveCount(0);
  await columns.nth(0).click();
  await expect(page.getByRole("img", { name: "image, no description from the model" })).toBeVisible();
  await expectAccessible(page);
  expect(requests.filter((r) => !r.startsWith(host.url) && !r.startsWith("blob:"))).toEqual([]);
});

test("C4 a place that failed has a link of its own", async ({ signedIn: page, host }) => {
  await asking(host, "c4-place", { envelopeType: kind });
  const { summary: _, ...short } = triage({ category: "bills" });
  await program(host, "c4-place", JSON.stringify(short), JSON.stringify(triage()));
  const runId = await host.runUntil("c4-place", ["completed"]);
  await page.goto(`${host.console}runs/${runId}/envelopes`);
  await page.locator("table.ladder thead th a").first().click();
  const wrong = section(page, "2 things were wrong").or(section(page, "Problems")).getByRole("button", { pressed: false }).first();
  const words = (await wrong.textContent()) ?? "";
  await wrong.click();
  await page.reload();
  await expect(page.getByRole("button", { pressed: true }).filter({ hasText: words })).toBeVisible();
});

test("C5b prose that a model set in Markdown is set, and nothing of it is a link, an image or a request", async ({ page, basePath, faults }) => {
  const kinds = mkdtempSync(join(tmpdir(), "waybill-kinds-"));
  const name = "vendor.e2e.prose";
  writeFileSync(join(kinds, `${name}.schema.json`), JSON.stringify({ type: "object", properties: { text: { type: "string" } }, required: ["text"], additionalProperties: false }));
  const host = new Host(basePath, ["--kinds", kinds]);
  try {
    await host.start();
    await signIn(page, host, key);
    watch(page, faults);
    const foreign: string[] = [];
    page.on("request", (r) => r.url().startsWith(host.url) || foreign.push(r.url()));
    await asking(host, "prose", { envelopeContract: { accepts: [name] } });
    const said = "Two *charges*:\n\n- [the first](https://evil.example/?a)\n- ![the second](https://evil.example/b.png) <img src=https://evil.example/c onerror=alert(1)>";
    await program(host, "prose", JSON.stringify({ type: name, payload: { text: said }, meta: { source: "ai-generation", ts: "2026-01-31T12:00:00Z", rendering: { display: "markdown" } } }));
    const runId = await host.runUntil("prose", ["completed"]);
    await page.goto(`${host.console}runs/${runId}/envelopes`);
    const prose = section(page, "Payload").locator(".markdown");
    await expect(prose.locator("em")).toHaveText("charges");
    await expect(prose.getByRole("listitem")).toHaveCount(2);
    await expect(prose).toContainText("https://evil.example/?a");
    await expect(prose).toContainText("image: the second https://evil.example/b.png");
    await expect(prose).toContainText("<img src=https://evil.example/c onerror=alert(1)>");
    await expect(prose.locator("a, img, [onerror], [href], [src]")).toHaveCount(0);
    await expectAccessibleEverywhere(page);
    expect(foreign).toEqual([]);
    expect(faults).toEqual([]);
  } finally {
    await host.remove();
    rmSync(kinds, { recursive: true, force: true });
  }
});
