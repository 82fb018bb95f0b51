import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, signIn, test, watch } from "./fixtures";
import { Host, key, readKey } from "./host";
import { expectAccessibleEverywhere } from "./themes";
import type { Page } from "@playwright/test";

const widths = [390, 1024, 1440];

/** Accessible in both themes, and no wider than any of the screens. */
async function expectFits(page: Page): Promise<void> {
  await expectAccessibleEverywhere(page);
  const size = page.viewportSize() ?? { width: 1280, height: 800 };
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    expect.soft(await page.evaluate(() => document.documentElement.scrollWidth), `at ${width}`).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize(size);
}

type Definition = { [name: string]: unknown };

const flow = (id: string, more: Definition = {}): Definition => ({
  id,
  name: id,
  version: "1.0",
  nodes: [{ id: "first", typeId: "core.noop" }],
  ...more,
});

const register = (host: Host, definition: Definition): Promise<unknown> => host.json("POST", "/v1/workflows", definition);

/** A workflow with inputs of every kind. */
const order = flow("order-form", {
  name: "Order form",
  description: "Takes an order.",
  nodes: [{ id: "take", typeId: "core.identity", name: "Take the order", inputs: { value: { type: "variable", variableName: "item" } } }],
  variables: [
    { name: "item", type: "string", required: true, description: "What is ordered" },
    { name: "count", type: "number", defaultValue: 2 },
    { name: "tone", type: "string" },
    { name: "gift", type: "boolean" },
    { name: "address", type: "object" },
    { name: "lines", type: "array" },
    { name: "extra", type: "object" },
    { name: "code", type: "string", sensitive: true },
  ],
  configurableSchema: { type: "object", properties: { level: { type: "string", minLength: 2, pattern: "^[a-z]+$" } } },
  metadata: {
    "x-inputSchema": {
      properties: {
        item: { examples: ["lamp", "chair"] },
        count: { type: "integer", minimum: 1, maximum: 9 },
        tone: { enum: ["warm", "cold"] },
        address: { properties: { street: { type: "string" }, zip: { type: "string", pattern: "^\\d{5}$" } }, required: ["zip"] },
        lines: { items: { type: "object", properties: { sku: { type: "string" } }, required: ["sku"] } },
      },
    },
  },
});

test("a builder finds a workflow in the list and sees how its runs went", async ({ signedIn: page, host }) => {
  await register(host, flow("listed", { name: "Listed workflow" }));
  await register(host, flow("listed", { name: "Listed workflow", version: "1.1" }));
  await host.runUntil("listed", ["completed"]);
  const runId = await host.runUntil("listed", ["completed"]);
  await host.runUntil("fail", ["failed"]);
  await page.goto(host.console);
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Workflows" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Workflows");
  const row = (name: string) => page.getByRole("row").filter({ has: page.getByRole("rowheader").getByRole("link", { name, exact: true }) });
  await expect(row("Listed workflow")).toContainText("registered by your tenant");
  await expect(row("Listed workflow").getByRole("cell", { name: /^1\.1/ })).toContainText("2 versions");
  await expect(row("Listed workflow")).toContainText("100 %");
  await expect(row("Listed workflow").getByRole("cell", { name: "$0" })).toBeVisible(); // no model was called
  await expect(row("fail")).toContainText("0 %");
  await expect(row("Support mail triage")).toContainText("shared by the host");
  await expectFits(page);
  await row("Listed workflow").getByRole("link", { name: /^Completed/ }).last().click();
  await expect(page).toHaveURL(new RegExp(runId));
  await page.goBack();
  await page.getByRole("searchbox", { name: "Find workflows" }).fill("listed");
  await expect(page.getByRole("row")).toHaveCount(2);
  await page.getByRole("searchbox", { name: "Find workflows" }).fill("nothing has this name");
  await expect(page.getByText("No workflow matches")).toBeVisible();
});

