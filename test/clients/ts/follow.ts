// A client with the types of openapi-typescript: it starts a run, follows its events, answers its approval,
// reads lists and errors, and prints what it saw.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type RunEvent = components["schemas"]["RunEvent"];

const [url, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

function need<T>(answer: { data?: T; error?: components["schemas"]["Error"] }): T {
  if (answer.data === undefined) throw new Error(`${answer.error?.error}: ${answer.error?.message}`);
  return answer.data;
}

// The type of the payload follows from the type of the event.
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
    case "run.failed":
      return `${e.type} ${e.payload.error.code}`;
    default:
      return e.type;
  }
}

export function untyped(e: RunEvent): unknown {
  // @ts-expect-error The payload has this member for run.failed only.
  return e.payload.error;
}

// The type of the details follows from the code.
function explain(e: components["schemas"]["Error"]): string {
  switch (e.error) {
    case "validation_error":
      return `${e.error} ${e.details.problems.map((p) => `${p.in} ${p.path}`).join()}`;
    case "rate_limited":
      return `${e.error} ${e.details.scope} ${e.details.limit} ${e.details.retryAfter > 0}`;
    default:
      return e.error;
  }
}

export function undetailed(e: components["schemas"]["Error"]): unknown {
  // @ts-expect-error Only a validation_error has this member.
  return e.details?.problems;
}

async function main(): Promise<void> {
  const start = { params: { header: { "Idempotency-Key": crypto.randomUUID() } }, body: { workflowId: "small-gate" } };
  const { runId } = need(await client.POST("/v1/runs", start));
  const again = await client.POST("/v1/runs", start);
  console.log(again.data?.runId === runId, again.response.headers.get("openwop-Idempotent-Replay"));
  for (let last = -1, done = false; !done; ) {
    const page = need(
      await client.GET("/v1/runs/{runId}/events/poll", { params: { path: { runId }, query: { lastSequence: last } } }),
    );
    for (const e of page.events) {
      console.log(describe(e));
      if (e.type === "interrupt.requested" && e.payload.kind === "approval") await answer(runId, e.payload.data.actions);
    }
    last = page.lastEventSeq;
    done = page.isComplete;
  }
  const run = need(await client.GET("/v1/runs/{runId}", { params: { path: { runId } } }));
  const status: "completed" | "failed" | undefined = run.status === "completed" || run.status === "failed" ? run.status : undefined;
  console.log(status, run.nodeStates["gate"]?.status);
  await conditional(runId);
  await lists(runId);
  await webhooks();
  await errors();
}

// An unchanged run is not sent again.
async function conditional(runId: string): Promise<void> {
  const path = { runId };
  const { response } = await client.GET("/v1/runs/{runId}", { params: { path } });
  const tag = response.headers.get("ETag");
  if (tag === null) throw new Error("no ETag");
  const same = await client.GET("/v1/runs/{runId}", { params: { path, header: { "If-None-Match": tag } } });
  console.log(same.response.status);
}

async function lists(runId: string): Promise<void> {
  const ids: string[] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = need(await client.GET("/v1/workflows", { params: { query: { limit: 2, cursor } } }));
    ids.push(...page.workflows.map((w) => w.workflowId));
    cursor = page.nextCursor;
  }
  const all = need(await client.GET("/v1/workflows", { params: { query: { limit: 200 } } }));
  console.log(ids.length > 2 && ids.join() === all.workflows.map((w) => w.workflowId).join());
  const found = need(await client.GET("/v1/runs", { params: { query: { status: "completed", workflowId: "small-gate" } } }));
  console.log(found.runs.map((r) => r.runId === runId).join());
}

async function webhooks(): Promise<void> {
  const body = { url: "https://1.1.1.1/waybill", events: ["run.dead_lettered"] };
  const made = need(await client.POST("/v1/webhooks", { body }));
  const { webhooks } = need(await client.GET("/v1/webhooks", { params: { query: { limit: 200 } } }));
  console.log(webhooks.find((w) => w.webhookId === made.webhookId)?.status);
  const gone = await client.DELETE("/v1/webhooks/{webhookId}", { params: { path: { webhookId: made.webhookId } } });
  console.log(gone.response.status);
}

async function errors(): Promise<void> {
  const invalid = await client.GET("/v1/runs", { params: { query: { limit: 0 } } });
  const missing = await client.GET("/v1/runs/{runId}", { params: { path: { runId: "run_none" } } });
  await client.POST("/v1/runs", { body: { workflowId: "none" } });
  const limited = await client.POST("/v1/runs", { body: { workflowId: "none" } });
  for (const { response, error } of [invalid, missing, limited]) {
    console.log(response.status, error === undefined ? "no error" : explain(error));
  }
}

async function answer(runId: string, actions: components["schemas"]["ApprovalAction"][]): Promise<void> {
  const run = need(await client.GET("/v1/runs/{runId}", { params: { path: { runId } } }));
  const open = run.interrupt;
  if (open?.interruptToken === undefined || open.payload.kind !== "approval") throw new Error("no approval to answer");
  const shown = need(await client.GET("/v1/interrupts/{token}", { params: { path: { token: open.interruptToken } } }));
  console.log(run.status, open.payload.data.title, shown.resolved, actions[0]);
  const result = need(
    await client.POST("/v1/runs/{runId}/interrupts/{nodeId}", {
      params: { path: { runId, nodeId: open.nodeId } },
      body: { resumeValue: { action: actions[0] } },
    }),
  );
  console.log(result.interrupt.outcome);
}

void main();
