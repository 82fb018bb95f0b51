import { expect, type Page } from "@playwright/test";
import type { Host } from "./host";

/** A page of the console: its address, and how to wait until it shows what it is about. */
export type Shot = { name: string; path: string; ready: (page: Page) => Promise<unknown>; width?: number };

const heading = (page: Page): Promise<unknown> => page.getByRole("heading", { level: 1 }).waitFor();
const checked = (page: Page): Promise<unknown> => page.getByText(/^(No problems|\d+ problems?)$/).waitFor();
const part = (selector: string) => (page: Page) => page.locator(selector).first().waitFor();

const ask = (prompt: string): object => ({ id: "read", name: "Read the mail", typeId: "core.ai.callPrompt", config: { provider: "mock", model: "mock-mini", prompt }, inputs: { mail: { type: "variable", variableName: "mail" } } });
const when = (id: string, sourceNodeId: string, targetNodeId: string, right: boolean): object => ({ id, sourceNodeId, targetNodeId, condition: { type: "equals", left: "result", right } });

const shownDefinition = (version: string, prompt: string, more: object[]): object => ({
  id: "shown",
  name: "Answer a support mail",
  version,
  description: "Reads a mail, decides whether money goes back, and asks a person before it does.",
  nodes: [
    ask(prompt),
    { id: "decide", name: "Refund?", typeId: "core.conditional", config: { expression: "true" } },
    { id: "approve", name: "Ask the team lead", typeId: "core.approvalGate", config: { title: "Refund this order?", actions: ["accept", "reject"] } },
    { id: "reply", name: "Reply", typeId: "core.noop" },
    ...more,
  ],
  edges: [
    { id: "e1", sourceNodeId: "read", targetNodeId: "decide" },
    when("e2", "decide", "approve", true),
    when("e3", "decide", "reply", false),
    ...(more.length > 0 ? [{ id: "e4", sourceNodeId: "approve", targetNodeId: "wait" }] : []),
  ],
  variables: [
    { name: "mail", type: "string", required: true, description: "The text of the mail" },
    { name: "tone", type: "string", defaultValue: "warm", description: "How the answer sounds" },
    { name: "limit", type: "number", defaultValue: 100 },
    { name: "urgent", type: "boolean" },
    { name: "customer", type: "object" },
    { name: "orders", type: "array" },
  ],
  metadata: {
    "x-inputSchema": {
      properties: {
        mail: { examples: ["I was charged twice for one lamp.", "Where is my order?"] },
        tone: { enum: ["warm", "neutral", "strict"] },
        limit: { type: "integer", minimum: 0, maximum: 500 },
        customer: { properties: { name: { type: "string" }, country: { enum: ["DE", "FR", "IT", "ES", "PL"] } }, required: ["name"] },
        orders: { items: { type: "string" } },
      },
    },
  },
});

/** A workflow with two versions, branches, and inputs of several kinds. */
async function shownFlow(host: Host): Promise<void> {
  await host.json("POST", "/v1/workflows", shownDefinition("1.0.0", "Sort this mail: {{mail}}", []));
  await host.json("POST", "/v1/workflows", shownDefinition("1.1.0", "Sort this mail, and name the order: {{mail}}", [{ id: "wait", name: "Wait a day", typeId: "core.delay", config: { delayMs: 86_400_000 } }]));
}

