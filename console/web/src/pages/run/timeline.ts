import type { Json } from "../../api/json";
import type { RunEvent } from "../../api/model";
import { text } from "./events";
import { lookup } from "../../api/lookup";

/** A mark for a notable event on a bar. */
export type Mark = { seq: number; at: number; sign: string; words: string; tone: string };

/** The activity of a part of a bar. */
export type Part = { kind: "wait" | "call" | "work"; from: number; to: number | undefined };

/** One attempt of a node. Times are milliseconds since the run's creation. */
export type Bar = { attempt: number; seq: number; from: number; to: number | undefined; status: string; parts: Part[] };

export type Lane = { nodeId: string; typeId: string; bars: Bar[]; marks: Mark[]; status: string };

type Rule = (p: { [name: string]: Json }) => Omit<Mark, "seq" | "at">;

const marks: { [type: string]: Rule } = {
  "node.retried": (p) => ({ sign: `↻${Number(p.attempt) + 1}`, words: `retry, attempt ${Number(p.attempt) + 1}`, tone: "ask" }),
  "envelope.retry.attempted": (p) => ({ sign: `↻${text(p.attempt)}`, words: `model retry, attempt ${text(p.attempt)}: ${text(p.reason)}`, tone: "ask" }),
  "envelope.retry.exhausted": (p) => ({ sign: "↻✕", words: `gave up after ${text(p.totalAttempts)} attempts: ${text(p.finalReason)}`, tone: "bad" }),
  "envelope.truncated": () => ({ sign: "…|", words: "answer truncated", tone: "ask" }),
  "envelope.refusal": () => ({ sign: "✋", words: "the model refused", tone: "bad" }),
  "envelope.recovery.applied": (p) => ({ sign: "⌁", words: `recovered from a malformed answer: ${text(p.path)}`, tone: "swap" }),
  "envelope.nlToFormat.engaged": () => ({ sign: "NL", words: "plain text converted to the schema", tone: "swap" }),
  "model.capability.substituted": (p) => ({ sign: "A→B", words: `${text(p.originalModel)} was substituted by ${text(p.fallbackModel)}`, tone: "swap" }),
  "model.capability.insufficient": (p) => ({ sign: "∅", words: `${text(p.model)} lacks what the node needs`, tone: "bad" }),
  "cap.breached": (p) => ({ sign: `cap ${text(p.kind)}`, words: `limit of ${text(p.kind)} breached: ${text(p.observed)} of at most ${text(p.limit)}`, tone: "bad" }),
  "interrupt.requested": (p) => ({ sign: "?", words: `waiting for ${text(p.kind)}`, tone: "ask" }),
  "replay.diverged": () => ({ sign: "≠", words: "diverged from the source run", tone: "bad" }),
  "node.dispatched": (p) => ({ sign: "⑂", words: `started the run ${text(p.childRunId)}`, tone: "run" }),
};

const ends: { [type: string]: string } = {
  "node.completed": "completed",
  "node.failed": "failed",
  "node.skipped": "skipped",
  "node.cancelled": "cancelled",
  "node.suspend-failed": "failed",
};
// Waits of the run, shown on its own lane.
const turns: { [type: string]: string } = {
  "interrupt.requested": "suspended",
  "interrupt.resolved": "running",
  "run.paused": "paused",
  "run.resumed": "running",
};
const runEnds: { [type: string]: string } = { "run.completed": "completed", "run.failed": "failed", "run.cancelled": "cancelled" };

/** The lanes of a run: one per node in order of the first start, with a bar per attempt. Built event by event. */
export class Timeline {
  readonly lanes: Lane[] = [];
  readonly run: Bar = { attempt: 0, seq: 0, from: 0, to: undefined, status: "pending", parts: [] };
  readonly marks: Mark[] = [];
  /** The time origin. */
  readonly zero: number;
  /** The latest known time since the origin. */
  last = 0;
  taken = 0;

  readonly #byNode = new Map<string, Lane>();

  constructor(created: string | undefined) {
    this.zero = created ? Date.parse(created) : Number.NaN;
  }

  get started(): boolean {
    return this.taken > 0;
  }

  take(events: readonly RunEvent[]): void {
    for (; this.taken < events.length; this.taken++) this.#add(events[this.taken] as RunEvent);
  }

  /** All event times in order, to find idle gaps. */
  busy(now: number): [number, number][] {
    const spans: [number, number][] = [];
    for (const lane of this.lanes) {
      for (const bar of lane.bars) if (bar.status !== "suspended") spans.push([bar.from, bar.to ?? now]);
      for (const mark of lane.marks) spans.push([mark.at, mark.at]);
    }
    spans.push([this.run.from, this.run.from], [this.run.to ?? now, this.run.to ?? now]);
    return spans.sort((a, b) => a[0] - b[0]);
  }

