import { ExactNumber } from "../api/json";
import type { EventRef, NodeError, Rendering } from "./model";

/** The members of a run event that the ladder reads (OpenWOP host contract §4). */
export interface RunEvent {
  eventId: string;
  runId?: string;
  sequence: number;
  type: string;
  nodeId?: string | undefined;
  timestamp?: string | undefined;
  causationId?: string | undefined;
  contentTrust?: string | undefined;
  payload?: unknown;
}

export type Json = Record<string, unknown>;

export const record = (v: unknown): Json => (typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Json) : {});
export const text = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);
/** Returns a number, also from an exact number. */
export const number = (v: unknown): number | undefined => (typeof v === "number" ? v : v instanceof ExactNumber ? v.valueOf() : undefined);
export const texts = (v: unknown): string[] => (Array.isArray(v) ? v.filter((x): x is string => typeof x === "string") : []);
export const numbers = (v: unknown): number[] => (Array.isArray(v) ? v.filter((x): x is number => typeof x === "number") : []);

export const refOf = (e: RunEvent): EventRef => ({ eventId: e.eventId, sequence: e.sequence, type: e.type });

export function nodeOf(e: RunEvent): string | undefined {
  return e.nodeId ?? text(record(e.payload).nodeId);
}

export function errorOf(payload: unknown): NodeError | undefined {
  const error = record(record(payload).error);
  const code = text(error.code);
  if (code === undefined) return undefined;
  return { code, message: text(error.message) ?? "", details: error.details ? record(error.details) : undefined };
}

/** The envelope that an event records; undefined if it records none. */
export interface Recorded {
  kind: string;
  envelopeId: string;
  version: string | undefined;
  payload: unknown;
  rendering: Rendering | undefined;
  answer: { size: number | undefined; index: number | undefined; with: number[] };
}

/** Returns the envelope of an event (OpenWOP envelope contract §10). */
export function recordedBy(e: RunEvent): Recorded | undefined {
  const p = record(e.payload);
  if (e.type === "artifact.created") {
    return stamped({ envelopeType: p.artifactType, envelopeId: p.artifactId, ...p });
  }
  if (e.type === "clarification.requested") return stamped(record(p.envelope));
  if (e.type === "log.appended") return stamped(record(p.fields));
  return undefined;
}

function stamped(p: Json): Recorded | undefined {
  const kind = text(p.envelopeType);
  const envelopeId = text(p.envelopeId);
  if (kind === undefined || envelopeId === undefined) return undefined;
  const answer = record(p.answer);
  return {
    kind, envelopeId, payload: p.payload, version: text(p.version), rendering: p.rendering ? (record(p.rendering) as Rendering) : undefined,
    answer: { size: number(answer.size), index: number(answer.index), with: numbers(answer.with) },
  };
}
