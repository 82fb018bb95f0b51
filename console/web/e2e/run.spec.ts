import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "@playwright/test";
import { expect, expectAccessible, least, signIn, test, timePaint, withMortal } from "./fixtures";
import { Host, key, prepare, says, secret, type RunEventDoc } from "./host";
import { kind, program, triage } from "./model";
import { expectAccessibleEverywhere } from "./themes";

const words = (n: number): string[] => Array.from({ length: n }, (_, i) => `word${i} `);

async function open(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
}

test("C3a ten thousand events are painted, scrolled and reached to the last", { tag: "@root" }, async ({ signedIn: page, host }) => {
  test.setTimeout(60_000);
  const runId = await host.runUntil("talk", ["completed"], says(words(10_000)));
  const events = await host.events(runId);
  expect(events.length).toBeGreaterThan(10_000);
  await page.goto(`${host.console}runs/${runId}?view=table`);
  await page.getByRole("checkbox", { name: "each answer chunk" }).check();
  await expect(page.getByRole("link", { name: /^Events/ })).toContainText(events.length.toLocaleString("en"));
  expect(await page.locator("table.events tbody tr").count()).toBeLessThanOrEqual(200);

  // What scrolling costs is counted in time of the processor: how long it takes by the clock, others on the machine decide.
  const worst = await costliest(page, 30, () => page.evaluate(() => new Promise((resolve) => (window.scrollBy(0, 2000), requestAnimationFrame(resolve)))));
  expect(worst).toBeLessThan(200);
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.locator("tr[data-row='0'] button").focus();
  await page.keyboard.press("End");
  const last = events.at(-1) as RunEventDoc;
  await expect(page.locator(`tr[data-seq='${last.sequence}'] button`)).toBeFocused();
  await expect(page.locator(`tr[data-seq='${last.sequence}']`)).toContainText("run.completed");
  expect(await page.locator("table.events tbody tr").count()).toBeLessThanOrEqual(200);
});

