import { describe, expect, test } from "vitest";
import type { RunEvent } from "../api/model";
import { columnsOf, decisive, documentOf, findColumn, roomOf } from "./columns";
import { recordedIn, textOf } from "./events";
import type { Call, Envelope, Execution, Rung } from "./model";
import { rungsOfOutcome } from "./outcome";
import { passed, refused } from "./rungs";

const marks: Record<Rung["state"], string> = { passed: "+", refused: "x", "not-reached": ".", "not-applicable": " " };
const drawn = (rungs: Rung[]): string => rungs.map((r) => marks[r.state]).join("");

const event = (sequence: number, type: string, payload: object, nodeId = "n"): RunEvent => ({ eventId: `e${sequence}`, runId: "r", sequence, type, payload, nodeId, timestamp: "" }) as RunEvent;

const envelope = (key: string, outcome: Envelope["outcome"], sequence: number, more: Partial<Envelope> = {}): Envelope => ({
  key, outcome, form: "envelope", tone: "good", headline: key, events: [{ eventId: "", sequence, type: "" }], ...more,
  gates: (outcome === "refused" ? refused({ gate: "payload", code: "envelope_invalid" }) : passed()) as Envelope["gates"],
});

const call = (n: number, from: number, to: number, envelopes: Envelope[], more: Partial<Call> = {}): Call => ({ call: n, attempt: n, cause: "first", end: "", tone: "note", envelopes, from, to, ...more });

const execution = (calls: Call[], more: Partial<Execution> = {}): Execution => ({ nodeId: "n", execution: 1, calls, result: "completed", tone: "good", headline: "", from: 0, to: 9, ...more });

describe("the columns of an execution", () => {
  const x = execution([call(1, 1, 2, [envelope("n.1.1.1", "refused", 2)]), call(2, 3, 4, [], { truncated: { stopReason: "max_tokens", partial: false } }), call(3, 5, 6, [envelope("env_1", "accepted", 6, { envelopeId: "env_1", correlationId: "c1" })])]);

  test("are its documents, and its attempts without one", () => expect(columnsOf(x).map((c) => c.key)).toEqual(["n.1.1.1", "n.1.2", "env_1"]));

  test("the last one decides a completed execution, the refused one any other", () => {
    expect(decisive(x, columnsOf(x))?.key).toBe("env_1");
    expect(decisive({ ...x, result: "failed" }, columnsOf(x))?.key).toBe("n.1.1.1");
  });

  test.each([["env_1", "env_1"], ["c1", "env_1"], ["n.1.1.1", "n.1.1.1"], ["n.1.2", "n.1.2"], ["n.1.3", "env_1"], ["n.1.4", undefined]])("%s finds %s", (id, key) => {
    expect(findColumn([x], id)?.column.key).toBe(key);
  });

  test("each truncation doubles the room of the next call", () => expect(x.calls.map((c) => roomOf(c, 64, 2, x.calls))).toEqual([64, 64, 128]));
});

test("an event has the document that it records", () => {
  const payload = { a: 1 };
  const rendering = { display: "markdown" };
  expect(recordedIn(event(0, "artifact.created", { payload, rendering }))).toEqual({ payload, rendering });
  expect(recordedIn(event(0, "artifact.created", { payload, label: "First draft" })).label).toBe("First draft");
  expect(recordedIn(event(0, "log.appended", { fields: { payload, label: "Gave up" } })).label).toBe("Gave up");
  expect(recordedIn(event(0, "clarification.requested", { envelope: { payload } })).payload).toBe(payload);
  expect(recordedIn(event(0, "log.appended", { fields: { payload } })).payload).toBe(payload);
  expect(recordedIn(event(0, "node.completed", { outputs: { output: payload } })).payload).toBe(payload);
  expect(recordedIn(undefined).payload).toBeUndefined();
});

test("a rejected document is what the model streamed, an accepted one what was recorded", () => {
  const events = [event(0, "output.chunk", { chunk: 'Sure: {"a"' }), event(1, "output.chunk", { chunk: "other" }, "m"), event(2, "output.chunk", { chunk: ":1}" }), event(3, "artifact.created", { payload: { a: 2 } })];
  const first = call(1, 0, 2, [envelope("n.1.1.1", "refused", 2)]);
  const x = execution([first, call(2, 3, 3, [envelope("env_1", "accepted", 3)])]);
  expect(textOf(first, "n", events)).toBe('Sure: {"a":1}');
  expect(columnsOf(x).map((c) => documentOf(c, "n", events))).toEqual([{ a: 1 }, { a: 2 }]);
  expect(textOf(call(3, 3, 3, []), "n", events)).toBeUndefined();
});

test.each<[unknown, string, object]>([
  [{ status: "accepted", recordedEventIds: ["ev_1"] }, "++++++++", { gate: "routing", note: "ev_1" }],
  [{ status: "gated", reason: "envelope_contract_violation: no", allowedKinds: ["error"], gate: { refusedType: "vendor.x.bar" } }, "+++x....", { gate: "contract", refusedKind: "vendor.x.bar", acceptedKinds: ["error"] }],
  [{ status: "invalid", reason: "envelope_correlation_conflict: other type", details: [] }, "++++++x.", { gate: "dedup", code: "envelope_correlation_conflict", reason: "other type" }],
  [{ status: "invalid", reason: "envelope_invalid: 1", details: [{ instancePath: "/payload/text", schemaPath: "/properties/text/type", message: "want type string" }] }, "++x.....", { gate: "payload", problems: [{ instancePointer: "/text", schemaPointer: "/properties/text/type", message: "want type string" }] }],
  [{ status: "breached", reason: "cap_breached: envelopesPerTurn limit of 32 is reached", capKind: "envelopes" }, "++++x...", { gate: "limits", code: "cap_breached" }],
  [{ status: "invalid", reason: "untrusted_content_blocks_approval", details: [] }, "+++++x..", { reason: "untrusted_content_blocks_approval" }],
])("an outcome of the acceptor: %j", (outcome, line, rung) => {
  const rungs = rungsOfOutcome(outcome);
  expect(drawn(rungs)).toBe(line);
  expect(rungs.find((r) => r.state === "refused") ?? rungs.at(-1)).toMatchObject(rung);
});