/** Questions with a due time, approvers, several votes and something to edit; one is answered. */
async function inboxFlow(host: Host): Promise<{ interrupt: { interruptId: string } }> {
  const proposal = { to: "Ms Ito", amount: 129, gift: false, lines: [{ sku: "lamp", count: 2 }], note: "Thank you for your patience." };
  const waits = async (id: string, config: object): Promise<string> => {
    const draft = { id: "draft", typeId: "core.identity", inputs: { proposal: { type: "static", value: proposal } } };
    const gate = { id: "gate", typeId: "core.approvalGate", config: { actions: ["accept", "reject", "edit-accept", "ask"], ...config } };
    await host.workflow(id, [draft, gate], [], [{ id: "e", sourceNodeId: "draft", targetNodeId: "gate", sourceOutput: "proposal", targetInput: "input" } as object]);
    return host.runUntil(id, ["waiting-approval"]);
  };
  await waits("refund-soon", { title: "Refund order 4711?", timeoutSec: 1500, bulkAnswers: true });
  await waits("refund-soon", { title: "Refund order 4711?", timeoutSec: 1500, bulkAnswers: true });
  await waits("payout", { title: "Pay 12,000 to the supplier?", timeoutSec: 86_000, requiredApprovals: 2, actions: ["accept", "reject"], approverGroupRefs: ["finance"] });
  const mine = await waits("claimed", { title: "Publish the release notes?" });
  await host.json("POST", `/v1/runs/${mine}/interrupts/gate/assignee`, {});
  const theirs = await waits("handed-over", { title: "Close the account of Ms Ito?" });
  await host.json("POST", `/v1/runs/${theirs}/interrupts/gate/assignee`, { assignee: "ben" });
  const answered = await waits("answered", { title: "Send this answer?" });
  await host.json("POST", `/v1/runs/${answered}/interrupts/gate`, { resumeValue: { action: "accept", feedback: "Good answer." } });
  const run = await waits("editable", { title: "Send this refund?", description: "The model wrote this proposal." });
  return host.json("GET", `/v1/runs/${run}`);
}