/** Counts the processor time, in ms, that the page's thread spends from now on. */
async function processorTime(page: Page): Promise<() => Promise<number>> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const read = async (): Promise<number> => ((await devtools.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration")?.value ?? 0) * 1000;
  const before = await read();
  return async () => (await read()) - before;
}

/** The most processor time, in ms, that the page's thread spends on one of several steps. */
async function costliest(page: Page, times: number, step: () => Promise<unknown>): Promise<number> {
  const spent = await processorTime(page);
  let worst = 0;
  for (let before = await spent(); times > 0; times--) {
    await step();
    const now = await spent();
    worst = Math.max(worst, now - before);
    before = now;
  }
  return worst;
}

test("C3a the first paint of ten thousand events takes no longer than 1.5 seconds", { tag: ["@timed", "@root"] }, async ({ signedIn: page, host }) => {
  test.setTimeout(90_000);
  const runId = await host.runUntil("talk", ["completed"], says(words(10_000)));
  const paint = await timePaint(page, "table.events tbody tr[data-row]");
  const took = await least(1500, 8, async () => {
    const ms = await paint(`${host.console}runs/${runId}`);
    expect(await page.locator("table.events tbody tr").count()).toBeLessThanOrEqual(200);
    return ms;
  });
  expect(took).toBeLessThan(1500);
});

test("C3b an event is on screen within 300 ms of being recorded, at the 95th of a hundred", { tag: "@timed" }, async ({ signedIn: page, host }) => {
  test.setTimeout(90_000);
  const late = await least(300, 4, async () => {
    const delays = await watchDelays(page, host);
    expect(delays.length).toBeGreaterThanOrEqual(100);
    return delays[Math.floor(delays.length * 0.95)] as number;
  });
  expect(late).toBeLessThan(300);
});

/** How long after they were recorded the events of a live run were on screen, in ms, the least first. */
async function watchDelays(page: Page, host: Host): Promise<number[]> {
  const runId = await host.run("talk", says(words(160), { delayMsPerToken: 50 }));
  await page.goto(`${host.console}runs/${runId}?view=table`);
  await page.getByRole("checkbox", { name: "each answer chunk" }).check();
  // Who is at the end of the page stays there: from here on it scrolls by itself.
  await expect.poll(() => page.evaluate(() => (window.scrollTo(0, document.body.scrollHeight), window.scrollY))).toBeGreaterThan(0);
  const { from, seen } = await page.evaluate(watchRows);
  const recorded = (await host.events(runId)).filter((event) => Date.parse(event.timestamp) >= from);
  return recorded
    .map(({ sequence, timestamp, payload }) => {
      const row = seen[sequence];
      expect(row?.text, `event ${sequence}`).toContain(String(payload.chunk ?? "").trim());
      return (row?.at ?? Number.NaN) - Date.parse(timestamp);
    })
    .sort((a, b) => a - b);
}

/** Watches the table of a run until its end: when each event was first seen within the window, and what its row said. */
async function watchRows(): Promise<{ from: number; seen: Record<string, { at: number; text: string }> }> {
  const from = Date.now();
  const seen: Record<string, { at: number; text: string }> = {};
  for (let ended = false; !ended; ) {
    // What there is when a frame begins, the one before it has painted.
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const at = Date.now();
    for (const row of [...document.querySelectorAll<HTMLElement>("tr[data-seq]")].toReversed()) {
      const sequence = row.dataset.seq as string;
      if (seen[sequence]) break;
      const { top, bottom } = row.getBoundingClientRect();
      if (top < 0 || bottom > window.innerHeight) continue;
      seen[sequence] = { at, text: row.innerText };
      ended ||= row.innerText.includes("run.completed");
    }
  }
  return { from, seen };
}

test("C3d a run that has been silent for too long is called stalled, on its page and in the list", async ({ page, basePath }) => {
  let answer: (() => void) | undefined;
  const model = createServer((request, response) => {
    if (request.method !== "POST") return void response.writeHead(404).end();
    answer = () => void response.writeHead(200, { "Content-Type": "text/event-stream" }).end(`data: {"choices":[{"index":0,"delta":{"content":"at last"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`);
  }).listen(0, "127.0.0.1");
  await once(model, "listening");
  const { port } = model.address() as AddressInfo;
  const host = new Host(basePath, ["--stalled-after", "1s", "--provider", `slow=http://127.0.0.1:${port}/v1`, "--unknown-models", "trust", "--console-link", "Logs=https://logs.example/q?run={runId}", "--console-link", "Wiki=https://wiki.example/"]);
  try {
    await host.start();
    await prepare(host);
    await signIn(page, host, key);
    await host.workflow("slow", [{ id: "ai", typeId: "core.ai.callPrompt", config: { provider: "slow", model: "m", prompt: "Take your time." } }]);
    const runId = await host.runUntil("slow", ["running"]);
    await open(page, `${host.console}runs/${runId}`);
    await expect(page.locator(".run-head .status")).toHaveText("Stalled");
    await expect(page.getByText(/^No event for \d/)).toContainText("the run's status is running");
    await expect(page.getByText(/Current node: ai\. Owned by the dispatcher [A-Z2-7]{26}\./)).toBeVisible();
    expect(host.command("run", "get", runId, "-o", "json")).toMatchObject({ waybill: { waits: { for: "node", nodeId: "ai", attempt: 1 } } });
    await expect(page.getByRole("link", { name: "Logs" })).toHaveAttribute("href", `https://logs.example/q?run=${runId}`);
    await expect(page.getByRole("link", { name: "Wiki" })).toHaveCount(0);
    await page.goto(host.console);
    await expect(page.getByRole("row").filter({ hasText: "slow" })).toContainText("Stalled");
    answer?.();
    await host.until(runId, ["completed"]);
    await expect(page.getByRole("row").filter({ hasText: "slow" })).toContainText("Completed");
  } finally {
    model.closeAllConnections();
    model.close();
    await host.remove();
  }
});

test("a run that waits for a limit names it, on its page and in the list, and is not called stalled", async ({ page, basePath }) => {
  const host = new Host(basePath, ["--stalled-after", "1s"]);
  try {
    await host.start();
    await prepare(host);
    await host.workflow("hourly", [{ id: "a", typeId: "core.noop", config: {} }], [], [], { rate: { limit: 1, periodMs: 3_600_000 } });
    await signIn(page, host, key);
    await host.runUntil("hourly", ["completed"]);
    const runId = await host.run("hourly");
    await open(page, `${host.console}runs/${runId}`);
    await expect(page.getByText(/^Waiting for the workflow's rate limit: 1 starts in 1 h 00 min, since .* It can start at /)).toBeVisible();
    await expect(page.locator(".run-head .status")).toHaveText("Queued");
    await expect.poll(() => host.command("run", "owner", runId, "-o", "json")).toMatchObject({ state: "none", limit: { reason: "rate", scope: "workflow", limit: 1 } });
    await page.goto(host.console);
    const row = page.getByRole("row").filter({ hasText: "waiting for the workflow's rate limit" });
    await expect(row).toContainText("Queued");
  } finally {
    await host.remove();
  }
});

test("C3 the timeline has a lane for each node, and the keyboard reaches all of it", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("steps", ["completed"]);
  await open(page, `${host.console}runs/${runId}`);
  const grid = page.getByRole("grid", { name: "Timeline" });
  await expect(grid.getByRole("row")).toHaveCount(4);
  await expect(grid.getByRole("rowheader")).toHaveText([/run/, /first/, /second/, /third/]);
  await grid.getByRole("gridcell", { name: /^run: completed/ }).focus();
  await page.keyboard.press("ArrowDown");
  await expect(grid.getByRole("gridcell", { name: /^first: completed/ })).toBeFocused();
  await page.keyboard.press("Enter");
  const panel = page.getByRole("complementary", { name: "Node first" });
  await expect(panel.getByRole("heading", { level: 2, name: "first" })).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(grid.getByRole("gridcell", { name: /^first: completed/ })).toBeFocused();
  await expect(page.getByRole("complementary", { name: "Node third" })).toBeVisible(); // the panel stays open
  await page.keyboard.press("t");
  await expect(page.getByRole("table", { name: "Events" })).toBeVisible();

  // The lanes of a run that a node started are below the node's.
  await host.workflow("outer", [{ id: "inner", typeId: "core.subWorkflow", config: { workflowId: "steps" } }]);
  const outer = await host.runUntil("outer", ["completed"]);
  await open(page, `${host.console}runs/${outer}`);
  await expect(grid.getByRole("rowheader")).toHaveText([/run/, /inner/]);
  await grid.getByRole("button", { name: "Runs of inner" }).click();
  await expect(grid.getByRole("rowheader")).toHaveText([/run/, /inner/, /first/, /second/, /third/]);
  await expectAccessible(page);
  await grid.getByRole("gridcell", { name: /^second: completed/ }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("steps");
  await expect(page.getByRole("complementary", { name: "Node second" })).toBeVisible();
});

test("C3 the next actor is shown", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("gate", ["waiting-approval"]);
  await open(page, `${host.console}runs/${runId}`);
  await expect(page.locator(".run-head .status")).toHaveText("Needs approval");
  await expect(page.getByText("A person has to decide at gate.")).toBeVisible();
  await expect(page).toHaveTitle(/^(\(\d+\) )?\? gate/);
  await host.json("POST", `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: "accept" } });
  await expect(page.locator(".run-head .status")).toHaveText("Completed");
  await expect(page).toHaveTitle(/^(\(\d+\) )?✓ gate/);

  // The demo asks for a form: by its status the run waits for something outside, and it is a person who acts.
  await page.goto(`${host.console}?filter=workflow%3Ademo-approval`);
  await expect(page.getByText("waiting for a form to be filled in at approve")).toBeVisible();
  await page.locator(".run-link").first().click();
  await expect(page.getByText("A person has to fill in the form at approve.")).toBeVisible();
  await page.goto(`${host.console}inbox`);
  await expect(page.getByRole("link", { name: "A form: Refund for order A-4711" })).toBeVisible();
});

test("C5a redacted values are nowhere in the page, the clipboard or a file", async ({ signedIn: page, host, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const bodies: Promise<string>[] = [];
  page.on("response", (response) => bodies.push(response.text().catch(() => "")));
  const runId = await host.runUntil("echo", ["completed"], { inputs: { value: { note: `before ${secret} after`, list: [secret] } } });
  await open(page, `${host.console}runs/${runId}?view=table&e=0`);
  const inspector = page.getByRole("complementary", { name: "Event 0" });
  await expect(inspector.getByText("redacted: canary").first()).toBeVisible();
  await expect(inspector.getByText("2 times")).toBeVisible();
  await inspector.getByRole("button", { name: "Copy the payload" }).click();
  await expect(page.getByRole("status").first()).toContainText("Copied the payload");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain("[REDACTED:canary]");
  expect(await page.evaluate(() => navigator.clipboard.readText())).not.toContain(secret);
  expect(await page.content()).not.toContain(secret);
  expect(await page.locator("body").ariaSnapshot()).not.toContain(secret);
  for (const body of await Promise.all(bodies)) expect(body).not.toContain(secret);
  for (const name of ["Save the debug bundle", "Save the events as JSON lines"]) expect(await download(page, name)).not.toContain(secret);
});

async function download(page: Page, name: string): Promise<string> {
  const menu = page.locator("details.menu");
  if (!(await menu.evaluate((d: HTMLDetailsElement) => d.open))) await menu.locator("summary").click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
  return readFileSync(await file.path(), "utf8");
}

test("C5b strings stay text and numbers stay exact, whatever they hold", async ({ signedIn: page, host }) => {
  const foreign: string[] = [];
  page.on("request", (request) => request.url().startsWith(host.url) || foreign.push(request.url()));
  const value = `{"img":"<img src=http://127.0.0.1:9/x onerror=alert(1)>","bidi":"abc\\u202edef","n":9007199254740993,"m":1.10,"long":"${"x".repeat(700_000)}"}`;
  const answer = await host.call("POST", "/v1/runs", `{"workflowId":"echo","inputs":{"value":${value}}}`);
  const { runId } = (await answer.json()) as { runId: string };
  await host.until(runId, ["completed"]);
  await open(page, `${host.console}runs/${runId}?view=table&e=0`);
  const inspector = page.getByRole("complementary", { name: "Event 0" });
  await inspector.getByRole("button", { name: /^Show 6\d\d/ }).click();
  await expect(inspector.getByText("<img src=http://127.0.0.1:9/x onerror=alert(1)>")).toBeVisible();
  await expect(inspector.getByText("U+202E")).toBeVisible();
  await expect(inspector.getByText("9007199254740993")).toBeVisible();
  await expect(inspector.getByText("1.10", { exact: true })).toBeVisible();
  await expect(inspector.locator("img")).toHaveCount(0);
  await inspector.getByRole("button", { name: "raw" }).click();
  await expect(inspector.locator("pre")).toContainText("9007199254740993");
  expect(await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => resolve("responsive"))))).toBe("responsive");
  expect(foreign).toEqual([]);
});

test("see the exact prompt and the cost of each call in the panel of a node", async ({ signedIn: page, host }) => {
  await host.workflow(
    "panel",
    [
      { id: "sort", typeId: "core.ai.callPrompt", config: { provider: "mock", model: "mock-mini", system: "Be brief.", prompt: "Sort this mail: {{mail}}", envelopeType: kind, expectsStreaming: true }, inputs: { mail: { type: "variable", variableName: "mail" } } },
      { id: "check", typeId: "core.approvalGate", config: { title: "Send it?", actions: ["accept", "reject"] } },
    ],
    [{ name: "mail", type: "string" }],
  );
  await program(host, "sort", JSON.stringify(triage({ category: "bills" })), JSON.stringify(triage()));
  const runId = await host.runUntil("panel", ["waiting-approval"], { inputs: { mail: "Charged twice." } });
  await open(page, `${host.console}runs/${runId}`);
  const figures = page.locator("dl.metrics");
  await expect(figures).toContainText("Model calls2");
  await expect(figures).toContainText("Retries1");
  await expect(figures).toContainText(/Waiting\d.* so far/);
  await expect(page.getByRole("complementary", { name: "Node check" })).toContainText("Not answered yet.");
  const bar = page.getByRole("gridcell", { name: /^sort: completed/ });
  await expect(bar).toHaveAccessibleName(/model calls: 2, tokens: [\d,]+ in, [\d,]+ out/);
  await bar.hover({ position: { x: 4, y: 4 } }); // a mark may be in its middle
  const card = page.locator(".bar-card");
  await expect(card).toContainText(/Status ?Completed.*Model calls ?2/);
  await page.keyboard.press("Escape");
  await expect(card).toBeHidden();
  await bar.click();
  const panel = page.getByRole("complementary", { name: "Node sort" });
  await expect(panel.locator(".bubble.system").first()).toContainText("Be brief.");
  await expect(panel.locator(".bubble.user").first()).toContainText("Sort this mail: Charged twice.");
  const turns = panel.locator(".turns > li");
  await expect(turns).toHaveCount(2);
  await expect(turns.nth(1).locator(".bubble.system")).toHaveCount(0); // each message is shown once
  await expect(turns.nth(1).locator(".bubble.user")).toContainText("category");
  await expect(turns.nth(0).locator(".answer")).toContainText("bills");
  await expect(turns.nth(1).locator(".answer .call-facts")).toContainText(/Tokens.* in, .* out/);
  await turns.nth(1).getByRole("button", { name: "as text" }).click();
  await expect(turns.nth(1).locator("pre")).toContainText('"category":"billing"');
  await expect(panel.locator("table.ladder")).toBeVisible();
  await expect(panel.getByText("Inputs", { exact: true })).toBeVisible();
  await expect(panel.getByText("Outputs", { exact: true })).toBeVisible();
  await expectAccessibleEverywhere(page);
  await host.json("POST", `/v1/runs/${runId}/interrupts/check`, { resumeValue: { action: "accept" } });
  await page.getByRole("gridcell", { name: /^check: completed/ }).last().press("Enter"); // marks cover short bars
  await expect(page.getByRole("complementary", { name: "Node check" }).getByRole("region", { name: "Question" })).toContainText(/Send it\?.*asked.*accept by /);
});

test("the valid part of an answer is shown while it arrives", { tag: "@root" }, async ({ signedIn: page, host }) => {
  const schema = { type: "object", required: ["title", "items"], properties: { title: { type: "string" }, items: { type: "array", items: { type: "string" } } } };
  await host.workflow("partial", [{ id: "write", typeId: "core.ai.structuredOutput", config: { outputSchema: schema, prompt: "Write", partials: true } }]);
  const items = Array.from({ length: 30 }, (_, i) => `"item number ${i}",`);
  const runId = await host.run("partial", says(['{"title":"A list",', '"items":[', ...items, '"the end"]}'], { delayMsPerToken: 100 }));
  await open(page, `${host.console}runs/${runId}`);
  const panel = page.getByRole("complementary", { name: "Node write" });
  await expect(panel.getByText("Answer, arriving")).toBeVisible();
  await expect(panel.locator(".answer .json")).toContainText("item number 2");
  await expect(panel.locator(".answer .json")).not.toContainText("the end");
  await host.until(runId, ["completed"]);
  await expect(panel.locator(".answer .json")).toContainText("the end");
  await expect(panel.getByText("Answer, arriving")).toHaveCount(0);
});

test("C9 tokens add up to the reported usage, and unknown is not zero", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("triage", ["completed"], { inputs: { mail: "I was charged twice for order 1234." } });
  const usage = (await host.events(runId)).filter((event) => event.type === "provider.usage").map((event) => event.payload as Record<string, number>);
  await open(page, `${host.console}runs/${runId}?view=cost`);
  const total = page.locator("tfoot");
  const sum = (name: string): string => usage.reduce((n, u) => n + (u[name] ?? 0), 0).toLocaleString("en");
  await expect(total.locator("td").nth(0)).toHaveText(sum("inputTokens"));
  await expect(total.locator("td").nth(1)).toHaveText("–");
  await expect(total.locator("td").nth(2)).toHaveText(sum("outputTokens"));
  await expect(page.getByText(/Cost is an estimate/)).toBeVisible();
});

test("C12 unavailable actions show the reason, and a reason is kept in the log", async ({ signedIn: page, host }) => {
  const done = await host.runUntil("steps", ["completed"]);
  await open(page, `${host.console}runs/${done}`);
  const cancel = page.getByRole("button", { name: "Cancel", exact: true });
  await expect(cancel).toHaveAttribute("aria-disabled", "true");
  await expect(cancel).toHaveAccessibleDescription("The run has ended: completed.");
  await cancel.click({ force: true });
  await expect(page.getByRole("dialog")).toHaveCount(0);

  const runId = await host.runUntil("gate", ["waiting-approval"]);
  await open(page, `${host.console}runs/${runId}`);
  await expect(page.getByRole("button", { name: "Pause" })).toHaveAccessibleDescription("A waiting run cannot be paused.");
  await cancel.click();
  await page.getByLabel(/^Reason/).fill("no longer wanted");
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await expect(page.locator(".run-head .status")).toHaveText("Cancelled");
  await expect(page.getByText("Reason given: no longer wanted")).toBeVisible();
  expect((await host.events(runId)).at(-1)?.payload.reason).toBe("no longer wanted");
});

test("C12 a run is paused and resumed", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("wait", ["running"]);
  await open(page, `${host.console}runs/${runId}`);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByLabel(/^immediately/).check();
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await expect(page.locator(".run-head .status")).toHaveText("Paused");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await expect(page.locator(".run-head .status")).toHaveText("Running");
  await host.json("POST", `/v1/runs/${runId}/cancel`, {});
});

test("C14 exports are the host's own bytes, and their words are repeated", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("gate", ["waiting-approval"]);
  await open(page, `${host.console}runs/${runId}`);
  const lines = (await download(page, "Save the events as JSON lines")).trimEnd().split("\n");
  const answer = await (await host.call("GET", `/v1/runs/${runId}/events/poll?timeout=1`)).text();
  for (const line of lines) expect(answer).toContain(line);
  expect(lines.map((line) => (JSON.parse(line) as RunEventDoc).sequence)).toEqual(lines.map((_, i) => i));
  await expect(page.locator(".menu .said")).toHaveText(`Saved: ${lines.length} events, exactly as recorded.`);
  const bundle = JSON.parse(await download(page, "Save the debug bundle")) as { run: { runId: string }; redactionMode: string };
  expect(bundle.run.runId).toBe(runId);
  await expect(page.locator(".menu .said")).toContainText(`mode ${bundle.redactionMode}`);
  await expect(page.locator(".menu .said")).toContainText("complete");
});

test("C3c a crash of the host is survived: reconnecting, then live, and every event once", async ({ page, basePath }) => {
  test.setTimeout(60_000);
  await withMortal(page, basePath, "?view=table", async (host, runId) => {
    await host.kill();
    await expect(page.getByText("Reconnecting", { exact: true })).toBeVisible();
    await host.start();
    await signIn(page, host, key);
    await host.json("POST", `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: "accept" } });
    await expect(page.locator("tr[data-seq]").last()).toContainText("run.completed", { timeout: 20_000 });
    const shown = await page.locator("tr[data-seq]").evaluateAll((rows) => rows.map((row) => Number((row as HTMLElement).dataset.seq)));
    expect(shown).toEqual((await host.events(runId)).map((event) => event.sequence));
  });
});

