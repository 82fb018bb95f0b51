import { expect, it } from "vitest";
import type { RunEvent } from "../../api/model";
import { addRows, detailOf, everything, groupOf, modelAsked, type Row } from "./events";

const event = (sequence: number, type: string, payload: object = {}, nodeId?: string): RunEvent =>
  ({ eventId: `e${sequence}`, runId: "r", sequence, type, payload, timestamp: "2026-01-01T00:00:00Z", ...(nodeId ? { nodeId } : {}) }) as RunEvent;

it.each([
  ["node.failed", { error: { code: "c", message: "m" } }, "c: m"],
  ["provider.usage", { provider: "p", model: "m", inputTokens: 1200, outputTokens: 3 }, "p/m · 1,200 in · 3 out"],
  ["provider.usage", { provider: "p", model: "m", inputTokens: {}, outputTokens: "many" }, "p/m · – in · many out"],
  ["envelope.refusal", { model: "m", refusalText: null }, "m · text withheld by policy"],
  ["cap.breached", { kind: "schema", limit: 2, observed: 3 }, "schema: 3 of at most 2"],
  ["x-vendor.thing", { nodeId: "n", note: "what it says" }, "note: what it says"],
  ["x-vendor.bare", {}, ""],
])("the detail of %s says what matters", (type, payload, want) => {
  expect(detailOf(event(0, type, payload))).toBe(want);
});

it("an unknown type is in the group of others", () => {
  expect([groupOf("x-vendor.thing"), groupOf("nodot"), groupOf("run.started")]).toEqual(["other", "other", "run"]);
});

const events = [
  event(0, "run.started"),
  event(1, "output.chunk", { chunk: "a" }, "n"),
  event(2, "output.chunk", { chunk: "b" }, "n"),
  event(3, "output.chunk", { chunk: "c" }, "m"),
  event(4, "node.completed", {}, "n"),
];

it.each([
  ["pieces of one answer make one row", everything, [[0, 0], [1, 2], [3, 3], [4, 4]]],
  ["each piece has a row if asked for", { ...everything, chunks: true }, [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]],
  ["a group alone", { ...everything, groups: new Set(["node"] as const) }, [[4, 4]]],
  ["a node alone", { ...everything, node: "m" }, [[3, 3]]],
  ["a text alone", { ...everything, text: " COMPLETED" }, [[4, 4]]],
])("%s", (_name, filter, want) => {
  const rows: Row[] = [];
  addRows(rows, events.slice(0, 2), 0, filter);
  addRows(rows, events, 2, filter);
  expect(rows.map((row) => [row.from, row.to])).toEqual(want);
});

it.each([
  ["provider.usage", true],
  ["envelope.refusal", true],
  ["model.capability.insufficient", true],
  ["node.failed", false],
  ["x-vendor.provider.usage", false],
])("a model was asked where there is %s: %s", (type, want) => {
  expect([modelAsked([event(0, type, {}, "n")]), modelAsked([event(0, type, { nodeId: "n" })], "n"), modelAsked([event(0, type, {}, "m")], "n")]).toEqual([want, want, false]);
});
