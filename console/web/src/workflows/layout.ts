// The positions of a graph's nodes and edges. Authors' positions are not used: most definitions have none, or zeros.
import { Graph, layout } from "@dagrejs/dagre";
import type { WorkflowEdge, WorkflowNode } from "./definition";

export const nodeWidth = 200;
export const nodeHeight = 60;

export type Placed = { id: string; x: number; y: number };
export type Drawn = { id: string; from: string; to: string; path: string; label: string; labelX: number; labelY: number };
export type Layout = { width: number; height: number; nodes: Placed[]; edges: Drawn[] };

const margin = 16;
// Labels are cut to this many characters; the list of edges has them in full.
export const maxLabel = 26;

/** Lays nodes out from top to bottom. Edges to unknown nodes are left out. */
export function layOut(nodes: readonly WorkflowNode[], edges: readonly WorkflowEdge[]): Layout {
  const g = new Graph({ multigraph: true });
  g.setGraph({ rankdir: "TB", nodesep: 32, ranksep: 44, marginx: margin, marginy: margin });
  g.setDefaultEdgeLabel(() => ({}));
  const known = new Set<string>();
  for (const n of nodes) {
    known.add(n.id);
    g.setNode(n.id, { width: nodeWidth, height: nodeHeight });
  }
  const drawn = edges.filter((e) => known.has(e.from) && known.has(e.to));
  for (const e of drawn) g.setEdge(e.from, e.to, { width: e.label ? Math.min(e.label.length, maxLabel) * 7 + 12 : 0, height: e.label ? 20 : 0, labelpos: "c" }, e.id);
  layout(g);
  const size = g.graph() as { width?: number; height?: number };
  return {
    width: size.width ?? 0,
    height: size.height ?? 0,
    nodes: nodes.map((n) => {
      const at = g.node(n.id) as { x: number; y: number };
      return { id: n.id, x: at.x - nodeWidth / 2, y: at.y - nodeHeight / 2 };
    }),
    edges: drawn.map((e) => {
      const at = g.edge({ v: e.from, w: e.to, name: e.id }) as { points: Point[]; x?: number; y?: number };
      return { id: e.id, from: e.from, to: e.to, label: e.label, path: curve(at.points), labelX: at.x ?? 0, labelY: at.y ?? 0 };
    }),
  };
}

type Point = { x: number; y: number };

/** A smooth line through points: curves between the middles of its segments. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const last = rest.at(-1) ?? first;
  let d = `M${r(first.x)} ${r(first.y)}`;
  for (const [i, p] of rest.slice(0, -1).entries()) {
    const next = rest[i + 1] ?? last;
    d += ` Q${r(p.x)} ${r(p.y)} ${r((p.x + next.x) / 2)} ${r((p.y + next.y) / 2)}`;
  }
  return `${d} L${r(last.x)} ${r(last.y)}`;
}

const r = (n: number): number => Math.round(n * 10) / 10;
