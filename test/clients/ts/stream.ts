// A client that @hey-api/openapi-ts generated: it starts a run, follows its event stream, answers its
// approval by token and prints what it saw.
import { createRun, getRun, pollRunEvents, resolveInterruptByToken, streamRunEvents } from "./sdk";
import { client } from "./sdk/client.gen";
import type { RunEvent, StreamData } from "./sdk/types.gen";

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

async function main(): Promise<void> {
  const created = await createRun({ body: { workflowId: "small-gate" }, throwOnError: true });
  const { runId } = created.data;
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
  const missing = await getRun({ path: { runId: "run_none" } });
  console.log(missing.response?.status, missing.error?.error);
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
