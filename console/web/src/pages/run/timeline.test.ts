import { describe, expect, it } from "vitest";
import type { RunEvent } from "../../api/model";
import { Scale, ticks, Timeline } from "./timeline";

const zero = Date.parse("2026-01-01T00:00:00Z");

function log(...events: [at: number, type: string, payload?: object][]): RunEvent[] {
  return events.map(([at, type, payload = {}], sequence) => {
    const { nodeId } = payload as { nodeId?: string };
    return { eventId: `e${sequence}`, runId: "r", sequence, type, payload, nodeId, timestamp: new Date(zero + at).toISOString() } as RunEvent;
  });
}

function fold(events: RunEvent[]): Timeline {
  const timeline = new Timeline("2026-01-01T00:00:00Z");
  timeline.take(events);
  return timeline;
}

describe("the lanes of a run", () => {
  it("stand in the order of their first start, with a bar for each attempt and the wait between", () => {
    const { lanes } = fold(
      log(
        [5, "run.started"],
        [10, "node.started", { nodeId: "b", typeId: "t", attempt: 0 }],
        [20, "node.retried", { nodeId: "b", attempt: 1 }],
        [50, "node.started", { nodeId: "b", typeId: "t", attempt: 1 }],
        [60, "node.completed", { nodeId: "b" }],
        [60, "node.started", { nodeId: "a", typeId: "t", attempt: 0 }],
        [70, "node.failed", { nodeId: "a", error: {} }],
      ),
    );
    expect(lanes.map((lane) => [lane.nodeId, lane.status, lane.bars.map((bar) => [bar.attempt, bar.from, bar.to, bar.status])])).toEqual([
      ["b", "completed", [[0, 10, 20, "retried"], [1, 50, 60, "completed"]]],
      ["a", "failed", [[0, 60, 70, "failed"]]],
    ]);
    expect(lanes[0]?.bars[0]?.parts.at(-1)).toEqual({ kind: "wait", from: 20, to: 50 });
    expect(lanes[0]?.marks.map((mark) => mark.sign)).toEqual(["↻2"]);
  });

  it("end with the run, also those that no event has ended", () => {
    const { lanes, run } = fold(log([0, "run.started"], [1, "node.started", { nodeId: "a", attempt: 0 }], [9, "run.cancelled"]));
    expect(lanes[0]?.bars[0]).toMatchObject({ to: 9, status: "cancelled" });
    expect(run).toMatchObject({ to: 9, status: "cancelled" });
  });

  it("split a bar into the provider's time and our own", () => {
    const { lanes } = fold(
      log([0, "run.started"], [1, "node.started", { nodeId: "a", attempt: 0 }], [5, "output.chunk", { nodeId: "a" }], [8, "provider.usage", { nodeId: "a" }], [9, "node.completed", { nodeId: "a" }]),
    );
    expect(lanes[0]?.bars[0]?.parts).toEqual([
      { kind: "call", from: 1, to: 8 },
      { kind: "work", from: 8, to: 9 },
    ]);
  });

  it("are the same fed at once or piece by piece, and unknown types break nothing", () => {
    const events = log([0, "run.started"], [1, "node.started", { nodeId: "a", attempt: 0 }], [2, "x-vendor.thing", { nodeId: "a" }], [3, "node.suspended", { nodeId: "a" }], [9, "node.resumed", { nodeId: "a" }]);
    const slowly = new Timeline("2026-01-01T00:00:00Z");
    for (let n = 1; n <= events.length; n++) slowly.take(events.slice(0, n));
    expect(slowly.lanes).toEqual(fold(events).lanes);
    expect(slowly.lanes[0]?.bars.map((bar) => bar.status)).toEqual(["completed", "suspended", "running"]);
  });
});

describe("the scale", () => {
  it("is linear without folding", () => {
    const scale = new Scale(1000, [[0, 10]], false);
    expect([scale.at(0), scale.at(500), scale.at(1000)]).toEqual([0, 0.5, 1]);
  });

  it("folds time in which nothing happened, and keeps the order of moments", () => {
    const scale = new Scale(100_000, [[0, 100], [99_900, 100_000]], true);
    expect(scale.stretches.map((s) => s.folded)).toEqual([false, true, false]);
    expect(scale.at(100)).toBeGreaterThan(0.4);
    expect(scale.at(99_900)).toBeGreaterThan(scale.at(100));
    expect(scale.at(100_000)).toBeCloseTo(1);
  });

  it("has round moments on its axis", () => {
    expect(ticks(0, 1000, 5)).toEqual([0, 200, 400, 600, 800, 1000]);
  });
});
