import type { RunEvent } from "../api/model";
import { text } from "../ladder/events";

/** The effects of the source from an event on: a branch executes them again, a replay uses the recorded results. */
export interface Effects {
  modelCalls: number;
  questions: number;
  /** Nodes with external effects, by type. */
  outside: Map<string, number>;
}

const reaches = /^(core\.(mcp|a2a|http|webhook|tool|subWorkflow)|(?!core\.)[a-z])/i;

export function effectsFrom(events: readonly RunEvent[], seq: number): Effects {
  const out: Effects = { modelCalls: 0, questions: 0, outside: new Map() };
  for (const e of events.slice(seq)) {
    if (e.type === "provider.usage") out.modelCalls++;
    if (e.type === "interrupt.requested") out.questions++;
    const type = e.type === "node.started" ? text(e.payload.typeId) : undefined;
    if (type && reaches.test(type)) out.outside.set(type, (out.outside.get(type) ?? 0) + 1);
  }
  return out;
}

const many = (n: number, one: string): string => `${n} ${one}${n === 1 ? "" : "s"}`;

/** Describes the effects. */
export function effectsInWords(x: Effects): string[] {
  const out: string[] = [];
  if (x.modelCalls > 0) out.push(many(x.modelCalls, "model call"));
  if (x.questions > 0) out.push(`${many(x.questions, "question")} to people`);
  for (const [type, n] of x.outside) out.push(`${n} × ${type}`);
  return out;
}
