import type { RunLimit, RunWait } from "../api/model";
import { dayTime, duration } from "./time";
import { lookup } from "../api/lookup";

const waitReasons: { [what: string]: string } = {
  dispatcher: "for a free dispatcher",
  timer: "for a timer",
  approval: "for a decision",
  input: "for an answer",
  form: "for a form to be filled in",
  external: "for an external event",
  run: "for a child run",
  resume: "until it is resumed",
  cancellation: "for running nodes to stop",
};

/** Describes what a run waits for. */
export function waitWords(wait: RunWait): string {
  const at = wait.nodeId ? ` at ${wait.nodeId}` : "";
  const attempt = wait.attempt !== undefined && wait.attempt > 1 ? `, attempt ${wait.attempt}` : "";
  if (wait.limit) return `waiting for ${limitWords(wait.limit)}`;
  const due = wait.dueAt ? `, until ${dayTime(wait.dueAt)}` : "";
  if (wait.for === "node") return `executing${at}${attempt}`;
  const many = wait.questions !== undefined && wait.questions > 1 ? ` (${wait.questions} questions)` : "";
  return `waiting ${lookup(waitReasons, wait.for) ?? `for ${wait.for}`}${at}${attempt}${due}${many}`;
}

/** Describes a limit: its kind, value and scope. */
export function limitWords(limit: RunLimit): string {
  const scope = limit.scope === "tenant" ? "the tenant's" : "the workflow's";
  const each = limit.keyed ? " for each key" : "";
  switch (limit.reason) {
    case "capacity":
      return `a free slot of a dispatcher (--max-runs ${limit.limit ?? "–"})`;
    case "concurrency":
      return `${scope} concurrency limit: ${limit.limit ?? "–"} at a time${each}`;
    case "rate":
      return `${scope} rate limit: ${limit.limit ?? "–"} starts in ${duration(limit.periodMs ?? Number.NaN)}${each}`;
    case "retry":
      return "the next attempt after a failure";
    default:
      return limit.reason;
  }
}
