import type { RunEvent } from "../../api/model";
import { integerOf, type Json } from "../../api/json";
import { text } from "./events";

/** Usage of one model call. Unreported values are undefined, not zero. */
export type Call = {
  seq: number;
  nodeId: string;
  attempt: number;
  provider: string;
  model: string;
  input: bigint | undefined;
  output: bigint | undefined;
  cached: bigint | undefined;
  cost: number | undefined;
  currency: string;
  /** The call was a retry. */
  again: boolean;
};

/** Token counts are exact: their sum may exceed JavaScript numbers. */
export type Sum = { input: bigint; output: bigint; cached: bigint | undefined; cost: number | undefined; calls: number; unknown: number };

function figure(value: Json | undefined): number | undefined {
  const n = value === undefined || value === null ? Number.NaN : Number(value);
  return Number.isFinite(n) ? n : undefined; // not a number
}

/** Returns the model calls of a run: one per provider.usage event, and one per call without it. */
export function callsOf(events: readonly RunEvent[]): Call[] {
  const calls: Call[] = [];
  const attempts = new Map<string, number>();
  const tries = new Map<string, number>();
  const silent = new Map<string, { seq: number; model: string; provider: string }>();
  for (const event of events) {
    const node = event.nodeId ?? text(event.payload.nodeId);
    switch (event.type) {
      case "node.started":
        attempts.set(node, Number(event.payload.attempt ?? 0));
        tries.set(node, 0);
        break;
      case "output.chunk": {
        const meta = event.payload.meta as { model?: Json; provider?: Json } | undefined;
        if (event.payload.isLast) silent.set(node, { seq: event.sequence, model: text(meta?.model), provider: text(meta?.provider) });
        break;
      }
      case "provider.usage": {
        silent.delete(node);
        const n = tries.get(node) ?? 0;
        tries.set(node, n + 1);
        calls.push({
          seq: event.sequence,
          nodeId: node,
          attempt: attempts.get(node) ?? 0,
          provider: text(event.payload.provider),
          model: text(event.payload.model),
          input: integerOf(event.payload.inputTokens),
          output: integerOf(event.payload.outputTokens),
          cached: integerOf(event.payload.cacheReadTokens),
          cost: figure(event.payload.costEstimateUsd),
          currency: text(event.payload.currency) || "USD",
          again: n > 0 || (attempts.get(node) ?? 0) > 0,
        });
        break;
      }
      case "envelope.retry.attempted":
      case "node.completed":
      case "node.failed": {
        const silentCall = silent.get(node);
        if (silentCall) calls.push(unknownCall(silentCall, node, attempts.get(node) ?? 0, (tries.get(node) ?? 0) > 0));
        silent.delete(node);
        break;
      }
    }
  }
  return calls.sort((a, b) => a.seq - b.seq);
}

function unknownCall(silentCall: { seq: number; model: string; provider: string }, nodeId: string, attempt: number, again: boolean): Call {
  return { ...silentCall, nodeId, attempt, input: undefined, output: undefined, cached: undefined, cost: undefined, currency: "", again: again || attempt > 0 };
}

/** Sums the known values, and counts the calls without usage. */
export function sumOf(calls: readonly Call[]): Sum {
  const sum: Sum = { input: 0n, output: 0n, cached: undefined, cost: undefined, calls: calls.length, unknown: 0 };
  for (const call of calls) {
    if (call.input === undefined || call.output === undefined) sum.unknown++;
    sum.input += call.input ?? 0n;
    sum.output += call.output ?? 0n;
    if (call.cached !== undefined) sum.cached = (sum.cached ?? 0n) + call.cached;
    if (call.cost !== undefined) sum.cost = (sum.cost ?? 0) + call.cost;
  }
  return sum;
}

/** Formats an amount with enough digits to be visible. */
export function money(amount: number | undefined, currency: string): string {
  if (amount === undefined) return "–";
  const digits = amount === 0 || amount >= 1 ? 2 : Math.min(8, 1 - Math.floor(Math.log10(amount)));
  return `${amount.toFixed(Math.max(2, digits))} ${currency || "USD"}`;
}

export function count(n: bigint | undefined): string {
  return n === undefined ? "–" : n.toLocaleString("en");
}