/** Every page, with the runs of the demo and some more. */
export async function shots(host: Host): Promise<Shot[]> {
  const demo = async (workflow: string, statuses: string[]): Promise<string> => {
    let runId = "";
    await expect(async () => {
      const { runs } = await host.json<{ runs: { runId: string; status: string }[] }>("GET", `/v1/runs?workflowId=${workflow}`);
      expect(statuses).toContain(runs[0]?.status);
      runId = runs[0]?.runId ?? "";
    }).toPass();
    return runId;
  };
  const recovered = await demo("demo-recovered", ["completed"]);
  const refused = await demo("demo-refused", ["failed"]);
  const asking = await demo("demo-approval", ["waiting-approval", "waiting-external"]);
  const gate = await host.runUntil("gate", ["waiting-approval"]);
  const fork = await host.json<{ runId: string }>("POST", `/v1/runs/${recovered}:fork`, { mode: "branch", fromSeq: 1 });
  await host.until(fork.runId, ["completed"]);
  const form = await host.json<{ interrupt: { interruptToken: string; interruptId: string } }>("GET", `/v1/runs/${asking}`);
  const approval = await host.json<{ interrupt: { interruptId: string } }>("GET", `/v1/runs/${gate}`);
  for (const variant of [1, 1, 2]) {
    const tags = ["playground", `playground:${recovered}/triage`, `variant:${variant}`];
    const { runId } = await host.json<{ runId: string }>("POST", `/v1/runs/${recovered}/nodes/triage/fork`, { only: true, config: { prompt: `Triage this mail, variant ${variant}:\n\n{{mail}}` }, runOptionsOverlay: { tags } });
    await host.until(runId, ["completed", "failed"]);
  }
  const editable = await inboxFlow(host);
  await host.json("POST", "/v1/webhooks", { url: "https://hooks.example.com/waybill", events: ["run.completed", "run.failed"], tags: [] });
  await host.json("POST", `/v1/runs/${recovered}/hold`, { reason: "Court case 17, ask the legal team before its release" });
  await host.json("POST", "/v1/views", { viewId: "costly", name: "Costly today", filter: "since:24h", sort: "cost", columns: ["model", "tokens", "cost", "created"], shared: true });
  await host.json("POST", "/v1/views", { viewId: "broken", name: "What broke", filter: "status:failed" });
  await shownFlow(host);
  const flowRun = await host.runUntil("shown", ["waiting-approval"], { inputs: { mail: "I was charged twice for one lamp." } });
  return [
    { name: "workflows", path: "workflows", ready: part(".latest-run") },
    { name: "workflows-wide", path: "workflows", ready: part(".latest-run"), width: 1440 },
    { name: "workflows-phone", path: "workflows", ready: part(".latest-run"), width: 390 },
    { name: "workflow-graph", path: "workflows/shown", ready: part(".graph-node") },
    { name: "workflow-graph-phone", path: "workflows/shown", ready: part(".graph-node"), width: 390 },
    { name: "workflow-of-a-file", path: "workflows/demo-recovered", ready: part(".graph-node") },
    { name: "workflow-definition", path: "workflows/shown?view=definition", ready: part(".json") },
    { name: "workflow-versions", path: "workflows/shown?view=versions", ready: part(".changes") },
    { name: "workflow-runs", path: "workflows/shown?view=runs", ready: part("tbody tr") },
    { name: "workflow-start", path: "workflows/shown/start", ready: part(".start-about .graph-node") },
    { name: "workflow-start-wrong", path: "workflows/shown/start", ready: (page) => page.getByRole("button", { name: "Start the run" }).click().then(() => page.locator(".wrong").first().waitFor()) },
    { name: "workflow-start-phone", path: "workflows/shown/start", ready: part(".start-about .graph-node"), width: 390 },
    { name: "workflow-start-again", path: `workflows/shown/start?from=${flowRun}`, ready: part(".start-about .graph-node") },
    { name: "workflow-edit", path: "workflows/shown/edit", ready: checked },
    { name: "workflow-edit-tablet", path: "workflows/shown/edit", ready: checked, width: 1024 },
    { name: "workflow-edit-phone", path: "workflows/shown/edit", ready: checked, width: 390 },
    { name: "playground", path: `runs/${recovered}/nodes/triage/play`, ready: part(".variant .verdict") },
    { name: "playground-tablet", path: `runs/${recovered}/nodes/triage/play`, ready: part(".variant .verdict"), width: 1024 },
    { name: "playground-wide", path: `runs/${recovered}/nodes/triage/play`, ready: part(".variant .verdict"), width: 1440 },
    { name: "playground-phone", path: `runs/${recovered}/nodes/triage/play`, ready: part(".variant .verdict"), width: 390 },
    { name: "edit-outputs", path: `runs/${recovered}`, ready: (page) => page.getByRole("button", { name: "Edit the outputs…" }).click().then(() => page.getByRole("dialog").waitFor()) },
    { name: "workflow-promote", path: "workflows/shown?view=versions", ready: (page) => page.getByRole("button", { name: /^Make current/ }).click().then(() => page.getByRole("dialog").waitFor()) },
    { name: "run-graph", path: `runs/${flowRun}?view=graph`, ready: part(".graph-state") },
    { name: "run-graph-phone", path: `runs/${flowRun}?view=graph`, ready: part(".graph-state"), width: 390 },
    { name: "runs", path: "", ready: part(".run-link") },
    { name: "runs-view", path: "?filter=since%3A24h&sort=cost&view=costly", ready: part(".saved [aria-current]") },
    { name: "runs-view-edit", path: "?filter=since%3A24h&sort=cost&view=costly", ready: (page) => page.getByRole("button", { name: "Edit view…" }).click().then(() => page.getByRole("dialog").waitFor()) },
    { name: "run-missing", path: "runs/no-such-run", ready: heading },
    { name: "runs-phone", path: "", ready: part(".run-link"), width: 320 },
    { name: "runs-words", path: "", ready: (page) => page.getByText("Filter syntax").click().then(() => page.getByRole("list", { name: "Values of kind" }).waitFor()) },
    { name: "runs-none", path: "?filter=tag%3Anobody", ready: part(".empty") },
    { name: "run-timeline", path: `runs/${recovered}`, ready: part("[role=grid]") },
    { name: "run-past", path: `runs/${recovered}?at=4`, ready: part(".scrubber .status") },
    { name: "run-table", path: `runs/${recovered}?view=table&e=4`, ready: part(".inspector, aside") },
    { name: "run-data", path: `runs/${recovered}?view=data`, ready: part(".data, .empty") },
    { name: "run-cost", path: `runs/${recovered}?view=cost`, ready: part("tfoot") },
    { name: "run-failed", path: `runs/${refused}`, ready: part(".failure") },
    { name: "run-asking", path: `runs/${asking}`, ready: part(".question") },
    { name: "run-phone", path: `runs/${asking}`, ready: part(".question"), width: 320 },
    { name: "ladder-recovered", path: `runs/${recovered}/envelopes`, ready: part("table.ladder") },
    { name: "ladder-refused", path: `runs/${refused}/envelopes`, ready: part("table.ladder") },
    { name: "ladder-phone", path: `runs/${refused}/envelopes`, ready: part("table.ladder"), width: 320 },
    { name: "report", path: `runs/${recovered}/report`, ready: part("table") },
    { name: "bundle", path: "bundle", ready: heading },
    { name: "try", path: "try", ready: (page) => page.getByRole("textbox", { name: "Answer" }).fill('Of course: {"type": "error", "payload": {"code": "late"}}').then(() => page.locator(".verdict").waitFor()) },
    { name: "diff", path: `runs/${recovered}/diff/${fork.runId}`, ready: heading },
    { name: "inbox", path: "inbox", ready: part(".inbox-entry") },
    { name: "inbox-tablet", path: "inbox", ready: part(".inbox-entry"), width: 1024 },
    { name: "inbox-wide", path: "inbox", ready: part(".inbox-entry"), width: 1440 },
    { name: "inbox-phone", path: "inbox", ready: part(".inbox-entry"), width: 390 },
    { name: "inbox-phone-question", path: `inbox?i=${approval.interrupt.interruptId}&run=${gate}`, ready: part(".question"), width: 390 },
    { name: "inbox-phone-menu", path: "inbox", ready: (page) => page.getByRole("button", { name: "Menu" }).click(), width: 390 },
    { name: "inbox-edit", path: `inbox?i=${editable.interrupt.interruptId}`, ready: (page) => page.getByRole("button", { name: "Edit and accept…" }).click().then(() => page.locator(".value-form").waitFor()) },
    { name: "inbox-mine", path: "inbox?assignee=me", ready: part(".assignee") },
    { name: "inbox-assign", path: "inbox?assignee=me", ready: (page) => page.getByRole("button", { name: "Assign…" }).click().then(() => page.getByRole("dialog").waitFor()) },
    { name: "inbox-answered", path: "inbox?view=answered", ready: part(".question-over") },
    { name: "inbox-form", path: `inbox?i=${form.interrupt.interruptId}`, ready: part(".question") },
    { name: "inbox-approval", path: `inbox?i=${approval.interrupt.interruptId}`, ready: part(".question") },
    { name: "answer", path: `answer#${form.interrupt.interruptToken}`, ready: part(".question") },
    ...[390, 1024, 1440].flatMap((width) => [
      { name: `dashboard-${width}`, path: "dashboard?span=1h", ready: part(".chart"), width },
      { name: `quality-${width}`, path: "dashboard?view=quality&span=1h", ready: part(".chart"), width },
    ]),
    { name: "dashboard-none", path: "dashboard?workflow=no-such-workflow", ready: part(".empty") },
    { name: "capabilities", path: "capabilities", ready: (page) => page.getByRole("heading", { name: "Envelope kinds" }).waitFor() },
    { name: "system", path: "system", ready: part(".system-table tbody tr") },
    { name: "system-wide", path: "system", ready: part(".system-table tbody tr"), width: 1440 },
    { name: "system-phone", path: "system", ready: part(".system-table tbody tr"), width: 390 },
    { name: "system-webhooks", path: "system/webhooks", ready: part(".audit tbody tr") },
    { name: "system-webhooks-phone", path: "system/webhooks", ready: part(".audit tbody tr"), width: 390 },
    { name: "system-audit", path: "system/audit", ready: (page) => page.getByRole("button", { name: "Verify the log" }).click().then(() => page.locator(".note.good").waitFor()) },
    { name: "system-audit-phone", path: "system/audit", ready: part(".audit tbody tr"), width: 390 },
    { name: "system-data", path: "system/data", ready: part(".system-table tbody tr") },
    { name: "system-access", path: "system/access", ready: part(".scopes li") },
    { name: "system-about", path: "system/about", ready: part(".members dd") },
    { name: "api", path: "api", ready: part(".opblock") },
    { name: "not-found", path: "nowhere", ready: heading },
  ];
}
