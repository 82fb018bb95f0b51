import { expect, it } from "vitest";
import type { RunLimit, RunSnapshot, RunWait } from "../../api/model";
import { limitWords, waitWords } from "../../ui/wait";
import { nextActor } from "./nextActor";

const run = (status: string, waits: object): RunSnapshot => ({ runId: "r", workflowId: "w", status, currentNodeId: "n", waybill: { waits } }) as unknown as RunSnapshot;

it.each<[string, RunWait, string, string]>([
  ["waiting-external", { for: "form", nodeId: "n" }, "A person has to fill in the form at n.", "waiting for a form to be filled in at n"],
  ["waiting-external", { for: "external", nodeId: "n" }, "An external system has to respond at n.", "waiting for an external event at n"],
  ["waiting-approval", { for: "approval", nodeId: "n" }, "A person has to decide at n.", "waiting for a decision at n"],
])("a run that is %s for %o names who acts", (status, waits, next, row) => {
  expect(nextActor(run(status, waits), [])).toBe(next);
  expect(waitWords(waits)).toBe(row);
});

it("a run that waits for a limit names it", () => {
  const limit: RunLimit = { reason: "concurrency", scope: "workflow", limit: 2, keyed: true, since: "2026-01-02T03:04:05.000Z" };
  expect(waitWords({ for: "dispatcher", limit })).toBe("waiting for the workflow's concurrency limit: 2 at a time for each key");
  expect(limitWords({ ...limit, reason: "rate", scope: "tenant", keyed: false, limit: 100, periodMs: 60_000 })).toBe("the tenant's rate limit: 100 starts in 1 min 00 s");
  expect(limitWords({ ...limit, reason: "capacity", scope: "dispatcher", keyed: false, limit: 16 })).toBe("a free slot of a dispatcher (--max-runs 16)");
  expect(limitWords({ ...limit, reason: "retry", keyed: false })).toBe("the next attempt after a failure");
});

it("a timer of another day shows the day", () => {
  const dueAt = "2031-12-24T12:00:00.000Z";
  expect(nextActor(run("running", { for: "timer", nodeId: "n", dueAt }), [])).toContain("24 Dec 2031, ");
  expect(waitWords({ for: "timer", dueAt })).toContain("until 24 Dec 2031, ");
});
