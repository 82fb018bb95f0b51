import { isObject } from "../../api/json";
import type { RunEvent, RunSnapshot } from "../../api/model";
import { dayTime, duration } from "../../ui/time";
import { text } from "./events";

/** Describes who acts next. */
export function nextActor(run: RunSnapshot, events: readonly RunEvent[]): string {
  const at = run.currentNodeId ?? run.interrupt?.nodeId ?? "";
  const node = at ? ` at ${at}` : "";
  switch (run.status) {
    case "pending":
      return "Waiting for a free dispatcher.";
    case "running":
      return running(run);
    case "waiting-approval":
      return `A person has to decide${node}.${votes(run, events)}`;
    case "waiting-input":
      return `A person has to answer${node}.`;
    case "waiting-external":
      if (run.waybill?.waits?.for === "form") return `A person has to fill in the form${node}.`;
      return `An external system has to respond${node}.`;
    case "paused":
      return `Paused until it is resumed.${because(events, "run.paused")}`;
    case "cancelling":
      return "The host is stopping running nodes.";
    case "cancelled":
      return `The run was cancelled.${because(events, "run.cancelled")}`;
    case "completed":
      return took(run);
    case "failed":
      return "The run failed. Fork it to retry from an earlier step.";
  }
}

function running(run: RunSnapshot): string {
  const { waits } = run.waybill ?? {};
  if (waits?.for === "dispatcher") return "Waiting for a free dispatcher to continue.";
  if (waits?.for === "timer") return `Waiting for the timer of ${waits.nodeId ?? "a node"}${waits.dueAt ? `, due at ${dayTime(waits.dueAt)}` : ""}.`;
  if (waits?.for === "run") return `Waiting for the child run of ${waits.nodeId ?? "a node"}.`;
  const active = Object.entries(run.nodeStates ?? {}).filter(([, n]) => n.status === "running");
  if (active.length === 0) return "The host is choosing the next node.";
  const [name, state] = active[0] as [string, { attempts?: number }];
  const attempt = state.attempts !== undefined && state.attempts > 1 ? `, attempt ${state.attempts}` : "";
  return active.length === 1 ? `The host is executing ${name}${attempt}.` : `The host is executing ${active.length} nodes: ${active.slice(0, 4).map(([n]) => n).join(", ")}${active.length > 4 ? ", …" : ""}.`;
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
  if (!run.startedAt || !run.completedAt) return "The run completed.";
  return `Completed in ${duration(Date.parse(run.completedAt) - Date.parse(run.startedAt))}.`;
}
