// What tries of the playground have in common with each other: how many passed, and what one took.
import { number } from "../ladder/events";
import type { Execution } from "../ladder/model";

export type Figures = { passed: number; ended: number; inputTokens?: number; outputTokens?: number; cost?: number; currency?: string; tookMs?: number; models: string[] };

const mean = (of: readonly (number | undefined)[]): number | undefined => {
  const known = of.filter((n) => n !== undefined);
  return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0) / known.length;
};
const sum = (of: readonly unknown[]): number | undefined => {
  const known = of.map(number).filter((n) => n !== undefined);
  return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0);
};

/** Sums up executions of a node. An unknown value is left out, and never counts as 0. */
export function figuresOf(executions: readonly Execution[]): Figures {
  const ended = executions.filter((x) => x.result === "completed" || x.result === "failed");
  const usages = ended.map((x) => x.calls.flatMap((c) => (c.usage ? [c.usage] : [])));
  const took = ended.map((x) => sum(x.calls.map((c) => c.tookMs))).filter((n) => n !== undefined).sort((a, b) => a - b);
  const out: Figures = {
    passed: ended.filter((x) => x.result === "completed").length,
    ended: ended.length,
    models: [...new Set(usages.flat().flatMap((u) => (u.model ? [[u.provider, u.model].filter(Boolean).join(" · ")] : [])))],
  };
  const inputTokens = mean(usages.map((u) => sum(u.map((x) => x.inputTokens))));
  const outputTokens = mean(usages.map((u) => sum(u.map((x) => x.outputTokens))));
  const cost = mean(usages.map((u) => sum(u.map((x) => x.cost))));
  const currency = usages.flat().find((u) => u.currency)?.currency;
  const middle = took[Math.floor((took.length - 1) / 2)];
  if (inputTokens !== undefined) out.inputTokens = Math.round(inputTokens);
  if (outputTokens !== undefined) out.outputTokens = Math.round(outputTokens);
  if (cost !== undefined) out.cost = cost;
  if (currency !== undefined) out.currency = currency;
  if (middle !== undefined) out.tookMs = middle;
  return out;
}
