import { expect, it } from "vitest";
import { asFilter, fits, formatFilter, jump, parseFilter, suggestions, withTerm, words } from "./filter";
import type { RunRow } from "../../api/model";

it.each([
  ["status:failed workflow:x", [["status", "failed"], ["workflow", "x"]], ""],
  ['tag:"two words" since:2h', [["tag", "two words"], ["since", "2h"]], ""],
  ["Status:failed left over", [["status", "failed"]], "left over"],
  ["ticket:4711 https://x.test/a:b", [], "ticket:4711 https://x.test/a:b"],
  ['tag:"a \\"b\\" \\\\c" status:failed', [["tag", 'a "b" \\c'], ["status", "failed"]], ""],
  ['tag:"\\q"', [["tag", "\\q"]], ""],
])("%s is read", (text, terms, rest) => {
  expect(parseFilter(text)).toEqual({ terms: terms.map(([name, value]) => ({ name, value })), rest });
});

it("is written as it is read", () => {
  const text = 'status:failed tag:"two words"';
  expect(formatFilter(parseFilter(text).terms)).toBe(text);
});

it.each(["a b", 'say "x"', "C:\\new folder", "a\\b", "line\nbreak", "\\", ""])("the value %j is read as it was written", (value) => {
  expect(parseFilter(formatFilter([{ name: "tag", value }]))).toEqual({ terms: [{ name: "tag", value }], rest: "" });
});

it.each([
  ["", "kind", "kind:error"],
  ["status:failed kind:media.image", "kind", "status:failed kind:error"],
])("%s with another %s is %s", (text, name, want) => {
  expect(withTerm(text, name, ["error"])).toBe(want);
});

it.each([
  ["refund", "text:refund"],
  ['status:failed order "4711"', 'status:failed text:"order  4711"'],
  [" status:failed ", "status:failed"],
  ["text:a b", "text:a b"],
  ["ticket:4711", "text:ticket:4711"],
  ["status:failed https://x.test/a b", 'status:failed text:"https://x.test/a b"'],
])("%s is searched as %s", (text, want) => {
  expect(asFilter(text)).toBe(want);
});

it("every word's example is one condition of that name", () => {
  for (const { name, example } of words) expect(parseFilter(example)).toEqual({ terms: [{ name, value: expect.any(String) }], rest: "" });
});

const document = { supportedEnvelopes: ["error", 7], aiProviders: { supported: ["openai"] } };

it.each([
  ["kind", document, ["error"]],
  ["provider", document, ["openai"]],
  ["status", document, []],
  ["provider", {}, []],
  ["kind", undefined, []],
])("what the host names of %s is offered", (name, doc, want) => {
  expect(suggestions(name, doc)).toEqual(want);
});

const row: RunRow = { runId: "r", workflowId: "x", status: "failed", createdAt: "", tags: ["t"], errorCode: "c", lastSequence: 3, stalled: false };

it.each([
  ["", true],
  ["status:failed workflow:x tag:t code:c", true],
  ["status:running,failed", true],
  ["status:running", false],
  ["status:failed since:2h", undefined],
  ["status:running since:2h", false],
  ["status:failed kind:error", undefined],
  ["provider:openai", undefined],
])("whether a row fits %s is %s", (text, want) => {
  expect(fits(row, text)).toBe(want);
});

it.each([
  ["run_06h03x0mb9xn3fvgs5m3qnjk6g", "/runs/run_06h03x0mb9xn3fvgs5m3qnjk6g"],
  [" ev_run_06h03x0mb9xn3fvgs5m3qnjk6g_42 ", "/runs/run_06h03x0mb9xn3fvgs5m3qnjk6g?e=42"],
  ["run_06h03x0mb9xn3fvgs5m3qnjk6g:classify:0:45", "/runs/run_06h03x0mb9xn3fvgs5m3qnjk6g"],
  ["status:failed", undefined],
  ["run", undefined],
])("%s leads to %s", (text, want) => {
  expect(jump(text)).toBe(want);
});
