import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, test } from "./fixtures";
import { asking, envelope, kind, picture, program, triage } from "./model";
import { expectAccessibleEverywhere } from "./themes";

test("C14 a debug bundle is opened again in the page, with its timeline, events and ladder, and without requests about its run", async ({ signedIn: page, host }) => {
  await asking(host, "c14-bundle", { envelopeContract: { accepts: [kind] } });
  await program(host, "c14-bundle", envelope("media.image", picture()));
  const runId = await host.runUntil("c14-bundle", ["failed"]);
  const bundle = Buffer.from(await (await host.call("GET", `/v1/runs/${runId}/debug-bundle`)).arrayBuffer());
  await page.goto(host.console);
  await page.getByRole("link", { name: "Open a file…" }).click();
  await expectAccessibleEverywhere(page);
  const asked: string[] = [];
  page.on("request", (r) => r.url().includes(runId) && asked.push(r.url()));
  const file = page.getByLabel(/^A debug bundle/);
  await file.setInputFiles({ name: "holiday.json", mimeType: "application/json", buffer: Buffer.from('{"a":1}') });
  await expect(page.getByRole("alert")).toHaveText("holiday.json: This is neither a debug bundle nor the events of a run as JSON lines.");
  await file.setInputFiles({ name: "bundle.json", mimeType: "application/json", buffer: bundle });
  await expect(page.getByRole("heading", { level: 1 })).toContainText("c14-bundle");
  await expect(page.getByText("from a file")).toBeVisible();
  await expect(page.locator(".run-head .status")).toHaveText("Failed");
  await expect(page.getByRole("grid", { name: "Timeline" }).getByRole("row")).toHaveCount(2);
  for (const name of ["Cancel", "Pause", "Fork…"]) await expect(page.getByRole("button", { name, exact: true })).toHaveCount(0);
  await expectAccessibleEverywhere(page);
  await page.getByRole("link", { name: /^Events/ }).click();
  const events = await host.events(runId);
  await expect(page.locator("tr[data-seq]")).toHaveCount(events.length);
  await page.locator("tr[data-seq] button").filter({ hasText: "node.failed" }).click();
  await page.getByRole("link", { name: /^Open all checks/ }).click();
  await expect(page.locator(".verdict")).toContainText("Stopped at gate 4 of 8, contract");
  expect(asked).toEqual([]);
  await page.getByRole("button", { name: "Close the file" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Open a file");

  // The archive of the run, as it is in a bucket.
  const archive = gzipSync(Buffer.from(await (await host.call("GET", `/v1/runs/${runId}/archive`)).arrayBuffer()));
  await file.setInputFiles({ name: "cut.json.gz", mimeType: "application/gzip", buffer: archive.subarray(0, archive.length - 20) });
  await expect(page.getByRole("alert")).toContainText("cut.json.gz: The archive is damaged or truncated");
  await file.setInputFiles({ name: "run.json.gz", mimeType: "application/gzip", buffer: archive });
  await expect(page.getByText("its hash matches.")).toBeVisible();
  await expect(page.locator(".run-head .status")).toHaveText("Failed");
});

test("C14 the exported events are opened again, and say that a bundle shows more", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("steps", ["completed"]);
  await page.goto(`${host.console}runs/${runId}`);
  await page.locator("details.menu summary").click();
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save the events as JSON lines" }).click()]);
  await page.goto(`${host.console}bundle`);
  await page.getByLabel(/^A debug bundle/).setInputFiles({ name: "events.jsonl", mimeType: "application/x-ndjson", buffer: readFileSync(await saved.path()) });
  await expect(page.locator(".run-head .status")).toHaveText("Completed");
  await expect(page.getByText("This file contains only events.")).toBeVisible();
  await expectAccessibleEverywhere(page);
  await page.getByRole("link", { name: /^Events/ }).click();
  await expect(page.locator("tr[data-seq]")).toHaveCount((await host.events(runId)).length);
});

/** The view of a run whose every text is this one. */
function oddView(odd: string): object {
  const outcome = { tone: "bad", headline: odd, code: odd, detail: odd };
  const bar = { attempt: 0, sequence: 1, from: 1000, to: 6000, status: "failed", parts: [] };
  const mark = { sequence: 5, at: 5000, sign: odd, words: odd, tone: "ask" };
  const gate = (name: string, state: string): object => ({ gate: name, state, ...(state === "refused" ? { code: odd, reason: odd, refusedKind: odd, acceptedKinds: [odd], problems: [{ message: odd, schemaPointer: odd, instancePointer: odd }] } : {}) });
  const gates = [gate("shape", "passed"), gate("kind", "passed"), gate("payload", "refused"), ...["contract", "limits", "redaction", "dedup", "routing"].map((name) => gate(name, "not-reached"))];
  const answer = { ...outcome, key: odd, form: "envelope", outcome: "refused", kind: odd, envelopeId: odd, correlationId: odd, version: odd, contentTrust: odd, gates, events: [{ eventId: odd, sequence: 4, type: odd }] };
  const call = { call: 1, attempt: 1, cause: "retry", end: odd, tone: "bad", usage: { provider: odd, model: odd }, because: { reason: odd, words: odd, detail: odd }, refusal: { text: odd, category: odd }, recovery: { path: odd }, envelopes: [answer], from: 2, to: 4 };
  return {
    runId: "run_odd", createdAt: "2026-01-01T00:00:00Z", sequence: 9,
    answers: [{ ...outcome, nodeId: odd, typeId: odd, execution: 1, result: "failed", error: { code: odd, message: odd }, substitution: { from: { provider: odd, model: odd }, to: { provider: odd, model: odd }, missing: [odd], hidden: false, event: { eventId: odd, sequence: 1, type: odd } }, calls: [call], from: 1, to: 6 }],
    timeline: { last: 9000, run: { ...bar, parts: [] }, marks: [mark], lanes: [{ nodeId: odd, typeId: odd, status: "failed", bars: [bar], marks: [mark] }] },
    cost: { calls: [{ sequence: 3, nodeId: odd, attempt: 0, retry: false, provider: odd, model: odd, outputTokens: 1 }], total: { calls: 1, unknown: 1, outputTokens: 1 }, retries: { calls: 0, unknown: 0 } },
  };
}

const oddEvent = (sequence: number, type: string, payload: object, more: object = {}): object => ({ eventId: `e${sequence}`, runId: "run_odd", sequence, type, payload, timestamp: `2026-01-01T00:00:0${sequence}Z`, ...more });

test("C5b whatever names, tags, codes and sentences of another host hold, no view of its run hides or turns anything around", async ({ signedIn: page, host }) => {
  const odd = "exe\u202egnp\u2066\u200b<b>";
  const events = [
    oddEvent(0, "run.started", { workflowId: odd }),
    oddEvent(1, "node.started", { typeId: odd, attempt: 0 }, { nodeId: odd }),
    oddEvent(2, `x-vendor.${odd}`, { [odd]: odd }, { nodeId: odd, contentTrust: odd }),
    oddEvent(3, "provider.usage", { provider: odd, model: odd, inputTokens: odd, outputTokens: 1 }, { nodeId: odd }),
    oddEvent(4, "artifact.created", { artifactId: odd, artifactType: odd, payload: { [odd]: 1 } }, { nodeId: odd, causationId: odd, meta: { rendering: { display: odd } } }),
    oddEvent(5, "interrupt.requested", { kind: odd, interruptId: odd, data: { title: odd } }, { nodeId: odd }),
    oddEvent(6, "node.failed", { error: { code: odd, message: odd } }, { nodeId: odd }),
    // What every object of JavaScript has is the name of no event that this page knows.
    oddEvent(7, "constructor", { kind: "toString" }, { nodeId: "__proto__" }),
    oddEvent(8, "toString.valueOf", { error: { code: "constructor" } }, { nodeId: "constructor" }),
    oddEvent(9, "run.failed", { error: { code: odd, message: odd } }),
  ];
  const run = { runId: "run_odd", workflowId: odd, status: "constructor", createdAt: odd, startedAt: odd, currentNodeId: odd, owner: { principal: odd }, tags: [odd], error: { code: odd, message: odd }, nodeStates: { [odd]: { status: odd } }, variables: { [odd]: odd } };
  const bundle = { bundleVersion: "1.0", generatedAt: odd, host: { name: odd }, run, events, spans: [], view: oddView(odd), redactionApplied: true, redactionMode: odd };
  for (const [name, file] of [["odd.json", JSON.stringify(bundle)], ["odd.jsonl", events.map((e) => JSON.stringify(e)).join("\n")]] as const) {
    await page.goto(`${host.console}bundle`);
    await page.getByLabel(/^A debug bundle/).setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(file) });
    const nothingHides = async (where: string): Promise<void> => {
      await expect(page.locator("#main")).toContainText("U+202E");
      const shown = await page.evaluate(() => [document.title, ...[...document.querySelectorAll("#main, #main [aria-label], #main [title]")].flatMap((e) => [e.textContent, e.getAttribute("aria-label"), e.getAttribute("title")])]);
      expect.soft(shown.flatMap((text) => text?.match(/.{0,30}[\u202e\u2066\u200b].{0,10}/gu) ?? []), `${name}: ${where}`).toEqual([]);
    };
    await expect(page.getByRole("heading", { level: 1 })).toContainText("exeU+202Egnp");
    await nothingHides("timeline");
    for (const view of [/^Events/, /^Data/, /^Tokens/]) {
      await page.getByRole("link", { name: view }).click();
      await nothingHides(String(view));
    }
    await page.getByRole("link", { name: /^Events/ }).click();
    for (const event of events.keys()) {
      await page.locator(`tr[data-seq="${event}"] button`).click();
      await nothingHides(`event ${event}`);
    }
    await page.getByRole("link", { name: "Answers" }).click();
    await expect(name === "odd.json" ? page.locator(".verdict") : page.getByText("This file contains only events.")).toBeVisible();
    await nothingHides("answers");
  }
});

