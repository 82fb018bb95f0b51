// A client with the types of openapi-typescript: it starts a run, follows its events, answers its approval
// and prints what it saw.
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

async function main(): Promise<void> {
  const { runId } = need(await client.POST("/v1/runs", { body: { workflowId: "small-gate" } }));
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
  const missing = await client.GET("/v1/runs/{runId}", { params: { path: { runId: "run_none" } } });
  console.log(missing.response.status, missing.error?.error);
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
