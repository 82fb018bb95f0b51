import { expect, test } from "vitest";
import type { Execution } from "../ladder/model";
import { figuresOf } from "./figures";

const tried = (result: Execution["result"], ...calls: object[]): Execution =>
  ({ nodeId: "a", execution: 0, from: 0, to: 1, headline: "", tone: "good", result, calls: calls.map((c, i) => Object.assign(c, { call: i + 1, envelopes: [] })) }) as unknown as Execution;

test("calls of a try are summed, and tries are averaged", () => {
  const f = figuresOf([
    tried("completed", { tookMs: 100, usage: { provider: "p", model: "m", inputTokens: 10, outputTokens: 2, cost: 0.5, currency: "USD" } }, { tookMs: 50, usage: { provider: "p", model: "m", inputTokens: 20, outputTokens: 2, cost: 0.5 } }),
    tried("failed", { tookMs: 900, usage: { provider: "p", model: "m", inputTokens: 10, outputTokens: 4 } }),
    tried("completed", { tookMs: 300, usage: { provider: "p", model: "m", inputTokens: 20, outputTokens: 4, cost: 2 } }),
    tried("open", { tookMs: 5 }),
  ]);
  expect(f).toEqual({ passed: 2, ended: 3, inputTokens: 20, outputTokens: 4, cost: 1.5, currency: "USD", tookMs: 300, models: ["p · m"] });
});

test("an unknown cost is not 0", () => {
  expect(figuresOf([tried("completed", { usage: { inputTokens: 1 } })])).toEqual({ passed: 1, ended: 1, inputTokens: 1, models: [] });
});
