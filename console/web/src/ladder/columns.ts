import type { Json } from "../api/json";
import type { RunEvent } from "../api/model";
import type { Call, Envelope, Execution } from "./model";
import { documentIn } from "./documentIn";
import { recordedIn, textOf } from "./events";

/** A column of the ladder: a document, or an attempt without one. */
export interface Column {
  key: string;
  call: Call;
  envelope: Envelope | undefined;
}

/** Names an attempt without a document. */
export const callKey = (x: Execution, c: Call): string => `${x.nodeId}.${x.execution}.${c.call}`;

export function columnsOf(x: Execution): Column[] {
  return x.calls.flatMap((call): Column[] =>
    call.envelopes.length === 0 ? [{ key: callKey(x, call), call, envelope: undefined }] : call.envelopes.map((envelope) => ({ key: envelope.key, call, envelope })),
  );
}

/** Returns the column to select first: the deciding one. */
export function decisive(x: Execution, columns: Column[]): Column | undefined {
  const last = columns.at(-1);
  return x.result === "completed" ? last : (columns.findLast((c) => c.envelope?.outcome === "refused") ?? last);
}

/** Finds a column by the key, id or correlation id of its envelope, or by the key of its attempt. */
export function findColumn(all: Execution[], id: string): { execution: Execution; column: Column } | undefined {
  const found = all.flatMap((execution) => columnsOf(execution).map((column) => ({ execution, column })));
  return (
    found.find(({ column }) => column.key === id) ??
    found.find(({ column: { envelope } }) => envelope?.envelopeId === id || envelope?.correlationId === id) ??
    found.find(({ execution, column }) => callKey(execution, column.call) === id)
  );
}

/** Reports whether the document of a column was accepted, now or earlier. */
export const isTaken = ({ envelope }: Column): boolean => envelope?.outcome === "accepted" || envelope?.outcome === "cached";

/** Returns the document of a column: the recorded payload or the model's output. Without a kind, it uses the envelope's kind. */
export function documentOf(column: Column, nodeId: string, events: readonly RunEvent[], kind = column.envelope?.kind): Json | undefined {
  const { call, envelope } = column;
  if (!isTaken(column)) return documentIn(textOf(call, nodeId, events), kind);
  return recordedIn(events[envelope?.events[0]?.sequence ?? -1]).payload as Json | undefined;
}

/** Returns the token limit of a call, which grows with each truncation (OpenWOP envelope contract §14.3). */
export function roomOf(c: Call, first: number, multiplier: number, calls: Call[]): number {
  const cuts = calls.filter((x) => x.call < c.call && x.truncated).length;
  return first * multiplier ** cuts;
}