test("C3c a page that fails to load shows an error, and loads when the host is back", async ({ page, basePath }) => {
  test.setTimeout(60_000);
  await withMortal(page, basePath, "", async (host) => {
    await host.kill();
    // Without a response, it is unknown whether the answer arrived.
    await page.getByRole("button", { name: "Accept" }).click();
    await expect(page.getByRole("alert")).toContainText("Your answer may have arrived. You can send it again; it counts once.");
    await page.getByRole("link", { name: "Capabilities" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "This page could not be loaded" })).toBeVisible();
    await page.getByRole("button", { name: "Reload" }).click();
    await expect(page.getByRole("alert")).toContainText("The host did not respond.");
    await page.goBack(); // what was open before still is
    await expect(page.getByText("A person has to decide at gate.")).toBeVisible();
    await page.goForward();
    await host.start();
    await page.getByRole("button", { name: "Reload" }).click();
    await expect(page.getByRole("heading", { name: "Envelope kinds" })).toBeVisible();
  });
});

test("C13 eight tabs of a browser are all up to date, though a browser opens six connections", async ({ signedIn: page, host, context }) => {
  const runs = await Promise.all(Array.from({ length: 8 }, () => host.runUntil("gate", ["waiting-approval"])));
  const tabs: Page[] = [page];
  for (let i = 1; i < 8; i++) tabs.push(await context.newPage());
  for (const [i, tab] of tabs.entries()) await open(tab, `${host.console}runs/${runs[i]}`);
  const last = tabs[7] as Page;
  await expect(last.getByText("Live", { exact: true })).toBeVisible();
  for (const runId of runs) await host.json("POST", `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: "accept" } });
  for (const tab of tabs.toReversed()) await expect(tab.locator(".run-head .status")).toHaveText("Completed");
});

test("a run is looked back at as of any of its events, by slider, keys and address", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("steps", ["completed"]);
  const last = (await host.events(runId)).length - 1;
  await page.goto(`${host.console}runs/${runId}`);
  const timeline = page.getByRole("grid", { name: "Timeline" });
  await expect(timeline.getByRole("rowheader", { name: /third/ })).toBeVisible();
  await page.getByRole("button", { name: "Look back…" }).click();
  const slider = page.getByRole("slider", { name: "Show the run as of event" });
  await expect(slider).toHaveValue(String(last));
  await slider.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await expect(slider).toHaveAttribute("aria-valuetext", new RegExp(`^#1 of ${last}, node.started`));
  const lookBack = page.getByRole("region", { name: "Look back" });
  await expect(lookBack.getByText("Running")).toBeVisible();
  await expect(timeline.getByRole("rowheader")).toHaveCount(2); // the run, and its first node
  await expect(page.getByRole("heading", { level: 1 }).locator("..")).toContainText("Completed");
  await expect(page).toHaveURL(/[?&]at=1(&|$)/);
  await expectAccessible(page);

  await page.goto(`${host.console}runs/${runId}?view=table&at=3`); // a link shows the same
  await expect(page.getByRole("table", { name: "Events" })).toHaveAttribute("aria-rowcount", "5");
  await expect(slider).toHaveValue("3");
  await page.locator("h1").click();
  await page.keyboard.press("]");
  await expect(slider).toHaveValue("4");
  await page.keyboard.press("[");
  await page.keyboard.press("[");
  await expect(page).toHaveURL(/[?&]at=2(&|$)/);
  await page.setViewportSize({ width: 320, height: 640 });
  await expectAccessible(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
  await page.getByRole("button", { name: "Back to now" }).click();
  await expect(slider).toHaveCount(0);
  await expect(page).not.toHaveURL(/[?&]at=/);
});

test("a past state matches the host's", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("triage", ["completed"], { inputs: { mail: "hello" } });
  await page.goto(`${host.console}runs/${runId}?view=data&at=0`);
  await expect(page.getByRole("region", { name: "Inputs" })).toBeVisible();
  await expect(page.getByRole("region", { name: "Outputs" })).toHaveCount(0);
  await page.getByRole("button", { name: "Back to now" }).click();
  await expect(page.getByRole("region", { name: "Outputs" })).toBeVisible();
});