test("a builder sees a workflow as a graph, and the configuration of a node", async ({ signedIn: page, host }) => {
  await register(host, flow("drawn", {
    name: "Drawn",
    nodes: [
      { id: "ask", typeId: "core.ai.callPrompt", name: "Ask the model", config: { provider: "mock", model: "mock-mini", prompt: "Sort this" } },
      { id: "check", typeId: "core.conditional", config: { expression: "true" } },
      { id: "yes", typeId: "core.noop" },
      { id: "no", typeId: "core.noop" },
    ],
    edges: [
      { id: "e1", sourceNodeId: "ask", targetNodeId: "check" },
      { id: "e2", sourceNodeId: "check", targetNodeId: "yes", condition: { type: "equals", left: "result", right: true } },
      { id: "e3", sourceNodeId: "check", targetNodeId: "no", condition: { type: "equals", left: "result", right: false } },
    ],
  }));
  await page.goto(`${host.console}workflows/drawn`);
  const graph = page.getByRole("region", { name: "Graph" });
  await expect(graph.getByRole("listitem")).toHaveCount(4);
  await expect(graph.getByText("result = true", { exact: true })).toBeVisible();
  const y = async (name: RegExp): Promise<number> => (await graph.getByRole("button", { name }).boundingBox())?.y ?? 0;
  expect(await y(/^Ask the model/)).toBeLessThan(await y(/^check/));
  expect(await y(/^check/)).toBeLessThan(await y(/^yes/));
  await expect(graph.getByRole("button", { name: /^check.*leads to yes \(result = true\), no/ })).toBeVisible();
  await graph.getByRole("button", { name: /^Ask the model/ }).click();
  await expect(page.getByRole("complementary", { name: "Node" })).toContainText("Sort this");
  await expectFits(page);
});

const node = (id: string, prompt: string): object => ({ id, typeId: "core.ai.callPrompt", config: { provider: "mock", model: "mock-mini", prompt } });

test("a workflow's page shows new runs as they come, with their figures", async ({ signedIn: page, host }) => {
  await register(host, flow("watched"));
  await page.goto(`${host.console}workflows/watched?view=runs`);
  await expect(page.getByText("This workflow has no runs yet.")).toBeVisible();
  await host.runUntil("watched", ["completed"]);
  await host.runUntil("watched", ["completed"]);
  await expect(page.getByRole("cell", { name: "Completed" })).toHaveCount(2);
  const figure = (name: string) => page.locator("dl.metrics > div").filter({ has: page.getByText(name, { exact: true }) });
  await expect(figure("Runs")).toContainText("2");
  await expect(figure("Success")).toContainText("100 %");
  await expectAccessibleEverywhere(page);
});

test("a builder compares two versions of a workflow", async ({ signedIn: page, host }) => {
  await register(host, flow("compared", { nodes: [node("a", "Sort"), node("b", "Old words")] }));
  await register(host, flow("compared", { version: "1.1", nodes: [node("b", "New words"), node("c", "Added"), node("a", "Sort")] }));
  await page.goto(`${host.console}workflows/compared`);
  await page.getByRole("navigation", { name: "Views of this workflow" }).getByRole("link", { name: "Versions 2" }).click();
  await page.getByRole("button", { name: "Compare with current: version 1.0" }).click();
  const differences = page.getByRole("region", { name: "Differences" });
  await expect(differences.getByRole("rowheader")).toHaveText(["/version", "/nodes/b/config/prompt", "/nodes/c"]);
  await expect(differences).toContainText("Old words");
  await expect(differences).toContainText("New words");
  await expectFits(page);
  await differences.getByLabel("Old").selectOption("1.1");
  await expect(differences).toContainText("The two versions do not differ.");
  await page.getByRole("combobox", { name: "Version" }).selectOption("1.0");
  await expect(page.getByText("New runs use the current version, not this one.")).toBeVisible();
});

