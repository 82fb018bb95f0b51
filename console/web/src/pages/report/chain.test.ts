import { expect, test } from "vitest";
import refusal from "../../ladder/logs/refusal.json" with { type: "json" };
import corrected from "../../ladder/logs/corrected.json" with { type: "json" };
import type { RunEvent } from "../../api/model";
import { parseJson } from "../../api/json";
import { chainOf } from "./chain";

const event = (sequence: number, type: string, payload: object = {}, nodeId?: string): RunEvent =>
  ({ eventId: `e${sequence}`, runId: "r", sequence, type, payload, timestamp: `2026-11-22T10:00:0${sequence}.000Z`, ...(nodeId ? { nodeId } : {}) }) as RunEvent;

test("who was asked, and what the answer was, are steps; what carries them out is none", () => {
  const log = [
    event(0, "run.started"),
    event(1, "node.started", {}, "gate"),
    event(2, "node.suspended", {}, "gate"),
    event(3, "interrupt.requested", { kind: "approval" }, "gate"),
    event(4, "interrupt.resolved", { resolvedBy: "ann", resumeValue: { action: "reject" } }, "gate"),
    event(5, "node.failed", { error: { code: "approval_rejected", message: "no" } }, "gate"),
    event(6, "run.failed", { error: { code: "approval_rejected", message: "no" } }),
  ];
  expect(chainOf(log).map((s) => `${s.sequence} ${s.words}${s.code ? ` ${s.code}` : ""}`)).toEqual([
    "0 The run started",
    "3 Input was requested (approval)",
    "4 Answered by ann: reject",
    "5 Failed: no approval_rejected",
    "6 The run failed: no approval_rejected",
  ]);
});

test.each([
  ["a refusal", refusal, /^The model declined; this is final$/, "bad"],
  ["an answer that was corrected", corrected, /^Accepted on attempt \d after /, "good"],
])("of a model's node the ladder tells: %s", (_, log, words, tone) => {
  const events = (Array.isArray(log) ? log : (log as { events: unknown }).events) as RunEvent[];
  const step = chainOf(events).find((s) => s.envelope !== undefined);
  expect(step).toMatchObject({ words: expect.stringMatching(words) as string, tone });
  expect(step?.tokens?.every((n) => n > 0)).toBe(true);
});

test("tokens of a step are summed exactly", () => {
  const used = (n: string): RunEvent => event(1, "provider.usage", parseJson(`{"provider":"p","model":"m","inputTokens":${n},"outputTokens":1}`) as object, "n");
  const [step] = chainOf([event(0, "node.started", { typeId: "core.ai.callPrompt" }, "n"), used("9007199254740993"), used("9007199254740992")]);
  expect(step?.tokens).toEqual([18014398509481985n, 2n]);
});
