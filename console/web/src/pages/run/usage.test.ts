import { expect, it } from "vitest";
import type { RunEvent } from "../../api/model";
import { parseJson } from "../../api/json";
import { callsOf, count, money, sumOf } from "./usage";

const log = (...events: [type: string, payload: object][]): RunEvent[] =>
  events.map(([type, payload], sequence) => ({ eventId: `e${sequence}`, runId: "r", sequence, type, payload, nodeId: "n", timestamp: "2026-01-01T00:00:00Z" }) as RunEvent);

const used = (inputTokens: number, outputTokens: number, costEstimateUsd?: number): [string, object] => [
  "provider.usage",
  { provider: "p", model: "m", inputTokens, outputTokens, ...(costEstimateUsd === undefined ? {} : { costEstimateUsd }) },
];

it("sums what providers report, and marks further tries", () => {
  const calls = callsOf(log(["node.started", { attempt: 0 }], used(10, 1, 0.5), ["envelope.retry.attempted", { attempt: 2 }], used(20, 2, 0.25), ["node.completed", {}]));
  expect(calls.map((call) => call.again)).toEqual([false, true]);
  expect(sumOf(calls)).toEqual({ input: 30n, output: 3n, cached: undefined, cost: 0.75, calls: 2, unknown: 0 });
});

it("a call of which the provider reports nothing is counted and not zero", () => {
  const calls = callsOf(log(["node.started", { attempt: 0 }], ["output.chunk", { isLast: true, meta: { model: "m" } }], ["node.completed", {}]));
  expect(calls).toMatchObject([{ model: "m", input: undefined, cost: undefined }]);
  expect(sumOf(calls)).toMatchObject({ calls: 1, unknown: 1, cost: undefined });
});

it("sums tokens exactly, also those that no number of JavaScript can tell", () => {
  const usages = ["9007199254740993", "9007199254740993", "1"].map((n) => parseJson(`{"inputTokens":${n},"outputTokens":2,"cacheReadTokens":9223372036854775807}`) as object);
  const sum = sumOf(callsOf(log(...usages.map((payload): [string, object] => ["provider.usage", payload]))));
  expect(sum).toMatchObject({ input: 18014398509481987n, output: 6n, cached: 27670116110564327421n, unknown: 0 });
  expect(count(sum.input)).toBe("18,014,398,509,481,987");
});

it("what is no count of tokens is not known, and not zero", () => {
  const calls = callsOf(log(["provider.usage", { provider: "p", model: "m", inputTokens: "", outputTokens: null, cacheReadTokens: 1.5 }]));
  expect(calls).toMatchObject([{ input: undefined, output: undefined, cached: undefined }]);
  expect(sumOf(calls)).toMatchObject({ input: 0n, output: 0n, cached: undefined, unknown: 1 });
});

it.each([
  [undefined, "–"],
  [0, "0.00 USD"],
  [1.5, "1.50 USD"],
  [0.000123, "0.00012 USD"],
])("%s is written %s", (amount, want) => {
  expect(money(amount, "USD")).toBe(want);
});