  #add(event: RunEvent): void {
    const at = Math.max(0, Date.parse(event.timestamp) - this.zero);
    this.last = Math.max(this.last, at);
    if (event.type === "run.started") {
      if (at > 0) this.run.parts.push({ kind: "wait", from: 0, to: at });
      this.run.parts.push({ kind: "work", from: at, to: undefined });
      this.run.status = "running";
    }
    const runEnd = lookup(runEnds, event.type);
    if (runEnd) this.#endRun(at, runEnd);
    const turn = lookup(turns, event.type);
    if (turn && this.run.to === undefined) {
      close(this.run, at);
      this.run.parts.push({ kind: turn === "running" ? "work" : "wait", from: at, to: undefined });
      this.run.status = turn;
    }
    const nodeId = event.nodeId ?? text(event.payload.nodeId);
    const rule = lookup(marks, event.type);
    if (nodeId) this.#node(nodeId, event, at);
    if (!rule) return;
    const mark = { seq: event.sequence, at, ...rule(event.payload) };
    const lane = nodeId ? this.#byNode.get(nodeId) : undefined;
    (lane?.marks ?? this.marks).push(mark);
  }

  #endRun(at: number, status: string): void {
    this.run.to = at;
    this.run.status = status;
    close(this.run, at);
    // The end of the run ends all open bars.
    for (const lane of this.lanes) {
      const bar = lane.bars.at(-1);
      if (bar && bar.to === undefined) this.#end(lane, bar, at, status === "completed" ? "completed" : "cancelled");
    }
  }

  #node(nodeId: string, event: RunEvent, at: number): void {
    const lane = this.#lane(nodeId);
    const bar = lane.bars.at(-1);
    const end = lookup(ends, event.type);
    switch (event.type) {
      case "node.started":
        lane.typeId = text(event.payload.typeId) || lane.typeId;
        // A node is idle while it waits for a retry.
        if (bar?.status === "retried" && bar.to !== undefined && at > bar.to) bar.parts.push({ kind: "wait", from: bar.to, to: at });
        lane.bars.push({ attempt: Number(event.payload.attempt ?? 0), seq: event.sequence, from: at, to: undefined, status: "running", parts: [{ kind: "work", from: at, to: undefined }] });
        lane.status = "running";
        return;
      case "node.retried":
        if (bar) this.#end(lane, bar, at, "retried");
        return;
      case "node.suspended":
        this.#turn(lane, bar, at, event.sequence, "suspended");
        return;
      case "node.resumed":
        this.#turn(lane, bar, at, event.sequence, "running");
        return;
      case "output.chunk":
      case "provider.usage":
        if (bar) called(bar, at, event.type === "provider.usage");
        return;
    }
    if (!end) return;
    if (bar && bar.to === undefined) this.#end(lane, bar, at, end);
    else lane.bars.push({ attempt: 0, seq: event.sequence, from: at, to: at, status: end, parts: [] });
    lane.status = end;
  }

  #turn(lane: Lane, bar: Bar | undefined, at: number, seq: number, status: string): void {
    if (bar && bar.to === undefined) {
      bar.to = at;
      close(bar, at);
      bar.status = bar.status === "running" ? "completed" : bar.status;
    }
    lane.bars.push({ attempt: bar?.attempt ?? 0, seq, from: at, to: undefined, status, parts: [{ kind: status === "suspended" ? "wait" : "work", from: at, to: undefined }] });
    lane.status = status;
  }

  #end(lane: Lane, bar: Bar, at: number, status: string): void {
    bar.to = at;
    bar.status = status;
    close(bar, at);
    lane.status = status;
  }

  #lane(nodeId: string): Lane {
    let lane = this.#byNode.get(nodeId);
    if (!lane) {
      lane = { nodeId, typeId: "", bars: [], marks: [], status: "pending" };
      this.#byNode.set(nodeId, lane);
      this.lanes.push(lane);
    }
    return lane;
  }
}

function close(bar: Bar, at: number): void {
  const part = bar.parts.at(-1);
  if (part && part.to === undefined) part.to = at;
}

// The time until the provider's last event belongs to the provider; the rest is processing of the answer.
function called(bar: Bar, at: number, done: boolean): void {
  const part = bar.parts.at(-1);
  if (!part || part.to !== undefined) return;
  if (part.kind === "work") part.kind = "call";
  if (!done) return;
  part.to = at;
  bar.parts.push({ kind: "work", from: at, to: undefined });
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
