// A client that @hey-api/openapi-ts generated: it starts a run, follows its event stream, answers its
// approval by token, reads lists and errors, and prints what it saw.
import {
  createRun,
  getRun,
  listRuns,
  listWebhooks,
  listWorkflows,
  pollRunEvents,
  registerWebhook,
  resolveInterruptByToken,
  streamRunEvents,
  unregisterWebhook,
} from "./sdk";
import { client } from "./sdk/client.gen";
import type { Error as ApiError, RunEvent, StreamData } from "./sdk/types.gen";

const [url, key] = process.argv.slice(2);
client.setConfig({ baseUrl: url, auth: () => key });

// Without stream modes, the data is an event or an annotation. The generator adds void for the status 204.
function isEvent(data: StreamData | void): data is RunEvent {
  return data !== undefined && "sequence" in data && "type" in data;
}

function describe(e: RunEvent): string {
  switch (e.type) {
    case "run.started":
      return `${e.type} ${e.payload.workflowId} ${e.payload.owner.tenant}`;
    case "interrupt.requested":
      return e.payload.kind === "approval" ? `${e.type} ${e.payload.data.actions.join()}` : e.type;
    case "approval.received":
      return `${e.type} ${e.payload.action}`;
    case "node.completed":
      return `${e.type} ${e.payload.nodeId} ${Object.keys(e.payload.outputs ?? {}).sort().join()}`;
    default:
      return e.type;
  }
}

export function untyped(e: RunEvent): unknown {
  // @ts-expect-error The payload has this member for run.failed only.
  return e.payload.error;
}

// The type of the details follows from the code.
function explain(e: ApiError): string {
  switch (e.error) {
    case "validation_error":
      return `${e.error} ${e.details.problems.map((p) => `${p.in} ${p.path}`).join()}`;
    case "rate_limited":
      return `${e.error} ${e.details.scope} ${e.details.limit} ${e.details.retryAfter > 0}`;
    default:
      return e.error;
  }
}

async function main(): Promise<void> {
  const start = { headers: { "Idempotency-Key": crypto.randomUUID() }, body: { workflowId: "small-gate" } };
  const { data } = await createRun({ ...start, throwOnError: true });
  const { runId } = data;
  const again = await createRun(start);
  console.log(again.data?.runId === runId, again.response?.headers.get("openwop-Idempotent-Replay"));
  const { stream } = await streamRunEvents({ path: { runId } });
  for await (const data of stream) {
    if (!isEvent(data)) continue;
    console.log(describe(data));
    if (data.type === "interrupt.requested") await answer(runId);
    if (data.type === "run.completed" || data.type === "run.failed") break;
  }
  const run = await getRun({ path: { runId }, throwOnError: true });
  console.log(run.data.status, run.data.nodeStates["gate"]?.status);
  const page = await pollRunEvents({ path: { runId }, query: { lastSequence: -1 }, throwOnError: true });
  console.log(page.data.events.length === page.data.lastEventSeq + 1, page.data.isComplete);
  const tag = run.response.headers.get("ETag");
  const same = await getRun({ path: { runId }, headers: { "If-None-Match": tag ?? "" } });
  console.log(same.response?.status);
  await lists(runId);
  await webhooks();
  await errors();
}

async function lists(runId: string): Promise<void> {
  const ids: string[] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const { data: page } = await listWorkflows({ query: { limit: 2, cursor }, throwOnError: true });
    ids.push(...page.workflows.map((w) => w.workflowId));
    cursor = page.nextCursor;
  }
  const { data: all } = await listWorkflows({ query: { limit: 200 }, throwOnError: true });
  console.log(ids.length > 2 && ids.join() === all.workflows.map((w) => w.workflowId).join());
  const { data: found } = await listRuns({ query: { status: "completed", workflowId: "small-gate" }, throwOnError: true });
  console.log(found.runs.map((r) => r.runId === runId).join());
}

async function webhooks(): Promise<void> {
  const body = { url: "https://1.1.1.1/waybill", events: ["run.dead_lettered"] };
  const { data: made } = await registerWebhook({ body, throwOnError: true });
  const { data: list } = await listWebhooks({ query: { limit: 200 }, throwOnError: true });
  console.log(list.webhooks.find((w) => w.webhookId === made.webhookId)?.status);
  const gone = await unregisterWebhook({ path: { webhookId: made.webhookId } });
  console.log(gone.response?.status);
}

async function errors(): Promise<void> {
  const invalid = await listRuns({ query: { limit: 0 } });
  const missing = await getRun({ path: { runId: "run_none" } });
  await createRun({ body: { workflowId: "none" } });
  const limited = await createRun({ body: { workflowId: "none" } });
  for (const { response, error } of [invalid, missing, limited]) {
    console.log(response?.status, error === undefined ? "no error" : explain(error));
  }
}

async function answer(runId: string): Promise<void> {
  const run = await getRun({ path: { runId }, throwOnError: true });
  const open = run.data.interrupt;
  if (open?.interruptToken === undefined || open.payload.kind !== "approval") throw new Error("no approval to answer");
  const result = await resolveInterruptByToken({
    path: { token: open.interruptToken },
    body: { resumeValue: { action: open.payload.data.actions[0] } },
    throwOnError: true,
  });
  console.log(run.data.status, open.payload.data.title, result.data.interrupt.outcome);
}

void main();
