import { expect, test } from "vitest";
import { stoppedAt } from "../../ladder/rungs";
import { judge, kindOf, type Given } from "./judge";

const host = {
  versions: { "vendor.x.note": 2, error: 1 },
  schema: { type: "object", properties: { text: { type: "string" }, n: { type: "number", maximum: 5 } }, required: ["text"], additionalProperties: false },
};
const given = (text: unknown, more: Partial<Given> = {}): Given => ({ text: typeof text === "string" ? text : JSON.stringify(text), askedKind: "", accepts: [], ...more });
const note = { type: "vendor.x.note", payload: { text: "a" } };

test.each<[string, Given, string, string?]>([
  ["prose", given("Sorry, no."), "........"],
  ["an envelope", given(note), "++++...."],
  ["an envelope within prose", given(`Here it is:\n${JSON.stringify(note)}\nBye`), "++++...."],
  ["a bare payload without a kind", given({ text: "a" }), "x.......", "invalid_envelope_shape"],
  ["a bare payload of the kind asked for", given({ text: "a" }, { askedKind: "vendor.x.note" }), "++++...."],
  ["a member too many", given({ ...note, extra: 1 }), "x.......", "invalid_envelope_shape"],
  ["meta that is no object", given({ ...note, meta: 3 }), "x.......", "invalid_envelope_shape"],
  ["an unknown kind", given({ ...note, type: "vendor.x.other" }), "+x......", "unknown_envelope_kind"],
  ["a version above", given({ ...note, schemaVersion: 3 }), "++x.....", "unknown_schema_version"],
  ["a payload that breaks the schema", given({ ...note, payload: { text: 1 } }), "++x.....", "envelope_invalid"],
  ["an exact number within the bound", given('{"type":"vendor.x.note","payload":{"text":"a","n":1.10}}'), "++++...."],
  ["a kind outside the contract", given(note, { accepts: ["vendor.x.other"] }), "+++x....", "envelope_contract_violation"],
  ["a kind of the contract", given(note, { accepts: ["vendor.x.note"] }), "++++...."],
  ["the first of several", given([note, 3]), "++++...."],
  ["an outcome", given({ status: "invalid", reason: "envelope_correlation_conflict: the id had another type", details: [] }), "++++++x.", "envelope_correlation_conflict"],
  ["an outcome that was accepted", given({ status: "accepted", recordedEventIds: ["ev_1"] }), "++++++++"],
])("%s", (_, answer, line, code) => {
  const { rungs } = judge(answer, host);
  expect(rungs.map((r) => ({ passed: "+", refused: "x", "not-reached": ".", "not-applicable": " " })[r.state]).join("")).toBe(line);
  expect(stoppedAt(rungs)?.code).toBe(code);
});

test("reports problems with their pointer", () => {
  expect(judge(given({ type: "vendor.x.note", payload: { text: 1 } }), host).problems).toEqual([{ instancePointer: "/text", message: "must be a string" }]);
});

test("the kind is the envelope's own, or the one that is asked for", () => {
  expect(kindOf(given(note, { askedKind: "error" }))).toBe("vendor.x.note");
  expect(kindOf(given({ text: "a" }, { askedKind: "error" }))).toBe("error");
  expect(kindOf(given("no"))).toBeUndefined();
});