test("start a run with a form, and come to its page", async ({ signedIn: page, host }) => {
  await register(host, order);
  await page.goto(`${host.console}workflows`);
  await page.getByRole("link", { name: "Start a run of Order form" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Start a run of Order form");
  await expect(page.getByRole("textbox", { name: /^item/ })).toHaveAccessibleDescription("What is ordered");
  await expect(page.getByRole("textbox", { name: /^count/ })).toHaveValue("2");
  await expect(page.getByLabel(/^code/)).toHaveAttribute("type", "password");
  await expectFits(page);

  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.getByRole("textbox", { name: /^item/ })).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByRole("textbox", { name: /^item/ })).toBeFocused();
  await page.getByRole("button", { name: "lamp" }).click();
  await expect(page.getByRole("textbox", { name: /^item/ })).toHaveValue("lamp");
  await page.getByRole("textbox", { name: /^count/ }).fill("12");
  await page.getByRole("radio", { name: "cold" }).check();
  await page.getByRole("group", { name: /^gift/ }).getByRole("radio", { name: "Yes" }).check();
  const address = page.getByRole("group", { name: /^address/ });
  await address.getByRole("textbox", { name: /^zip/ }).fill("1234");
  const lines = page.getByRole("group", { name: /^lines/ }).first();
  await lines.getByRole("button", { name: "Add" }).click();
  await lines.getByRole("button", { name: "Add" }).click();
  await lines.getByRole("textbox", { name: /^sku/ }).first().fill("A-1");
  await page.getByRole("textbox", { name: /^extra/ }).fill('{"big": 9007199254740993,');
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.getByRole("textbox", { name: /^extra/ })).toHaveAccessibleDescription(/enter valid JSON/);
  await page.getByRole("textbox", { name: /^extra/ }).fill('{"big": 9007199254740993}');
  await lines.getByRole("button", { name: "Remove lines 2" }).click();
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.getByRole("textbox", { name: /^count/ })).toHaveAccessibleDescription(/at most 9/);
  await expect(address.getByRole("textbox", { name: /^zip/ })).toHaveAccessibleDescription(/must match/);
  await expectAccessibleEverywhere(page);
  await page.getByRole("textbox", { name: /^count/ }).fill("3");
  await address.getByRole("textbox", { name: /^zip/ }).fill("12345");
  await page.getByText("Tags and more").click();
  await page.getByLabel("Tags, separated by commas").fill("by hand, test");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page).toHaveURL(/\/runs\/run_/);
  const runId = new URL(page.url()).pathname.split("/").at(-1) as string;
  await host.until(runId, ["completed"]);
  const answer = await (await host.call("GET", `/v1/runs/${runId}`)).text();
  expect(answer).toContain('"big":9007199254740993');
  expect((JSON.parse(answer) as { inputs: object }).inputs).toMatchObject({ item: "lamp", count: 3, tone: "cold", gift: true, address: { zip: "12345" }, lines: [{ sku: "A-1" }] });
  expect(JSON.parse(answer)).toMatchObject({ tags: ["by hand", "test"] });
});

test("what the host rejects is said at its field, and a lost answer starts no second run", async ({ signedIn: page, host }) => {
  await register(host, flow("refusing", { name: "Refusing", configurableSchema: { type: "object", properties: { "ai.provider": { type: "string" } } } }));
  await page.goto(`${host.console}workflows/refusing/start`);
  const provider = page.getByRole("textbox", { name: /^ai\.provider/ });
  await provider.fill("nowhere");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(provider).toHaveAccessibleDescription(/this host has no provider of that id/);
  await expect(provider).toBeFocused();
  await expectAccessibleEverywhere(page);
  await provider.fill("");
  await page.getByText("Tags and more").click();
  await page.getByLabel("Tags, separated by commas").fill("x".repeat(257));
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.getByRole("alert")).toContainText("/tags/0: want 1 to 256 characters");
  await page.getByLabel("Tags, separated by commas").fill("");
  const sent: string[] = [];
  let lost = true;
  await page.route("**/v1/runs", async (route) => {
    sent.push(route.request().headers()["idempotency-key"] ?? "");
    if (!lost) return route.continue();
    lost = false;
    await route.fetch(); // the host starts the run, and the connection breaks before its answer
    return route.abort();
  });
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.getByRole("alert")).toContainText("The host did not respond.");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page).toHaveURL(/\/runs\/run_/);
  expect(sent).toEqual([sent[0], sent[0]]);
  expect((await host.json<{ runs: object[] }>("GET", "/v1/runs?workflowId=refusing")).runs).toHaveLength(1);
});

