import { describe, expect, it } from "vitest";
import type { RunView } from "../../ladder/model";
import { busyIn, rowsOf, Scale, ticks, wholeKey, type Bar, type Lane, type Timeline } from "./timeline";

const bar = (from: number, to: number | undefined, status = "completed"): Bar => ({ attempt: 0, sequence: 0, from, ...(to === undefined ? {} : { to }), status, parts: [] });

it("time in which a node only waits is idle, and an open bar lasts until now", () => {
  const lane = { nodeId: "a", status: "running", bars: [bar(10, 20), bar(20, 500, "suspended"), bar(500, undefined, "running")], marks: [{ sequence: 1, at: 15, sign: "?", words: "", tone: "ask" }] };
  const timeline: Timeline = { last: 500, retries: 0, waitedMs: 0, run: bar(0, undefined), marks: [], lanes: [lane] };
  expect(busyIn(timeline, 900)).toEqual([[0, 0], [10, 20], [15, 15], [500, 900], [900, 900]]);
});

const view = (runId: string, createdAt: string, ...lanes: Lane[]): RunView => ({ runId, createdAt, sequence: 1, answers: [], cost: { calls: [], total: { calls: 0, unknown: 0 }, retries: { calls: 0, unknown: 0 } }, timeline: { last: 0, retries: 0, waitedMs: 0, run: bar(0, 1), marks: [], lanes } });
const lane = (nodeId: string, more: Partial<Lane> = {}): Lane => ({ nodeId, status: "completed", bars: [{ ...bar(1, 2), parts: [{ kind: "call", from: 1 }] }], marks: [{ sequence: 0, at: 1, sign: "", words: "", tone: "" }], ...more });

it("the lanes of a run that a node started follow the node's, in the time of the page", () => {
  const outer = view("r1", "2026-01-01T00:00:00Z", lane("a", { children: ["r2", "r3"] }), lane("b"));
  const inner = new Map([["r2", view("r2", "2026-01-01T00:00:01Z", lane("c", { children: ["r4"] }))], ["r4", view("r4", "2026-01-01T00:00:03Z", lane("d"))]]);
  const drawn = (...opened: string[]): unknown[] => rowsOf(outer, new Set(opened), inner).map((r) => [r.depth, r.nodeId, r.runId, r.bars[0]?.from, r.bars[0]?.to, r.bars[0]?.parts[0]?.from, r.marks[0]?.at]);
  expect(drawn()).toEqual([[0, "a", undefined, 1, 2, 1, 1], [0, "b", undefined, 1, 2, 1, 1]]);
  // Of several runs, each has a row of its own.
  expect(drawn("r2", "r3").map((r) => (r as unknown[]).slice(0, 4))).toEqual([[0, "a", undefined, 1], [1, "r2", "r2", 1000], [0, "b", undefined, 1]]);
  expect(drawn("r2", "r3", wholeKey("r2"), "r4")).toEqual([
    [0, "a", undefined, 1, 2, 1, 1],
    [1, "r2", "r2", 1000, 1001, undefined, undefined],
    [2, "c", "r2", 1001, 1002, 1001, 1001],
    [3, "d", "r4", 3001, 3002, 3001, 3001],
    [0, "b", undefined, 1, 2, 1, 1],
  ]);
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
