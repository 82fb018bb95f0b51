import { expect, test } from "vitest";
import { parseJson } from "../../api/json";
import { stoppedAt } from "../../ladder/rungs";
import { judge, kindOf, outcomeIn, type Given, type Reading } from "./judge";

const host = {
  versions: { "vendor.x.note": 2, error: 1 },
  schema: { type: "object", properties: { text: { type: "string" }, n: { type: "number", maximum: 5 } }, required: ["text"], additionalProperties: false },
};
const given = (text: unknown, more: Partial<Given> = {}): Given => ({ text: typeof text === "string" ? text : JSON.stringify(text), askedKind: "", accepts: [], ...more });
const note = { type: "vendor.x.note", payload: { text: "a" } };
const bare: Given = given({ text: "a" }, { askedKind: "vendor.x.note" });

/** What the host finds in an answer that is one document. */
const read = (answer: Given, kind = "vendor.x.note", more: object = {}): Reading => ({
  documents: [{ document: parseJson(answer.text), envelope: answer !== bare, kind, path: "direct", found: "the whole answer is JSON", ...more }],
});
const none: Reading = { reason: "parse-error", detail: "it is text, not a JSON document" };

test.each<[string, Given, Reading | undefined, string, string?]>([
  ["prose", given("Sorry, no."), none, "........"],
  ["an envelope", given(note), read(given(note)), "++++...."],
  ["a bare payload of the kind asked for", bare, read(bare), "++++...."],
  ["a member too many", given({ ...note, extra: 1 }), read(given({ ...note, extra: 1 })), "x.......", "invalid_envelope_shape"],
  ["meta that is no object", given({ ...note, meta: 3 }), read(given({ ...note, meta: 3 })), "x.......", "invalid_envelope_shape"],
  ["an unknown kind", given({ ...note, type: "vendor.x.other" }), read(given({ ...note, type: "vendor.x.other" }), "vendor.x.other"), "+x......", "unknown_envelope_kind"],
  ["a version above", given({ ...note, schemaVersion: 3 }), read(given({ ...note, schemaVersion: 3 })), "++x.....", "unknown_schema_version"],
  ["a payload that breaks the schema", given({ ...note, payload: { text: 1 } }), read(given({ ...note, payload: { text: 1 } })), "++x.....", "envelope_invalid"],
  ["an exact number within the bound", given('{"type":"vendor.x.note","payload":{"text":"a","n":1.10}}'), read(given('{"type":"vendor.x.note","payload":{"text":"a","n":1.10}}')), "++++...."],
  ["a kind outside the contract", given(note, { accepts: ["vendor.x.other"] }), read(given(note)), "+++x....", "envelope_contract_violation"],
  ["a kind of the contract", given(note, { accepts: ["vendor.x.note"] }), read(given(note)), "++++...."],
  ["an outcome", given({ status: "invalid", reason: "envelope_correlation_conflict: the id had another type", details: [] }), undefined, "++++++x.", "envelope_correlation_conflict"],
  ["an outcome that was accepted", given({ status: "accepted", recordedEventIds: ["ev_1"] }), undefined, "++++++++"],
])("%s", (_, answer, reading, line, code) => {
  const { rungs } = judge(answer, reading, host);
  expect(rungs.map((r) => ({ passed: "+", refused: "x", "not-reached": ".", "not-applicable": " " })[r.state]).join("")).toBe(line);
  expect(stoppedAt(rungs)?.code).toBe(code);
});

test("reports problems with their pointer", () => {
  const answer = given({ type: "vendor.x.note", payload: { text: 1 } });
  expect(judge(answer, read(answer), host).problems).toEqual([{ instancePointer: "/text", message: "must be a string" }]);
});

test("says how the host found the document, and how many there are", () => {
  const answer = given(note);
  const [first] = read(answer, "vendor.x.note", { path: "markdown-fence", found: "JSON found in a fenced block", byteOffset: 12 }).documents ?? [];
  expect(judge(answer, { documents: [first as never, first as never] }, host).note).toBe("JSON found in a fenced block, from byte 12. The answer has 2 documents; this is the first.");
  expect(judge(given("no"), none, host).note).toContain("it is text, not a JSON document");
});

test("the kind is the document's, or the one that is asked for", () => {
  expect(kindOf(given(note, { askedKind: "error" }), read(given(note)))).toBe("vendor.x.note");
  expect(kindOf(given("no", { askedKind: "error" }), none)).toBe("error");
  expect(kindOf(given("no"), none)).toBeUndefined();
  expect(outcomeIn(JSON.stringify(note))).toBeUndefined();
});
