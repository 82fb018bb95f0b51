import { expect, it } from "vitest";
import { declinable, questionOf, titleOf } from "./question";

const form = (...components: object[]): unknown => ({
  kind: "custom",
  nodeId: "n",
  interruptId: "i",
  payload: { kind: "custom", data: { customKind: "ui.a2ui-surface", payload: { catalogVersion: "0.9.1", surface: { components } } } },
});

it.each([
  ["its heading", form({ component: "heading", text: "Refund for order A-4711", level: 2 }, { component: "text", text: "Charged twice." }), "A form: Refund for order A-4711"],
  ["the start of a long text", form({ component: "text", text: "x".repeat(200) }), `A form: ${"x".repeat(80)}`],
  ["nothing, where it has only fields", form({ component: "field.text", id: "why", label: "Why?" }), "A form to fill in"],
  ["nothing, where it cannot be read", { kind: "custom", payload: { data: { customKind: "ui.a2ui-surface", payload: { surface: { components: "none" } } } } }, "A form to fill in"],
])("of several forms in a list each is shown for %s", (_, interrupt, want) => {
  expect(titleOf(questionOf(interrupt))).toBe(want);
});

const asked = (kind: string, resumeSchema?: object): boolean =>
  declinable(questionOf({ kind, nodeId: "n", interruptId: "i", payload: { kind, data: { questions: [{ id: "q", question: "?" }] }, resumeSchema } }));

it("only a question whose resumeSchema says so can be declined", () => {
  const model = { type: "object", anyOf: [{ required: ["answers"] }, { required: ["declined"], properties: { answers: false, declined: { const: true } } }] };
  expect(asked("clarification", model)).toBe(true);
  expect(asked("clarification")).toBe(false);
  expect(asked("clarification", { type: "object" })).toBe(false);
  expect(asked("custom", model)).toBe(false);
});
