// The geometry of the timeline.
import type { RunView } from "../../ladder/model";
import { shortId } from "../../ui/Id";

/** Times are milliseconds since the run's creation. */
export type Timeline = RunView["timeline"];
export type Lane = Timeline["lanes"][number];
export type Bar = Lane["bars"][number];
export type Mark = Lane["marks"][number];

/** A lane as a row: of this run, or of a run that one of its nodes started. */
export type Row = Lane & {
  depth: number;
  /** The run of the lane, if it is not the page's. */
  runId?: string;
  /** Its lanes follow. */
  opened?: boolean;
  /** The run that the row stands for: one of several that a node started. */
  whole?: string;
};

/** The key in the set of opened rows of a run that stands for itself. */
export const wholeKey = (runId: string): string => `lanes of ${runId}`;

/** The runs in a set of opened rows. */
export const startedIn = (opened: ReadonlySet<string>): string[] => [...opened].filter((key) => !key.startsWith("lanes of "));

/** Returns what opening or closing a row changes in the set. */
export const keysOf = (row: Row): string[] => (row.whole === undefined ? (row.children ?? []) : [wholeKey(row.whole)]);

/**
 * Returns the lanes of a run, each followed by those of the runs that its node started and that are open. Times are the page's.
 * If a node started several runs, each of them has a row, which folds its lanes.
 */
export function rowsOf(view: RunView, opened: ReadonlySet<string>, children: ReadonlyMap<string, RunView>, depth = 0, since = Date.parse(view.createdAt)): Row[] {
  const offset = Date.parse(view.createdAt) - since;
  const runs = (lane: Lane): RunView[] => (lane.children ?? []).filter((id) => opened.has(id)).flatMap((id) => children.get(id) ?? []);
  return view.timeline.lanes.flatMap((lane) => {
    const open = (lane.children ?? []).some((id) => opened.has(id));
    const row: Row = { ...(offset === 0 ? lane : shifted(lane, offset)), depth, opened: open, ...(depth > 0 ? { runId: view.runId } : {}) };
    const several = (lane.children ?? []).length > 1;
    const nested = (child: RunView): Row[] => {
      if (!several) return rowsOf(child, opened, children, depth + 1, since);
      const shown = opened.has(wholeKey(child.runId));
      return [wholeRow(child, depth + 1, shown, since), ...(shown ? rowsOf(child, opened, children, depth + 2, since) : [])];
    };
    return [row, ...runs(lane).flatMap(nested)];
  });
}

function wholeRow({ runId, createdAt, timeline }: RunView, depth: number, opened: boolean, since: number): Row {
  const lane: Lane = { nodeId: shortId(runId), status: timeline.run.status, bars: [timeline.run], marks: timeline.marks };
  return { ...shifted(lane, Date.parse(createdAt) - since), depth, opened, runId, whole: runId };
}

function shifted(lane: Lane, by: number): Lane {
  const moved = <T extends { from: number; to?: number }>(x: T): T => ({ ...x, from: x.from + by, ...(x.to === undefined ? {} : { to: x.to + by }) });
  return { ...lane, bars: lane.bars.map((b) => ({ ...moved(b), parts: b.parts.map(moved) })), marks: lane.marks.map((m) => ({ ...m, at: m.at + by })) };
}

/** Returns the spans of time in which something happened, in order, to find idle gaps. */
export function busyIn({ lanes, run }: Timeline, now: number): [number, number][] {
  const spans: [number, number][] = [];
  for (const lane of lanes) {
    for (const bar of lane.bars) if (bar.status !== "suspended") spans.push([bar.from, bar.to ?? now]);
    for (const mark of lane.marks) spans.push([mark.at, mark.at]);
  }
  spans.push([run.from, run.from], [run.to ?? now, run.to ?? now]);
  return spans.sort((a, b) => a[0] - b[0]);
}

/** A segment of the axis; a folded segment is idle time. */
export type Stretch = { from: number; to: number; start: number; size: number; folded: boolean };

const foldedShare = 0.07;

/** Maps times to an axis from 0 to 1, with or without idle time. */
export class Scale {
  readonly stretches: Stretch[];

  constructor(total: number, busy: readonly [number, number][], fold: boolean) {
    const end = Math.max(1, total);
    const gaps = fold ? gapsOf(busy, end) : [];
    const kept = end - gaps.reduce((sum, [a, b]) => sum + b - a, 0);
    const room = 1 - gaps.length * foldedShare;
    this.stretches = [];
    let at = 0;
    let start = 0;
    const add = (to: number, folded: boolean): void => {
      if (to <= at && !folded) return;
      const size = folded ? foldedShare : ((to - at) / Math.max(kept, 1)) * room;
      this.stretches.push({ from: at, to, start, size, folded });
      at = to;
      start += size;
    };
    for (const [a, b] of gaps) {
      add(a, false);
      add(b, true);
    }
    add(end, false);
  }

  at(ms: number): number {
    const stretch = this.stretches.find((s) => ms <= s.to) ?? this.stretches.at(-1);
    if (!stretch) return 0;
    const share = stretch.to === stretch.from ? 0 : (ms - stretch.from) / (stretch.to - stretch.from);
    return stretch.start + Math.min(1, Math.max(0, share)) * stretch.size;
  }
}

const mostGaps = 6;

// Only gaps with a large share of the total are folded; many small folds would hide the picture.
function gapsOf(busy: readonly [number, number][], end: number): [number, number][] {
  const least = Math.max(1000, end * 0.08);
  const gaps: [number, number][] = [];
  let until = 0;
  for (const [from, to] of busy) {
    if (from - until > least) gaps.push([until, from]);
    until = Math.max(until, to);
  }
  if (end - until > least) gaps.push([until, end]);
  return gaps.sort((a, b) => b[1] - b[0] - (a[1] - a[0])).slice(0, mostGaps).sort((a, b) => a[0] - b[0]);
}

/** Returns round axis ticks: about this many, in steps of 1, 2 or 5 times a power of ten, or parts of a minute, hour or day. */
export function ticks(from: number, to: number, about: number): number[] {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5, 6048e5];
  const step = steps.find((s) => (to - from) / s <= about) ?? 6048e5;
  const out: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) out.push(at);
  return out;
}
