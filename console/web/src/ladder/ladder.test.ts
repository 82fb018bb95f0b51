// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseJson } from "../api/json";
import type { RunEvent } from "./events";
import { executionsOf } from "./fold";
import { gates, type Execution, type Rung } from "./model";
import { rungsOfOutcome } from "./outcome";
import { gateOf, instanceOf, problemsOf } from "./rungs";
import { endOf, findEnvelope, roomOf, storyOfExecution } from "./story";

const corpus = join(import.meta.dirname, "../../../../test/golden/corpus");
const logsDir = join(import.meta.dirname, "logs");

function read(folder: string, name: string): RunEvent[] {
  return (parseJson(readFileSync(join(folder, name), "utf8")) as unknown as { events: RunEvent[] }).events;
}

const ladder = (name: string): Execution[] => executionsOf(read(logsDir, `${name}.json`));
const only = (name: string): Execution => {
  const all = ladder(name);
  expect(all).toHaveLength(1);
  return all[0]!;
};
const marks: Record<Rung["state"], string> = { passed: "+", refused: "x", "not-reached": ".", "not-applicable": " " };
const drawn = (rungs: Rung[]): string => rungs.map((r) => marks[r.state]).join("");
/** Summarises an execution: attempts, ends of calls, and gates. */
const picture = (x: Execution): string[] => x.calls.map((c) => [`${c.attempt}`, c.cause, endOf(c, x.result === "open").word, ...c.envelopes.map((v) => drawn(v.rungs))].join(" | "));

describe("the golden corpus", () => {
  const files = readdirSync(corpus).filter((f) => f.endsWith(".json"));

  test("is there", () => expect(files.length).toBeGreaterThan(60));

  test.each(files)("%s", (file) => {
    const events = read(corpus, file);
    const all = executionsOf(events);
    for (const x of all) {
      for (const c of x.calls) {
        expect(c.from).toBeLessThanOrEqual(c.to);
        for (const v of c.envelopes) {
          expect(v.rungs.map((r) => r.gate)).toEqual(gates);
          expect(v.rungs.filter((r) => r.state === "refused")).toHaveLength(v.outcome === "refused" || v.outcome === "discarded" ? 1 : 0);
          expect(findEnvelope(all, v.key)?.envelope).toBe(v);
        }
      }
      expect(storyOfExecution(x).headline).not.toBe("");
    }
    // Every recorded envelope appears once.
    const recording = events.filter((e) => e.causationId && (e.type === "artifact.created" || e.type === "clarification.requested"));
    const shown = all.flatMap((x) => x.calls.flatMap((c) => c.envelopes.filter((v) => v.outcome === "accepted" && v.form === "envelope").flatMap((v) => v.events[0]!.eventId)));
    expect(shown).toEqual(expect.arrayContaining(recording.map((e) => e.eventId)));
    expect(new Set(shown).size).toBe(shown.length);
    // Every billed call appears once.
    expect(all.flatMap((x) => x.calls).filter((c) => c.usage)).toHaveLength(events.filter((e) => e.type === "provider.usage").length);
  });
});

test.each<[string, string[], string]>([
  ["contract", ["1 | first | refused | +++x...."], "Stopped at gate 4 of 8, contract: media.image"],
  ["discard", ["1 | first | accepted | +++x.... | ++++++++"], "Accepted on the first attempt"],
  ["corrected", ["1 | first | schema violation | ++x.....", "2 | retry | schema violation | ++x.....", "3 | retry | accepted | ++++++++"], "Accepted on attempt 3 after two schema violations"],
  ["exhausted", ["1 | first | schema violation | ++x.....", "2 | retry | schema violation | ++x.....", "3 | retry | schema violation | ++x....."], "Given up after three attempts: three schema violations"],
  ["truncated", ["1 | first | truncated", "2 | retry | accepted | ++++++++"], "Accepted on attempt 2 after one truncation"],
  ["truncated-out", ["1 | first | truncated", "2 | retry | truncated", "3 | retry | truncated"], "Given up after three attempts: three truncations"],
  ["refusal", ["1 | first | declined"], "The model declined; this is final"],
  ["unknown-kind", ["1 | first | wrong kind or version | +x......", "2 | retry | accepted | ++++++++"], "Accepted on attempt 2 after one wrong kind or version"],
  ["shape", ["1 | first | schema violation | x.......", "2 | retry | schema violation | x.......", "3 | retry | accepted | ++++++++"], "Accepted on attempt 3 after two schema violations"],
  ["version", ["1 | first | wrong kind or version | ++x.....", "2 | retry | accepted | ++++++++"], "Accepted on attempt 2 after one wrong kind or version"],
  ["dedup", ["1 | first | schema violation | ++++++++ | ++x.....", "2 | retry | accepted | ++++++++ | ++++++++"], "Accepted on attempt 2 after one schema violation"],
  ["limits", ["1 | first | refused | ++++++++ | ++++++++ | ++++++++ | ++++++++ | ++++++++ | ++++x..."], "Stopped at gate 5 of 8, limits"],
  ["cantsay", ["1 | first | no JSON", "2 | retry | no JSON", "3 | retry | no JSON", "4 | prose-fallback | accepted | ++++++++"], "Converted to the schema by one further call after three answers without JSON"],
  ["fence", ["1 | first | accepted | ++++++++"], "Accepted on the first attempt"],
  ["clarify", ["1 | first | accepted | ++++++++"], "Waiting for an answer to the model's question"],
  ["schema-request", ["1 | first | accepted | ++++++++", "2 | next-turn | accepted | ++++++++"], "Accepted on attempt 2"],
])("%s", (name, lines, headline) => {
  const x = only(name);
  expect(picture(x)).toEqual(lines);
  expect(storyOfExecution(x).headline).toBe(headline);
});