test("a person runs a run again with other inputs", async ({ signedIn: page, host }) => {
  await register(host, order);
  const first = await host.runUntil("order-form", ["completed"], { inputs: { item: "desk", address: { zip: "54321" }, lines: [{ sku: "x" }, { sku: "y" }], code: "s3cret-9", other: [1] }, configurable: { level: "high" }, tags: ["morning"] });
  await page.goto(`${host.console}runs/${first}`);
  await page.getByRole("link", { name: "Run again…" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Run Order form again");
  await expect(page.getByRole("textbox", { name: /^item/ })).toHaveValue("desk");
  await expect(page.getByRole("textbox", { name: /^zip/ })).toHaveValue("54321");
  await expect(page.getByRole("textbox", { name: /^sku/ })).toHaveCount(2);
  await expect(page.getByRole("textbox", { name: /^level/ })).toHaveValue("high");
  await expect(page.getByLabel("Tags, separated by commas")).toHaveValue("morning");
  await expect(page.getByLabel(/^code/)).toHaveValue("");
  await expect(page.getByLabel(/^code/)).toHaveAccessibleDescription(/redacted. Enter it again/);
  await page.getByRole("textbox", { name: /^item/ }).fill("table");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page).not.toHaveURL(/start/);
  const again = new URL(page.url()).pathname.split("/").at(-1) as string;
  expect(again).not.toBe(first);
  expect(await host.json("GET", `/v1/runs/${again}`)).toMatchObject({ inputs: { item: "table", other: [1], lines: [{ sku: "x" }, { sku: "y" }] }, configurable: { level: "high" }, tags: ["morning"] });
});

const content = (page: Page) => page.getByRole("textbox", { name: "Definition, as JSON" });
const problems = (page: Page) => page.getByRole("region", { name: "Problems" });

/** Replaces the text of the editor. */
async function write(page: Page, text: string): Promise<void> {
  await content(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

test("save a workflow as a new version, with completion and the checks of the host", async ({ signedIn: page, host }) => {
  await register(host, flow("edited", { name: "Edited", nodes: [{ id: "ask", typeId: "core.ai.callPrompt", config: { provider: "mock", model: "mock-mini", prompt: "Sort this" } }] }));
  await page.goto(`${host.console}workflows/edited`);
  await page.getByRole("link", { name: "Edit", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Edit Edited");
  await expect(page.getByLabel("Version")).toHaveValue("1.1");
  await expect(problems(page)).toContainText("No problems");
  await expectFits(page);

  const definition = flow("edited", { name: "Edited", version: "1.1", nodes: [{ id: "ask", typeId: "core.ai.callPrompt", config: { provider: "mock", model: "mock-mini", promt: "Sort this" } }] });
  await write(page, JSON.stringify(definition, null, 2));
  const finding = problems(page).getByRole("button", { name: /promt/ });
  await expect(finding).toContainText("did you mean prompt?");
  await expect(page.getByRole("button", { name: "Save", exact: true })).toBeDisabled();
  await finding.click();
  await expect(content(page)).toBeFocused();
  await expectAccessibleEverywhere(page);

  await write(page, '{\n  "id": "edited",\n  "name": "Edited",\n  "version": "1.1",\n  "nodes": [{ "id": "ask", "typeId": "core.ai.callPrompt", "config": { "provider": "mock", "model": "mock-mini", ');
  await page.keyboard.type('"prom');
  const option = page.getByRole("option", { name: "prompt", exact: true });
  await expect(option).toBeVisible();
  await option.click();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.type("Sort that");
  await page.keyboard.press("End");
  await page.keyboard.type(" } }]\n}");
  await expect(problems(page)).toContainText("No problems");
  await expect(page.getByText("1 change since version 1.0").or(page.getByText("2 changes since version 1.0"))).toBeVisible();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Edited");
  await expect(page.getByRole("combobox", { name: "Version" })).toHaveValue("1.1");
  expect(await host.json("GET", "/v1/workflows/edited")).toMatchObject({ version: "1.1", nodes: [{ config: { prompt: "Sort that" } }] });
});

test("a save does not override a version that was saved after the editor was opened", async ({ signedIn: page, host }) => {
  await register(host, flow("contended"));
  await page.goto(`${host.console}workflows/contended/edit`);
  await expect(problems(page)).toContainText("No problems");
  await register(host, flow("contended", { version: "1.1", description: "theirs" }));
  const save = page.getByRole("button", { name: "Save", exact: true });
  await save.click();
  await expect(page.getByRole("alert")).toContainText("Version 1.1 was saved by someone else");
  await expectAccessibleEverywhere(page);
  // The same version with other content is refused by the host, whatever is clicked.
  await page.getByLabel("Version").fill("1.1");
  await expect(problems(page)).toContainText("No problems");
  await save.click();
  await page.getByRole("button", { name: "Save anyway" }).click();
  await expect(page.getByRole("alert")).toContainText("a stored version never changes");
  await page.getByLabel("Version").fill("1.2");
  await expect(problems(page)).toContainText("No problems");
  await save.click();
  await page.getByRole("button", { name: "Save anyway" }).click();
  await expect(page.getByRole("combobox", { name: "Version" })).toHaveValue("1.2");
  const { versions } = await host.json<{ versions: { version: string }[] }>("GET", "/v1/workflows/contended/versions");
  expect(versions.map((v) => v.version)).toEqual(["1.2", "1.0", "1.1"]);
});

test("unsaved changes of the editor outlive a reload, and can be discarded", async ({ signedIn: page, host }) => {
  await register(host, flow("drafted"));
  await page.goto(`${host.console}workflows/drafted/edit`);
  await expect(problems(page)).toContainText("No problems");
  await write(page, '{"id": "drafted", "name": "half"');
  await expect(problems(page)).toContainText("1 problem");
  page.on("dialog", (dialog) => void dialog.accept()); // the browser asks before it leaves
  await page.reload();
  await expect(page.getByText("Your unsaved changes were restored.")).toBeVisible();
  await expect(content(page)).toContainText('"name": "half"');
  await page.getByRole("button", { name: "Discard them" }).click();
  await expect(content(page)).not.toContainText("half");
  await expect(problems(page)).toContainText("No problems");
});

test("a workflow of a file says why it cannot be changed, and is saved as a copy", async ({ page, basePath, faults }) => {
  const folder = mkdtempSync(join(tmpdir(), "waybill-flows-"));
  writeFileSync(join(folder, "mail.json"), JSON.stringify(flow("mail", { name: "Mail" })));
  const host = new Host(basePath, ["--workflows", folder]);
  try {
    await host.start();
    watch(page, faults);
    await signIn(page, host, key);
    await page.goto(`${host.console}workflows/mail`);
    await expect(page.getByText("This workflow is read from the host's file mail.json")).toBeVisible();
    await expect(page.getByRole("link", { name: "Edit", exact: true })).toHaveCount(0);
    await expectFits(page);
    await page.goto(`${host.console}workflows/mail/edit`);
    await expect(page.getByText("This workflow is read from the host's file mail.json")).toBeVisible();
    await page.getByRole("link", { name: "Save as a copy…" }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Copy Mail");
    await expect(problems(page)).toContainText("No problems");
    // With the id of the file's workflow, a copy would hide it.
    await write(page, JSON.stringify(flow("mail", { name: "Mine", version: "7" })));
    await expect(problems(page)).toContainText("hides version 1.0 of the file mail.json");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByRole("alert")).toContainText("would hide it from your tenant");
    await write(page, JSON.stringify(flow("mail-copy", { name: "Mine" })));
    await expect(problems(page)).toContainText("No problems");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Mine");
    await expect(page.getByRole("link", { name: "Edit", exact: true })).toBeVisible();
    expect(await host.json("GET", "/v1/workflows/mail")).toMatchObject({ name: "Mail" });
    expect(faults).toEqual([]);
  } finally {
    await host.remove();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a new workflow begins with one that runs", async ({ signedIn: page, host }) => {
  await page.goto(`${host.console}workflows`);
  await page.getByRole("link", { name: "New workflow" }).click();
  await expect(problems(page)).toContainText("No problems");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("My workflow");
  await page.getByRole("link", { name: "Start a run" }).click();
  await page.getByRole("textbox", { name: /^text/ }).fill("The quick brown fox");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page).toHaveURL(/\/runs\/run_/);
  await host.until(new URL(page.url()).pathname.split("/").at(-1) as string, ["completed"]);
});

test("a run's graph shows the state of each node while it runs, and opens a node's panel", async ({ signedIn: page, host }) => {
  await register(host, flow("live-graph", {
    nodes: [
      { id: "first", typeId: "core.noop" },
      { id: "gate", typeId: "core.approvalGate", config: { title: "Go on?", actions: ["accept", "reject"] } },
      { id: "last", typeId: "core.noop" },
    ],
    edges: [
      { id: "e1", sourceNodeId: "first", targetNodeId: "gate" },
      { id: "e2", sourceNodeId: "gate", targetNodeId: "last" },
    ],
  }));
  const runId = await host.runUntil("live-graph", ["waiting-approval"]);
  await page.goto(`${host.console}runs/${runId}`);
  await page.getByRole("navigation", { name: "Views of this run" }).getByRole("link", { name: "Graph" }).click();
  const box = (name: string) => page.getByRole("region", { name: "Graph" }).getByRole("button", { name: new RegExp(`^${name}`) });
  await expect(box("first")).toContainText("Completed");
  await expect(box("gate")).toContainText("Waiting");
  await expect(box("last")).not.toContainText(/Completed|Waiting/);
  await expectFits(page);
  await host.json("POST", `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: "accept" } });
  await expect(box("last")).toContainText("Completed");
  await box("gate").click();
  await expect(page.getByRole("complementary", { name: /gate|Node/ })).toContainText("gate");
  await expect(box("gate")).toHaveAttribute("aria-pressed", "true");
  // The graph is that of the version that the run executes.
  await register(host, flow("live-graph", { version: "2", nodes: [{ id: "other", typeId: "core.noop" }] }));
  await page.reload();
  await expect(box("last")).toContainText("Completed");
});

test("a person branches a run with other run options, entered in a form", async ({ signedIn: page, host }) => {
  await register(host, flow("tuned", { configurableSchema: { type: "object", properties: { tone: { enum: ["warm", "cold"], description: "How the answer sounds" }, depth: { type: "integer", minimum: 1 } } } }));
  const runId = await host.runUntil("tuned", ["completed"], { configurable: { tone: "warm", depth: 2, extra: true } });
  await page.goto(`${host.console}runs/${runId}`);
  await page.getByRole("button", { name: "Fork…" }).click();
  const dialog = page.getByRole("dialog", { name: "Fork this run" });
  await dialog.getByLabel("Start again from event").fill("0");
  await dialog.getByRole("radio", { name: "Branch" }).check();
  await expect(dialog.getByRole("radio", { name: "warm" })).toBeChecked();
  await expect(dialog.getByLabel("Other run options (configurable), as JSON")).toHaveValue(/"extra": true/);
  await dialog.getByRole("radio", { name: "cold" }).check();
  await dialog.getByRole("textbox", { name: /^depth/ }).fill("x");
  await expect(dialog.getByText("enter a whole number")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Branch from #0" })).toBeDisabled();
  await dialog.getByRole("textbox", { name: /^depth/ }).fill("3");
  await expectAccessibleEverywhere(page);
  await dialog.getByRole("button", { name: "Branch from #0" }).click();
  await expect(page).not.toHaveURL(new RegExp(runId));
  const branch = new URL(page.url()).pathname.split("/").at(-1) as string;
  expect(await host.json("GET", `/v1/runs/${branch}`)).toMatchObject({ configurable: { tone: "cold", depth: 3, extra: true } });
});

test("a key that can only read sees workflows, and no buttons that change something", async ({ page, host, faults }) => {
  watch(page, faults);
  await signIn(page, host, readKey);
  await page.goto(`${host.console}workflows`);
  await expect(page.getByRole("rowheader").first()).toBeVisible();
  await expect(page.getByRole("link", { name: /^(New workflow|Start)/ })).toHaveCount(0);
  await page.goto(`${host.console}workflows/steps`);
  await expect(page.getByRole("region", { name: "Graph" })).toBeVisible();
  await expect(page.getByRole("link", { name: /Edit|Start a run|Save as a copy/ })).toHaveCount(0);
  await page.goto(`${host.console}workflows/steps/start`);
  await expect(page.getByRole("button", { name: "Start the run" })).toBeDisabled();
  await expect(page.getByText("it lacks the scope runs:create")).toBeVisible();
  await page.goto(`${host.console}workflows/no-such-workflow`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("No such workflow");
  expect(faults).toEqual([]);
});
