import { expect, test } from "vitest";
import type { RunEvent } from "../../api/model";
import { parseJson } from "../../api/json";
import type { Execution } from "../../ladder/model";
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
  expect(chainOf(log, []).map((s) => `${s.sequence} ${s.words}${s.code ? ` ${s.code}` : ""}`)).toEqual([
    "0 The run started",
    "3 Input was requested (approval)",
    "4 Answered by ann: reject",
    "5 Failed: no approval_rejected",
    "6 The run failed: no approval_rejected",
  ]);
});

const used = (n: string): Execution["calls"][number]["usage"] => parseJson(`{"provider":"p","model":"m","inputTokens":${n},"outputTokens":1}`) as object;

test("a model's node is one step, with its outcome and the exact sum of its tokens", () => {
  const call = { attempt: 1, cause: "first", end: "refused", tone: "bad", envelopes: [], from: 1, to: 1 } as const;
  const asked: Execution = {
    nodeId: "ai", execution: 1, result: "failed", tone: "bad", headline: "The model declined; this is final", code: "envelope_refusal", from: 0, to: 2,
    calls: [{ ...call, envelopes: [], call: 1, usage: used("9007199254740993") ?? {} }, { ...call, envelopes: [], call: 2, usage: used("9007199254740992") ?? {} }],
    substitution: { from: { provider: "a", model: "b" }, to: { provider: "c", model: "d" }, missing: ["x"], hidden: true, event: { eventId: "", sequence: 0, type: "" } },
  };
  const log = [event(0, "node.started", {}, "ai"), event(1, "provider.usage", {}, "ai"), event(2, "node.failed", { error: { code: "envelope_refusal" } }, "ai")];
  expect(chainOf(log, [asked])).toEqual([
    {
      sequence: 0, at: log[0]?.timestamp, nodeId: "ai", tone: "bad", code: "envelope_refusal", envelope: "ai.1.2", tokens: [18014398509481985n, 2n],
      words: "a/b lacks x, so another model was called. The model declined; this is final",
    },
  ]);
});
