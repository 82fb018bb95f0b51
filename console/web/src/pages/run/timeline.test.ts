import { describe, expect, it } from "vitest";
import { busyIn, Scale, ticks, type Bar, type Timeline } from "./timeline";

const bar = (from: number, to: number | undefined, status = "completed"): Bar => ({ attempt: 0, sequence: 0, from, ...(to === undefined ? {} : { to }), status, parts: [] });

it("time in which a node only waits is idle, and an open bar lasts until now", () => {
  const lane = { nodeId: "a", status: "running", bars: [bar(10, 20), bar(20, 500, "suspended"), bar(500, undefined, "running")], marks: [{ sequence: 1, at: 15, sign: "?", words: "", tone: "ask" }] };
  const timeline: Timeline = { last: 500, run: bar(0, undefined), marks: [], lanes: [lane] };
  expect(busyIn(timeline, 900)).toEqual([[0, 0], [10, 20], [15, 15], [500, 900], [900, 900]]);
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