test("a kind outside the contract names what was refused and what is accepted", () => {
  const [v] = only("contract").calls[0]!.envelopes;
  expect(v!.rungs[3]).toMatchObject({ gate: "contract", code: "envelope_contract_violation", refusedKind: "media.image" });
  expect(v!.rungs[3]!.acceptedKinds).toContain("vendor.waybill.ticket.triage");
});

test("a violation names its places in schema and payload, and never a value of the model's", () => {
  const x = only("corrected");
  expect(x.calls[0]!.envelopes[0]!.rungs[2]!.problems).toEqual([
    { message: 'not one of the allowed values: "billing", "delivery", "return", "account", "other"', schemaPointer: "/properties/category/enum", instancePointer: "/category" },
  ]);
  expect(x.calls[1]!.envelopes[0]!.rungs[2]!.problems).toEqual([
    { message: "required member missing: summary", schemaPointer: "/required", instancePointer: "/summary" },
    { message: "want type null or string", schemaPointer: "/properties/action/anyOf/0/properties/orderId/type", instancePointer: "/action/orderId" },
  ]);
  expect(x.calls[1]!.because).toEqual(x.calls[0]!.failure);
  expect(x.calls[0]!.text).toContain('"bills"');
});

test("a truncated call has its tokens, and the next one more room", () => {
  const x = only("truncated");
  expect(x.calls[0]!.truncated).toEqual({ stopReason: "max_tokens", outputTokens: 64, partial: false });
  expect(x.calls.map((c) => roomOf(c, 64, 2, x.calls))).toEqual([64, 128]);
  expect(storyOfExecution(only("truncated-out")).code).toBe("envelope_truncation_unrecoverable");
});

test("a refusal has what the host kept of it", () => {
  const x = only("refusal");
  expect(x.calls[0]!.refusal).toMatchObject({ withheld: false, category: "safety" });
  expect(storyOfExecution(x)).toMatchObject({ code: "envelope_refusal", detail: expect.stringContaining("not retried") });
});

test("what an answer repeats has the earlier outcome, and no new events", () => {
  const x = only("dedup");
  const [first, second] = [x.calls[0]!.envelopes[0]!, x.calls[1]!.envelopes[0]!];
  expect(second).toMatchObject({ outcome: "cached", envelopeId: first.envelopeId, correlationId: first.correlationId });
  expect(second.rungs.find((r) => r.gate === "routing")?.note).toBe("no new events");
});

test("a clarification is routed to the events that ask", () => {
  const [v] = only("clarify").calls[0]!.envelopes;
  expect(v!.events.map((e) => e.type)).toEqual(["clarification.requested", "interrupt.requested"]);
});

test("a substitution stands before its call", () => {
  const [x] = executionsOf(read(corpus, "feature-substituted-1.json"));
  expect(x!.substitution).toMatchObject({ from: { provider: "sample", model: "sample-1" }, to: { provider: "mock", model: "mock-large" }, missing: ["reasoning"], hidden: false });
  expect(x!.calls).toHaveLength(1);
});

test("a model that lacks something is asked nothing", () => {
  const [x] = executionsOf(read(corpus, "needy-1.json"));
  expect(x!.calls).toHaveLength(0);
  expect(storyOfExecution(x!)).toMatchObject({ tone: "bad", code: "capability_not_provided" });
});

test("an answer after a question begins a further call", () => {
  const [x] = executionsOf(read(corpus, "model-asks-1.json"));
  expect(picture(x!)).toEqual(["1 | first | accepted | ++++++++", "1 | after-answer | accepted | ++++++++"]);
});

test("a value has one gate, its schema", () => {
  const [x] = executionsOf(read(corpus, "feature-prose-1.json"));
  expect(picture(x!).at(-1)).toBe("4 | prose-fallback | accepted |   +     ");
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

test.each([
  ["/properties/category/enum", "/category"],
  ["/properties/questions/items/properties/id/type", "/questions/*/id"],
  ["/properties/action/anyOf/1/properties/kind/enum", "/action/kind"],
  ["/additionalProperties", ""],
  ["/properties/tags/additionalProperties/type", "/tags/*"],
  ["/properties/a~1b/type", "/a~1b"],
  ["/required", ""],
])("the rule at %s speaks of %s", (schema, instance) => expect(instanceOf(schema)).toBe(instance));

test("violations are taken apart, also where their words hold a semicolon", () => {
  expect(problemsOf("additional member not allowed; allowed: a, b (/additionalProperties); want type string (/properties/a/type)").map((p) => p.message)).toEqual([
    "additional member not allowed; allowed: a, b", "want type string",
  ]);
  expect(gateOf("type-drift", "schemaVersion is above the advertised 1 (/schemaVersions)")).toMatchObject({ gate: "payload", code: "unknown_schema_version", reason: "schemaVersion is above the advertised 1" });
});
