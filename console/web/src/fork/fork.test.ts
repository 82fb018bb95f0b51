// @vitest-environment jsdom
import { expect, test } from "vitest";
import type { RunEvent } from "../api/model";
import { effectsFrom, effectsInWords } from "./effects";
import { overlayOf } from "./ForkDialog";

const event = (sequence: number, type: string, payload: RunEvent["payload"] = {}): RunEvent => ({ eventId: `e${sequence}`, runId: "r", sequence, type, payload, timestamp: "" });

test("what the source did after an event is counted, and what it did before is not", () => {
  const events = [
    event(0, "run.started"),
    event(1, "provider.usage"),
    event(2, "node.started", { typeId: "core.mcp.callTool" }),
    event(3, "node.started", { typeId: "core.identity" }),
    event(4, "interrupt.requested"),
    event(5, "provider.usage"),
  ];
  expect(effectsInWords(effectsFrom(events, 2))).toEqual(["1 model call", "1 question to people", "1 × core.mcp.callTool"]);
  expect(effectsInWords(effectsFrom(events, 0))[0]).toBe("2 model calls");
});

test("an overlay holds what differs from the source", () => {
  const source = { configurable: { "ai.model": "a" }, tags: ["x"], metadata: {} };
  expect(overlayOf(source, '{"ai.model":"a"}', "x", "{}")).toEqual({});
  expect(overlayOf(source, '{"ai.model":"b"}', "x, y", "{}")).toEqual({ value: { configurable: { "ai.model": "b" }, tags: ["x", "y"] } });
  expect(overlayOf(source, "{", "x", "{}")).toEqual({ wrong: "configurable is not valid JSON." });
  expect(overlayOf(source, "[]", "x", "{}")).toEqual({ wrong: "configurable must be an object." });
});
