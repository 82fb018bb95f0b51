import { expect, it } from "vitest";
import type { RunSnapshot } from "../../api/model";
import { waitWords } from "../../ui/wait";
import { nextActor } from "./nextActor";

const run = (status: string, waits: object): RunSnapshot => ({ runId: "r", workflowId: "w", status, currentNodeId: "n", waybill: { waits } }) as unknown as RunSnapshot;

it.each([
  ["waiting-external", { for: "form", nodeId: "n" }, "A person has to fill in the form at n.", "waits for somebody to fill in a form at n"],
  ["waiting-external", { for: "external", nodeId: "n" }, "Something outside has to report back at n.", "waits for word from outside at n"],
  ["waiting-approval", { for: "approval", nodeId: "n" }, "A person has to decide at n.", "waits for a decision at n"],
])("a run that is %s for %o names who acts", (status, waits, next, row) => {
  expect(nextActor(run(status, waits), [])).toBe(next);
  expect(waitWords(waits)).toBe(row);
});
