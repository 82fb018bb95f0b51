import { expect, test } from "vitest";
import { textOn } from "./barWords";
import type { Bar } from "./timeline";

const bar = { attempt: 0, sequence: 1, from: 0, to: 1200, status: "completed", parts: [], usage: { calls: 1, unknown: 0, inputTokens: 800, outputTokens: 30, cost: 0.004, currency: "USD" } } satisfies Bar;

const on = (room: number): string => textOn("plan", bar, 0, room);

test("a bar has the facts that fit, and none is cut", () => {
  expect(on(400)).toBe("plan · 1.2 s · 830 tok · $0.0040");
  expect(on(220)).toBe("1.2 s · 830 tok · $0.0040");
  expect(on(130)).toBe("1.2 s · 830 tok");
  expect(on(60)).toBe("1.2 s");
  expect(on(20)).toBe("");
});
