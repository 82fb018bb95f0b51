import { isObject } from "../../api/json";
import type { RunEvent, RunSnapshot } from "../../api/model";
import { dayTime, duration } from "../../ui/time";
import { text } from "./events";

/** Who acts next, in one sentence. */
export function nextActor(run: RunSnapshot, events: readonly RunEvent[]): string {
  const at = run.currentNodeId ?? run.interrupt?.nodeId ?? "";
  const node = at ? ` at ${at}` : "";
  switch (run.status) {
    case "pending":
      return "Waits for a free dispatcher to take it.";
    case "running":
      return running(run);
    case "waiting-approval":
      return `A person has to decide${node}.${votes(run, events)}`;
    case "waiting-input":
      return `A person has to answer${node}.`;
    case "waiting-external":
      if (run.waybill?.waits?.for === "form") return `A person has to fill in the form${node}.`;
      return `Something outside has to report back${node}.`;
    case "paused":
      return `Nobody acts until somebody resumes it.${because(events, "run.paused")}`;
    case "cancelling":
      return "The host is stopping what still runs.";
    case "cancelled":
      return `Nobody acts any more.${because(events, "run.cancelled")}`;
    case "completed":
      return took(run);
    case "failed":
      return "Nobody acts any more. A fork can go on from before the fault.";
  }
}

function running(run: RunSnapshot): string {
  const { waits } = run.waybill ?? {};
  if (waits?.for === "dispatcher") return "Waits for a free dispatcher to go on with it.";
  if (waits?.for === "timer") return `Nobody acts until the timer of ${waits.nodeId ?? "a node"} fires${waits.dueAt ? `, at ${dayTime(waits.dueAt)}` : ""}.`;
  if (waits?.for === "run") return `Waits for the run that ${waits.nodeId ?? "a node"} has started.`;
  const active = Object.entries(run.nodeStates ?? {}).filter(([, n]) => n.status === "running");
  if (active.length === 0) return "The host is choosing the next node.";
  const [name, state] = active[0] as [string, { attempts?: number }];
  const attempt = state.attempts !== undefined && state.attempts > 1 ? `, attempt ${state.attempts}` : "";
  return active.length === 1 ? `The host works at ${name}${attempt}.` : `The host works at ${active.length} nodes: ${active.slice(0, 4).map(([n]) => n).join(", ")}${active.length > 4 ? ", …" : ""}.`;
}

function votes(run: RunSnapshot, events: readonly RunEvent[]): string {
  const payload = run.interrupt?.payload;
  const need = isObject(payload) && isObject(payload.data) ? Number(payload.data.requiredApprovals ?? 1) : 1;
  if (!(need > 1)) return "";
  const given = events.filter((e) => e.type === "approval.granted" && (!run.currentNodeId || e.nodeId === run.currentNodeId)).length;
  return ` ${given} of ${need} votes so far.`;
}

function because(events: readonly RunEvent[], type: string): string {
  const reason = text(events.findLast((e) => e.type === type)?.payload.reason);
  return reason ? ` Reason given: ${reason}` : "";
}

function took(run: RunSnapshot): string {
  if (!run.startedAt || !run.completedAt) return "Nobody acts any more: the run is done.";
  return `Done in ${duration(Date.parse(run.completedAt) - Date.parse(run.startedAt))}.`;
}
