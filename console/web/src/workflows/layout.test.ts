import { expect, test } from "vitest";
import { edgesOf, nodesOf } from "./definition";
import { layOut, nodeHeight, nodeWidth } from "./layout";

const definition = (ids: string[], edges: [string, string][]) => ({
  nodes: ids.map((id) => ({ id, typeId: "core.noop" })),
  edges: edges.map(([sourceNodeId, targetNodeId], i) => ({ id: `e${i}`, sourceNodeId, targetNodeId })),
});

test("nodes do not overlap, and follow their sources", () => {
  const d = definition(["a", "b", "c", "d"], [["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"]]);
  const { nodes, edges, width, height } = layOut(nodesOf(d), edgesOf(d));
  const at = Object.fromEntries(nodes.map((n) => [n.id, n])) as Record<string, { x: number; y: number }>;
  for (const e of edges) expect(at[e.to]?.y).toBeGreaterThan((at[e.from]?.y ?? 0) + nodeHeight - 1);
  expect(Math.abs((at.b?.x ?? 0) - (at.c?.x ?? 0))).toBeGreaterThanOrEqual(nodeWidth);
  for (const n of nodes) {
    expect(n.x).toBeGreaterThanOrEqual(0);
    expect(n.x + nodeWidth).toBeLessThanOrEqual(width);
    expect(n.y + nodeHeight).toBeLessThanOrEqual(height);
  }
});

test("edges to nodes that do not exist, loops, and two edges between the same nodes are drawn or left out", () => {
  const d = definition(["a", "b"], [["a", "b"], ["a", "b"], ["a", "ghost"], ["b", "b"]]);
  expect(layOut(nodesOf(d), edgesOf(d)).edges.map((e) => [e.from, e.to])).toEqual([["a", "b"], ["a", "b"], ["b", "b"]]);
  expect(layOut([], []).nodes).toEqual([]);
});
