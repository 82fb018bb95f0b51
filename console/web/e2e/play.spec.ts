import type { Page } from "@playwright/test";
import { expect, expectAccessible, signIn, test, watch } from "./fixtures";
import { key, readKey } from "./host";
import { asking, kind, program, triage } from "./model";
import { expectAccessibleEverywhere } from "./themes";

const card = (page: Page, name: string) => page.getByRole("article", { name });
const figure = (page: Page, variant: string, name: string) => card(page, variant).locator("dl > div").filter({ has: page.getByText(name, { exact: true }) });

async function expectFits(page: Page): Promise<void> {
  await expectAccessibleEverywhere(page);
  const size = page.viewportSize() ?? { width: 1280, height: 800 };
  for (const width of [390, 1024, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    expect.soft(await page.evaluate(() => document.documentElement.scrollWidth), `at ${width}`).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize(size);
}

test("edit the prompt in the playground until it passes, and save the workflow as a new version", async ({ signedIn: page, host }) => {
  await asking(host, "playing", { envelopeType: kind });
  const wrong = JSON.stringify(triage({ priority: "whenever" }));
  await program(host, "playing", wrong, wrong, wrong, wrong, wrong);
  const runId = await host.runUntil("playing", ["failed"]);
  await page.goto(`${host.console}runs/${runId}`);
  await page.getByRole("complementary", { name: "Node playing" }).getByRole("link", { name: "Open in the playground" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Playground: playing");
  await expect(figure(page, "Recorded", "Passed")).toContainText("0 of 1");
  await expect(page.getByRole("button", { name: "Save as a new version…" })).toBeDisabled();

  // The first try is refused as well.
  const prompt = page.getByLabel("Prompt, optional");
  await expect(prompt).toHaveValue("Sort this mail");
  await prompt.fill("Sort this mail with care");
  await program(host, "playing", wrong, wrong, wrong, wrong, wrong);
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await expect(figure(page, "Variant 1", "Passed")).toContainText("0 of 1");
  await expect(card(page, "Variant 1")).toContainText("1 change: prompt");
  await expect(card(page, "Variant 1").getByRole("region", { name: /^Ladder of playing/ })).toContainText("refused");

  await prompt.fill("Sort this mail. Priority is low, normal or urgent.");
  const right = JSON.stringify(triage());
  await program(host, "playing", right, right, right);
  await page.getByLabel("How many times").fill("3");
  await page.getByRole("button", { name: "Try 3 times" }).click();
  await expect(figure(page, "Variant 2", "Passed")).toContainText("3 of 3");
  await expect(figure(page, "Variant 2", "Model")).toContainText("mock-mini");
  await expect(figure(page, "Variant 2", "Tokens out")).toContainText(/\d/);
  await card(page, "Variant 2").locator("summary").filter({ hasText: /accepted|completed/i }).first().click();
  await expect(card(page, "Variant 2").getByRole("region", { name: /^Ladder of playing/ })).toContainText("passed");
  await expectFits(page);

  // The tries are runs, so they are there after a reload.
  await page.reload();
  await expect(figure(page, "Variant 2", "Passed")).toContainText("3 of 3");
  const { runs } = await host.json<{ runs: { runId: string }[] }>("GET", "/v1/runs?tag=playground&workflowId=playing");
  expect(runs).toHaveLength(4);

  await prompt.fill("Sort this mail. Priority is low, normal or urgent.");
  await page.getByRole("button", { name: "Save as a new version…" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Edit playing");
  await expect(page.getByLabel("Version", { exact: true })).toHaveValue("1.1");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page).toHaveURL(/workflows\/playing$/);
  const saved = await host.json<{ version: string; nodes: { config: object }[] }>("GET", "/v1/workflows/playing");
  expect(saved).toMatchObject({ version: "1.1", nodes: [{ config: { prompt: "Sort this mail. Priority is low, normal or urgent.", envelopeType: kind } }] });
});

test("a builder sees why a setting is refused, and no run is started", async ({ signedIn: page, host }) => {
  await asking(host, "declining");
  await program(host, "declining", "fine");
  const runId = await host.runUntil("declining", ["completed"]);
  await page.goto(`${host.console}runs/${runId}/nodes/declining/play`);
  await page.getByLabel("Temperature, optional").fill("9");
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await expect(page.getByRole("form", { name: "Settings" })).toContainText("/config/temperature");
  await page.getByLabel("How many times").fill("11");
  await expect(page.getByText("Enter a number from 1 to 10.")).toBeVisible();
  await expectAccessible(page);
  const { runs } = await host.json<{ runs: unknown[] }>("GET", "/v1/runs?workflowId=declining");
  expect(runs).toHaveLength(1);

  // A provider may be known to another host, so the run fails, with its reason.
  await page.getByLabel("Temperature, optional").fill("");
  await page.getByLabel("How many times").fill("1");
  await page.getByLabel("Provider, optional").fill("nowhere");
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await expect(card(page, "Variant 1")).toContainText("provider_not_supported");
  await expect(figure(page, "Variant 1", "Passed")).toContainText("0 of 1");
  await expectAccessible(page);
});

test("a builder branches a run with other outputs of a node, or other messages to its model", async ({ signedIn: page, host }) => {
  await host.workflow("outputs", [
    { id: "outputs", typeId: "core.ai.callPrompt", config: { provider: "mock", model: "mock-mini", prompt: "Read" } },
    { id: "keep", typeId: "core.identity", inputs: { said: { type: "connection", nodeId: "outputs", outputKey: "output" } } },
  ]);
  await program(host, "outputs", "a complaint");
  const runId = await host.runUntil("outputs", ["completed"]);
  const started = (await host.events(runId)).find((e) => e.type === "node.started" && e.nodeId === "outputs")?.sequence ?? 0;
  await page.goto(`${host.console}runs/${runId}?e=${started}`);
  await page.getByRole("complementary", { name: "Node outputs" }).getByRole("button", { name: "Edit the outputs…" }).click();
  const dialog = page.getByRole("dialog", { name: "Edit the outputs of outputs" });
  await expect(dialog.getByRole("button", { name: "Branch with these outputs" })).toBeDisabled();
  await dialog.getByLabel("output", { exact: true }).fill("a compliment");
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Branch with these outputs" }).click();
  await expect(page).not.toHaveURL(new RegExp(runId));
  await expect(page.locator("main")).toContainText("edited: outputs (outputs)");
  const branch = new URL(page.url()).pathname.split("/").at(-1) as string;
  await host.until(branch, ["completed"]);
  expect(await host.json("GET", `/v1/runs/${branch}`)).toMatchObject({ variables: { said: "a compliment" } });
  expect((await host.events(branch)).filter((e) => e.type === "provider.usage")).toEqual([]);

  await program(host, "outputs", "praise");
  await page.goto(`${host.console}runs/${runId}?e=${started}`);
  await page.getByRole("button", { name: "Edit the messages…" }).click();
  const edited = page.getByRole("dialog", { name: "Edit the messages of outputs" });
  const send = edited.getByRole("button", { name: "Branch with these messages" });
  await expect(send).toBeDisabled();
  await edited.getByLabel("Message 1", { exact: true }).fill("Read {{nothing}}"); // no template
  await edited.getByRole("button", { name: "Add a message" }).click();
  await expect(send).toBeDisabled();
  await edited.getByLabel("Message 2", { exact: true }).fill("A letter");
  await edited.getByRole("button", { name: "Add a message" }).click();
  await edited.getByRole("button", { name: "Remove message 3" }).click();
  await expectAccessible(page);
  await send.click();
  await expect(page.locator("main")).toContainText("edited: outputs (settings)");
  const other = new URL(page.url()).pathname.split("/").at(-1) as string;
  await host.until(other, ["completed"]);
  expect(await host.json("GET", `/v1/runs/${other}`)).toMatchObject({ variables: { said: "praise" } });
  const sent = (await host.events(other)).find((e) => e.type === "prompt.composed")?.payload.composed as string;
  expect(JSON.parse(sent)).toMatchObject({ messages: [{ role: "user", content: "Read {{nothing}}" }, { role: "assistant", content: "A letter" }] });
});

test("a builder goes on after a failed node, with outputs of its own", async ({ signedIn: page, host }) => {
  await host.workflow("failing", [
    { id: "failing", typeId: "core.ai.callPrompt", config: { provider: "mock", model: "mock-mini", prompt: "Read" } },
    { id: "keep", typeId: "core.identity", inputs: { said: { type: "connection", nodeId: "failing", outputKey: "output" } } },
  ]);
  await program(host, "failing", { stopReason: "safety", refusalText: "no" });
  const runId = await host.runUntil("failing", ["failed"]);
  await page.goto(`${host.console}runs/${runId}`);
  await page.getByRole("complementary", { name: "Node failing" }).getByRole("button", { name: "Edit the outputs…" }).click();
  const dialog = page.getByRole("dialog", { name: "Edit the outputs of failing" });
  await dialog.getByLabel("output", { exact: true }).fill('{"kind": "complaint"}');
  await dialog.getByRole("button", { name: "Branch with these outputs" }).click();
  await expect(page).not.toHaveURL(new RegExp(runId));
  const branch = new URL(page.url()).pathname.split("/").at(-1) as string;
  await host.until(branch, ["completed"]);
  expect(await host.json("GET", `/v1/runs/${branch}`)).toMatchObject({ variables: { said: { kind: "complaint" } } });
});

const flow = (version: string): object => ({ id: "promoted", name: "Promoted", version, nodes: [{ id: "first", typeId: "core.noop", name: version }] });

test("a builder makes an older version current again, and deletes versions and the workflow", async ({ signedIn: page, host }) => {
  await host.json("POST", "/v1/workflows", JSON.stringify(flow("1.0"), undefined, 3)); // its bytes matter
  await host.json("POST", "/v1/workflows", flow("1.1"));
  await page.goto(`${host.console}workflows/promoted?view=versions`);
  await page.getByRole("button", { name: "Make current: version 1.0" }).click();
  await expectAccessible(page);
  await page.getByRole("dialog").getByRole("button", { name: "Make current" }).click();
  await expect(page.getByRole("row", { name: /^1\.0 current/ })).toBeVisible();
  expect(await host.json("GET", "/v1/workflows/promoted")).toMatchObject({ version: "1.0" });

  await page.getByRole("button", { name: "Delete version 1.1" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete the version" }).click();
  await expect(page.getByRole("row", { name: /^1\.1/ })).toHaveCount(0);
  await expectFits(page);
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("dialog", { name: "Delete this workflow" }).getByRole("button", { name: "Delete the workflow" }).click();
  await expect(page).toHaveURL(/workflows$/);
  expect((await host.call("GET", "/v1/workflows/promoted")).status).toBe(404);
});

test("a reader sees neither the playground nor edits", async ({ page, host }) => {
  const faults: string[] = [];
  watch(page, faults);
  await signIn(page, host, key);
  await asking(host, "looked-at");
  await program(host, "looked-at", "fine");
  const runId = await host.runUntil("looked-at", ["completed"]);
  await signIn(page, host, readKey);
  await page.goto(`${host.console}runs/${runId}`);
  const panel = page.getByRole("complementary", { name: "Node looked-at" });
  await expect(panel).toBeVisible();
  await expect(panel.getByRole("link", { name: "Open in the playground" })).toHaveCount(0);
  await expect(panel.getByRole("button", { name: "Edit the outputs…" })).toHaveCount(0);
  await page.goto(`${host.console}runs/${runId}/nodes/looked-at/play`);
  await expect(page.getByText("Your key needs the scopes runs:create, runs:read and workflows:write")).toBeVisible();
  await expect(page.getByRole("button", { name: "Try", exact: true })).toBeDisabled();
  expect(faults).toEqual([]);
});
