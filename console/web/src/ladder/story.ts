import { gates, type Call, type Envelope, type Execution, type Gate } from "./model";
import { stoppedAt } from "./rungs";
import type { IconName } from "../ui/Icon";
import { lookup } from "../api/lookup";

/** The outcome of an execution or envelope in one sentence. */
export interface Story {
  tone: "good" | "bad" | "open" | "note";
  headline: string;
  /** The error code, if it failed. */
  code?: string | undefined;
  detail?: string | undefined;
}

export const reasonWords: Record<string, string> = {
  "schema-violation": "schema violation",
  truncation: "truncation",
  "type-drift": "wrong kind or version",
  "type-mismatch": "wrong type",
  refusal: "refusal",
  "parse-error": "no JSON",
  unknown: "unknown stop",
};

export const inWords = (reason: string): string => lookup(reasonWords, reason) ?? reason;

const counted: Record<string, readonly [one: string, more: string]> = {
  "type-drift": ["wrong kind or version", "wrong kinds or versions"],
  "type-mismatch": ["value of the wrong type", "values of the wrong type"],
  "parse-error": ["answer without JSON", "answers without JSON"],
};

const ordinals = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
const spelled = (n: number): string => ordinals[n] ?? String(n);
const plural = (n: number, one: string, more = `${one}s`): string => `${spelled(n)} ${n === 1 ? one : more}`;

/** The number of a gate, from 1. */
export const gateNumber = (gate: Gate): number => gates.indexOf(gate) + 1;

/** Counts the earlier failures by reason: "two schema violations, one truncation". */
export function failuresBefore(calls: Call[]): string {
  const counts = new Map<string, number>();
  for (const c of calls) if (c.failure) counts.set(c.failure.reason, (counts.get(c.failure.reason) ?? 0) + 1);
  return [...counts].map(([reason, n]) => plural(n, ...(lookup(counted, reason) ?? ([inWords(reason), `${inWords(reason)}s`] as const)))).join(", ");
}

/** Describes the outcome of an envelope. */
export function storyOf(x: Envelope, within: Call): Story {
  const stop = stoppedAt(x.rungs);
  if (x.form === "value") {
    return stop
      ? { tone: "bad", headline: "The value violates the node's schema", code: stop.code }
      : { tone: "good", headline: "The value satisfies the node's schema" };
  }
  if (x.outcome === "cached") return { tone: "note", headline: "Duplicate: cached outcome, no new events" };
  if (!stop) return { tone: "good", headline: `Accepted on attempt ${within.attempt}: all eight gates passed` };
  const what = stop.refusedKind ?? x.kind;
  return {
    tone: x.outcome === "discarded" ? "note" : "bad",
    headline: `Stopped at gate ${gateNumber(stop.gate)} of ${gates.length}, ${stop.gate}${what ? `: ${what}` : ""}`,
    code: stop.code, detail: x.outcome === "discarded" ? "Discarded with a warning; the node continued." : undefined,
  };
}

/** Describes the outcome of a node execution. */
export function storyOfExecution(x: Execution): Story {
  if (x.insufficient) {
    const { provider, model, missing } = x.insufficient;
    return { tone: "bad", code: "capability_not_provided", headline: `Not called: ${provider}/${model} lacks ${missing.join(", ")}`, detail: x.insufficient.fallbackAttempted ? "The fallback model was unavailable as well." : "No fallback model was available." };
  }
  const last = x.calls.at(-1);
  if (!last) {
    return x.error ? { tone: "bad", code: x.error.code, headline: "No answer received", detail: x.error.message } : { tone: "open", headline: "Waiting for the model" };
  }
  if (last.refusal) return { tone: "bad", code: "envelope_refusal", headline: "The model declined; this is final", detail: "One attempt. Refusals are not retried." };
  const before = failuresBefore(x.calls);
  const after = before ? ` after ${before}` : "";
  if (x.exhausted) {
    const total = x.exhausted.totalAttempts;
    return { tone: "bad", code: x.error?.code, headline: `Given up after ${plural(total, "attempt")}: ${before}` };
  }
  if (x.result === "open") return { tone: "open", headline: `Attempt ${last.attempt} is in progress${after}` };
  if (x.result === "waiting") return { tone: "open", headline: "Waiting for an answer to the model's question" };
  if (x.result === "completed") {
    const how = last.cause === "prose-fallback" ? "Converted to the schema by one further call" : x.calls.length === 1 ? "Accepted on the first attempt" : `Accepted on attempt ${last.attempt}`;
    return { tone: "good", headline: `${how}${after}` };
  }
  const refusedBy = x.calls.flatMap((c) => c.envelopes.map((v) => ({ c, v }))).findLast(({ v }) => v.outcome === "refused");
  if (refusedBy && x.error) return { ...storyOf(refusedBy.v, refusedBy.c), code: x.error.code };
  return { tone: x.result === "failed" ? "bad" : "note", headline: x.error?.message ?? `The node was ${x.result}`, code: x.error?.code };
}

/** Describes how a call ended. */
export function endOf(c: Call, open: boolean): { word: string; tone: Story["tone"]; icon: IconName } {
  if (c.refusal) return { word: "declined", tone: "bad", icon: "ban" };
  if (c.truncated) return { word: "truncated", tone: "bad", icon: "minus" };
  if (c.failure) return { word: inWords(c.failure.reason), tone: "bad", icon: "skip" };
  if (c.envelopes.some((v) => v.outcome === "refused")) return { word: "refused", tone: "bad", icon: "cross" };
  if (c.envelopes.some((v) => v.outcome === "accepted")) return { word: "accepted", tone: "good", icon: "check" };
  if (c.usage) return { word: "plain text", tone: "note", icon: "dot" };
  return open ? { word: "asking", tone: "open", icon: "dot" } : { word: "no answer", tone: "bad", icon: "cross" };
}

/** Finds an envelope by id, correlation id or key. */
export function findEnvelope(all: Execution[], id: string): { execution: Execution; call: Call; envelope?: Envelope } | undefined {
  let first: { execution: Execution; call: Call; envelope: Envelope } | undefined;
  for (const execution of all) {
    for (const call of execution.calls) {
      for (const envelope of call.envelopes) {
        if (envelope.key === id) return { execution, call, envelope };
        if (!first && (envelope.envelopeId === id || envelope.correlationId === id)) first = { execution, call, envelope };
      }
    }
  }
  if (first) return first;
  // node.execution.call: an attempt without a document has no envelope.
  for (const execution of all) {
    for (const call of execution.calls) if (callKey(execution, call) === id) return { execution, call };
  }
  return undefined;
}

export const callKey = (x: Execution, c: Call): string => `${x.nodeId}.${x.number}.${c.ordinal}`;

/** Returns the token limits of a truncated call and of the next one (OpenWOP envelope contract §14.3). */
export function roomOf(c: Call, first: number, multiplier: number, calls: Call[]): number {
  const cuts = calls.filter((x) => x.ordinal < c.ordinal && x.truncated).length;
  return first * multiplier ** cuts;
}