test("C4e an outcome of the acceptor is shown on the ladder: cached, and in conflict", async ({ signedIn: page, host }) => {
  const accept = (type: string, payload: object): Promise<unknown> =>
    host.json("POST", "/v1/host/sample/envelope/accept", {
      envelope: { type, schemaVersion: 1, envelopeId: "e-c4e", correlationId: "c-c4e", payload, meta: { source: "ai-generation", ts: "2026-01-31T12:00:00Z" } },
      persistedDedup: { runId: "r-c4e" },
    });
  const first = await accept("error", { code: "other", message: "once" });
  expect(await accept("error", { code: "other", message: "again" })).toEqual(first);
  const conflict = await accept("schema.request", { envelopeType: kind });
  await page.goto(`${host.console}try`);
  await page.getByRole("textbox", { name: "Answer" }).fill(JSON.stringify(conflict));
  await expect(page.locator(".verdict code")).toHaveText("envelope_correlation_conflict");
  await expect(page.locator(".verdict")).toContainText("Stopped at gate 7 of 8, dedup");
  expect(await page.locator("td.rung .rung-word").allTextContents()).toEqual(["passed", "passed", "passed", "passed", "passed", "passed", "refused", "not reached"]);
  await expectAccessibleEverywhere(page);
});

test("an answer is validated like on the host", async ({ signedIn: page, host }) => {
  const sent: string[] = [];
  page.on("request", (r) => r.method() !== "GET" && sent.push(r.url()));
  await page.goto(`${host.console}try`);
  const answer = page.getByRole("textbox", { name: "Answer" });
  await answer.fill(`<think>${envelope(kind, triage())}</think>Of course:\n${envelope(kind, triage({ category: "bills" }))}`);
  await expect(page.locator(".verdict")).toContainText("Stopped at gate 3 of 8, payload");
  await expect(page.getByText(/^JSON found in other text, from byte \d+\.$/)).toBeVisible();
  await expect(page.getByRole("list", { name: "Problems" })).toContainText("/category choose one of");
  await expect(page.getByRole("region", { name: "Payload" }).locator(".marked")).toContainText("bills");
  await expectAccessibleEverywhere(page);
  await answer.fill(JSON.stringify(triage()));
  await expect(page.getByText("its JSON document is not an envelope with type and payload")).toBeVisible();
  await page.getByLabel("Kind requested by the node").selectOption(kind);
  await expect(page.locator(".verdict")).toContainText("Valid up to the contract gate");
  await page.getByLabel("Kinds accepted by its contract (empty means all)").fill("media.image");
  await expect(page.locator(".verdict code")).toHaveText("envelope_contract_violation");
  expect([...new Set(sent)]).toEqual([`${host.url}/v1/answers:read`]);
});

test("a report shows the steps of a run, and prints", async ({ signedIn: page, host }) => {
  await asking(host, "report", { envelopeType: kind });
  await program(host, "report", JSON.stringify(triage({ category: "bills" })), JSON.stringify(triage()));
  const runId = await host.runUntil("report", ["completed"]);
  await page.goto(`${host.console}runs/${runId}`);
  await page.locator("details.menu summary").click();
  await page.getByRole("link", { name: "Report to print" }).click();
  const chain = page.getByRole("table", { name: "Steps of the run, in order" });
  await expect(chain.getByRole("row")).toHaveText([/Step/, /The run started/, /report.*Accepted on attempt 2 after one schema violation.*→/, /The run completed/]);
  await expectAccessibleEverywhere(page);
  await page.emulateMedia({ media: "print" });
  await expect(page.getByRole("banner")).toBeHidden();
  await expect(page.getByRole("button", { name: "Print" })).toBeHidden();
  await expect(chain).toBeVisible();
  await page.emulateMedia({ media: "screen" });
  await chain.getByRole("link", { name: /^Accepted on attempt 2/ }).click();
  await expect(page.locator("table.ladder")).toBeVisible();
});

