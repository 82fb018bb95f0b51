import { ExactNumber } from "../api/json";
import type { RunEvent } from "../api/model";
import type { Call, Rendering } from "./model";

export type Json = Record<string, unknown>;

export const record = (v: unknown): Json => (typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Json) : {});
export const text = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);
/** Returns a number, also from an exact number. */
export const number = (v: unknown): number | undefined => (typeof v === "number" ? v : v instanceof ExactNumber ? v.valueOf() : undefined);
export const texts = (v: unknown): string[] => (Array.isArray(v) ? v.filter((x): x is string => typeof x === "string") : []);

/** Returns the document that an event records: of an envelope (OpenWOP envelope contract §10), or a node's value. */
export function recordedIn(e: RunEvent | undefined): { payload?: unknown; rendering?: Rendering | undefined; label?: string | undefined } {
  const p = record(e?.payload);
  if (e?.type === "node.completed") return { payload: record(p.outputs).output };
  const found = e?.type === "clarification.requested" ? record(p.envelope) : e?.type === "log.appended" ? record(p.fields) : p;
  return { payload: found.payload, rendering: found.rendering ? (record(found.rendering) as Rendering) : undefined, label: text(found.label) };
}

/** Returns the streamed output of a call; undefined if it was not streamed. */
export function textOf(call: Call, nodeId: string, events: readonly RunEvent[]): string | undefined {
  const chunks = events.slice(call.from, call.to + 1).filter((e) => e.type === "output.chunk" && (e.nodeId ?? e.payload.nodeId) === nodeId);
  return chunks.length === 0 ? undefined : chunks.map((e) => text(e.payload.chunk) ?? "").join("");
}
