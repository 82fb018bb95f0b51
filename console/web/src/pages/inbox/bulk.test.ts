// @vitest-environment jsdom
import { expect, test } from "vitest";
import type { Item } from "../../inbox/host";
import { questionOf } from "../../inbox/question";
import { begin, bulkable, offers, summary, type Outcome } from "./bulk";

const item = (data: object, kind = "approval", answerable = true): Item => ({
  runId: "run",
  workflowId: "flow",
  answerable,
  question: questionOf({ kind, nodeId: "gate", interruptId: "int", payload: { data: { title: "T", actions: ["accept"], ...data } } }),
});

test("only approvals whose workflow allows it, and that this key may answer, are answered together", () => {
  expect(bulkable(item({ bulkAnswers: true }))).toBe(true);
  expect(bulkable(item({}))).toBe(false);
  expect(bulkable(item({ bulkAnswers: "yes" }))).toBe(false);
  expect(bulkable(item({ bulkAnswers: true }, "custom"))).toBe(false);
  expect(bulkable(item({ bulkAnswers: true }, "approval", false))).toBe(false);
  expect([offers(item({}), "accept"), offers(item({}), "reject")]).toEqual([true, false]);
});

test("outcomes are counted in words, and each answer has its own key", () => {
  const all: Outcome[] = begin([item({}), item({}), item({})]);
  expect(new Set(all.map((o) => o.key)).size).toBe(3);
  const states = ["answered", "closed", "failed"] as const;
  expect(summary(all.map((o, i) => ({ ...o, state: states[i] ?? "waiting" })))).toBe("1 answered, 1 already closed, 1 failed");
  expect(summary(all)).toBe("0 answered, 3 left");
});
