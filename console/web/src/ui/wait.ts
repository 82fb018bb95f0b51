import type { RunWait } from "../api/model";
import { clock } from "./time";
import { own } from "../api/own";

const whom: { [what: string]: string } = {
  dispatcher: "for a free dispatcher",
  timer: "for a timer",
  approval: "for a decision",
  input: "for an answer",
  form: "for somebody to fill in a form",
  external: "for word from outside",
  run: "for a run of its own",
  resume: "until somebody resumes it",
  cancellation: "for what still runs to stop",
};

/** What a run waits for, in words. */
export function waitWords(wait: RunWait): string {
  const at = wait.nodeId ? ` at ${wait.nodeId}` : "";
  const attempt = wait.attempt !== undefined && wait.attempt > 1 ? `, attempt ${wait.attempt}` : "";
  const due = wait.dueAt ? `, until ${clock(wait.dueAt).slice(0, 8)}` : "";
  if (wait.for === "node") return `works${at}${attempt}`;
  const many = wait.questions !== undefined && wait.questions > 1 ? ` (${wait.questions} questions)` : "";
  return `waits ${own(whom, wait.for) ?? `for ${wait.for}`}${at}${attempt}${due}${many}`;
}
