// @vitest-environment jsdom
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseJson } from "../api/json";
import type { RunEvent } from "../api/model";
import { openIn, resolutionIn } from "./host";

const log = (name: string): RunEvent[] => (parseJson(readFileSync(join(import.meta.dirname, "../../../../test/golden/corpus", `${name}.json`), "utf8")) as unknown as { events: RunEvent[] }).events;

test.each([
  ["approve-1", "an approval that was cancelled", []],
  ["approve-2", "an approval that was answered", []],
  ["two-gates-1", "two that were answered", []],
  ["clarify-1", "questions that were answered", []],
])("%s, %s, is not open", (name, _, want) => expect(openIn(log(name))).toEqual(want));

test("a question is open from its event on until it is answered", () => {
  const events = log("approve-2");
  const at = events.findIndex((e) => e.type === "interrupt.resolved");
  expect(openIn(events.slice(0, at))).toMatchObject([{ kind: "approval", nodeId: "gate", data: { title: "t", actions: ["accept", "reject", "refine", "ask"] } }]);
  const id = String(events[at]?.payload.interruptId);
  expect(resolutionIn(events.slice(0, at), id)).toBeUndefined();
  expect(resolutionIn(events, id)).toMatchObject({ action: "accept" });
});
